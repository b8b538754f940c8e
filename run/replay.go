package run

import (
	"fmt"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// A Replay brings a machine to where a record ends, one thing after the other.
// Nothing is called or recorded: calls that have no outcome are left as they
// are.
type Replay struct{ d *driver }

// NewReplay begins a replay of p with the options that the run had: its Gate must
// not be nil if the run had one, and is not asked. opt.Past is not applied.
func NewReplay(p *plan.Plan, c *tool.Catalogue, opt Options) *Replay {
	d := newDriver(p, c, opt)
	d.begun = map[int]machine.Action{}
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
	d.begun = map[int]machine.Action{}
	for at, p := range d.opt.Past {
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
	if takes && p.Args != (value.Digest{}) && d.seal(a) != p.Args {
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
	return nil
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
