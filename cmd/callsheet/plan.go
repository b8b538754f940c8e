package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/gate"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/planner"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/value"
)

const roleOfPlans = planner.Role

type planCmd struct {
	Task   string `arg:"" help:"What to do, in words; - for standard input."`
	Go     bool   `name:"run" help:"Run the plan, if it has no errors."`
	Replan int    `help:"Hand a run that did not end well back to the model, this often at most." placeholder:"N"`
	Budget *int   `help:"Calls of the run at most, in place of the plan's own budget." placeholder:"N"`
	Out    string `help:"Write the plan to this file." placeholder:"FILE"`
	Empty  bool   `name:"allow-empty" help:"Take a plan without steps too: there may be nothing to do."`
	agentFlags
}

// Validate is called by the parser.
func (c *planCmd) Validate() error {
	switch {
	case c.Budget != nil && *c.Budget < 0:
		return fmt.Errorf("--budget is %d; a budget is at least 0", *c.Budget)
	case c.Replan < 0:
		return fmt.Errorf("--replan is %d; it is how often, so at least 0", c.Replan)
	case c.Replan > 0 && !c.Go:
		return errors.New("--replan needs --run: what is handed back is a run")
	case c.Replan > 0 && c.NoJournal:
		return errors.New("--replan needs the journal: what was done is taken from the record")
	}
	return c.agentFlags.Validate()
}

// Run lets a model write a plan, and runs it if it is asked to.
func (c *planCmd) Run(a *app) error {
	p := newPerformance(a, c.show())
	defer p.stop()
	return c.run(p)
}

func (c *planCmd) run(p *performance) error {
	com, err := c.commission(p, c.Task)
	if err != nil {
		return err
	}
	defer com.tools.Close()
	switch {
	case len(com.tools.Set.Catalogue().All()) == 0:
		return errNoTools
	case c.Go && len(com.tools.Declared) > 0:
		return onlyDeclared(com.tools.Declared, ", or leave out --run")
	case c.Go && com.config != nil && com.config.Rehearsal.Required:
		return refuse("%s requires a rehearsal, and a plan that is not written yet has none: write it to a file with --out, rehearse it, then run it with --author model", com.config.File())
	}
	defer p.close()
	if err := c.equip(p, com); err != nil {
		return err
	}
	g, err := newGuard(com.tools, gate.Options{})
	if err != nil {
		return refusal{err}
	}
	w := &writing{
		performance: p, commission: com, vault: g.vault, budget: c.Budget, empty: c.Empty, trace: c.Trace, out: c.Out,
		settings: agent.Settings{MaxToolCalls: c.MaxToolCalls, Deadline: c.deadline(com.config)}, running: c.Go,
	}
	if w.setup, err = c.setup(w.config, g, w.kept()...); err != nil {
		return err
	}
	if !c.Go {
		draft, res, err := w.write(nil)
		return w.report(draft, res, err)
	}
	return w.perform(c.Replan, func() (value.Value, error) { return c.toolFlags.setup(w.config, w.began(), g) })
}

// began is how the run of a plan that the model wrote is judged.
func (w *writing) began() began {
	return began{authorFlags: authorFlags{Author: "model", Task: w.task}, onAsk: w.flags.OnAsk, replanned: w.replanned}
}

// writing is a plan that a model writes.
type writing struct {
	*performance
	*commission
	vault    *gate.Vault
	budget   *int
	empty    bool // a plan without steps is one
	settings agent.Settings
	trace    string
	out      string
	setup    value.Value
	running  bool
	// replanned is a model that was shown what an earlier run returned.
	replanned bool
}

// kept is what resume needs besides the tools and the model.
func (w *writing) kept() []value.Member {
	ms := []value.Member{
		{Key: "catalogue", Value: plain(w.tools.Set.Catalogue().Digest().String())},
		{Key: "task", Value: plain(w.task)}, // what the model is told is more than that
	}
	if w.budget != nil {
		ms = append(ms, value.Member{Key: "budget", Value: value.Int(int64(*w.budget))})
	}
	if w.empty {
		ms = append(ms, value.Member{Key: "allow_empty", Value: value.BoolValue(true)})
	}
	return ms
}

// session prepares one plan.
func (w *writing) session(earlier *planner.Earlier) (*planner.Session, error) {
	s := &script{config: w.config, tools: w.tools}
	session, err := planner.New(planner.Config{
		Task: w.task, Catalogue: w.tools.Set.Catalogue(), Settings: w.settings, AllowEmpty: w.empty, Earlier: earlier,
		Check: check.Options{Budget: w.budget, Ceiling: s.ceiling(), Limits: w.config.PlanLimits(), Policy: w.findings},
	})
	if err != nil {
		return nil, refusal{err}
	}
	return session, nil
}

// findings are what the policy will ask or deny of a plan that the model wrote.
func (w *writing) findings(p *plan.Plan) []check.Diagnostic {
	b := w.began()
	g, err := newGuard(w.tools, gate.Options{Author: b.author(w.tools), Plan: p})
	if err != nil {
		return nil // the secrets cannot be had, which was said before the model was asked
	}
	return g.findings(p, w.tools.Set.Catalogue())
}

// agentOf is the planning agent of a session. No gate is asked: it calls nothing
// but a search of the catalogue.
func (w *writing) agentOf(s *planner.Session) *agentRun {
	c := s.Agent()
	c.Model = w.model
	r := w.performance.agent(c, s.Tools(), w.trace)
	r.opt = record.Options{Run: run.Options{Vault: w.vault}, Setup: w.setup, Contents: w.opt.Contents, Name: title(w.task)}
	return r
}

// write lets the model write one plan. The draft is nil when nothing like a plan
// was submitted.
func (w *writing) write(earlier *planner.Earlier) (*planner.Draft, *agent.Result[value.Value], error) {
	s, err := w.session(earlier)
	if err != nil {
		return nil, nil, err
	}
	r := w.agentOf(s)
	if err := r.check(); err != nil {
		return nil, nil, err
	}
	res, err := r.begin(s.Task())
	return s.Best(), res, err
}

// maxTitle is how much of a task names its run in lists.
const maxTitle = 80

func title(task string) string {
	if r := []rune(task); len(r) > maxTitle {
		return string(r[:maxTitle]) + "…"
	}
	return task
}

// report prints the plan, its findings, and says by the exit code how good it is.
func (w *writing) report(d *planner.Draft, res *agent.Result[value.Value], failed error) error {
	var refused refusal
	if errors.As(failed, &refused) {
		return failed
	}
	if w.flags.JSON {
		if err := w.app.print(w.app.planJSON(d, res, failed)); err != nil {
			return err
		}
	}
	if err := w.deliver(d, !w.flags.JSON && !w.running); err != nil {
		return err
	}
	r := &agentRun{performance: w.performance, opt: w.opt}
	if err := r.ended(res, failed); err != nil {
		return err
	}
	if d == nil || !d.OK() { // cannot be: an accepted plan has no errors
		return exit(exitNotOK)
	}
	return nil
}

// file is the name under which people are told of the plan.
func (w *writing) file() string { return cmp.Or(w.out, "plan") }

// deliver writes the plan where it is wanted and shows what was found in it.
func (w *writing) deliver(d *planner.Draft, print bool) error {
	if d == nil {
		return nil
	}
	var err error
	switch {
	case w.out != "":
		err = os.WriteFile(w.out, d.Text, 0o600)
	case print:
		_, err = w.app.stdout.Write(d.Text)
	}
	if !w.flags.JSON {
		w.app.err().Check(w.file(), d.Report)
	}
	return err
}

// planJSON is what --json prints of a plan that was written.
func (a *app) planJSON(d *planner.Draft, res *agent.Result[value.Value], failed error) value.Value {
	doc, ok, found := value.NullValue(), false, value.ListOf()
	if d != nil {
		ok = d.OK()
		if v, err := value.Parse(d.Text); err == nil {
			doc = v
		}
		if v, err := value.Of(d.Report.Diagnostics); err == nil {
			found = v
		}
	}
	ms := append([]value.Member{
		{Key: "plan", Value: doc}, {Key: "ok", Value: value.BoolValue(ok)}, {Key: "diagnostics", Value: found},
	}, costs(res)...)
	if failed != nil {
		ms = append(ms, a.failureJSON(failed))
	}
	return value.ObjectOf(ms...)
}

// perform writes a plan and runs it, and hands a run that did not end well back
// for another plan, this often at most. A plan with errors is never run.
func (w *writing) perform(replans int, setup func() (value.Value, error)) error {
	var earlier *planner.Earlier
	origin := ""
	for n := 0; ; n++ {
		d, res, err := w.write(earlier)
		if err != nil || d == nil || !d.OK() {
			return w.report(d, res, err)
		}
		if err := w.deliver(d, false); err != nil {
			return err
		}
		b := w.began()
		g, err := w.guard(w.tools, d.Plan, b.author(w.tools))
		if err != nil {
			return err
		}
		if !g.mayStart(d.Plan, w.tools.Set.Catalogue(), w.flags.OnAsk) {
			return w.app.refusedPlan(w.file(), check.Plan(d.Plan, check.Options{Catalogue: w.tools.Set.Catalogue(), Policy: w.findings}), w.flags.JSON)
		}
		w.oneByOne(g, false)
		if w.opt.Setup, err = setup(); err != nil {
			return err
		}
		w.opt.AskRepeats = origin != ""
		w.opt.Name = title(w.task)
		w.prepare(d)
		report, failed := w.conduct(d.Plan, func(ctx context.Context) (*machine.Report, error) {
			switch {
			case w.store == nil:
				return run.Do(ctx, d.Plan, w.tools.Set, w.opt.Run)
			case origin == "":
				return record.Run(ctx, w.store, d.Plan, w.tools.Set, w.opt)
			}
			return record.Fork(ctx, w.store, origin, d.Plan, w.tools.Set, w.opt)
		})
		if failed != nil || n == replans || w.interrupted.Load() || !badly(report) {
			return w.conclude(d.Plan, report, failed)
		}
		if show := w.flags.output(w.app); show != nil && !w.flags.JSON {
			show.Report(d.Plan, report, w.watch.Load().Elapsed())
			w.app.err().Line("the run did not end well; another plan is written (%d of %d)", n+1, replans)
		}
		if w.hook != nil { // one serves one run
			if w.hook, err = newHook(w.config, &w.app.running); err != nil {
				return err
			}
		}
		w.replanned = true
		earlier, origin = &planner.Earlier{Plan: d.Plan, Report: report}, report.Run
	}
}

// prepare sets what binds the run of a plan.
func (w *writing) prepare(d *planner.Draft) {
	o := &w.opt.Run
	var ceiling *int
	if w.config != nil {
		ceiling = w.config.Limits.Budget
		o.MaxArgs, o.Deadline = int(w.config.Limits.Args), time.Duration(w.config.Limits.Deadline)
	}
	o.Reuse = nil
	o.Budget, _ = machine.EffectiveBudget(d.Plan, w.budget, ceiling)
}

// badly reports whether a run is over and another plan may do better: nobody is
// waited for.
func badly(r *machine.Report) bool {
	if r == nil || r.OK() {
		return false
	}
	for i := range r.Steps {
		if r.Steps[i].Status == machine.Waiting {
			return false
		}
	}
	return true
}

// resumePlanning goes on with the writing of a plan. The plan is printed, and
// not run: who asked for that can run it.
func resumePlanning(p *performance, h *record.AgentHistory, m model.Model, c *config.Config, tools *config.Opened) error {
	was, _ := h.Setup.Get("catalogue")
	if digest, _ := was.Text(); digest != tools.Set.Catalogue().Digest().String() {
		return stored(fmt.Errorf("run %s: the tools have %w", h.Summary.ID, record.ErrChanged))
	}
	g, err := newGuard(tools, gate.Options{})
	if err != nil {
		return refusal{err}
	}
	w := &writing{performance: p, commission: &commission{recallBegan(h.Setup).Task, c, tools, m}, vault: g.vault}
	if b, ok := h.Setup.Get("budget"); ok {
		n, _ := b.Int()
		w.budget = agent.Int(int(n))
	}
	empty, _ := h.Setup.Get("allow_empty")
	w.empty, _ = empty.Bool()
	s, err := w.session(nil)
	if err != nil {
		return err
	}
	res, err := w.agentOf(s).resume(h.Summary.ID)
	return w.report(s.Best(), res, err)
}
