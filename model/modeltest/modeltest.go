// Package modeltest is the suite that every adapter of a model passes. It runs
// adapters over real HTTP against a server that writes and refuses as the
// providers do, misbehaviours included; the subtests that answer a public bug
// report carry the number that it has in spec/loop-cases.md.
//
// The servers are stand-ins, written from what providers document and from what
// users reported; a real one is met with a recorder of package cassette.
//
//	func TestModel(t *testing.T) {
//		modeltest.RunHTTP(t, modeltest.OpenAI{}, func(t *testing.T, s *modeltest.Server) model.Model { … })
//	}
package modeltest

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/value"
)

// Int is a pointer to n.
func Int(n int) *int { return &n }

// ID is a pointer to an id.
func ID(s string) *string { return &s }

// Tools are the tools of the suite's requests.
func Tools() []*model.Tool {
	return []*model.Tool{
		{Name: "search", Description: "finds things", Input: value.MustParse(`{"type":"object","properties":{"q":{"type":"string"}}}`)},
		{Name: "now"},
		{Name: "submit", Description: "ends the run"},
	}
}

// Request is a first request.
func Request() *model.Request {
	return &model.Request{
		Messages: []*model.Message{model.System("You are a test."), model.User("Begin.")},
		Tools:    Tools(), Role: "test", Round: 1,
	}
}

// Next is the request that follows reply, with an answer to each of its calls
// or else the user's.
func Next(req *model.Request, reply *model.Reply) *model.Request {
	next := *req
	next.Round++
	next.Messages = append(append([]*model.Message{}, req.Messages...), reply.Message())
	for _, c := range reply.Calls {
		next.Messages = append(next.Messages, model.Answer(c, `{"ok":true}`, false))
	}
	if len(reply.Calls) == 0 {
		next.Messages = append(next.Messages, model.User("Go on."))
	}
	return &next
}

// Replies are the contract that holds for a model of any kind: what was said
// comes out as it was said. build makes a model that says the replies in order;
// ok is false where the kind cannot say one of them.
func Replies(t *testing.T, build func(t *testing.T, said ...Said) (m model.Model, ok bool)) {
	id := ID("a")
	for _, c := range []struct {
		name string
		said Said
		want func(t *testing.T, r *model.Reply)
	}{
		{"text", Said{Text: "Grüß Gott 👋", Finish: model.FinishStop, Prompt: Int(7), Completion: Int(0)}, func(t *testing.T, r *model.Reply) {
			equal(t, "text", r.Text, "Grüß Gott 👋")
			equal(t, "finish", r.Finish, model.FinishStop)
			equal(t, "usage", r.Usage, model.Usage{Prompt: Int(7), Completion: Int(0)})
		}},
		{"calls in order", Said{Text: "two", Calls: []SaidCall{{ID("b"), "search", `{"q":"x", "n":9007199254740993}`}, {id, "now", `{}`}}, Finish: model.FinishCalls}, func(t *testing.T, r *model.Reply) {
			equal(t, "ids", ids(r), "b a")
			equal(t, "names", r.Calls[0].Name+" "+r.Calls[1].Name, "search now")
			if !strings.Contains(r.Calls[0].Arguments, "9007199254740993") {
				t.Errorf("arguments are %s: the number is not exact", r.Calls[0].Arguments)
			}
			equal(t, "finish", r.Finish, model.FinishCalls)
		}},
		{"B07_EmptyArguments", Said{Calls: []SaidCall{{id, "now", ""}}, Finish: model.FinishCalls}, func(t *testing.T, r *model.Reply) {
			if a := r.Calls[0].Arguments; a != "" && a != "{}" {
				t.Errorf("arguments are %q, want none", a)
			}
		}},
		{"B10_IDsThatStandTwice", Said{Calls: []SaidCall{{ID("now"), "now", `{}`}, {ID("now"), "now", `{"n":2}`}, {nil, "now", `{"n":3}`}}, Finish: model.FinishCalls}, func(t *testing.T, r *model.Reply) {
			seen := map[string]bool{}
			for i, c := range r.Calls {
				if c.ID == "" || seen[c.ID] {
					t.Errorf("call %d has the id %q", i+1, c.ID)
				}
				seen[c.ID] = true
			}
			equal(t, "first id", r.Calls[0].ID, "now")
			equal(t, "provider's second id", r.Calls[1].ProviderID, "now")
			if len(r.Edits) < 2 {
				t.Errorf("edits are %q, want both ids listed", r.Edits)
			}
		}},
		{"B11_TwoCallsInOneArgumentText", Said{Calls: []SaidCall{{id, "search", `{"q":"x"}{"q":"y"}`}}, Finish: model.FinishCalls}, func(t *testing.T, r *model.Reply) {
			equal(t, "arguments", r.Calls[0].Arguments, `{"q":"x"}{"q":"y"}`)
		}},
		{"B47_MalformedArguments", Said{Calls: []SaidCall{{id, "search", `{"q":"x`}}, Finish: model.FinishCalls}, func(t *testing.T, r *model.Reply) {
			equal(t, "arguments", r.Calls[0].Arguments, `{"q":"x`)
		}},
		{"B12_CallsWithAnotherFinish", Said{Calls: []SaidCall{{id, "now", `{}`}}, Finish: model.FinishOther}, func(t *testing.T, r *model.Reply) {
			equal(t, "calls", len(r.Calls), 1)
			equal(t, "withheld", r.Finish.Withheld(), false)
		}},
		{"B14_Length", Said{Calls: []SaidCall{{id, "now", `{}`}}, Finish: model.FinishLength}, func(t *testing.T, r *model.Reply) {
			equal(t, "finish", r.Finish, model.FinishLength)
		}},
		{"B16_CutButNotSaid", Said{Calls: []SaidCall{{id, "now", `{}`}}, Finish: model.FinishCalls, Prompt: Int(1), Completion: Int(64)}, func(t *testing.T, r *model.Reply) {
			equal(t, "finish", r.Finish, model.FinishLength)
		}},
		{"refusal", Said{Text: "No.", Finish: model.FinishRefusal}, func(t *testing.T, r *model.Reply) {
			equal(t, "withheld", r.Finish.Withheld(), true)
		}},
		{"B38_UsageNotReported", Said{Text: "Hi.", Finish: model.FinishStop}, func(t *testing.T, r *model.Reply) {
			equal(t, "usage", r.Usage, model.Usage{})
		}},
		{"H50_NegativeUsage", Said{Text: "Hi.", Finish: model.FinishStop, Prompt: Int(-5), Completion: Int(-1)}, func(t *testing.T, r *model.Reply) {
			equal(t, "usage", r.Usage, model.Usage{Prompt: Int(-5), Completion: Int(-1)}) // the loop clamps and flags it
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, ok := build(t, c.said, Said{Text: "end", Finish: model.FinishStop})
			if !ok {
				return
			}
			req := Request()
			req.MaxTokens = 64
			r, err := m.Ask(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			c.want(t, r)
			// Whatever was said can be sent back, and the server takes it.
			if r, err = m.Ask(t.Context(), Next(req, r)); err != nil {
				t.Fatalf("the next round: %v", err)
			}
			equal(t, "next text", r.Text, "end")
		})
	}
	t.Run("cancelled", func(t *testing.T) {
		m, _ := build(t, Said{Text: "late", Finish: model.FinishStop})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.Ask(ctx, Request()); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the context's error", err)
		}
	})
}

func ids(r *model.Reply) string {
	var ids []string
	for _, c := range r.Calls {
		ids = append(ids, c.ID)
	}
	return strings.Join(ids, " ")
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// CheckReply tells what no reply may be, whatever a server sent: one with calls
// that cannot be told apart, or one that cannot be kept.
func CheckReply(t testing.TB, way string, r *model.Reply) {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range r.Calls {
		if c.ID == "" || seen[c.ID] {
			t.Errorf("%s: the id %q is empty or stands twice", way, c.ID)
		}
		seen[c.ID] = true
	}
	if _, err := r.Value(); err != nil {
		t.Errorf("%s: cannot be kept: %v", way, err)
	}
}
