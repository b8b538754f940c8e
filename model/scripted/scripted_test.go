package scripted_test

import (
	"strings"
	"testing"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/modeltest"
	"github.com/callsheet/callsheet/model/scripted"
	"github.com/callsheet/callsheet/value"
)

// script writes what was said as a file of replies.
func script(said []modeltest.Said) string {
	reasons := map[model.Finish]string{model.FinishStop: "stop", model.FinishCalls: "tool_calls", model.FinishLength: "length",
		model.FinishFilter: "content_filter", model.FinishRefusal: "refusal", model.FinishOther: "other"}
	var list []map[string]any
	for _, s := range said {
		r := map[string]any{"content": s.Text, "finish_reason": reasons[s.Finish]}
		var calls []map[string]any
		for _, c := range s.Calls {
			call := map[string]any{"name": c.Name, "arguments": c.Arguments}
			if c.ID != nil {
				call["id"] = *c.ID
			}
			calls = append(calls, call)
		}
		if len(calls) > 0 {
			r["tool_calls"] = calls
		}
		if s.Prompt != nil || s.Completion != nil {
			r["usage"] = map[string]any{"prompt_tokens": s.Prompt, "completion_tokens": s.Completion}
		}
		list = append(list, r)
	}
	v, err := value.Of(list)
	if err != nil {
		panic(err)
	}
	return v.String()
}

func TestModel(t *testing.T) {
	modeltest.Replies(t, func(t *testing.T, said ...modeltest.Said) (model.Model, bool) {
		m, err := scripted.Parse([]byte(script(said)))
		if err != nil {
			t.Fatal(err)
		}
		return m, true
	})
}

func TestPastTheEnd(t *testing.T) {
	m := scripted.New(&model.Reply{Text: "one"})
	for i, want := range []string{"", "the script has 1 replies, and this is request 2"} {
		_, err := m.Ask(t.Context(), modeltest.Request())
		if got := ""; err != nil {
			got = err.Error()
			if want == "" || !strings.Contains(got, want) {
				t.Errorf("request %d: %s", i+1, got)
			}
		} else if want != "" {
			t.Errorf("request %d: no error, want %q", i+1, want)
		}
	}
}

// A conversation that is resumed does not get its first reply again.
func TestResumedConversation(t *testing.T) {
	m := scripted.New(&model.Reply{Text: "one"}, &model.Reply{Text: "two"}, &model.Reply{Text: "three"})
	req := modeltest.Request()
	req.Round = 2
	for _, want := range []string{"two", "three"} {
		if r, err := m.Ask(t.Context(), req); err != nil || r.Text != want {
			t.Errorf("got %+v, %v, want %s", r, err, want)
		}
	}
}

func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		`{}`:                         "a script is an array of replies, not a object",
		`[{"contents":"x"}]`:         "contents",
		`[{"finish_reason":"done"}]`: `/0: /finish_reason: unknown reason "done"`,
		`[{"tool_calls":[{"name":"x","arguments":[1]}]}]`: "/0: /tool_calls/0/arguments: a array, not an object or text",
		`[`: "line 1, column 2",
	} {
		if _, err := scripted.Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
