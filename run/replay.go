package run

import (
	"fmt"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// A Past is one thing that was recorded. Its event names the step by ID, because
// a record outlives the positions of a plan.
type Past struct {
	Step  string
	Begun bool // the call was about to be made; only Event.Attempt counts
	Event machine.Event
	// Args is the digest of the args as they were then; zero: not recorded. Args
	// that resolve to something else now mean that the record is of another run.
	Args value.Digest
}

// A MisfitError is a record that is not one of this plan.
type MisfitError struct {
	At   int // index in Past
	Step string
	Why  string
}

func (e *MisfitError) Error() string {
	return fmt.Sprintf("record %d does not fit the plan: step %q %s", e.At, e.Step, e.Why)
}

// A Replay brings a machine to where a record ends, one thing after the other.
// Nothing is called or recorded: calls that have no outcome are left as they
// are.
type Replay struct{ d *driver }

// NewReplay begins a replay of p with the options that the run had: its Gate must
// not be nil if the run had one, and is not asked. opt.Past is not applied.
func NewReplay(p *plan.Plan, c *tool.Catalogue, opt Options) *Replay {
	d := newDriver(p, c, opt)
	d.begun, d.lost = map[int]machine.Action{}, map[int]machine.Action{}
	return &Replay{d}
}

// Apply goes on by the thing that has index at in the record. The error is a
// [*MisfitError].
func (r *Replay) Apply(at int, p Past) error { return r.d.past(at, p) }

// Settled lists the events of the steps that settled since it was last called.
func (r *Replay) Settled() []Event {
	var es []Event
	for _, i := range r.d.m.Settled() {
		es = append(es, r.d.settled(i))
	}
	return es
}

// Report says how things stand.
func (r *Replay) Report() *machine.Report { return r.d.m.Report() }

// replay feeds the machine with what was recorded.
func (d *driver) replay() error {
	d.begun, d.lost, d.recalled = map[int]machine.Action{}, map[int]machine.Action{}, map[int]bool{}
	for at, p := range d.opt.Past {
		if p.Event.Withheld && d.needed(p.Step) {
			if err := d.recall(p); err != nil {
				return err
			}
			continue
		}
		if err := d.past(at, p); err != nil {
			return err
		}
	}
	d.m.Settled()
	return nil
}

// past feeds the machine with one thing that was recorded.
func (d *driver) past(at int, p Past) error {
	misfit := func(why string) error { return &MisfitError{at, p.Step, why} }
	i := d.plan.Index(p.Step)
	if i < 0 {
		return misfit("is not in it")
	}
	e := p.Event
	e.Step = i
	a, begun := d.begun[i]
	takes := p.Begun || e.Kind == machine.Answered || e.Kind == machine.Lost || e.Kind == machine.Reused || e.Kind == machine.Judged && !d.m.Waits(i)
	if takes && !begun {
		if a, begun = d.m.Take(i); !begun {
			return misfit("could not have begun then")
		}
		d.begun[i] = a
	}
	if takes && e.Kind != machine.Reused && (a.Kind == machine.Judge) != (e.Kind == machine.Judged && !p.Begun) || takes && a.Kind == machine.Call && a.Attempt != e.Attempt {
		return misfit(fmt.Sprintf("was not at attempt %d", e.Attempt))
	}
	if takes && p.Args != (value.Digest{}) && !a.Guessed && !d.usesRecalled(i) && d.seal(a) != p.Args {
		return misfit("resolves to other args than were recorded")
	}
	if takes {
		if err := d.follow(a, e, p.Begun); err != nil {
			return err
		}
	}
	if p.Begun {
		return nil
	}
	delete(d.begun, i)
	if f := e.Failure; e.Kind == machine.Answered && f != nil && f.Code == tool.CodeCancelled && (f.Lost && a.Tool.Effects.Repeatable() || f.NotStarted) {
		e.Kind = machine.Lost // the interrupt that cancelled it is over: it is made again
	}
	if err := d.m.Apply(e); err != nil {
		return misfit(err.Error())
	}
	switch e.Kind {
	case machine.Lost:
		d.lost[i] = a
	case machine.Resolved:
		return d.followResolved(i, e)
	}
	return nil
}

// followResolved tells a gate that judges by what went before what a person said
// of a call whose outcome was lost: to a rule it is how that call ended.
func (d *driver) followResolved(i int, e machine.Event) error {
	a, known := d.lost[i]
	delete(d.lost, i)
	switch {
	case !known || e.Resolution == machine.DidNotHappen:
		return nil
	case e.Resolution == machine.GiveUp:
		e.Failure = &tool.Failure{Code: string(machine.Uncertain), Lost: true}
	}
	e.Kind = machine.Answered
	return d.follow(a, e, false)
}

// follow tells a gate that judges by what went before of an action that it did
// not judge here and now.
func (d *driver) follow(a machine.Action, e machine.Event, begun bool) error {
	g, ok := d.opt.Gate.(call.Follower)
	if !ok || e.Kind == machine.Judged && !begun {
		return nil
	}
	r := d.request(a)
	return call.Guard("the gate", func() error {
		g.Allowed(r)
		switch {
		case begun:
		case e.Kind == machine.Reused:
			g.Ended(r, call.Outcome{Output: e.Output})
		case e.Kind == machine.Answered:
			g.Ended(r, call.Outcome{Output: e.Output, Failure: e.Failure, Start: e.Start, End: e.End})
		}
		return nil
	})
}

// needed reports whether the withheld output of a step must be made again: where
// the call is safe to repeat always, so that the report has it, and elsewhere
// when a step that has no outcome yet refers to it.
func (d *driver) needed(step string) bool {
	i := d.plan.Index(step)
	if i < 0 {
		return false
	}
	if decl := d.tools.Get(d.plan.Steps[i].Tool); decl != nil && decl.Effects.Repeatable() {
		return true
	}
	done := map[string]bool{}
	for _, p := range d.opt.Past {
		if k := p.Event.Kind; !p.Begun && (k == machine.Answered || k == machine.Resolved || k == machine.Reused) {
			done[p.Step] = true
		}
	}
	for j := range d.plan.Steps {
		for _, r := range d.plan.Steps[j].Refs {
			if r.Step == i && !done[d.plan.Steps[j].ID] {
				return true
			}
		}
	}
	return false
}

// recall treats a call whose output was withheld as one whose outcome was lost:
// it is made again at once, because what was recorded after it depends on it, or
// it waits for a person.
func (d *driver) recall(p Past) error {
	i := d.plan.Index(p.Step)
	if _, begun := d.begun[i]; !begun {
		a, ok := d.m.Take(i)
		if !ok || a.Kind != machine.Call {
			return &MisfitError{0, p.Step, "could not have been answered then"}
		}
	}
	delete(d.begun, i)
	if d.opt.Recorder == nil {
		return fmt.Errorf("step %q: %w", p.Step, ErrWithheld)
	}
	if err := d.opt.Recorder.Lost(d.scope.Context(), p.Step, p.Event.Attempt); err != nil {
		return err
	}
	if err := d.m.Apply(machine.Event{Kind: machine.Lost, Step: i, Attempt: p.Event.Attempt}); err != nil {
		return err
	}
	a, ok := d.m.Take(i)
	if !ok {
		return nil // it waits for a person, or no call is left for it
	}
	type end struct {
		o   call.Outcome
		err error
	}
	ended := make(chan end, 1)
	go d.scope.Start(d.request(a), func(o call.Outcome, err error) { ended <- end{o, err} })
	e := <-ended
	r := result{o: e.o, err: e.err}
	d.keep(&r)
	if f := r.o.Failure; r.err == nil && f != nil {
		return fmt.Errorf("step %q: %w, and making it again failed: %w", p.Step, ErrWithheld, f)
	}
	d.recalled[i] = true
	return d.feed(a, r)
}

// usesRecalled reports whether a step refers to an output that was made again. It
// need not be what it was.
func (d *driver) usesRecalled(i int) bool {
	for _, r := range d.plan.Steps[i].Refs {
		if d.recalled[r.Step] {
			return true
		}
	}
	return false
}
