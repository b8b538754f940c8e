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

func BenchmarkBlockedChain(b *testing.B) {
	const n = 10_000
	var text strings.Builder
	text.WriteString(`[{"id":"s0","tool":"t","after":["nobody"]}`)
	for i := 1; i < n; i++ {
		fmt.Fprintf(&text, `,{"id":"s%d","tool":"t","after":["s%d"]}`, i, i-1)
	}
	p, err := plan.Decode([]byte(text.String()+"]"), plan.Limits{Steps: n})
	if err != nil {
		b.Fatal(err)
	}
	c, err := tool.NewCatalogue(&tool.Declaration{Name: "t"})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if s := machine.New(p, c, machine.Options{}).Report().Steps[n-1]; s.Status != machine.Blocked || s.Cause.Step != "s0" {
			b.Fatalf("%s because of %+v, want blocked because of s0", s.Status, s.Cause)
		}
	}
}
