package modeltest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/callsheet/callsheet/model"
)

// RunHTTP is the whole suite for an adapter over HTTP. build makes one that
// talks to s.URL with the key in [KeyEnv], the server's Retry, and at most
// 1 MiB of response.
func RunHTTP(t *testing.T, d Dialect, build func(t *testing.T, s *Server) model.Model) {
	start := func(t *testing.T, handlers ...http.HandlerFunc) (*Server, model.Model) {
		s := NewServer(t, d, handlers...)
		return s, build(t, s)
	}
	hello := Said{Text: "hello", Finish: model.FinishStop, Prompt: Int(3), Completion: Int(2)}
	ok := Says(d, hello)

	for _, way := range []string{"whole", "stream"} {
		t.Run(way, func(t *testing.T) {
			Replies(t, func(t *testing.T, said ...Said) (model.Model, bool) {
				var hs []http.HandlerFunc
				for _, s := range said {
					if _, can := d.Whole(s); way == "whole" && !can {
						return nil, false
					}
					hs = append(hs, Says(d, s))
				}
				_, m := start(t, hs...)
				if way == "stream" {
					return streaming{m}, true
				}
				return m, true
			})
		})
	}

	t.Run("the message goes back byte for byte", func(t *testing.T) {
		said := Said{Text: "a  b\n\u2028", Calls: []SaidCall{{ID("c1"), "search", `{"q": "x",  "n": 1E2}`}}, Finish: model.FinishCalls,
			Extra: `"type":"thinking","thinking":"hm <&> \u003c","signature":"s1g=="`}
		s, m := start(t, Says(d, said), ok)
		req := Request()
		r := ask(t, m, req)
		ask(t, m, Next(req, r))
		whole, _ := d.Whole(said)
		if raw := d.Raw(whole); !strings.Contains(s.Texts()[1], raw) {
			t.Errorf("the second request is\n%s\nand does not hold\n%s", s.Texts()[1], raw)
		}
		equal(t, "edits", len(r.Edits), 0)
	})
	t.Run("B08_NoArgumentsInAStream", func(t *testing.T) {
		s, m := start(t, Says(d, Said{Calls: []SaidCall{{ID("c1"), "now", ""}}, Finish: model.FinishCalls}), ok)
		req := Request()
		r := ask(t, streaming{m}, req)
		ask(t, streaming{m}, Next(req, r)) // the server refuses "" in the history
		if body := s.Texts()[1]; !strings.Contains(body, `"arguments":"{}"`) && !strings.Contains(body, `"input":{}`) {
			t.Errorf("the call goes back without {}:\n%s", body)
		}
	})
	t.Run("B37_UsageOfAStream", func(t *testing.T) {
		_, m := start(t, ok)
		var heard strings.Builder
		req := Request()
		req.Progress = func(s string) { heard.WriteString(s) }
		r := ask(t, m, req)
		equal(t, "usage", r.Usage, model.Usage{Prompt: Int(3), Completion: Int(2)})
		equal(t, "progress", heard.String(), "hello")
	})
	t.Run("B19_TheChoiceIsOfOneRound", func(t *testing.T) {
		s, m := start(t, Says(d, Said{Calls: []SaidCall{{ID("c1"), "now", `{}`}}, Finish: model.FinishCalls}), ok)
		req := Request()
		req.Choice = model.Choice{Mode: model.ModeAny}
		next := Next(req, ask(t, m, req))
		next.Choice = model.Choice{}
		ask(t, m, next)
		if _, sticks := s.Bodies()[1].Get("tool_choice"); sticks {
			t.Errorf("the second request still has a tool_choice: %s", s.Texts()[1])
		}
	})
	t.Run("B20_ToolsStayDefined", func(t *testing.T) {
		s, m := start(t, Says(d, Said{Calls: []SaidCall{{ID("c1"), "now", `{}`}}, Finish: model.FinishCalls}), ok)
		req := Request()
		next := Next(req, ask(t, m, req))
		next.Choice = model.Choice{Mode: model.ModeNone}
		ask(t, m, next)
		if tools, _ := s.Bodies()[1].Get("tools"); tools.Len() == 0 {
			t.Errorf("no tools in %s", s.Texts()[1])
		}
	})
	t.Run("forced by name", func(t *testing.T) {
		s, m := start(t, ok)
		req := Request()
		req.Choice = model.Force("submit")
		ask(t, m, req)
		choice, _ := s.Bodies()[0].Get("tool_choice")
		if !strings.Contains(choice.String(), `"name":"submit"`) {
			t.Errorf("tool_choice is %s", choice)
		}
	})

	t.Run("overload is tried again", func(t *testing.T) {
		s, m := start(t, Fails(503, "busy", ""), Fails(429, `{"error":{"message":"slow down"}}`, "7"), Fails(529, "", ""), ok)
		equal(t, "text", ask(t, m, Request()).Text, "hello")
		equal(t, "waits", s.Waits(), []time.Duration{time.Second / 2, 7 * time.Second, 2 * time.Second})
	})
	t.Run("the attempts are bounded", func(t *testing.T) {
		s, m := start(t, Fails(500, `{"error":{"message":"it broke"}}`, ""))
		e := fail(t, m, Request())
		equal(t, "kind", e.Kind, model.Transient)
		equal(t, "attempts", e.Attempts, model.DefaultAttempts)
		equal(t, "requests", len(s.Texts()), model.DefaultAttempts)
	})
	t.Run("H45_RetryAfterForEver", func(t *testing.T) {
		s, m := start(t, Fails(429, "", "1000000000"))
		equal(t, "kind", fail(t, m, Request()).Kind, model.Transient)
		equal(t, "requests", len(s.Texts()), 1)
	})
	t.Run("H45_RetryAfterNegative", func(t *testing.T) {
		s, m := start(t, Fails(429, "", "-5"), ok)
		ask(t, m, Request())
		equal(t, "waits", s.Waits(), []time.Duration{time.Second / 2})
	})
	t.Run("dropped connections are tried again", func(t *testing.T) {
		s, m := start(t, Drops(""), Drops(`{"choices":[{"mess`), ok)
		equal(t, "text", ask(t, m, Request()).Text, "hello")
		equal(t, "requests", len(s.Texts()), 3)
	})
	t.Run("a stream that breaks off is tried again", func(t *testing.T) {
		stream := d.Stream(hello)
		s, m := start(t, Drops(stream[:len(stream)/2]), ok)
		equal(t, "text", ask(t, streaming{m}, Request()).Text, "hello")
		equal(t, "requests", len(s.Texts()), 2)
	})
	t.Run("a bad request is not", func(t *testing.T) {
		s, m := start(t, Fails(400, `{"error":{"code":"bad","message":"no such model"}}`, ""))
		e := fail(t, m, Request())
		equal(t, "kind", e.Kind, model.Permanent)
		equal(t, "code", e.Code, "bad")
		equal(t, "requests", len(s.Texts()), 1)
	})
	t.Run("a refusal is not", func(t *testing.T) {
		s, m := start(t, Fails(400, `{"error":{"code":"content_filter","message":"your content policy"}}`, ""))
		equal(t, "kind", fail(t, m, Request()).Kind, model.Refusal)
		equal(t, "requests", len(s.Texts()), 1)
	})
	t.Run("H34_ResponseTooLarge", func(t *testing.T) {
		s, m := start(t, Says(d, Said{Text: strings.Repeat("x", 2<<20), Finish: model.FinishStop}))
		e := fail(t, m, Request())
		if e.Kind != model.Permanent || !strings.Contains(e.Message, "1048576 bytes") {
			t.Errorf("got %v", e)
		}
		equal(t, "requests", len(s.Texts()), 1)
	})
	t.Run("the key is in no error", func(t *testing.T) {
		_, m := start(t, Fails(401, `{"error":{"message":"bad key `+Key+`"}}`, ""))
		if e := fail(t, m, Request()); strings.Contains(e.Error(), Key) || !strings.Contains(e.Error(), "[key]") {
			t.Errorf("got %v", e)
		}
	})
	t.Run("redirects are not followed", func(t *testing.T) {
		away := NewServer(t, d, ok)
		_, m := start(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, away.URL, http.StatusTemporaryRedirect)
		})
		equal(t, "kind", fail(t, m, Request()).Kind, model.Permanent)
		equal(t, "requests elsewhere", len(away.Texts()), 0)
	})
	t.Run("another provider's messages are refused", func(t *testing.T) {
		s, m := start(t, ok)
		req := Request()
		req.Messages = append(req.Messages, &model.Message{From: model.FromAssistant, Raw: []byte(`{}`), Dialect: "elsewhere"})
		equal(t, "kind", fail(t, m, req).Kind, model.Permanent)
		equal(t, "requests", len(s.Texts()), 0)
	})
	t.Run("messages without raw bytes are written", func(t *testing.T) {
		_, m := start(t, ok)
		made := &model.Reply{Text: "x", Calls: []model.Call{{ID: "1", Name: "search", Arguments: `{"q":"y"}`}, {ID: "2", Name: "now", Arguments: `{broken`}, {ID: "3", Name: "now"}}}
		ask(t, m, Next(Request(), made)) // the server judges it
		ask(t, m, Next(Request(), &model.Reply{Text: "only text"}))
	})
}

// streaming asks with progress.
type streaming struct{ model.Model }

func (s streaming) Ask(ctx context.Context, req *model.Request) (*model.Reply, error) {
	r := *req
	r.Progress = func(string) {}
	return s.Model.Ask(ctx, &r)
}

func ask(t *testing.T, m model.Model, req *model.Request) *model.Reply {
	t.Helper()
	r, err := m.Ask(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func fail(t *testing.T, m model.Model, req *model.Request) *model.Error {
	t.Helper()
	r, err := m.Ask(t.Context(), req)
	var e *model.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %+v and %v, want a *model.Error", r, err)
	}
	return e
}
