package openai_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/modeltest"
	"github.com/callsheet/callsheet/model/openai"
	"github.com/callsheet/callsheet/value"
)

func build(t *testing.T, s *modeltest.Server, forcing model.Forcing) model.Model {
	t.Helper()
	m, err := openai.New(openai.Config{
		BaseURL: s.URL, Model: "test-1", KeyEnv: modeltest.KeyEnv, Forcing: forcing, Retry: s.Retry, MaxBytes: 1 << 20,
		Extra: value.MustParse(`{"temperature":0}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestModel(t *testing.T) {
	modeltest.RunHTTP(t, modeltest.OpenAI{}, func(t *testing.T, s *modeltest.Server) model.Model {
		return build(t, s, model.ForcesByName)
	})
}

var hello = modeltest.Says(modeltest.OpenAI{}, modeltest.Said{Text: "hello", Finish: model.FinishStop})

// A server that refuses tool_choice is asked again without it, in the same
// round, and the reply says so.
func TestB17_RefusedChoice(t *testing.T) {
	s := modeltest.NewServer(t, modeltest.OpenAI{},
		modeltest.Fails(400, `{"error":{"message":"Thinking may not be enabled when tool_choice forces tool use."}}`, ""), hello)
	req := modeltest.Request()
	req.Choice = model.Force("submit")
	r, err := build(t, s, model.ForcesByName).Ask(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Fallbacks) != 2 {
		t.Errorf("fallbacks: %q", r.Fallbacks)
	}
	onlySubmit(t, s.Bodies()[1])
}

func TestB17_ASecond400IsAnError(t *testing.T) {
	s := modeltest.NewServer(t, modeltest.OpenAI{}, modeltest.Fails(400, `{"error":"tool_choice is bad"}`, ""))
	req := modeltest.Request()
	req.Choice = model.Choice{Mode: model.ModeAny}
	if _, err := build(t, s, model.ForcesByName).Ask(t.Context(), req); err == nil || len(s.Texts()) != 2 {
		t.Errorf("got %v after %d requests, want an error after 2", err, len(s.Texts()))
	}
}

// A server that ignores tool_choice is never sent it.
func TestB18_IgnoredChoice(t *testing.T) {
	s := modeltest.NewServer(t, modeltest.OpenAI{}, hello)
	req := modeltest.Request()
	req.Choice = model.Force("submit")
	if _, err := build(t, s, model.ForcesNothing).Ask(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	onlySubmit(t, s.Bodies()[0])
}

func TestForcesAny(t *testing.T) {
	s := modeltest.NewServer(t, modeltest.OpenAI{}, hello)
	req := modeltest.Request()
	req.Choice = model.Force("submit")
	r, err := build(t, s, model.ForcesAny).Ask(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	choice, _ := s.Bodies()[0].Get("tool_choice")
	tools, _ := s.Bodies()[0].Get("tools")
	if tools.Len() != 1 || !value.Equal(choice, value.MustText("required")) || len(r.Fallbacks) != 0 {
		t.Errorf("tools %s, tool_choice %s, fallbacks %q", tools, choice, r.Fallbacks)
	}
}

func onlySubmit(t *testing.T, body value.Value) {
	t.Helper()
	if c, ok := body.Get("tool_choice"); ok {
		t.Errorf("tool_choice is sent: %s", c)
	}
	name, _ := body.AtPointer("/tools/0/function/name")
	if tools, _ := body.Get("tools"); tools.Len() != 1 || !value.Equal(name, value.MustText("submit")) {
		t.Errorf("tools are %s", tools)
	}
	messages, _ := body.Get("messages")
	if last := messages.At(messages.Len() - 1).String(); !strings.Contains(last, "Call the tool submit now") {
		t.Errorf("the last message is %s", last)
	}
}

// What DeepSeek and Gemini demand back is in members that the adapter has never
// heard of; a stream keeps them too.
func TestRawMembersSurvive(t *testing.T) {
	for name, extra := range map[string]string{
		"B31_ReasoningContent": `"reasoning_content":"first I think"`,
		"B32_ThoughtSignature": `"extra_content":{"google":{"thought_signature":"c2ln"}}`,
		"B33_OwnCallIDs":       `"x_call_ids":["function-call-1"]`,
	} {
		t.Run(name, func(t *testing.T) {
			said := modeltest.Said{Extra: extra, Calls: []modeltest.SaidCall{{ID: modeltest.ID("function-call-1"), Name: "now", Arguments: "{}"}}, Finish: model.FinishCalls}
			for _, stream := range []bool{false, true} {
				s := modeltest.NewServer(t, modeltest.OpenAI{}, modeltest.Says(modeltest.OpenAI{}, said), hello)
				m, req := build(t, s, model.ForcesByName), modeltest.Request()
				if stream {
					req.Progress = func(string) {}
				}
				r, err := m.Ask(t.Context(), req)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := m.Ask(t.Context(), modeltest.Next(req, r)); err != nil {
					t.Fatal(err)
				}
				body := s.Texts()[1]
				if !strings.Contains(body, extra) || !strings.Contains(body, `"tool_call_id":"function-call-1"`) {
					t.Errorf("stream %v: %s is not in the second request:\n%s", stream, extra, body)
				}
			}
		})
	}
}

// Routers report a failed provider with status 200.
func TestErrorWithStatus200(t *testing.T) {
	bad := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"error":{"code":502,"message":"upstream"},"choices":[]}`))
	}
	s := modeltest.NewServer(t, modeltest.OpenAI{}, bad, hello)
	r, err := build(t, s, model.ForcesByName).Ask(t.Context(), modeltest.Request())
	if err != nil || r.Text != "hello" {
		t.Errorf("got %+v, %v, want the second answer", r, err)
	}
}

func TestEmptyAccountIsNotRetried(t *testing.T) {
	s := modeltest.NewServer(t, modeltest.OpenAI{}, modeltest.Fails(429, `{"error":{"code":"insufficient_quota","message":"pay"}}`, ""))
	if _, err := build(t, s, model.ForcesByName).Ask(t.Context(), modeltest.Request()); err == nil || len(s.Texts()) != 1 {
		t.Errorf("got %v after %d requests", err, len(s.Texts()))
	}
}

func TestConfig(t *testing.T) {
	for want, c := range map[string]openai.Config{
		"Model is empty":        {},
		"not an http":           {Model: "m", BaseURL: "ftp://x"},
		"has a user":            {Model: "m", BaseURL: "http://u:p@x"},
		`sets "messages"`:       {Model: "m", Extra: value.MustParse(`{"messages":[]}`)},
		"Extra is a":            {Model: "m", Extra: value.MustParse(`[]`)},
		"MaxTokensField":        {Model: "m", MaxTokensField: "n"},
		"MaxTokens is negative": {Model: "m", MaxTokens: -1},
		"CALLSHEET_NO_SUCH_KEY": {Model: "m", KeyEnv: "CALLSHEET_NO_SUCH_KEY"},
		"Retry.Attempts":        {Model: "m", Retry: model.Retry{Attempts: -1}},
	} {
		if _, err := openai.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", c, err, want)
		}
	}
}
