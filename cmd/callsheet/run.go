package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/run"
)

type runCmd struct {
	planFlags
	Parallel *int             `help:"Calls at once; 1 unless told, 8 with --eager." placeholder:"N"`
	Eager    bool             `help:"Start a step as soon as its own dependencies are ok."`
	Deadline *config.Duration `help:"Of the whole run, as in 10m; that of the configuration unless told." placeholder:"D"`
	showFlags
	rehearsalFlags
	journalFlag
	NoJournal bool `help:"Keep no record: nothing can be resumed, approved later or audited."`
}

// Validate is called by the parser.
func (c *runCmd) Validate() error {
	if c.Parallel != nil && *c.Parallel < 1 {
		return fmt.Errorf("--parallel is %d; at least one call at a time", *c.Parallel)
	}
	if c.NoJournal && c.Journal != "" {
		return errors.New("--no-journal and --journal exclude each other")
	}
	return c.planFlags.Validate()
}

// Run runs a plan.
func (c *runCmd) Run(a *app) error {
	p := newPerformance(a, &c.showFlags)
	defer p.stop()
	s, err := c.prepare(p)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := p.open(s.config, s.tools); err != nil {
		return err
	}
	defer p.close()
	opt := &p.opt.Run
	opt.Eager = c.Eager
	if c.Parallel != nil {
		opt.Workers = *c.Parallel
	}
	p.oneByOne(s.guard, c.Eager || opt.Workers > 1)
	if s.config != nil {
		opt.MaxArgs = int(s.config.Limits.Args)
	}
	if c.Deadline != nil {
		opt.Deadline = time.Duration(*c.Deadline)
	}
	var lowered bool
	if opt.Budget, lowered = machine.EffectiveBudget(s.plan, c.Budget, s.ceiling()); lowered {
		a.err().Line("warning: the budget is lowered to %d by limits.budget of %s", *opt.Budget, s.config.File())
	}
	if !c.NoJournal {
		if p.store, err = c.create(a, s.config); err != nil {
			return err
		}
	}
	b := began{authorFlags: c.authorFlags, onAsk: c.OnAsk}
	if b.rehearsal, err = c.required(p.ctx, s.config, p.store, s.plan, s.tools, c.kind()); err != nil {
		return err
	}
	p.holdTo(b.rehearsal, s.guard)
	if p.opt.Setup, err = c.setup(s.config, b, s.guard); err != nil {
		return err
	}
	for _, w := range s.plan.Warnings {
		a.err().Line("%s:%d:%d: warning: %s", s.file, w.Line, w.Column, w.Message)
	}
	return p.perform(s.plan, func(ctx context.Context) (*machine.Report, error) {
		if p.store == nil {
			return run.Do(ctx, s.plan, s.tools.Set, p.opt.Run)
		}
		return record.Run(ctx, p.store, s.plan, s.tools.Set, p.opt)
	})
}

// prepare loads the plan and refuses what must not start.
func (c *runCmd) prepare(p *performance) (*script, error) {
	s, err := p.app.load(p.ctx, &c.planFlags)
	if err != nil {
		return nil, err
	}
	if s.plan != nil {
		s.guard, err = p.guard(s.tools, s.plan, c.author(s.tools))
	}
	switch {
	case err != nil:
	case s.plan == nil:
		err = p.app.refusedPlan(s.file, s.check(&c.planFlags), c.JSON)
	case len(s.catalogue().All()) == 0 && len(s.plan.Steps) > 0:
		err = errNoTools
	case len(s.tools.Declared) > 0:
		err = onlyDeclared(s.tools.Declared, "")
	default:
		may := s.guard.mayStart(s.plan, s.catalogue(), c.OnAsk)
		if may && !c.Strict {
			break
		}
		if r := s.check(&c.planFlags); !r.OK || !may {
			r.OK = false
			err = p.app.refusedPlan(s.file, r, c.JSON)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// interruptible is a context that ends at the first interrupt, so that the run
// settles, and first is called; at the second the process leaves at once, after
// abort, and the programs of its tools end with it. Either function may be nil.
func (a *app) interruptible(first, abort func()) (ctx context.Context, interrupted *atomic.Bool, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	interrupted = new(atomic.Bool)
	a.settles.Store(true)
	signals := make(chan os.Signal, 2)
	notifyInterrupts(signals)
	go func() {
		for s := range signals {
			if s == syscall.SIGHUP && interrupted.Load() {
				continue // a terminal that goes away says so more than once
			}
			if interrupted.Swap(true) {
				if abort != nil {
					abort()
				}
				a.running.Kill() // last: what a killed program answers is no outcome
				os.Exit(exitInterrupted)
			}
			if first != nil {
				first()
			}
			cancel()
		}
	}()
	return ctx, interrupted, func() {
		a.settles.Store(false)
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}

// stopping says what the first interrupt does.
func (a *app) stopping() { a.err().Line("stopping; press Ctrl-C again to leave now") }
