package run_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

func TestAGateThatEndsItsGoroutineAllowsNothing(t *testing.T) {
	gate := gateFunc(func(context.Context, call.Request) (call.Decision, error) {
		runtime.Goexit()
		return call.Decision{}, nil
	})
	tl := named("t", writes, func(context.Context, *tool.Call) (value.Value, error) {
		t.Error("the tool was called")
		return value.NullValue(), nil
	})
	r, err := run.Do(t.Context(), decode(t, `[{"id":"a","tool":"t"}]`), set(t, tl), run.Options{Gate: gate})
	if err == nil {
		t.Error("no error from a gate that did not judge")
	}
	want(t, r, `{"status":{"a":"cancelled"},"outputs":{},"waves":[["a"]],"calls":0}`)
}

func TestNothingIsToldAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := named("t", writes, func(_ context.Context, c *tool.Call) (value.Value, error) {
			for range 10 { // long after its call was given up
				c.Progress(tool.Progress{Done: 1})
				time.Sleep(time.Second)
			}
			return value.NullValue(), nil
		})
		tl.Deadline = 2500 * time.Millisecond
		var told []run.EventKind
		do(t, `[{"id":"a","tool":"t"}]`, set(t, tl), run.Options{Observer: func(e run.Event) { told = append(told, e.Kind) }})
		time.Sleep(time.Minute)
		noted := 0
		for _, k := range told {
			if k == run.Noted {
				noted++
			}
		}
		if noted != 3 || told[len(told)-1] != run.Ended {
			t.Errorf("told %v, want three notes of progress and the end last", told)
		}
	})
}

// A reference into a step that was skipped, failed or denied: the step is
// skipped, and its cause is the first reason.
func TestHostile016_AReferenceToWhatIsNotThere(t *testing.T) {
	gate := gateFunc(func(_ context.Context, r call.Request) (call.Decision, error) {
		if r.Step == "denied" {
			return call.Decision{Verdict: machine.Deny, Code: "rule", Message: "no"}, nil
		}
		return call.Decision{Verdict: machine.Allow}, nil
	})
	fails := named("fails", reads, func(context.Context, *tool.Call) (value.Value, error) { return value.Value{}, tool.Errorf("broken") })
	r := do(t, `[
		{"id":"failed","tool":"fails"},
		{"id":"denied","tool":"t"},
		{"id":"a","tool":"t","args":{"x":"$failed.v"}},
		{"id":"b","tool":"t","args":{"x":"$a"}},
		{"id":"c","tool":"t","args":{"x":"$denied.v"}}
	]`, set(t, fails, named("t", reads, ok)), run.Options{Gate: gate})
	want(t, r, `{"status":{"failed":"tool_error","denied":"denied","a":"skipped","b":"skipped","c":"skipped"},"outputs":{},"waves":[["failed","denied"]],"calls":1}`)
	for step, cause := range map[int]machine.Cause{2: {Step: "failed", Code: "tool_error"}, 3: {Step: "failed", Code: "tool_error"}, 4: {Step: "denied", Code: "rule"}} {
		if got := r.Steps[step].Cause; got == nil || got.Step != cause.Step || got.Code != cause.Code {
			t.Errorf("step %s: cause %+v, want %s and %s", r.Steps[step].ID, got, cause.Step, cause.Code)
		}
	}
}

// A call that an interrupt ended without an answer is no failure of its tool: a
// run that goes on makes it again, however many attempts it has left.
func TestACallThatWasCancelledIsMadeAgain(t *testing.T) {
	cancelled := func(f tool.Failure) []run.Past {
		f.Code = tool.CodeCancelled
		return []run.Past{
			{Step: "a", Begun: true, Event: machine.Event{Attempt: 1}},
			{Step: "a", Event: machine.Event{Kind: machine.Answered, Attempt: 1, Failure: &f}},
		}
	}
	for name, c := range map[string]struct {
		effects tool.Effects
		failure tool.Failure
		want    machine.Status
		outcome string
	}{
		"safe":             {reads, tool.Failure{Lost: true}, machine.OK, "lost ok"},
		"not begun":        {writes, tool.Failure{NotStarted: true}, machine.OK, "failed ok"},
		"may be an effect": {writes, tool.Failure{Lost: true}, machine.Uncertain, "lost"},
	} {
		t.Run(name, func(t *testing.T) {
			tl := named("t", c.effects, ok)
			tl.Attempts = 1
			s := do(t, `[{"id":"a","tool":"t"}]`, set(t, tl), run.Options{Past: cancelled(c.failure)}).Steps[0]
			var outcomes []string
			for i := range s.Attempts {
				outcomes = append(outcomes, s.Attempts[i].Outcome())
			}
			if got := strings.Join(outcomes, " "); s.Status != c.want || got != c.outcome {
				t.Errorf("got %s by %s, want %s by %s", s.Status, got, c.want, c.outcome)
			}
		})
	}
}

// A step that a run's own deadline kept from its call says so.
func TestADeadlineIsTheReasonOfTheSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hangs := named("hangs", reads, func(ctx context.Context, _ *tool.Call) (value.Value, error) {
			<-ctx.Done()
			return value.NullValue(), nil
		})
		r := do(t, `[{"id":"a","tool":"hangs"},{"id":"b","tool":"hangs"},{"id":"c","tool":"hangs","after":["b"]}]`, set(t, hangs), run.Options{Deadline: time.Second})
		want(t, r, `{"status":{"a":"ok","b":"cancelled","c":"cancelled"},"outputs":{"a":null},"waves":[["a","b"]],"calls":1}`)
		for _, s := range r.Steps[1:] {
			if want := "the run was cancelled before the step settled: " + run.ErrDeadline.Error(); s.Cause == nil || s.Cause.Message != want {
				t.Errorf("step %s: cause %+v, want %q", s.ID, s.Cause, want)
			}
		}
	})
}

// A gate that gives no verdict has allowed nothing.
func TestAGateWithoutAVerdictAllowsNothing(t *testing.T) {
	gate := gateFunc(func(context.Context, call.Request) (call.Decision, error) { return call.Decision{}, nil })
	r, err := run.Do(t.Context(), decode(t, `[{"id":"a","tool":"t"}]`), set(t, named("t", writes, ok)), run.Options{Gate: gate})
	if !errors.Is(err, call.ErrUndecided) {
		t.Errorf("got %v, want ErrUndecided", err)
	}
	want(t, r, `{"status":{"a":"cancelled"},"outputs":{},"waves":[["a"]],"calls":0}`)
}
