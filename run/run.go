// Package run drives a plan's machine against live tools, in this process:
// sequentially, with workers, or eagerly.
//
//	tools, _ := tool.NewSet(demo.New()...)
//	report, err := run.Do(ctx, p, tools, run.Options{})
//	fmt.Println(string(report.AppendJSON(nil)))
//
// The error says that the harness could not do its work; the report comes with
// it all the same. What tools did wrong is in the report.
package run

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// MaxNesting is how deep runs may nest, a run started by a tool of a run being
// one deeper: deep enough for a plan that calls a planner, shallow enough to
// stop a tool that calls itself.
const MaxNesting = 3

// ErrTooDeep is the error of a run that would nest deeper than [MaxNesting].
var ErrTooDeep = errors.New("runs are nested too deep")

// ErrDeadline is the cause with which a run's own deadline cancels it.
var ErrDeadline = errors.New("the run's deadline passed")

// Options of a run. The zero value runs sequentially, within the plan's own
// budget or its worst case, without a gate, a journal or an observer.
type Options struct {
	Budget   *int          // calls; nil: the plan's own, else its worst case
	Workers  int           // calls at once; 0: 1, or 8 with Eager
	Eager    bool          // do not wait for the end of a wave
	MaxArgs  int           // bytes of resolved args; 0: 16 MiB
	Deadline time.Duration // of the whole run; 0: none
	Grace    time.Duration // for calls that are out when the run is cancelled; 0: 5 s
	Gate     call.Gate     // nil: every call is allowed
	Limits   *call.Limits  // per tool; nil: none

	// Observer is told what happens, in order, from one goroutine at a time. It
	// must not block: the run waits for it. nil: nobody is told.
	Observer func(Event)
}

// An EventKind is what an event tells.
type EventKind uint8

// The events of a run.
const (
	Started  EventKind = iota // the run begins
	Called                    // a call begins
	Noted                     // a call reports progress
	Returned                  // a call ended; Failure says how, nil is an answer
	Asked                     // a step waits for a person
	Settled                   // a step has its status
	Ended                     // the run is over or paused; Report says how
)

// An Event is one notice for whoever watches a run.
type Event struct {
	Kind     EventKind
	Time     time.Time
	Step     string
	Tool     string
	Attempt  int
	Progress tool.Progress
	Failure  *tool.Failure
	Status   machine.Status
	Cause    *machine.Cause
	Report   *machine.Report
}

type parentKey struct{}

// nesting is how deep ctx already is inside runs.
func nesting(ctx context.Context) int {
	n, _ := ctx.Value(parentKey{}).(int)
	return n
}

// Do runs a plan to its end, or until it can only wait for a person. When ctx
// ends no new call begins, the calls that are out get the grace, and the report
// says what was cancelled.
func Do(ctx context.Context, p *plan.Plan, tools *tool.Set, opt Options) (*machine.Report, error) {
	depth := nesting(ctx)
	if depth >= MaxNesting {
		return nil, fmt.Errorf("%w: %d", ErrTooDeep, depth+1)
	}
	if opt.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, opt.Deadline, ErrDeadline)
		defer cancel()
	}
	budget, _ := machine.EffectiveBudget(p, opt.Budget, nil)
	d := &driver{
		plan: p,
		opt:  opt,
		m: machine.New(p, tools.Catalogue(), machine.Options{
			Budget: budget, Workers: opt.Workers, Eager: opt.Eager, Gate: opt.Gate != nil, MaxArgs: opt.MaxArgs,
		}),
		secret: sync.OnceValue(newSecret),
		door:   &call.Door{Tools: tools, Gate: opt.Gate, Grace: opt.Grace, Limits: opt.Limits},
	}
	return d.drive(context.WithValue(ctx, parentKey{}, depth+1))
}

// driver carries actions to the door and events back to the machine.
type driver struct {
	plan *plan.Plan
	opt  Options
	m    *machine.Machine
	door *call.Door

	secret  func() []byte // of the idempotency keys of a run without a journal
	todo    chan machine.Action
	results chan result
	notes   chan note
	workers int // goroutines that take from todo
	out     int // actions handed out whose result has not come
}

// result is what came of an action.
type result struct {
	a   machine.Action
	o   call.Outcome
	dec call.Decision
	err error
}

type note struct {
	step     int
	attempt  int
	progress tool.Progress
}

// maxNotes is how many progress notices wait for the observer; what is past it
// is dropped, because progress must never hold a call up.
const maxNotes = 256

// drive is the loop of a run: take what may start, hand it out, wait for what
// comes back.
func (d *driver) drive(ctx context.Context) (*machine.Report, error) {
	limit := max(d.opt.Workers, 1)
	if d.opt.Eager && d.opt.Workers <= 0 {
		limit = machine.DefaultEagerWorkers
	}
	d.todo = make(chan machine.Action, limit)
	d.results = make(chan result, limit)
	d.notes = make(chan note, maxNotes)
	defer close(d.todo)
	d.tell(Event{Kind: Started})
	done := ctx.Done()
	var failed error
	for {
		for failed == nil {
			a, ok := d.m.Next()
			if !ok {
				break
			}
			if a.Kind == machine.Call {
				d.tell(Event{Kind: Called, Step: d.plan.Steps[a.Step].ID, Tool: a.Tool.Name, Attempt: a.Attempt})
			}
			d.out++
			if d.workers < d.out {
				d.workers++
				go d.work(ctx)
			}
			d.todo <- a
		}
		d.news()
		if d.out == 0 {
			break
		}
		select {
		case r := <-d.results:
			d.out--
			if r.o.GivenUp {
				d.workers--
			}
			if err := d.apply(r); err != nil && failed == nil {
				// No further call: the machine is stopped, and what is out
				// settles.
				failed = err
				d.m.Apply(machine.Event{Kind: machine.Cancel})
			}
		case n := <-d.notes:
			d.tell(Event{Kind: Noted, Step: d.plan.Steps[n.step].ID, Attempt: n.attempt, Progress: n.progress})
		case <-done:
			done = nil
			d.m.Apply(machine.Event{Kind: machine.Cancel})
		}
	}
	if failed != nil {
		d.m.Apply(machine.Event{Kind: machine.Cancel})
		d.news()
	}
	report := d.m.Report()
	d.tell(Event{Kind: Ended, Report: report})
	return report, failed
}

// apply feeds the machine with what came of an action.
func (d *driver) apply(r result) error {
	if r.err != nil {
		if r.a.Kind == machine.Judge {
			d.m.Apply(machine.Event{Kind: machine.Judged, Step: r.a.Step, Verdict: machine.Deny, Code: "gate_failed", Message: r.err.Error()})
		} else {
			d.m.Apply(machine.Event{Kind: machine.Cancel})
			d.m.Apply(machine.Event{Kind: machine.NotMade, Step: r.a.Step, Attempt: r.a.Attempt})
		}
		return r.err
	}
	if r.a.Kind == machine.Judge {
		err := d.m.Apply(machine.Event{Kind: machine.Judged, Step: r.a.Step, Verdict: r.dec.Verdict, Code: r.dec.Code, Message: r.dec.Message})
		if r.dec.Verdict == machine.Ask && d.m.Status(r.a.Step) == "" {
			d.tell(Event{Kind: Asked, Step: d.plan.Steps[r.a.Step].ID, Tool: r.a.Tool.Name, Cause: d.m.Cause(r.a.Step)})
		}
		return err
	}
	if r.o.NotMade {
		d.m.Apply(machine.Event{Kind: machine.Cancel})
		return d.m.Apply(machine.Event{Kind: machine.NotMade, Step: r.a.Step, Attempt: r.a.Attempt})
	}
	d.tell(Event{Kind: Returned, Step: d.plan.Steps[r.a.Step].ID, Tool: r.a.Tool.Name, Attempt: r.a.Attempt, Failure: r.o.Failure})
	return d.m.Apply(machine.Event{
		Kind: machine.Answered, Step: r.a.Step, Attempt: r.a.Attempt,
		Output: r.o.Output, Failure: r.o.Failure, Start: r.o.Start, End: r.o.End,
	})
}

// work takes actions until the run is over. A worker whose call was given up
// has been replaced by then, so it ends.
func (d *driver) work(ctx context.Context) {
	for a := range d.todo {
		if a.Kind == machine.Judge {
			dec, err := d.door.Judge(ctx, d.request(a))
			d.results <- result{a: a, dec: dec, err: err}
			continue
		}
		givenUp := d.door.Start(ctx, d.request(a), func(o call.Outcome, err error) {
			d.results <- result{a: a, o: o, err: err}
		})
		if givenUp {
			return
		}
	}
}

func (d *driver) request(a machine.Action) call.Request {
	s := &d.plan.Steps[a.Step]
	r := call.Request{Step: s.ID, Attempt: a.Attempt, Rerun: a.Rerun, Tool: a.Tool, Args: a.Args, Refs: a.Refs, Edited: a.Edited, Delay: a.Delay, Key: d.key}
	if d.opt.Observer != nil {
		r.Progress = func(p tool.Progress) {
			select {
			case d.notes <- note{a.Step, a.Attempt, p}:
			default:
			}
		}
	}
	return r
}

// key is the idempotency key of a step with these args.
func (d *driver) key(step string, args value.Value) string {
	mac := hmac.New(sha256.New, d.secret())
	fmt.Fprintf(mac, "%d:%s", len(step), step)
	digest := args.Digest()
	mac.Write(digest[:])
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// news tells of the steps that settled.
func (d *driver) news() {
	settled := d.m.Settled()
	if d.opt.Observer == nil {
		return
	}
	for _, i := range settled {
		d.tell(Event{Kind: Settled, Step: d.plan.Steps[i].ID, Tool: d.plan.Steps[i].Tool, Status: d.m.Status(i), Cause: d.m.Cause(i)})
	}
}

func (d *driver) tell(e Event) {
	if d.opt.Observer != nil {
		e.Time = time.Now()
		d.opt.Observer(e)
	}
}

func newSecret() []byte {
	b := make([]byte, 32)
	rand.Read(b)
	return b
}
