package anthropic_test

import (
	"strings"
	"testing"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/anthropic"
	"github.com/callsheet/callsheet/model/modeltest"
	"github.com/callsheet/callsheet/value"
)

func build(t *testing.T, s *modeltest.Server, thinking string) model.Model {
	t.Helper()
	c := anthropic.Config{BaseURL: s.URL, Model: "test-1", KeyEnv: modeltest.KeyEnv, Retry: s.Retry, MaxBytes: 1 << 20}
	if thinking != "" {
		c.Thinking = value.MustParse(thinking)
	}
	m, err := anthropic.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestModel(t *testing.T) {
	modeltest.RunHTTP(t, modeltest.Anthropic{}, func(t *testing.T, s *modeltest.Server) model.Model { return build(t, s, "") })
}

var hello = modeltest.Says(modeltest.Anthropic{}, modeltest.Said{Text: "hello", Finish: model.FinishStop})

const thinkingOn = `{"type":"enabled","budget_tokens":1024}`

// A choice is never forced while the model thinks: the server would answer 400.
func TestB17_ThinkingAndForcedChoice(t *testing.T) {
	s := modeltest.NewServer(t, modeltest.Anthropic{}, hello)
	req := modeltest.Request()
	req.Choice = model.Force("submit")
	r, err := build(t, s, thinkingOn).Ask(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	body := s.Bodies()[0]
	if tools, _ := body.Get("tools"); tools.Len() != 1 {
		t.Errorf("tools are %s, want submit alone", tools)
	}
	if len(r.Fallbacks) != 1 || !strings.Contains(s.Texts()[0], "Call the tool submit now") {
		t.Errorf("fallbacks %q, request %s", r.Fallbacks, s.Texts()[0])
	}
}

func TestB30_ThinkingComesFirstAndWhole(t *testing.T) {
	const block = `{"type":"thinking","thinking":"hm","signature":"EqQBCgIYAhIM"}`
	said := modeltest.Said{Extra: strings.Trim(block, "{}"), Text: "I look.", Calls: []modeltest.SaidCall{{ID: modeltest.ID("t1"), Name: "now", Arguments: "{}"}}, Finish: model.FinishCalls}
	for _, stream := range []bool{false, true} {
		s := modeltest.NewServer(t, modeltest.Anthropic{}, modeltest.Says(modeltest.Anthropic{}, said), hello)
		m, req := build(t, s, thinkingOn), modeltest.Request()
		if stream {
			req.Progress = func(string) {}
		}
		r, err := m.Ask(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Ask(t.Context(), modeltest.Next(req, r)); err != nil { // the server wants it first
			t.Fatal(err)
		}
		if body := s.Texts()[1]; !strings.Contains(body, block) {
			t.Errorf("stream %v: no %s in %s", stream, block, body)
		}
	}
}

// A signature that arrives in parts is put together.
func TestThinkingStream(t *testing.T) {
	events := `data: {"type":"message_start","message":{"usage":{"input_tokens":5,"cache_read_input_tokens":10,"output_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"a"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"b"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"SIG"}}

data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"xyz"}}

data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"now","input":{}}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\": 1"}}

data: {"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":9}}

data: {"type":"message_stop"}

`
	s := modeltest.NewServer(t, modeltest.Anthropic{}, modeltest.Fails(200, events, ""))
	req := modeltest.Request()
	req.Progress = func(string) {}
	r, err := build(t, s, thinkingOn).Ask(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	const want = `[{"type":"thinking","thinking":"ab","signature":"SIG"},{"type":"redacted_thinking","data":"xyz"},` +
		`{"type":"tool_use","id":"t1","name":"now","input":{"_raw":"{\"a\": 1"}}]`
	if string(r.Raw) != want {
		t.Errorf("raw\ngot  %s\nwant %s", r.Raw, want)
	}
	if r.Calls[0].Arguments != `{"a": 1` || r.Finish != model.FinishLength || *r.Usage.Prompt != 15 || *r.Usage.Completion != 9 || len(r.Edits) != 1 {
		t.Errorf("got %+v, usage %d/%d", r, *r.Usage.Prompt, *r.Usage.Completion)
	}
}

func TestOverloadInsideAStream(t *testing.T) {
	const bad = "data: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy\"}}\n\n"
	s := modeltest.NewServer(t, modeltest.Anthropic{}, modeltest.Fails(200, bad, ""), hello)
	req := modeltest.Request()
	req.Progress = func(string) {}
	if r, err := build(t, s, "").Ask(t.Context(), req); err != nil || r.Text != "hello" {
		t.Errorf("got %+v, %v", r, err)
	}
}

// The API sends messages that it would not take back.
func TestEmptyContentGoesBack(t *testing.T) {
	for name, body := range map[string]string{
		"no block":   `{"content":[],"stop_reason":"end_turn"}`,
		"empty text": `{"content":[{"type":"text","text":""}],"stop_reason":"end_turn"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := modeltest.NewServer(t, modeltest.Anthropic{}, modeltest.Fails(200, body, ""), hello)
			m, req := build(t, s, ""), modeltest.Request()
			r, err := m.Ask(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if r.Text != "" || len(r.Edits) != 1 {
				t.Errorf("got %+v, want no text and one edit", r)
			}
			if _, err := m.Ask(t.Context(), modeltest.Next(req, r)); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	for want, c := range map[string]anthropic.Config{
		"Model is empty":        {},
		"Thinking is a":         {Model: "m", Thinking: value.Int(1)},
		`sets "system"`:         {Model: "m", Extra: value.MustParse(`{"system":""}`)},
		"MaxTokens is negative": {Model: "m", MaxTokens: -1},
		"CALLSHEET_NO_SUCH_KEY": {Model: "m", KeyEnv: "CALLSHEET_NO_SUCH_KEY"},
	} {
		if _, err := anthropic.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", c, err, want)
		}
	}
}
