package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/gate"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/terminal"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/rehearsal"
	"github.com/callsheet/callsheet/world/runs"
	"github.com/callsheet/callsheet/world/state"
	"github.com/callsheet/callsheet/world/workspace"
)

type rehearseCmd struct {
	Plan         string `arg:"" help:"The plan, - for standard input."`
	World        string `help:"The worldbook to rehearse on; that of rehearsal.world in the configuration unless told." placeholder:"DIR"`
	AllowAgent   bool   `help:"Let the world-model agent answer what neither recordings nor rules do."`
	InitialState string `help:"The state that rules begin with, as JSON or @FILE." placeholder:"JSON|@FILE"`
	Budget       *int   `help:"Calls at most, in place of the plan's own budget." placeholder:"N"`
	JSON         bool   `name:"json" help:"Print report and receipt as one line of JSON, and nothing else."`
	Quiet        bool   `help:"Show nothing but errors."`
	authorFlags
	sourceFlags
	modelFlags
	journalFlag
	NoJournal bool `help:"Keep no record: no run can require this rehearsal."`
}

// Validate is called by the parser.
func (c *rehearseCmd) Validate() error {
	if c.NoJournal && c.Journal != "" {
		return errors.New("--no-journal and --journal exclude each other")
	}
	if c.Budget != nil && *c.Budget < 0 {
		return fmt.Errorf("--budget is %d; a budget is at least 0", *c.Budget)
	}
	return c.authorFlags.Validate()
}

// Run rehearses a plan. No tool is called and no server is started.
func (c *rehearseCmd) Run(a *app) error {
	r, err := c.prepare(a)
	if err != nil {
		return err
	}
	defer r.close()
	ctx, interrupted, stop := a.interruptible(a.stopping, nil)
	defer stop()
	report, receipt, err := r.stage.Perform(ctx, r.plan, r.catalogue(), r.opt)
	if err = stored(err); report == nil {
		return err
	}
	switch {
	case c.JSON:
		err = errors.Join(err, a.print(value.ObjectOf(
			value.Member{Key: "report", Value: value.MustParse(string(report.AppendJSON(nil)))},
			value.Member{Key: "receipt", Value: receipt.Value()},
		)))
	case !c.Quiet:
		showReceipt(a.out(), receipt)
	}
	switch {
	case err != nil:
		return err
	case interrupted.Load():
		return exit(exitInterrupted)
	case !report.OK() || !receipt.Counts:
		return exit(exitNotOK)
	}
	return nil
}

// rehearsing is a plan with the stage that it is performed on.
type rehearsing struct {
	plan  *plan.Plan
	tools *config.Opened // declared only
	book  *book.Book
	stage *rehearsal.Stage
	opt   rehearsal.PerformOptions
}

func (r *rehearsing) catalogue() *tool.Catalogue { return r.tools.Set.Catalogue() }

func (r *rehearsing) close() {
	if r.opt.Store != nil {
		r.opt.Store.Close()
	}
	r.book.Close()
}

func (c *rehearseCmd) prepare(a *app) (_ *rehearsing, err error) {
	cfg, err := (&toolFlags{sourceFlags: c.sourceFlags}).configuration()
	if err != nil {
		return nil, err
	}
	r := &rehearsing{}
	text, err := a.read(c.Plan, cfg.PlanLimits().Bytes)
	if err != nil {
		return nil, err
	}
	if r.plan, err = plan.Decode(text, cfg.PlanLimits()); err != nil {
		var refused *plan.Error
		if errors.As(err, &refused) {
			_, found := check.Text(text, check.Options{Limits: cfg.PlanLimits()})
			return nil, a.refusedPlan(c.Plan, found, c.JSON)
		}
		return nil, err
	}
	dir := c.World
	if dir == "" && cfg != nil {
		dir = cfg.Rehearsal.World
	}
	if dir == "" {
		return nil, refuse("name the worldbook to rehearse on with --world DIR; callsheet world build makes one")
	}
	if r.book, err = openBook(dir); err != nil {
		return nil, err
	}
	opened := r // what is returned is nil when err is not
	defer func() {
		if err != nil {
			opened.close()
		}
	}()
	if r.tools, err = declare(cfg, c.Tools, r.book); err != nil {
		return nil, err
	}
	if err := r.guard(c.authorFlags); err != nil {
		return nil, err
	}
	o := rehearsal.Options{Effectful: effectful(r.catalogue())}
	if o.Initial, err = a.initialState(c.InitialState); err != nil {
		return nil, err
	}
	if c.AllowAgent {
		if o.Agent, err = c.modelFlags.worldAgent(cfg, false, nil); err != nil {
			return nil, err
		}
		r.opt.AllowAgent = true
	}
	if r.stage, err = rehearsal.New(r.book, o); err != nil {
		return nil, refuse("world %s: %w", dir, err)
	}
	run := &r.opt.Record.Run
	var ceiling *int
	if cfg != nil {
		ceiling = cfg.Limits.Budget
		run.MaxArgs = int(cfg.Limits.Args)
		r.opt.Record.Contents = record.Contents(cfg.Journal.Contents)
	}
	run.Budget, _ = machine.EffectiveBudget(r.plan, c.Budget, ceiling)
	if !c.NoJournal {
		r.opt.Store, err = c.create(a, cfg)
	}
	return r, err
}

// declare is the catalogue without anything that could be called.
func declare(c *config.Config, tools []string, b *book.Book) (*config.Opened, error) {
	eps, _, err := b.Recording()
	if err != nil {
		return nil, refusal{err}
	}
	recorded, err := runs.Tools(eps)
	if err != nil {
		return nil, refusal{err}
	}
	o, err := config.Declare(c, config.Options{Tools: tools}, recorded)
	if err != nil {
		return nil, refuse("%w\n(a rehearsal starts no server: of its tools only those are known that the world has recorded, or a catalogue that --tools names)", err)
	}
	if len(o.Set.Catalogue().All()) == 0 {
		return nil, refuse("there are no tools: only recorded runs of plans say which tools they had. Name a catalogue with --tools FILE; callsheet tools list --json --config FILE prints that of a configuration")
	}
	return o, nil
}

// effectful is which tools of a catalogue may change the world: those that do not
// say that they only read.
func effectful(c *tool.Catalogue) func(string) bool {
	return func(name string) bool {
		d := c.Get(name)
		return d == nil || !d.Effects.ReadOnly
	}
}

// guard judges the calls as those of the real run, but that nobody is asked.
func (r *rehearsing) guard(by authorFlags) error {
	g, err := newGuard(r.tools, gate.Options{Author: author(by.kind(), by.Task, r.tools), Plan: r.plan, OnAsk: gate.Pause})
	if err != nil {
		return refusal{err}
	}
	r.opt.Record.Run.Gate = g.gate
	r.opt.Record.Policy = rehearsedPolicy(r.plan, r.tools, by.kind())
	return nil
}

// rehearsedPolicy is the digest of what decides about the calls of a plan. How
// people are asked is no part of it, and neither are tools that the plan does not
// use.
func rehearsedPolicy(p *plan.Plan, tools *config.Opened, by policy.AuthorKind) value.Digest {
	approve := map[string]bool{}
	for i := range p.Steps {
		if name := p.Steps[i].Tool; tools.Approve[name] {
			approve[name] = true
		}
	}
	return gate.Digest(tools.Policy, approve, gate.Pause, by)
}

// initialState reads a flag that holds a state; nil without one.
func (a *app) initialState(flag string) (*state.State, error) {
	if flag == "" {
		return nil, nil
	}
	doc, err := a.document("--initial-state", flag)
	if err != nil {
		return nil, err
	}
	s, err := state.Parse(doc)
	if err != nil {
		return nil, refuse("--initial-state: %w", err)
	}
	return &s, nil
}

// document reads a flag that is JSON, or @ and the name of a file that holds it.
func (a *app) document(name, flag string) (value.Value, error) {
	text := []byte(flag)
	if file, ok := strings.CutPrefix(flag, "@"); ok {
		var err error
		if text, err = a.read(file, 0); err != nil {
			return value.Value{}, err
		}
		name += " " + file
	}
	v, err := value.Parse(text)
	if err != nil {
		return value.Value{}, refuse("%s: %w; write JSON, or @ and the name of a file", name, err)
	}
	return v, nil
}

// openBook opens a worldbook.
func openBook(dir string) (*book.Book, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, refusal{err}
	}
	b, err := book.Open(dir)
	if err != nil {
		return nil, refuse("world %s: %w", dir, err)
	}
	return b, nil
}

// worldAgent is the agent that plays a world; the model is that of the flags or
// of the configuration.
func (f *modelFlags) worldAgent(c *config.Config, requireObservation bool, budget *int) (*workspace.Agent, error) {
	if err := f.fill(c); err != nil {
		return nil, err
	}
	m, err := f.open(c)
	if err != nil {
		return nil, err
	}
	settings := agent.Source()
	settings.RequireObservation = requireObservation
	if budget != nil {
		settings.MaxToolCalls = budget
	}
	return workspace.New(workspace.Options{Model: m, Settings: &settings, Features: workspace.Features{History: true, Compact: true, Unknown: true, Evidence: true}})
}

// showReceipt shows how a rehearsal went: each step, what answered it, and
// whether the receipt counts.
func showReceipt(out *terminal.Output, r *rehearsal.Receipt) {
	if r.Run != "" {
		out.Line("rehearsal %s", r.Run)
	}
	rows := make([][]terminal.Cell, len(r.Steps))
	for i := range r.Steps {
		s := &r.Steps[i]
		why := strings.Join(s.Evidence, " ")
		if why == "" {
			why = s.Reason
		}
		way := string(s.Way)
		if way == "" {
			way = "-"
		}
		rows[i] = terminal.Cells(s.Step, s.Tool, s.Status, way, why)
	}
	out.Table([]string{"STEP", "TOOL", "STATUS", "ANSWERED BY", "EVIDENCE"}, rows)
	for i := range r.Steps {
		if s := &r.Steps[i]; s.Asked != "" {
			out.Line("step %s would be asked about: %s", s.Step, s.Asked)
		}
	}
	out.Line("%s", r.Summary())
	switch {
	case r.Counts && r.Run == "":
		out.Line("every step is ok, and there is no receipt: nothing was recorded, so no run can require it")
		return
	case r.Counts:
		out.Line("the receipt counts: callsheet run --require-rehearsal runs this plan with these tools under this policy")
		return
	}
	out.Line("the receipt does not count:")
	for _, why := range r.Reasons {
		out.Line("  %s", why)
	}
}

// rehearsalFlags say what a run requires.
type rehearsalFlags struct {
	RequireRehearsal bool   `help:"Run only what was rehearsed with every step ok: the same plan, tools and policy. Where the run does otherwise than the rehearsal, ask."`
	World            string `help:"The worldbook on which it must have been rehearsed; any unless told." placeholder:"DIR"`
}

// required is the receipt that a run needs and has, nil when it needs none.
func (f *rehearsalFlags) required(ctx context.Context, c *config.Config, store *journal.Store, p *plan.Plan, tools *config.Opened, by policy.AuthorKind) (*rehearsal.Receipt, error) {
	dir := f.World
	if c != nil && c.Rehearsal.Required {
		f.RequireRehearsal = true
	}
	if f.World != "" && !f.RequireRehearsal {
		return nil, refuse("--world says on what a plan must have been rehearsed, and belongs to --require-rehearsal; this would run the plan on the real tools. callsheet rehearse runs it on a world")
	}
	if c != nil && dir == "" {
		dir = c.Rehearsal.World
	}
	if !f.RequireRehearsal {
		return nil, nil
	}
	if store == nil {
		return nil, refuse("a rehearsal is required, and receipts are in the journal: leave out --no-journal")
	}
	claim := rehearsal.Claim{Plan: p, Catalogue: tools.Set.Catalogue(), Policy: rehearsedPolicy(p, tools, by)}
	if dir != "" {
		b, err := openBook(dir)
		if err != nil {
			return nil, err
		}
		claim.World = b.Digest()
		b.Close()
	}
	r, err := rehearsal.Find(ctx, store, claim)
	var missing *rehearsal.Missing
	if errors.As(err, &missing) {
		return nil, refuse("%w; callsheet rehearse makes a receipt", err)
	}
	return r, err
}

// holdTo holds a run to its rehearsal.
func (p *performance) holdTo(r *rehearsal.Receipt, g *guard) {
	if r == nil {
		return
	}
	g.gate.Rehearsed(r.Differs, r.Summary())
	p.opt.Run.Gate = g.gate
	p.opt.Policy = value.ObjectOf(
		value.Member{Key: "gate", Value: plain(g.digest.String())},
		value.Member{Key: "rehearsal", Value: plain(r.Answers)},
	).Digest()
	if !p.flags.Quiet && !p.flags.JSON {
		p.app.err().Line("%s (%s)", r.Summary(), r.Run)
	}
}

// recallRehearsal is the receipt that a run was begun under, nil without one.
func recallRehearsal(ctx context.Context, store *journal.Store, setup value.Value) (*rehearsal.Receipt, error) {
	v, _ := setup.Get("rehearsal")
	id, ok := v.Text()
	if !ok {
		return nil, nil
	}
	kept, err := record.Receipt(ctx, store, id)
	if err != nil {
		return nil, refuse("the run is held to its rehearsal: %w", err)
	}
	r, err := rehearsal.ParseReceipt(kept)
	if err == nil {
		r.Run = id
	}
	return r, err
}
