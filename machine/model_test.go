package machine_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// A world is a plan with a script of what every call answers: what a step's
// attempt gives is a function of the step and the attempt alone, so that every
// order of calls must come to the same report.
type world struct {
	plan      *plan.Plan
	catalogue *tool.Catalogue
	budget    *int
	answers   map[string][]answer // by step; the last one goes on for ever
	denied    map[string]bool
}

// verdict is what a gate says of a step.
func (w *world) verdict(id string) machine.Verdict {
	if w.denied[id] {
		return machine.Deny
	}
	return machine.Allow
}

type answer struct {
	output  value.Value
	failure *tool.Failure
}

func (w *world) answer(step, attempt int) answer {
	as := w.answers[w.plan.Steps[step].ID]
	return as[min(attempt, len(as))-1]
}

func drawWorld(t *rapid.T) *world {
	w := &world{answers: map[string][]answer{}, denied: map[string]bool{}}
	decls := []*tool.Declaration{
		{Name: "read", Effects: tool.Effects{ReadOnly: true}},
		{Name: "write", Effects: tool.Effects{}},
		{Name: "put", Effects: tool.Effects{Idempotent: true}, Attempts: 3},
		{Name: "once", Effects: tool.Effects{ReadOnly: true}, Attempts: 1},
	}
	var err error
	if w.catalogue, err = tool.NewCatalogue(decls...); err != nil {
		t.Fatal(err)
	}
	n := rapid.IntRange(0, 12).Draw(t, "steps")
	var steps []string
	id := func(label string) string { return fmt.Sprint("s", rapid.IntRange(0, n).Draw(t, label)) } // s<n> does not exist
	for i := range n {
		name := rapid.SampledFrom([]string{"read", "read", "write", "put", "once", "nope"}).Draw(t, "tool")
		var args, after []string
		for k := range rapid.IntRange(0, 2).Draw(t, "refs") {
			path := rapid.SampledFrom([]string{"", "", ".v", ".list.1", ".missing"}).Draw(t, "path")
			target := id("ref")
			if rapid.IntRange(0, 3).Draw(t, "back") > 0 && i > 0 { // mostly sound plans
				target = fmt.Sprint("s", rapid.IntRange(0, i-1).Draw(t, "ref back"))
			}
			args = append(args, fmt.Sprintf(`"a%d":"$%s%s"`, k, target, path))
		}
		if rapid.IntRange(0, 4).Draw(t, "after") == 0 {
			after = append(after, `"`+id("after")+`"`)
		}
		steps = append(steps, fmt.Sprintf(`{"id":"s%d","tool":%q,"args":{%s},"after":[%s]}`, i, name, strings.Join(args, ","), strings.Join(after, ",")))
		var as []answer
		for range rapid.IntRange(1, 3).Draw(t, "answers") {
			switch rapid.IntRange(0, 6).Draw(t, "answer") {
			case 0:
				as = append(as, answer{failure: &tool.Failure{Code: "busy", Message: "busy", Retryable: true}})
			case 1:
				as = append(as, answer{failure: &tool.Failure{Code: "bad", Message: "bad"}})
			case 2:
				as = append(as, answer{failure: &tool.Failure{Code: "timeout", Message: "no answer", Lost: true}})
			default:
				as = append(as, answer{output: value.MustParse(fmt.Sprintf(`{"v":%d,"list":[1,{"x":%d}]}`, i, i))})
			}
		}
		w.answers[fmt.Sprint("s", i)] = as
		if rapid.IntRange(0, 9).Draw(t, "denied") == 0 {
			w.denied[fmt.Sprint("s", i)] = true
		}
	}
	if w.plan, err = plan.Decode([]byte("["+strings.Join(steps, ",")+"]"), plan.Limits{}); err != nil {
		t.Fatal(err)
	}
	if rapid.Bool().Draw(t, "bounded") {
		b := rapid.IntRange(0, 2*n+1).Draw(t, "budget")
		w.budget = &b
	}
	return w
}

// naive is spec/plan.md §3 and §4 read aloud: one step after the other, wave by
// wave, with no thought of speed. It shares no code with the machine.
func (w *world) naive() string {
	steps := w.plan.Steps
	status := make([]string, len(steps))
	output := make([]value.Value, len(steps))
	left, calls := 0, 0
	for i := range steps {
		if d := w.catalogue.Get(steps[i].Tool); d != nil {
			left += d.MaxAttempts()
		}
	}
	if w.budget != nil {
		left = *w.budget
	}
	deps := func(i int) (ids []int) {
		for _, id := range append([]string(nil), steps[i].After...) {
			at := -1
			for j := range steps {
				if steps[j].ID == id {
					at = j
				}
			}
			ids = append(ids, at)
		}
		for _, r := range steps[i].Refs {
			if r.Step >= 0 {
				ids = append(ids, r.Step)
			}
		}
		return ids
	}
	skip := func() {
		for changed := true; changed; {
			changed = false
			for i := range steps {
				if status[i] != "" {
					continue
				}
				for _, d := range deps(i) {
					if d >= 0 && status[d] != "" && status[d] != "ok" {
						status[i], changed = "skipped", true
					}
				}
			}
		}
	}
	var waves [][]string
	for {
		skip()
		var wave []int
		for i := range steps {
			if status[i] != "" {
				continue
			}
			all := true
			for _, d := range deps(i) {
				all = all && d >= 0 && status[d] == "ok"
			}
			if all {
				wave = append(wave, i)
			}
		}
		if len(wave) == 0 {
			break
		}
		var ids []string
		for _, i := range wave {
			ids = append(ids, steps[i].ID)
			status[i] = func() string {
				for _, r := range steps[i].Refs {
					if r.Step < 0 {
						return "bad_reference"
					}
					if r.HasPath {
						if _, err := output[r.Step].Lookup(r.Path); err != nil {
							return "bad_reference"
						}
					}
				}
				d := w.catalogue.Get(steps[i].Tool)
				if d == nil {
					return "unknown_tool"
				}
				if w.denied[steps[i].ID] {
					return "denied"
				}
				for n := 1; ; n++ {
					if left == 0 {
						return "budget_exhausted"
					}
					left--
					calls++
					a := w.answer(i, n)
					if a.failure == nil {
						output[i] = a.output
						return "ok"
					}
					if a.failure.Lost && !d.Effects.ReadOnly && !d.Effects.Idempotent {
						return "uncertain"
					}
					if !a.failure.Lost && !a.failure.Retryable || n == d.MaxAttempts() {
						return "tool_error"
					}
				}
			}()
		}
		waves = append(waves, ids)
	}
	var b strings.Builder
	b.WriteString(`{"status":{`)
	for i := range steps {
		if status[i] == "" {
			status[i] = "blocked"
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%q", steps[i].ID, status[i])
	}
	b.WriteString(`},"outputs":{`)
	first := true
	for i := range steps {
		if status[i] == "ok" {
			if !first {
				b.WriteByte(',')
			}
			first = false
			fmt.Fprintf(&b, "%q:%s", steps[i].ID, output[i])
		}
	}
	b.WriteString(`},"waves":[`)
	for i, wv := range waves {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`["` + strings.Join(wv, `","`) + `"]`)
	}
	fmt.Fprintf(&b, `],"calls":%d}`, calls)
	return b.String()
}

// drive runs a machine, settling what is out in an order that pick chooses.
func (w *world) drive(opt machine.Options, pick func(n int) int) (string, error) {
	opt.Budget, opt.Gate = w.budget, true
	m := machine.New(w.plan, w.catalogue, opt)
	var out []machine.Action
	most := 0
	for {
		for {
			a, ok := m.Next()
			if !ok {
				break
			}
			out = append(out, a)
		}
		most = max(most, len(out))
		if len(out) == 0 {
			break
		}
		k := pick(len(out))
		a := out[k]
		out = append(out[:k], out[k+1:]...)
		e := machine.Event{Step: a.Step, Attempt: a.Attempt}
		if a.Kind == machine.Judge {
			e.Kind, e.Verdict = machine.Judged, w.verdict(w.plan.Steps[a.Step].ID)
		} else {
			ans := w.answer(a.Step, a.Attempt)
			e.Kind, e.Output, e.Failure, e.End = machine.Answered, ans.output, ans.failure, time.Unix(1, 0)
		}
		if err := m.Apply(e); err != nil {
			return "", err
		}
	}
	if m.State() != machine.Finished {
		return "", errors.New("nothing to do, but not finished")
	}
	if limit := max(opt.Workers, 1); most > limit {
		return "", fmt.Errorf("%d calls out at once, the limit is %d", most, limit)
	}
	return string(m.Report().AppendJSON(nil)), nil
}

func TestTheMachineDoesWhatTheSpecSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		got, err := w.drive(machine.Options{}, func(int) int { return 0 })
		if err != nil {
			t.Fatal(err)
		}
		if want := w.naive(); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}

func TestParallelismNeverChangesTheReport(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		opt := machine.Options{Workers: rapid.IntRange(1, 9).Draw(t, "workers"), Eager: rapid.Bool().Draw(t, "eager")}
		got, err := w.drive(opt, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "settles") })
		if err != nil {
			t.Fatal(err)
		}
		if want := w.naive(); got != want {
			t.Fatalf("%+v:\ngot  %s\nwant %s", opt, got, want)
		}
	})
}

// TestPausesLoseNothing asks for some steps, answers the questions when nothing
// else goes on, and must come to what the verdicts say.
func TestPausesLoseNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.budget = nil // asking reserves nothing, so a budget that binds may meet other steps
		asked := map[string]bool{}
		for _, s := range w.plan.Steps {
			asked[s.ID] = rapid.IntRange(0, 2).Draw(t, "asked") == 0
		}
		opt := machine.Options{Gate: true, Workers: rapid.IntRange(1, 4).Draw(t, "workers"), Eager: rapid.Bool().Draw(t, "eager")}
		m := machine.New(w.plan, w.catalogue, opt)
		var out []machine.Action
		for range 10_000 {
			for {
				a, ok := m.Next()
				if !ok {
					break
				}
				out = append(out, a)
			}
			if len(out) == 0 {
				steps, _ := m.Waiting()
				if len(steps) == 0 {
					break
				}
				if m.State() != machine.Paused {
					t.Fatalf("steps wait, nothing is out, and the state is %v", m.State())
				}
				for _, s := range m.Report().Steps {
					if s.Status == machine.Cancelled {
						t.Fatalf("step %s is cancelled in a run that waits", s.ID)
					}
				}
				i := steps[rapid.IntRange(0, len(steps)-1).Draw(t, "decided")]
				if rapid.IntRange(0, 3).Draw(t, "expired") == 0 {
					if err := m.Apply(machine.Event{Kind: machine.Reopened, Step: i}); err != nil {
						t.Fatal(err)
					}
					continue
				}
				if err := m.Apply(machine.Event{Kind: machine.Judged, Step: i, Verdict: w.verdict(w.plan.Steps[i].ID)}); err != nil {
					t.Fatal(err)
				}
				continue
			}
			k := rapid.IntRange(0, len(out)-1).Draw(t, "settles")
			a := out[k]
			out = append(out[:k], out[k+1:]...)
			e := machine.Event{Step: a.Step, Attempt: a.Attempt}
			if id := w.plan.Steps[a.Step].ID; a.Kind == machine.Judge {
				e.Kind, e.Verdict = machine.Judged, w.verdict(id)
				if asked[id] {
					e.Verdict = machine.Ask
				}
			} else {
				ans := w.answer(a.Step, a.Attempt)
				e.Kind, e.Output, e.Failure, e.End = machine.Answered, ans.output, ans.failure, time.Unix(1, 0)
			}
			if err := m.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := string(m.Report().AppendJSON(nil)), w.naive(); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}

// TestACrashCostsOnlyItsReruns cuts runs at random instants, feeds a new machine
// with what was recorded, and goes on. Outcomes are recorded in one order and
// come to the machine in another, as they do when workers race.
func TestACrashCostsOnlyItsReruns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t)
		w.denied = map[string]bool{}
		bounded := w.budget != nil
		opt := machine.Options{Budget: w.budget, Workers: rapid.IntRange(1, 4).Draw(t, "workers"), Eager: rapid.Bool().Draw(t, "eager")}
		apply := func(m *machine.Machine, e machine.Event) {
			if err := m.Apply(e); err != nil {
				t.Fatal(err)
			}
		}
		var record []machine.Event // outcomes, and what was lost
		reruns := 0
		crashes := rapid.IntRange(0, 3).Draw(t, "crashes")
		for life := 0; ; life++ {
			m := machine.New(w.plan, w.catalogue, opt)
			inFlight := map[int]machine.Action{}
			for _, e := range record {
				a, begun := inFlight[e.Step]
				if !begun {
					if e.Kind == machine.Resolved {
						apply(m, e)
						continue
					}
					var ok bool
					if a, ok = m.Take(e.Step); !ok || a.Attempt != e.Attempt {
						t.Fatalf("recorded %+v, the machine offers %+v, %v", e, a, ok)
					}
				}
				delete(inFlight, e.Step)
				apply(m, e)
			}
			var out, recorded []machine.Action
			for steps := rapid.IntRange(0, 20).Draw(t, "lives for"); life == crashes || steps > 0; steps-- {
				for {
					a, ok := m.Next()
					if !ok {
						break
					}
					out = append(out, a)
				}
				if len(out)+len(recorded) == 0 {
					break
				}
				k := rapid.IntRange(0, len(out)+len(recorded)-1).Draw(t, "goes on")
				if k < len(out) {
					a := out[k]
					out = append(out[:k], out[k+1:]...)
					ans := w.answer(a.Step, a.Attempt)
					record = append(record, machine.Event{Kind: machine.Answered, Step: a.Step, Attempt: a.Attempt, Output: ans.output, Failure: ans.failure, End: time.Unix(1, 0)})
					recorded = append(recorded, a)
					continue
				}
				a := recorded[k-len(out)]
				recorded = append(recorded[:k-len(out)], recorded[k-len(out)+1:]...)
				for _, e := range record {
					if e.Kind == machine.Answered && e.Step == a.Step && e.Attempt == a.Attempt {
						apply(m, e)
					}
				}
			}
			if life == crashes {
				r := m.Report()
				if bounded {
					if r.Calls > *w.budget {
						t.Fatalf("%d calls, the budget is %d", r.Calls, *w.budget)
					}
					return
				}
				r.Calls -= reruns
				if got, want := string(r.AppendJSON(nil)), w.naive(); got != want {
					t.Fatalf("with %d reruns\ngot  %s\nwant %s", reruns, got, want)
				}
				return
			}
			// The process dies: what is out has an intent and no outcome.
			for _, a := range out {
				record = append(record, machine.Event{Kind: machine.Lost, Step: a.Step, Attempt: a.Attempt})
				if !a.Tool.Effects.Repeatable() {
					record = append(record, machine.Event{Kind: machine.Resolved, Step: a.Step, Resolution: machine.DidNotHappen})
				}
				reruns++
			}
		}
	})
}
