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

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/terminal"
	"github.com/callsheet/callsheet/value"
)

type runCmd struct {
	planFlags
	Parallel  *int   `help:"Calls at once; 1 unless told, 8 with --eager." placeholder:"N"`
	Eager     bool   `help:"Start a step as soon as its own dependencies are ok."`
	JSON      bool   `name:"json" help:"Print the report as one line of JSON, and nothing else."`
	Report    string `help:"Write the full report to this file." placeholder:"FILE"`
	Quiet     bool   `help:"Show nothing but errors."`
	NoJournal bool   `help:"Keep no record."`
}

// Validate is called by the parser.
func (c *runCmd) Validate() error {
	if c.Parallel != nil && *c.Parallel < 1 {
		return fmt.Errorf("--parallel is %d; at least one call at a time", *c.Parallel)
	}
	return c.planFlags.Validate()
}

// Run runs a plan.
func (c *runCmd) Run(a *app) error {
	ctx, interrupted, stop := interruptible()
	defer stop()
	s, err := c.prepare(ctx, a)
	if err != nil {
		return a.inJSON(err, c.JSON)
	}
	defer s.Close()

	opt := run.Options{Eager: c.Eager, Limits: s.tools.Limits}
	if c.Parallel != nil {
		opt.Workers = *c.Parallel
	}
	if s.config != nil {
		opt.Deadline, opt.MaxArgs = time.Duration(s.config.Limits.Deadline), int(s.config.Limits.Args)
	}
	var lowered bool
	if opt.Budget, lowered = machine.EffectiveBudget(s.plan, c.Budget, s.ceiling()); lowered {
		a.err().Line("warning: the budget is lowered to %d by limits.budget of %s", *opt.Budget, s.config.File())
	}
	if len(s.tools.Approve) > 0 {
		opt.Gate = approvals(s.tools.Approve)
	}
	var full *os.File
	if c.Report != "" {
		// Before the first call: a report that cannot be written is found now.
		if full, err = os.OpenFile(c.Report, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
			return a.inJSON(refuse("--report: %w", err), c.JSON)
		}
		defer full.Close()
	}
	for _, w := range s.tools.Warnings {
		a.err().Line("warning: %s", w)
	}
	for _, w := range s.plan.Warnings {
		a.err().Line("%s:%d:%d: warning: %s", s.file, w.Line, w.Column, w.Message)
	}

	show := c.output(a)
	var watch *terminal.Watch
	if show != nil {
		watch = show.Watch(s.plan)
		opt.Observer = watch.Observe
	}
	report, failed := run.Do(ctx, s.plan, s.tools.Set, opt)
	if watch != nil {
		watch.Close()
	}
	if report == nil {
		return failed
	}
	if show != nil && !c.JSON {
		show.Report(report, watch.Elapsed())
	}
	if err := c.write(a, report, full); err != nil {
		failed = errors.Join(failed, err)
	}
	return outcome(a, report, failed, interrupted.Load())
}

// prepare loads the plan and refuses what must not start.
func (c *runCmd) prepare(ctx context.Context, a *app) (*script, error) {
	s, err := a.load(ctx, &c.planFlags)
	if err != nil {
		return nil, err
	}
	switch {
	case s.plan == nil:
		err = a.refusedPlan(s.file, s.check(&c.planFlags), c.JSON)
	case len(s.catalogue().All()) == 0 && len(s.plan.Steps) > 0:
		err = errNoTools
	case len(s.tools.Declared) > 0:
		err = refuse("the tool %q is only declared and cannot be called (%d such tools); add --stub FILE to answer in its place", s.tools.Declared[0], len(s.tools.Declared))
	case c.Strict:
		if r := s.check(&c.planFlags); !r.OK {
			err = a.refusedPlan(s.file, r, c.JSON)
		}
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// output is where the run is shown, nil for nowhere. Standard output is the
// report's alone under --json; a person at a terminal still sees the run.
func (c *runCmd) output(a *app) *terminal.Output {
	if c.Quiet {
		return nil
	}
	if !c.JSON {
		return a.out()
	}
	if out := a.err(); out.Live() {
		return out
	}
	return nil
}

func (c *runCmd) write(a *app, report *machine.Report, full *os.File) error {
	var errs []error
	if c.JSON {
		_, err := a.stdout.Write(append(report.AppendJSON(nil), '\n'))
		errs = append(errs, err)
	}
	if full != nil {
		_, err := full.Write(append(report.AppendFullJSON(nil), '\n'))
		errs = append(errs, err, full.Close())
	}
	return errors.Join(errs...)
}

// outcome is the exit code of a run; when several apply, the first holds.
func outcome(a *app, report *machine.Report, failed error, interrupted bool) error {
	switch {
	case failed != nil:
		return failed
	case interrupted:
		return exit(exitInterrupted)
	}
	for i := range report.Steps {
		if s := &report.Steps[i]; s.Status == machine.Waiting {
			a.err().Line("step %s waits for a person", s.ID)
			return exit(exitPaused)
		}
	}
	if !report.OK() {
		return exit(exitNotOK)
	}
	return nil
}

// interruptible is a context that ends at the first interrupt, so that the run
// settles; at the second the process leaves at once.
func interruptible() (ctx context.Context, interrupted *atomic.Bool, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	interrupted = new(atomic.Bool)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for range signals {
			if interrupted.Swap(true) {
				os.Exit(exitInterrupted)
			}
			cancel()
		}
	}()
	return ctx, interrupted, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}

// inJSON says a refusal as the one line of JSON that --json promises.
func (a *app) inJSON(err error, asJSON bool) error {
	var refused refusal
	if !asJSON || !errors.As(err, &refused) {
		return err
	}
	r := &check.Report{Waves: [][]string{}}
	var file *config.Error
	if errors.As(err, &file) {
		for _, f := range file.Faults {
			r.Diagnostics = append(r.Diagnostics, check.Diagnostic{
				Code: "bad_configuration", Severity: check.Error, Pointer: f.Pointer, Line: f.Line, Column: f.Column, Message: file.File + ": " + f.Message,
			})
		}
	} else {
		r.Diagnostics = []check.Diagnostic{{Code: "refused", Severity: check.Error, Message: refused.Error()}}
	}
	return a.refusedPlan("", r, true)
}

// approvals asks a person about the tools that the configuration names. Nobody
// can answer yet while the run goes on, so it pauses.
type approvals map[string]bool

var _ call.Gate = approvals{}

// Judge asks for every call of a tool that needs approval.
func (g approvals) Judge(_ context.Context, r call.Request) (call.Decision, error) {
	if !g[r.Tool.Name] {
		return call.Decision{Verdict: machine.Allow, By: "configuration"}, nil
	}
	return call.Decision{
		Verdict: machine.Ask, Code: "needs_approval", By: "configuration", Facts: value.NullValue(),
		Message: fmt.Sprintf("the configuration wants a person to approve calls of %s", r.Tool.Name),
	}, nil
}
