package machine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// begin makes a machine for a plan whose steps all call the tool t.
func begin(t *testing.T, text string, d tool.Declaration, opt machine.Options) *machine.Machine {
	t.Helper()
	p, err := plan.Decode([]byte(text), plan.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	d.Name = "t"
	c, err := tool.NewCatalogue(&d)
	if err != nil {
		t.Fatal(err)
	}
	return machine.New(p, c, opt)
}

func next(t *testing.T, m *machine.Machine) machine.Action {
	t.Helper()
	a, ok := m.Next()
	if !ok {
		t.Fatal("the machine has no action")
	}
	return a
}

func apply(t *testing.T, m *machine.Machine, e machine.Event) {
	t.Helper()
	if err := m.Apply(e); err != nil {
		t.Fatal(err)
	}
}

// A tool that is no longer what it was when the run began was not called: the
// step is denied and spends nothing (spec/plan.md §3).
func TestAChangedToolIsDeniedAndSpendsNothing(t *testing.T) {
	budget := 2
	m := begin(t, `[{"id":"a","tool":"t"},{"id":"b","tool":"t"},{"id":"c","tool":"t","after":["a"]}]`,
		tool.Declaration{}, machine.Options{Budget: &budget})
	a := next(t, m)
	apply(t, m, machine.Event{Kind: machine.Answered, Step: a.Step, Attempt: 1, Failure: &tool.Failure{Code: tool.CodeToolChanged, Message: "changed"}})
	for range 2 { // both calls of the budget are still there for b
		b := next(t, m)
		apply(t, m, machine.Event{Kind: machine.Answered, Step: b.Step, Attempt: b.Attempt, Failure: &tool.Failure{Code: "busy", Retryable: true}})
	}
	want := `{"status":{"a":"denied","b":"tool_error","c":"skipped"},"outputs":{},"waves":[["a","b"]],"calls":2}`
	if got := string(m.Report().AppendJSON(nil)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if s := m.Report().Steps[0]; s.Cause.Code != tool.CodeToolChanged || len(s.Attempts) != 0 {
		t.Errorf("got cause %+v and attempts %+v, want tool_changed and none", s.Cause, s.Attempts)
	}
}

// What a failure says of its effect decides, and not when the machine hears of a
// cancellation.
func TestFailuresOfCallsThatHaveNoAnswer(t *testing.T) {
	reads, writes := tool.Effects{ReadOnly: true}, tool.Effects{}
	for name, c := range map[string]struct {
		effects tool.Effects
		failure tool.Failure
		status  machine.Status
		may     bool // have happened
	}{
		"cancelled, safe":        {reads, tool.Failure{Code: "cancelled", Lost: true}, machine.Cancelled, false},
		"cancelled, idempotent":  {tool.Effects{Idempotent: true}, tool.Failure{Code: "cancelled", Lost: true}, machine.Cancelled, true},
		"cancelled, an effect":   {writes, tool.Failure{Code: "cancelled", Lost: true}, machine.Uncertain, true},
		"cancelled before":       {writes, tool.Failure{Code: "cancelled", NotStarted: true}, machine.Cancelled, false},
		"says so as its failure": {writes, tool.Failure{Code: "cancelled"}, machine.ToolError, true},
		"refused before":         {writes, tool.Failure{Code: "invalid_args", NotStarted: true}, machine.ToolError, false},
	} {
		for _, late := range []bool{false, true} {
			m := begin(t, `[{"id":"a","tool":"t"}]`, tool.Declaration{Effects: c.effects}, machine.Options{})
			a := next(t, m)
			if late {
				apply(t, m, machine.Event{Kind: machine.Cancel})
			}
			apply(t, m, machine.Event{Kind: machine.Answered, Step: a.Step, Attempt: 1, Failure: &c.failure})
			r := m.Report()
			if s := r.Steps[0]; s.Status != c.status || s.Attempts[0].MayHaveHappened != c.may || r.Calls != 1 {
				t.Errorf("%s (cancelled first: %v): %s, may have happened: %v, %d calls; want %s, %v, 1", name, late, s.Status, s.Attempts[0].MayHaveHappened, r.Calls, c.status, c.may)
			}
		}
	}
}

func TestBackoffIsBoundedWhateverTheDelay(t *testing.T) {
	for _, base := range []time.Duration{time.Second, time.Hour, 1 << 62} {
		m := begin(t, `[{"id":"a","tool":"t"}]`, tool.Declaration{Attempts: 100, Delay: base}, machine.Options{})
		for n := 1; n < 100; n++ {
			a := next(t, m)
			if n > 1 && (a.Delay < min(base, 30*time.Second)/2 || a.Delay > 30*time.Second) {
				t.Fatalf("delay %v: attempt %d waits %v; want half to all of it, at most 30s", base, n, a.Delay)
			}
			apply(t, m, machine.Event{Kind: machine.Answered, Attempt: n, Failure: &tool.Failure{Code: "busy", Retryable: true}})
		}
	}
}

// Every step behind one that waits for a person says which one that is, however
// far behind it stands.
func TestStepsBehindAQuestionNameIt(t *testing.T) {
	const n = 20_000
	var text strings.Builder
	text.WriteString(`[{"id":"s0","tool":"t"}`)
	for i := 1; i < n; i++ {
		fmt.Fprintf(&text, `,{"id":"s%d","tool":"t","after":["s%d"]}`, i, i-1)
	}
	p, err := plan.Decode([]byte(text.String()+"]"), plan.Limits{Steps: n})
	if err != nil {
		t.Fatal(err)
	}
	c, err := tool.NewCatalogue(&tool.Declaration{Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	m := machine.New(p, c, machine.Options{Gate: true})
	apply(t, m, machine.Event{Kind: machine.Judged, Step: next(t, m).Step, Verdict: machine.Ask, Message: "may I?"})
	for _, s := range m.Report().Steps {
		if s.Status != machine.Waiting || s.Cause == nil || s.Cause.Step != "s0" || s.Cause.Code != "needs_approval" {
			t.Fatalf("step %s: got %s because of %+v, want waiting because of s0", s.ID, s.Status, s.Cause)
		}
	}
	apply(t, m, machine.Event{Kind: machine.Judged, Step: 0, Verdict: machine.Allow})
	a := next(t, m)
	apply(t, m, machine.Event{Kind: machine.Answered, Step: a.Step, Attempt: 1, Output: value.NullValue()})
	if s := m.Report().Steps[n-1]; m.Status(0) != machine.OK || s.Status == machine.Waiting {
		t.Errorf("after the answer: %s and %s", m.Status(0), s.Status)
	}
}

// long is a plan of 10 000 steps, and machines for it.
func long(b *testing.B, first, rest func(i int) string) func(machine.Options) *machine.Machine {
	const n = 10_000
	var text strings.Builder
	text.WriteString("[" + first(0))
	for i := 1; i < n; i++ {
		text.WriteString("," + rest(i))
	}
	p, err := plan.Decode([]byte(text.String()+"]"), plan.Limits{Steps: n})
	if err != nil {
		b.Fatal(err)
	}
	c, err := tool.NewCatalogue(&tool.Declaration{Name: "t"})
	if err != nil {
		b.Fatal(err)
	}
	return func(o machine.Options) *machine.Machine { return machine.New(p, c, o) }
}

func alone(i int) string { return fmt.Sprintf(`{"id":"s%d","tool":"t"}`, i) }
func after(id string) func(int) string {
	return func(i int) string { return fmt.Sprintf(`{"id":"s%d","tool":"t","after":[%q]}`, i, id) }
}
func chained(i int) string { return after(fmt.Sprint("s", i-1))(i) }

// Whatever keeps a long chain from running is found once for all of it.
func BenchmarkBlockedChain(b *testing.B) {
	for name, first := range map[string]string{"unknown id": "nobody", "cycle": "s0"} {
		b.Run(name, func(b *testing.B) {
			begin := long(b, after(first), chained)
			for b.Loop() {
				r := begin(machine.Options{}).Report()
				if s := r.Steps[len(r.Steps)-1]; s.Status != machine.Blocked || s.Cause.Step != "s0" {
					b.Fatalf("%s because of %+v, want blocked because of s0", s.Status, s.Cause)
				}
			}
		})
	}
}

func BenchmarkWaitingSteps(b *testing.B) {
	for name, rest := range map[string]func(int) string{"a chain behind one": chained, "each for its own": alone} {
		b.Run(name, func(b *testing.B) {
			begin := long(b, alone, rest)
			for b.Loop() {
				m := begin(machine.Options{Gate: true})
				for a, ok := m.Next(); ok; a, ok = m.Next() {
					if err := m.Apply(machine.Event{Kind: machine.Judged, Step: a.Step, Verdict: machine.Ask}); err != nil {
						b.Fatal(err)
					}
				}
				r := m.Report()
				if s := r.Steps[len(r.Steps)-1]; s.Status != machine.Waiting {
					b.Fatalf("%s because of %+v, want waiting", s.Status, s.Cause)
				}
			}
		})
	}
}

// What nobody decided must not pass for a decision.
func TestAnEventWithoutADecisionIsRefused(t *testing.T) {
	m := begin(t, `[{"id":"a","tool":"t"}]`, tool.Declaration{}, machine.Options{Gate: true})
	a := next(t, m)
	refused := func(e machine.Event) {
		t.Helper()
		if err := m.Apply(e); err == nil {
			t.Errorf("%+v was taken in", e)
		}
	}
	refused(machine.Event{})
	refused(machine.Event{Step: a.Step, Verdict: machine.Allow})
	refused(machine.Event{Kind: machine.Cancel + 1})
	refused(machine.Event{Kind: machine.Judged})
	refused(machine.Event{Kind: machine.Judged, Verdict: machine.Ask + 1})
	apply(t, m, machine.Event{Kind: machine.Judged, Verdict: machine.Allow})
	next(t, m)
	apply(t, m, machine.Event{Kind: machine.Lost, Attempt: 1})
	refused(machine.Event{Kind: machine.Resolved})
	apply(t, m, machine.Event{Kind: machine.Resolved, Resolution: machine.Happened, Output: value.NullValue()})
	if m.State() != machine.Finished {
		t.Error("the run is not finished")
	}
}
