package record

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

type runKey struct{}

// Parent is the id of the recorded run whose tool ctx belongs to, "" outside one.
func Parent(ctx context.Context) string {
	id, _ := ctx.Value(runKey{}).(string)
	return id
}

// Run records and runs a plan. The report comes also with an error, unless the
// run was refused before it began.
func Run(ctx context.Context, store *journal.Store, p *plan.Plan, tools *tool.Set, opt Options) (*machine.Report, error) {
	return begin(ctx, store, p, tools, opt, nil)
}

// Fork begins a new run of p that takes over from the run origin what did not
// change: a step whose tool has the same definition and whose args resolve to
// the same gets the outcome that origin has, and no call is made. The
// idempotency keys are those of the origin. A call that is not safe to repeat, and
// of which nobody knows what became in the origin, asks a person first.
// A run that goes on cannot be forked ([journal.ErrRunTaken]): what it is about to
// do would be done twice. As long as the fork is stored the origin cannot be removed
// ([journal.ErrNeeded]).
func Fork(ctx context.Context, store *journal.Store, origin string, p *plan.Plan, tools *tool.Set, opt Options) (*machine.Report, error) {
	jr, err := store.OpenRun(ctx, origin)
	if err != nil {
		return nil, err
	}
	h, err := Load(ctx, store, origin)
	if err = errors.Join(err, jr.Close()); err != nil {
		return nil, err
	}
	if err := h.mustBeLive(); err != nil {
		return nil, err
	}
	if h.Contents != Full {
		return nil, fmt.Errorf("run %s: %w", origin, ErrDigestsOnly)
	}
	return begin(ctx, store, p, tools, opt, h)
}

func begin(ctx context.Context, store *journal.Store, p *plan.Plan, tools *tool.Set, opt Options, from *History) (*machine.Report, error) {
	if err := opt.Run.Validate(); err != nil {
		return nil, err
	}
	opt.defaults()
	if opt.Parent == "" {
		opt.Parent = Parent(ctx)
	}
	c := tools.Catalogue()
	seal, err := newSealer(store, p, c)
	if err != nil {
		return nil, err
	}
	budget, _ := machine.EffectiveBudget(p, opt.Run.Budget, nil)
	origin, forked := "", ""
	if from != nil {
		origin, forked = from.Origin, from.Summary.ID
		opt.Run.Reuse = from.reuse(seal, nil, p, c)
		g, err := newRepeats(ctx, store, from, seal, &opt)
		if err != nil {
			return nil, err
		}
		if opt.AskRepeats || len(g.doubts) > 0 {
			opt.Run.Gate = g
		}
	}
	name := opt.Name
	if name == "" {
		name = p.Name
	}
	jr, err := store.Create(ctx, journal.Start{
		Kind: opt.kind(), Name: name, Plan: p.Digest(), Catalogue: c.Digest(), Policy: opt.Policy,
		Body: startBody(p, c, &opt, budget, origin, forked), Needs: forked,
	})
	if err != nil {
		return nil, err
	}
	opt.Run.Budget = budget
	if origin == "" {
		origin = jr.ID()
	}
	return drive(ctx, store, jr, p, tools, opt, seal, origin)
}

// Resume goes on with a run that crashed, paused or was interrupted.
func Resume(ctx context.Context, store *journal.Store, id string, tools *tool.Set, opt Options) (*machine.Report, error) {
	if err := opt.Run.Validate(); err != nil {
		return nil, err
	}
	opt.defaults()
	jr, err := store.OpenRun(ctx, id)
	if err != nil {
		return nil, err
	}
	h, err := Load(ctx, store, id)
	if err == nil {
		err = fits(h.Summary, h.Contents, h.Tools, jr.Header(), tools.Catalogue(), opt)
	}
	var seal sealer
	if err == nil {
		seal, err = newSealer(store, h.Plan, tools.Catalogue())
	}
	if err != nil {
		return nil, errors.Join(err, jr.Close())
	}
	opt.Contents = h.Contents
	opt.Run.Reuse = nil
	if h.Forked != "" {
		opt.AskRepeats = h.AskRepeats
		if err := h.follow(ctx, store, seal, tools.Catalogue(), &opt); err != nil {
			return nil, errors.Join(err, jr.Close())
		}
	}
	o := h.options()
	opt.Run.Budget, opt.Run.Workers, opt.Run.Eager, opt.Run.MaxArgs = o.Budget, o.Workers, o.Eager, o.MaxArgs
	if err := jr.AppendWait(ctx, journal.Record{Kind: kindResumed, Status: StatusRunning}); err != nil {
		return nil, errors.Join(err, jr.Close())
	}
	return drive(ctx, store, jr, h.Plan, tools, opt, seal, h.Origin)
}

// follow has a fork that goes on take over and ask about what it would have when
// it began. What it was forked from is there: it stays as long as its forks do.
func (h *History) follow(ctx context.Context, store *journal.Store, seal sealer, c *tool.Catalogue, opt *Options) error {
	from, err := Load(ctx, store, h.Forked)
	if err != nil {
		return fmt.Errorf("the run that this one was forked from: %w", err)
	}
	opt.Run.Reuse = from.reuse(seal, h.Past, h.Plan, c)
	if h.Gated {
		opt.Run.Gate, err = newRepeats(ctx, store, from, seal, opt)
	}
	return err
}

// fits refuses to go on under anything but what the run began with.
func fits(sum journal.Summary, contents Contents, used map[string]string, began journal.Header, c *tool.Catalogue, opt Options) error {
	if began.Kind == KindRehearsal {
		return fmt.Errorf("run %s: %w", sum.ID, ErrRehearsal)
	}
	switch {
	case sum.Finished:
		return fmt.Errorf("run %s: %w", sum.ID, ErrOver)
	case contents != Full:
		return fmt.Errorf("run %s: %w", sum.ID, ErrDigestsOnly)
	case c.Digest() != began.Catalogue:
		err := fmt.Errorf("run %s: the tools have %w: %s", sum.ID, ErrChanged, changedTools(used, c))
		if began.Kind == KindPlan {
			err = fmt.Errorf("%w; fork the run to go on with the new ones", err)
		}
		return err
	case opt.Policy != began.Policy:
		err := fmt.Errorf("run %s: the policy has %w", sum.ID, ErrChanged)
		if began.Kind == KindPlan {
			err = fmt.Errorf("%w; fork the run to go on under the new one", err)
		}
		return err
	}
	return nil
}

// changedTools names those of the used tools whose definitions differ.
func changedTools(used map[string]string, c *tool.Catalogue) string {
	var names []string
	for name, digest := range used {
		if d := c.Get(name); d == nil || d.Digest().String() != digest {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	switch len(names) {
	case 0:
		return "none that the run uses, but the catalogue is another"
	case 1:
		return names[0]
	}
	return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
}

// drive runs until the end or a pause that no answer in the inbox ends.
func drive(ctx context.Context, store *journal.Store, jr *journal.Run, p *plan.Plan, tools *tool.Set, opt Options, seal sealer, origin string) (*machine.Report, error) {
	opt.Run.ID = jr.ID()
	opt.Run.Seal = seal.args
	opt.Run.Recorder = &writer{run: jr, opt: &opt, seal: seal}
	opt.Run.Key = keys(store, origin)
	ctx = context.WithValue(ctx, runKey{}, jr.ID())
	if opt.OnStart != nil {
		opt.OnStart(Live{jr})
	}
	observer := opt.Run.Observer
	var last run.Event
	if observer != nil {
		// Whoever watches is told of the end once, after it is on the disk.
		opt.Run.Observer = func(e run.Event) {
			if e.Kind == run.Ended {
				last = e
				return
			}
			observer(e)
		}
	}
	for {
		report, err := step(ctx, store, jr, p, tools, &opt)
		if report != nil {
			report.Run = jr.ID()
		}
		if err == nil && ctx.Err() == nil && isWaiting(report) {
			// Answers that came while the run went on are taken in now.
			var came []journal.Entry
			if came, err = jr.Inbox(ctx); err == nil && len(came) > 0 {
				continue
			}
		}
		err = errors.Join(err, finish(ctx, jr, &opt, seal, report, err))
		if observer != nil && report != nil {
			last.Report = report
			observer(last)
		}
		return report, err
	}
}

// keys makes the idempotency keys of a run and its forks.
func keys(store *journal.Store, origin string) func(step string, args value.Value) string {
	return func(step string, args value.Value) string {
		d := args.Digest()
		mac := store.HMAC("idempotency key", []byte(origin), []byte(step), d[:])
		return fmt.Sprintf("%x", mac[:16])
	}
}

// step runs once from what is recorded.
func step(ctx context.Context, store *journal.Store, jr *journal.Run, p *plan.Plan, tools *tool.Set, opt *Options) (*machine.Report, error) {
	o := opt.Run
	if jr.Head().Records > 1 {
		h, err := Load(ctx, store, jr.ID())
		if err != nil {
			return nil, err
		}
		if err := h.reopen(ctx, jr, opt); err != nil {
			return nil, err
		}
		o.Past = h.Past
	}
	return run.Do(ctx, p, tools, o)
}

// reopen makes the asks void that nobody answered in time.
func (h *History) reopen(ctx context.Context, jr *journal.Run, opt *Options) error {
	now := opt.Now()
	for i := range h.Plan.Steps {
		a := h.asks[h.Plan.Steps[i].ID]
		if a == nil || a.decided || !now.After(a.Expires) {
			continue
		}
		if err := expire(ctx, jr, a.Step); err != nil {
			return err
		}
		h.Past = append(h.Past, run.Past{Step: a.Step, Event: machine.Event{Kind: machine.Reopened}})
	}
	return nil
}

// expire makes the ask of a step void.
func expire(ctx context.Context, jr *journal.Run, step string) error {
	return jr.AppendWait(ctx, journal.Record{Kind: kindReopened, Body: value.ObjectOf(
		value.Member{Key: "step", Value: text(step)},
		value.Member{Key: "why", Value: text("expired")},
	)})
}

func isWaiting(r *machine.Report) bool {
	for i := range r.Steps {
		if r.Steps[i].Status == machine.Waiting {
			return true
		}
	}
	return false
}

// finish writes the last record of this part of the run and gives it back.
func finish(ctx context.Context, jr *journal.Run, opt *Options, seal sealer, report *machine.Report, failure error) error {
	ctx = context.WithoutCancel(ctx)
	kept := keptReport(report, opt.Contents, seal)
	switch {
	case failure != nil && errors.Is(failure, journal.ErrJournal):
		return jr.Close()
	case failure != nil:
		return stop(ctx, jr, StatusInterrupted, failure.Error(), kept)
	case isWaiting(report):
		return stop(ctx, jr, StatusWaiting, whyAsked, kept)
	case cancelled(report):
		return stop(ctx, jr, StatusInterrupted, "cancelled", kept)
	}
	status := StatusFailed
	if report.OK() {
		status = StatusOK
	}
	core, err := value.Parse(report.AppendJSON(nil))
	if err != nil {
		return errors.Join(err, jr.Close())
	}
	var receipt value.Value
	if opt.Receipt != nil {
		receipt = opt.Receipt(report)
	}
	_, err = jr.Finish(ctx, journal.Record{Kind: kindEnd, Status: status, Body: of(
		value.Member{Key: "status", Value: text(status)},
		value.Member{Key: "calls", Value: value.Int(int64(report.Calls))},
		value.Member{Key: "report_digest", Value: text(core.Digest().String())},
		value.Member{Key: "report", Value: kept},
		value.Member{Key: "receipt", Value: receipt},
	)})
	return errors.Join(err, jr.Close())
}

const whyAsked = "a person is asked"

// stop writes that the run pauses and gives it back. kept is a report to keep
// with it, or no value.
func stop(ctx context.Context, jr *journal.Run, status, why string, kept value.Value) error {
	err := jr.AppendWait(ctx, journal.Record{Kind: kindStopped, Status: status, Body: of(
		value.Member{Key: "why", Value: text(why)},
		value.Member{Key: "report", Value: kept},
	)})
	return errors.Join(err, jr.Close())
}

// cancelled reports whether something was left undone that a resumed run does.
func cancelled(r *machine.Report) bool {
	for i := range r.Steps {
		if r.Steps[i].Status == machine.Cancelled {
			return true
		}
	}
	return false
}

// reuse finds the outcomes of the origin by what was called: each serves one
// step of the fork, one of the same id first. taken are the outcomes that the
// fork, when it is resumed, took before.
func (h *History) reuse(seal sealer, taken []run.Past, p *plan.Plan, c *tool.Catalogue) func(string, *tool.Declaration, value.Value) (value.Value, bool) {
	type known struct {
		step   string
		output value.Value
		used   bool
	}
	type callKey struct {
		tool string
		args value.Digest
	}
	outcomes := map[callKey][]*known{}
	args := map[string]value.Digest{}
	for i := range h.Past {
		past := &h.Past[i]
		e := &past.Event
		if past.Begun || e.Kind == machine.Reused {
			args[past.Step] = past.Args
		}
		ok := e.Kind == machine.Answered && e.Failure == nil && !e.Withheld || e.Kind == machine.Resolved && e.Resolution == machine.Happened || e.Kind == machine.Reused
		if at := h.Plan.Index(past.Step); ok && !past.Begun && at >= 0 {
			k := callKey{h.Tools[h.Plan.Steps[at].Tool], args[past.Step]}
			outcomes[k] = append(outcomes[k], &known{step: past.Step, output: e.Output})
		}
	}
	var mu sync.Mutex
	take := func(step string, k callKey) (value.Value, bool) {
		mu.Lock()
		defer mu.Unlock()
		for _, sameID := range []bool{true, false} {
			for _, o := range outcomes[k] {
				if !o.used && (o.step == step) == sameID {
					o.used = true
					return o.output, true
				}
			}
		}
		return value.Value{}, false
	}
	for i := range taken {
		if at := p.Index(taken[i].Step); taken[i].Event.Kind == machine.Reused && at >= 0 {
			if d := c.Get(p.Steps[at].Tool); d != nil {
				take(taken[i].Step, callKey{d.Digest().String(), taken[i].Args})
			}
		}
	}
	return func(step string, t *tool.Declaration, a value.Value) (value.Value, bool) {
		return take(step, callKey{t.Digest().String(), seal.args(t, a).Digest()})
	}
}
