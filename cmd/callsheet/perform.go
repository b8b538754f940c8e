package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/terminal"
)

// showFlags say where a run is shown, and who is asked.
type showFlags struct {
	JSON   bool   `name:"json" help:"Print the report as one line of JSON, and nothing else."`
	Report string `help:"Write the full report to this file." placeholder:"FILE"`
	Quiet  bool   `help:"Show nothing but errors."`
	OnAsk  string `help:"When a person must approve a call: prompt at the terminal, pause, or refuse the call. Without it, prompt where there is a terminal and pause where there is none." enum:",prompt,pause,refuse" default:"" placeholder:"prompt|pause|refuse"`
}

// output is where the run is shown, nil for nowhere. Standard output is the
// report's alone under --json; a person at a terminal still sees the run.
func (f *showFlags) output(a *app) *terminal.Output {
	if f.Quiet {
		return nil
	}
	if !f.JSON {
		return a.out()
	}
	if out := a.err(); out.Live() {
		return out
	}
	return nil
}

// abortTime bounds the last record of a process that leaves at once.
const abortTime = 2 * time.Second

// A performance is one run as a person drives it: shown, asked about, recorded
// and reported.
type performance struct {
	app   *app
	flags *showFlags
	ctx   context.Context
	stop  func()
	opt   record.Options
	store *journal.Store // nil: nothing is recorded

	interrupted *atomic.Bool
	live        atomic.Pointer[record.Live]
	full        *reportFile                         // of --report; nil: none
	watch       atomic.Pointer[terminal.Watch]      // nil: nothing is shown
	view        atomic.Pointer[terminal.AgentWatch] // of the agent that goes on; nil: none does
	hook        *hook
}

func newPerformance(a *app, f *showFlags) *performance {
	p := &performance{app: a, flags: f}
	ctx, interrupted, stop := a.interruptible(p.stopping, p.abort)
	back := outliveReaders()
	p.ctx, p.interrupted, p.stop = ctx, interrupted, func() { back(); stop() }
	return p
}

// stopping says what the first interrupt does.
func (p *performance) stopping() {
	defer p.hold()()
	p.app.stopping()
}

// hold takes the live view away until release is called.
func (p *performance) hold() (release func()) {
	if w := p.view.Load(); w != nil {
		return w.Hold()
	}
	if w := p.watch.Load(); w != nil {
		return w.Hold()
	}
	return func() {}
}

// abort records that the process leaves without waiting.
func (p *performance) abort() {
	if live := p.live.Load(); live != nil {
		ctx, cancel := context.WithTimeout(context.Background(), abortTime)
		defer cancel()
		if err := live.Abort(ctx); err != nil {
			p.app.err().Line("callsheet: %s", err)
		}
	}
}

// open takes what the configuration says of runs, and opens what is needed
// before the first call. c may be nil.
func (p *performance) open(c *config.Config, tools *config.Opened) error {
	p.opt.Run.Limits = tools.Limits
	if c != nil {
		p.opt.Run.Deadline = time.Duration(c.Limits.Deadline)
		p.opt.Contents = record.Contents(c.Journal.Contents)
		var err error
		if p.hook, err = newHook(c, &p.app.running); err != nil {
			return err
		}
	}
	for _, w := range tools.Warnings {
		p.app.err().Line("warning: %s", w)
	}
	if p.flags.Report != "" {
		// Before the first call: a report that cannot be written is found now.
		var err error
		if p.full, err = createReport(p.flags.Report); err != nil {
			return refuse("--report: %w", err)
		}
	}
	return nil
}

// close gives back what open and the caller opened.
func (p *performance) close() {
	if p.full != nil {
		p.full.drop()
	}
	if p.store != nil {
		if err := p.store.Close(); err != nil {
			p.app.err().Line("callsheet: %s", err)
		}
	}
}

// perform begins a run of pl, shows it, reports it and says by the exit code how
// it ended.
func (p *performance) perform(pl *plan.Plan, begin func(context.Context) (*machine.Report, error)) error {
	report, failed := p.conduct(pl, begin)
	return p.conclude(pl, report, failed)
}

// conduct runs pl and shows it.
func (p *performance) conduct(pl *plan.Plan, begin func(context.Context) (*machine.Report, error)) (*machine.Report, error) {
	show := p.flags.output(p.app)
	if show != nil {
		p.opt.Run.Observer = func(e run.Event) { p.watch.Load().Observe(e) }
	}
	p.opt.OnStart = func(l record.Live) {
		p.live.Store(&l)
		if show != nil {
			show.Line("run %s", l.ID())
			p.watch.Store(show.Watch(pl))
		}
	}
	if p.store == nil && show != nil {
		p.watch.Store(show.Watch(pl))
	}
	if p.hook != nil {
		p.opt.OnAsk = p.hook.tell
	}
	report, failed := begin(p.ctx)
	if w := p.watch.Load(); w != nil {
		w.Close()
	}
	if p.hook != nil {
		for _, w := range p.hook.wait() {
			p.app.err().Line("warning: %s", w)
		}
	}
	return report, stored(failed)
}

// conclude reports a run of pl and says by the exit code how it ended.
func (p *performance) conclude(pl *plan.Plan, report *machine.Report, failed error) error {
	show := p.flags.output(p.app)
	if report == nil {
		return failed
	}
	if show != nil && !p.flags.JSON {
		show.Report(pl, report, p.watch.Load().Elapsed())
	}
	failed = errors.Join(failed, p.head(report, show), p.write(report))
	return p.outcome(report, failed)
}

// head shows how far the record goes, for whoever keeps it to audit the run.
func (p *performance) head(report *machine.Report, show *terminal.Output) error {
	if p.store == nil || report.Run == "" || show == nil {
		return nil
	}
	sum, err := p.store.Summary(context.Background(), report.Run)
	if err != nil {
		return err
	}
	show.Line("head %s", sum.Head.String())
	return nil
}

// write writes the reports that were asked for.
func (p *performance) write(report *machine.Report) error {
	var errs []error
	if p.flags.JSON {
		_, err := p.app.stdout.Write(append(report.AppendJSON(nil), '\n'))
		errs = append(errs, err)
	}
	if p.full != nil {
		errs = append(errs, p.full.write(append(report.AppendFullJSON(nil), '\n')))
		p.full = nil
	}
	return errors.Join(errs...)
}

// outcome is the exit code of a run; when several apply, the first holds. What a
// person can do about a run that is not over is said in commands to type.
func (p *performance) outcome(report *machine.Report, failed error) error {
	resumable := p.store != nil && report.Run != "" && p.opt.Contents != record.Digests
	switch {
	case failed != nil:
		code := p.app.fail(failed)
		if resumable {
			p.app.err().Line("callsheet resume %s  goes on with the run when that is mended", report.Run)
		}
		return exit(code)
	case p.interrupted.Load():
		if resumable {
			p.app.err().Line("callsheet resume %s  goes on with the run", report.Run)
		}
		return exit(exitInterrupted)
	}
	for i := range report.Steps {
		if report.Steps[i].Status == machine.Waiting {
			return errors.Join(p.paused(report, resumable), exit(exitPaused))
		}
	}
	if !report.OK() {
		return exit(exitNotOK)
	}
	return nil
}

// maxPaused is how many questions a run that pauses names with their commands: a
// screenful.
const maxPaused = 20

// paused names the steps that wait for a person, and the commands that answer.
func (p *performance) paused(report *machine.Report, resumable bool) error {
	say := p.app.err().Line
	lost := map[string]bool{}
	if resumable {
		h, err := record.Load(context.Background(), p.store, report.Run)
		if err != nil {
			return err
		}
		for _, step := range h.Lost() {
			lost[step] = true
		}
	}
	shown, more := 0, 0
	for i := range report.Steps {
		s := &report.Steps[i]
		if s.Status != machine.Waiting || s.Cause != nil && s.Cause.Step != s.ID {
			continue
		}
		if shown == maxPaused {
			more++
			continue
		}
		shown++
		say("step %s waits for a person", s.ID)
		switch {
		case !resumable:
		case lost[s.ID]:
			say("  callsheet resolve %s %s --happened OUTPUT | --did-not-happen | --give-up", report.Run, s.ID)
		default:
			say("  callsheet approve %s %s", report.Run, s.ID)
			say("  callsheet deny %s %s --why TEXT", report.Run, s.ID)
		}
	}
	switch {
	case more == 0:
	case resumable:
		say("and %d more, which callsheet approvals lists", more)
	default:
		say("and %d more", more)
	}
	switch {
	case resumable:
		say("then  callsheet resume %s", report.Run)
	case p.store == nil:
		say("there is no journal, so nobody can answer later: leave out --no-journal, or run at a terminal")
	default:
		say("the journal keeps digests only, so the run cannot go on: keep its contents full, or run at a terminal")
	}
	return nil
}
