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

// ErrNothing is the error of a run without a plan, without tools, or with a tool
// that has no handler.
var ErrNothing = errors.New("there is nothing to run")

// ErrDeadline is the cause with which a run's own deadline cancels it.
var ErrDeadline = errors.New("the run's deadline passed")

// ErrWithheld is a run that cannot go on because the output of a call is not in
// its record: it feeds a secret arg, and the call cannot be made again.
var ErrWithheld = errors.New("an output that feeds a secret is not in the record")

type parentKey struct{}

// nesting is how deep ctx already is inside runs.
func nesting(ctx context.Context) int {
	n, _ := ctx.Value(parentKey{}).(int)
	return n
}

// Do runs a plan to its end, or until it can only wait for a person.
//
// When ctx ends, or Options.Deadline passes, no new call begins and the calls that
// are out get Options.Grace to answer. That is no error: the report has what was
// done, "cancelled" for the steps that were not, and "uncertain" for calls with an
// effect that did not answer in time; [machine.Report.OK] is false.
//
// The error is that of [Options.Validate], [ErrNothing], [ErrTooDeep], a [*MisfitError] about Options.Past, or
// that of a gate, a vault, a recorder or an observer which could not do its work, a
// [*call.PanicError] where it panicked; with all but
// the first three comes a report of what had been done until then.
func Do(ctx context.Context, p *plan.Plan, tools *tool.Set, opt Options) (*machine.Report, error) {
	if err := opt.Validate(); err != nil {
		return nil, err
	}
	if err := startable(p, tools); err != nil {
		return nil, err
	}
	depth := nesting(ctx)
	if depth >= MaxNesting {
		return nil, fmt.Errorf("%w: %d", ErrTooDeep, depth+1)
	}
	if opt.Deadline > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, opt.Deadline, ErrDeadline)
		defer cancel()
	}
	ctx = context.WithValue(ctx, parentKey{}, depth+1)
	door := &call.Door{Tools: tools, Gate: opt.Gate, Grace: opt.Grace, Limits: opt.Limits, Vault: opt.Vault}
	if opt.Recorder != nil {
		door.Recorder = opt.Recorder
	}
	d := newDriver(p, tools.Catalogue(), opt)
	d.scope = door.Scope(ctx)
	defer d.scope.Close()
	if err := d.replay(); err != nil {
		return d.m.Report(), err
	}
	if err := d.lose(ctx); err != nil {
		return d.m.Report(), err
	}
	return d.drive(ctx)
}

// startable reports what is missing for a run.
func startable(p *plan.Plan, tools *tool.Set) error {
	switch {
	case p == nil:
		return fmt.Errorf("%w: the plan is nil", ErrNothing)
	case tools == nil:
		return fmt.Errorf("%w: the set of tools is nil", ErrNothing)
	}
	for i := range p.Steps {
		name := p.Steps[i].Tool
		if tools.Catalogue().Get(name) != nil && tools.Handler(name) == nil {
			return fmt.Errorf("%w: the tool %q of step %q is declared without a handler", ErrNothing, name, p.Steps[i].ID)
		}
	}
	return nil
}

func newDriver(p *plan.Plan, c *tool.Catalogue, opt Options) *driver {
	its := *opt.machine()
	for i := range opt.Past {
		its.Gate = its.Gate || opt.Past[i].Event.Kind == machine.Judged
	}
	its.Budget, _ = machine.EffectiveBudget(p, opt.Budget, nil)
	d := &driver{
		plan:   p,
		tools:  c,
		opt:    opt,
		secret: sync.OnceValue(newSecret),
		done:   make(chan struct{}),
		m:      machine.New(p, c, its),
	}
	if d.opt.Key == nil {
		d.opt.Key = d.key
	}
	if d.opt.ID == "" {
		d.opt.ID = "unrecorded-" + rand.Text()
	}
	return d
}

// driver carries actions to the door and events back to the machine. There is
// no goroutine that does only that: whoever ends a call applies the event,
// takes the next action for itself, and starts others for what else may begin.
type driver struct {
	plan   *plan.Plan
	tools  *tool.Catalogue
	opt    Options
	scope  *call.Scope
	secret func() []byte // of the idempotency keys of a run without a journal
	done   chan struct{} // closed when nothing is out and nothing may start

	begun    map[int]machine.Action // calls that the record leaves open; before drive only
	lost     map[int]machine.Action // calls whose outcome was lost, until a person says what became of them; before drive only
	recalled map[int]bool           // steps whose withheld output was made again; before drive only

	mu     sync.Mutex
	m      *machine.Machine // holding mu
	out    int              // actions handed out whose result has not come; holding mu
	failed error            // the harness's own failure; holding mu
	over   bool             // done is closed; holding mu
	asked  []asked          // of which nobody is told yet, in the order of the record; holding mu
}

// result is what came of an action.
type result struct {
	o   call.Outcome
	dec call.Decision
	err error
	// reused is the outcome of another run.
	reused value.Value
	// unkept is why the journal could not keep the outcome.
	unkept error
}

// seal is the digest of an action's args as a record may hold them.
func (d *driver) seal(a machine.Action) value.Digest {
	if d.opt.Seal != nil {
		return d.opt.Seal(a.Tool, a.Args).Digest()
	}
	return a.Args.Digest()
}

// lose tells the machine of the calls that were begun and have no outcome: they
// are made again, or wait for a person who knows what became of them.
func (d *driver) lose(ctx context.Context) error {
	for i := range d.plan.Steps {
		a, open := d.begun[i]
		if !open || a.Kind != machine.Call {
			continue
		}
		err := call.Guard("the recorder", func() error { return d.opt.Recorder.Lost(ctx, d.plan.Steps[i].ID, a.Attempt) })
		if err != nil {
			return err
		}
		if err := d.m.Apply(machine.Event{Kind: machine.Lost, Step: i, Attempt: a.Attempt}); err != nil {
			return err
		}
	}
	return nil
}

// drive runs the machine to its end or to a pause.
func (d *driver) drive(ctx context.Context) (*machine.Report, error) {
	d.mu.Lock()
	d.tell(Event{Kind: Started})
	if a, ok := d.next(); ok {
		go d.work(a)
	}
	d.mu.Unlock()
	select {
	case <-d.done:
	case <-ctx.Done():
		d.mu.Lock()
		d.cancel(context.Cause(ctx))
		d.news()
		d.mu.Unlock()
		<-d.done
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	report := d.m.Report()
	d.tell(Event{Kind: Ended, Report: report})
	return report, d.failed
}

// next takes one action for the caller and starts a goroutine for every other
// that may begin. It ends the run when nothing is out. Holding mu.
func (d *driver) next() (first machine.Action, ok bool) {
	d.news()
	if d.failed != nil {
		d.m.Apply(machine.Event{Kind: machine.Cancel}) // no further call; what is out settles
	}
	for d.failed == nil {
		a, more := d.m.Next()
		if !more {
			break
		}
		d.out++
		if a.Kind == machine.Call && !d.mayReuse(a) {
			d.called(a)
		}
		if ok {
			go d.work(a)
		} else {
			first, ok = a, true
		}
	}
	d.news()
	if d.out == 0 && !d.over {
		d.over = true
		close(d.done)
	}
	return first, ok
}

// work does one action after the other until there is none for it. A call that
// was given up is settled by whoever gave it up, and its worker ends.
func (d *driver) work(a machine.Action) {
	var r result
	settled := false
	deliver := func(o call.Outcome, err error) {
		r = result{o: o, err: err}
		if o.GivenUp {
			d.settle(a, r)
		}
	}
	// A handler may end this goroutine; what was delivered is settled all the
	// same.
	defer func() {
		if !settled {
			d.settle(a, r)
		}
	}()
	for {
		settled = false
		r = result{err: call.ErrGone} // until there is another: who goes has allowed nothing
		switch out, ok, err := d.reuse(a); {
		case a.Guessed:
			r = result{err: fmt.Errorf("step %q: %w", d.plan.Steps[a.Step].ID, ErrWithheld)}
		case err != nil:
			r = result{err: err}
		case ok:
			r = result{reused: out}
		case a.Kind == machine.Judge:
			dec, err := d.scope.Judge(d.request(a))
			r = result{dec: dec, err: err}
		default:
			if d.mayReuse(a) { // and was not
				d.mu.Lock()
				d.called(a)
				d.mu.Unlock()
			}
			if err := d.follow(a, machine.Event{}, true); err != nil {
				r = result{err: err}
			} else if d.scope.Start(d.request(a), deliver) {
				settled = true
				return
			}
		}
		d.keep(&r)
		settled = true
		d.mu.Lock()
		d.apply(a, r)
		next, ok := d.next()
		d.mu.Unlock()
		if !ok {
			return
		}
		a = next
	}
}

// settle applies a result outside a worker and starts what may begin then.
func (d *driver) settle(a machine.Action, r result) {
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.apply(a, r)
		if next, ok := d.next(); ok {
			go d.work(next)
		}
	}()
	d.keep(&r)
}

// keep waits until an outcome is durable: before that nobody may see it, and
// nothing that follows from it may begin.
func (d *driver) keep(r *result) {
	if t := r.o.Ticket; t != nil {
		r.o.Ticket, r.unkept = nil, call.ErrGone // in case the recorder goes
		r.unkept = call.Guard("the recorder", func() error { return t.Wait(context.WithoutCancel(d.scope.Context())) })
	}
}

// apply feeds the machine with what came of an action. Holding mu.
func (d *driver) apply(a machine.Action, r result) {
	d.out--
	if err := d.feed(a, r); err != nil && d.failed == nil {
		d.failed = err
	}
}

// cancel stops new calls; the first reason is the one that the report gives.
// Holding mu.
func (d *driver) cancel(why error) {
	e := machine.Event{Kind: machine.Cancel}
	if why != nil && why != context.Canceled { // which says no more than that
		e.Message = why.Error()
	}
	d.m.Apply(e)
}

func (d *driver) feed(a machine.Action, r result) error {
	if r.err != nil && r.o.Start.IsZero() { // nothing was called
		d.cancel(r.err)
		e := machine.Event{Kind: machine.NotMade, Step: a.Step, Attempt: a.Attempt}
		if a.Kind == machine.Judge {
			e = machine.Event{Kind: machine.Judged, Step: a.Step, Verdict: machine.Deny}
		}
		d.m.Apply(e)
		return r.err
	}
	if !r.reused.IsZero() {
		return d.m.Apply(machine.Event{Kind: machine.Reused, Step: a.Step, Output: r.reused})
	}
	if a.Kind == machine.Judge {
		err := d.m.Apply(machine.Event{Kind: machine.Judged, Step: a.Step, Verdict: r.dec.Verdict, Person: r.dec.Person, Code: r.dec.Code, Message: r.dec.Message})
		if r.dec.Verdict == machine.Ask && d.m.Status(a.Step) == "" {
			d.ask(asked{Event{Kind: Asked, Step: d.plan.Steps[a.Step].ID, Tool: a.Tool.Name, Cause: d.m.Cause(a.Step)}, r.dec.Ticket})
		}
		return err
	}
	if r.o.NotMade {
		d.cancel(context.Cause(d.scope.Context()))
		return d.m.Apply(machine.Event{Kind: machine.NotMade, Step: a.Step, Attempt: a.Attempt})
	}
	d.tell(Event{Kind: Returned, Step: d.plan.Steps[a.Step].ID, Tool: a.Tool.Name, Attempt: a.Attempt, Failure: r.o.Failure})
	if lost := errors.Join(r.err, r.unkept); lost != nil {
		// The call was made, so its result stands in the report; no other
		// call is made.
		d.cancel(lost)
	} else if r.o.Failure != nil && r.o.Failure.Code == tool.CodeCancelled && d.scope.Context().Err() != nil {
		d.cancel(context.Cause(d.scope.Context())) // it may come before drive's own
	}
	err := d.m.Apply(machine.Event{
		Kind: machine.Answered, Step: a.Step, Attempt: a.Attempt,
		Output: r.o.Output, Failure: r.o.Failure, Start: r.o.Start, End: r.o.End, Unrecorded: r.unkept != nil,
	})
	return errors.Join(r.err, r.unkept, err)
}

// called tells of a call that begins. Holding mu.
func (d *driver) called(a machine.Action) {
	d.tell(Event{Kind: Called, Step: d.plan.Steps[a.Step].ID, Tool: a.Tool.Name, Attempt: a.Attempt})
}

// mayReuse reports whether an action may find an old outcome in its place.
func (d *driver) mayReuse(a machine.Action) bool {
	return d.opt.Reuse != nil && a.Attempt == 1 && !a.Rerun
}

// reuse looks for an old outcome of a step before its first call, and records
// that it is taken.
func (d *driver) reuse(a machine.Action) (out value.Value, ok bool, err error) {
	if !d.mayReuse(a) {
		return value.Value{}, false, nil
	}
	id := d.plan.Steps[a.Step].ID
	err = call.Guard("the reuse of outcomes", func() error { out, ok = d.opt.Reuse(id, a.Tool, a.Args); return nil })
	if err != nil || !ok {
		return value.Value{}, false, err
	}
	if err := d.follow(a, machine.Event{Kind: machine.Reused, Output: out}, false); err != nil {
		return value.Value{}, false, err
	}
	if d.opt.Recorder != nil {
		err = call.Guard("the recorder", func() error { return d.opt.Recorder.Reused(id, a.Tool, a.Args, out) })
	}
	return out, true, err
}

func (d *driver) request(a machine.Action) call.Request {
	s := &d.plan.Steps[a.Step]
	r := call.Request{Step: s.ID, Attempt: a.Attempt, Rerun: a.Rerun, Tool: a.Tool, Args: a.Args, Refs: a.Refs, Before: a.Before, Approved: a.Approved, Delay: a.Delay, Key: d.opt.Key, Run: d.opt.ID}
	if d.opt.Observer != nil {
		r.Progress = func(p tool.Progress) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.over {
				return // a handler that was given up still talks
			}
			d.tell(Event{Kind: Noted, Step: s.ID, Tool: s.Tool, Attempt: a.Attempt, Progress: p})
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
		d.tell(d.settled(i))
	}
}

func (d *driver) settled(i int) Event {
	return Event{Kind: Settled, Step: d.plan.Steps[i].ID, Tool: d.plan.Steps[i].Tool, Status: d.m.Status(i), Cause: d.m.Cause(i)}
}

// tell tells the observer. One that panics is told no more, and fails the run.
// Holding mu.
func (d *driver) tell(e Event) {
	if d.opt.Observer == nil {
		return
	}
	e.Time = time.Now()
	if err := call.Guard("the observer", func() error { d.opt.Observer(e); return nil }); err != nil {
		d.opt.Observer = nil
		d.failed = errors.Join(d.failed, err)
	}
}

func newSecret() []byte {
	b := make([]byte, 32)
	rand.Read(b)
	return b
}
