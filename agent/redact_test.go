package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/secret"
	"github.com/callsheet/callsheet/value"
)

// leaky is a model that says a secret in pieces and in every part of its reply.
type leaky struct {
	secret string
	heard  []string
}

func (m *leaky) Ask(_ context.Context, req *model.Request) (*model.Reply, error) {
	for _, msg := range req.Messages {
		m.heard = append(m.heard, msg.Text+string(msg.Raw))
	}
	text := "the key is " + m.secret + ", I think"
	if req.Progress != nil {
		for _, r := range text {
			req.Progress(string(r))
		}
	}
	if req.Round == 1 {
		return &model.Reply{Text: text, Raw: fmt.Appendf(nil, `{"content":%q}`, text), Dialect: "test"}, nil
	}
	return &model.Reply{Text: text, Calls: []model.Call{{ID: "c1", Name: "submit", Arguments: fmt.Sprintf(`{"city":%q}`, m.secret)}}}, nil
}

type marks struct{ secret string }

func (m marks) RedactText(s string) string { return strings.ReplaceAll(s, m.secret, "[secret]") }
func (m marks) Longest() int               { return len(m.secret) }
func (m marks) Redact(v value.Value) value.Value {
	r, err := secret.NewRedactor(map[string]string{"key": m.secret})
	if err != nil {
		panic(err)
	}
	return r.Value(v)
}

func TestHostile030_AModelCannotTellASecret(t *testing.T) {
	const secret = "s3cr3t-canary-42"
	m := &leaky{secret: secret}
	var told strings.Builder
	var kept []string
	a, err := agent.New(agent.Config[map[string]string]{
		Model: m, Redactor: marks{secret}, Stream: true,
		Submission: agent.Submission{Name: "submit"},
		Watch:      func(e agent.Event) { told.WriteString(e.Text) },
		Recorder: recorderFunc(func(e agent.ReplyEvent) error {
			v, err := e.Value()
			kept = append(kept, v.String())
			return err
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	res, err := a.Run(t.Context(), agent.Task{System: "never say " + secret, User: "the key is " + secret})
	if err != nil {
		t.Fatal(err)
	}
	if res.Submission["city"] != "[secret:key]" {
		t.Errorf("the submission is %v", res.Submission)
	}
	if got, want := told.String(), strings.Repeat("the key is [secret], I think", 2); got != want {
		t.Errorf("watched %q, want %q", got, want)
	}
	var seen []string
	for _, msg := range res.Transcript {
		seen = append(seen, msg.Text+string(msg.Raw)+fmt.Sprint(msg.Calls))
	}
	for where, list := range map[string][]string{"record": kept, "transcript": seen, "model's own messages": m.heard, "submission": {value.MustParse(`{}`).String(), res.Submitted.String()}} {
		if all := strings.Join(list, "\n"); len(list) == 0 || strings.Contains(all, secret) {
			t.Errorf("the %s: %s", where, all)
		}
	}
}

// replies is a model that gives one reply.
type replies struct{ reply model.Reply }

func (m *replies) Ask(context.Context, *model.Request) (*model.Reply, error) { return &m.reply, nil }

// Arguments are JSON before and after, so that a provider takes them back, and a
// secret in them is found however it is escaped.
func TestHostile030_SecretsInArguments(t *testing.T) {
	const key = "1234567890"
	for _, c := range []struct{ name, arguments, raw, want, wantRaw string }{
		{"a number", `{"city": 1234567890}`, `{"input":{"city": 1234567890}}`, `{"city":"[secret:key]"}`, `{"input":{"city":"[secret:key]"}}`},
		{"a number in text", `{"city": 1234567890}`, `{"arguments":"{\"city\": 1234567890}"}`, `{"city":"[secret:key]"}`, `{"arguments":"{\"city\":\"[secret:key]\"}"}`},
		{"half escaped", `{"city":"12345\u00367890"}`, `{"input":{"city":"12345\u00367890"}}`, `{"city":"[secret:key]"}`, `{"input":{"city":"[secret:key]"}}`},
		{"a name", `{"1234567890":1}`, `{"input":{"1234567890":1}}`, `{"[secret:key]":1}`, `{"input":{"[secret:key]":1}}`},
		{"none", `{ "city": "\u0031" }`, `{"input": { "city": "\u0031" }}`, `{ "city": "\u0031" }`, `{"input": { "city": "\u0031" }}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := agent.New(agent.Config[map[string]any]{
				Model:    &replies{model.Reply{Raw: []byte(c.raw), Dialect: "test", Calls: []model.Call{{ID: "c1", Name: "submit", Arguments: c.arguments}}}},
				Redactor: marks{key}, Schema: schema.MustCompile(`{"type":"object"}`),
			})
			if err != nil {
				t.Fatal(err)
			}
			res, err := a.Run(t.Context(), agent.Task{User: "go"})
			if err != nil {
				t.Fatal(err)
			}
			said := res.Transcript[1]
			if said.Calls[0].Arguments != c.want || string(said.Raw) != c.wantRaw {
				t.Errorf("got %s and %s, want %s and %s", said.Calls[0].Arguments, said.Raw, c.want, c.wantRaw)
			}
		})
	}
}

// recorderFunc is a recorder that is a function.
type recorderFunc func(agent.ReplyEvent) error

func (f recorderFunc) Reply(_ context.Context, e agent.ReplyEvent) error { return f(e) }
