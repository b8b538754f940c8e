package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/model"
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
	if res.Submission["city"] != "[secret]" {
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

// recorderFunc is a recorder that is a function.
type recorderFunc func(agent.ReplyEvent) error

func (f recorderFunc) Reply(_ context.Context, e agent.ReplyEvent) error { return f(e) }
