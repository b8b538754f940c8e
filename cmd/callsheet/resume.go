package main

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/gate"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world/rehearsal"
)

// began is how a run was judged when it began; it goes on in the same way.
type began struct {
	authorFlags
	onAsk     string
	rehearsal *rehearsal.Receipt // what it is held to; nil: nothing
	replanned bool               // the model had read what an earlier run returned
}

// author is who wrote the plan.
func (b *began) author(tools *config.Opened) policy.Author {
	a := author(b.kind(), b.Task, tools)
	if b.replanned {
		a.Seen = a.Seen.Join(policy.Label{Integrity: policy.Untrusted, Sources: []policy.Source{{Step: "an earlier run"}}})
	}
	return a
}

// recallBegan reads what setup wrote.
func recallBegan(setup value.Value) began {
	text := func(key string) string {
		v, _ := setup.Get(key)
		s, _ := v.Text()
		return s
	}
	replanned, _ := setup.Get("replanned")
	b := began{authorFlags: authorFlags{Author: cmp.Or(text("author"), "user"), Task: text("task")}, onAsk: text("on_ask")}
	b.replanned, _ = replanned.Bool()
	return b
}

// setup says where the tools of a run came from and how its calls are judged, so
// that resume finds both again. c is the configuration that held, nil without one.
func (f *toolFlags) setup(c *config.Config, b began, g *guard) (value.Value, error) {
	var tools []value.Value
	for _, t := range f.Tools {
		if t != "demo" && t != "arith" {
			var err error
			if t, err = filepath.Abs(t); err != nil {
				return value.Value{}, err
			}
		}
		tools = append(tools, plain(t))
	}
	ms := []value.Member{{Key: "tools", Value: value.ListOf(tools...)}}
	file := func(key, path string) error {
		if path == "" {
			return nil
		}
		path, err := filepath.Abs(path)
		ms = append(ms, value.Member{Key: key, Value: plain(path)})
		return err
	}
	if b.kind() != policy.Person {
		ms = append(ms, value.Member{Key: "author", Value: plain(b.Author)}, value.Member{Key: "task", Value: plain(g.vault.RedactText(b.Task))})
	}
	if b.replanned {
		ms = append(ms, value.Member{Key: "replanned", Value: value.BoolValue(true)})
	}
	if b.onAsk == string(gate.Refuse) {
		ms = append(ms, value.Member{Key: "on_ask", Value: plain(b.onAsk)})
	}
	if b.rehearsal != nil {
		ms = append(ms, value.Member{Key: "rehearsal", Value: plain(b.rehearsal.Run)})
	}
	err := file("stub", f.Stub)
	if c != nil {
		err = errors.Join(err, file("config", c.File()))
	}
	return value.ObjectOf(ms...), err
}

// recall fills flags that were not given with what a run was started with.
func (f *toolFlags) recall(setup value.Value) {
	if len(f.Tools) > 0 || f.Stub != "" || f.Config != "" {
		return
	}
	text := func(v value.Value) string {
		s, _ := v.Text()
		return s
	}
	tools, _ := setup.Get("tools")
	for _, t := range tools.Elements() {
		f.Tools = append(f.Tools, text(t))
	}
	stub, _ := setup.Get("stub")
	file, _ := setup.Get("config")
	f.Stub, f.Config = text(stub), text(file)
}

// goOn are the flags of whatever goes on with a run.
type goOn struct {
	toolFlags
	journalFlag
	showFlags
	modelFlags
	Deadline *config.Duration `help:"Of what is left of the run, as in 10m; that of the configuration unless told." placeholder:"D"`
}

func (f *goOn) stored() *storedFlags {
	return &storedFlags{journalFlag: f.journalFlag, Config: f.Config}
}

type resumeCmd struct {
	ID   string `arg:"" help:"The run, or the beginning of its id."`
	Fork bool   `help:"Begin a new run that takes over what did not change."`
	Plan string `help:"The plan of the fork; without it that of the run." placeholder:"FILE"`
	goOn
}

// Validate is called by the parser.
func (c *resumeCmd) Validate() error {
	if c.Plan != "" && !c.Fork {
		return errors.New("--plan needs --fork: a run goes on under the plan that it began with")
	}
	return nil
}

// Run goes on with a run.
func (c *resumeCmd) Run(a *app) error {
	p := newPerformance(a, &c.showFlags)
	defer p.stop()
	store, id, err := c.stored().find(p.ctx, a, c.ID)
	if err != nil {
		return err
	}
	p.store = store
	defer p.close()
	return c.goOn.resume(p, id, c.Fork, c.Plan)
}

// resume goes on with a run of the journal that p has, or forks it.
func (f *goOn) resume(p *performance, id string, fork bool, planFile string) error {
	sum, err := p.store.Summary(p.ctx, id)
	if err == nil && sum.Kind == record.KindAgent {
		if fork {
			return refuse("run %s is an agent's; only the run of a plan can be forked", id)
		}
		return f.resumeAgent(p, id)
	}
	h, err := record.Load(p.ctx, p.store, id)
	if err != nil {
		return stored(err)
	}
	f.toolFlags.recall(h.Setup)
	c, err := f.configuration()
	if err != nil {
		return err
	}
	pl := h.Plan
	if planFile != "" {
		text, err := p.app.read(planFile, c.PlanLimits().Bytes)
		if err != nil {
			return err
		}
		if pl, err = plan.Decode(text, c.PlanLimits()); err != nil {
			return refuse("%s: %w", named(planFile), err)
		}
	}
	tools, err := f.toolFlags.open(p.ctx, p.app, c, pl)
	if err != nil {
		return err
	}
	defer tools.Close()
	if len(tools.Declared) > 0 {
		return onlyDeclared(tools.Declared, "")
	}
	b := recallBegan(h.Setup)
	p.flags.OnAsk = cmp.Or(p.flags.OnAsk, b.onAsk)
	g, err := p.guard(tools, pl, b.author(tools))
	if err != nil {
		return err
	}
	if fork {
		required := &rehearsalFlags{}
		b.rehearsal, err = required.required(p.ctx, c, p.store, pl, tools, b.kind())
	} else {
		b.rehearsal, err = recallRehearsal(p.ctx, p.store, h.Setup)
	}
	if err != nil {
		return err
	}
	p.holdTo(b.rehearsal, g)
	if err := p.open(c, tools); err != nil {
		return err
	}
	if f.Deadline != nil {
		p.opt.Run.Deadline = time.Duration(*f.Deadline)
	}
	if !fork {
		return p.perform(pl, func(ctx context.Context) (*machine.Report, error) {
			return record.Resume(ctx, p.store, id, tools.Set, p.opt)
		})
	}
	budget := h.Budget
	if planFile != "" {
		budget = pl.Budget
	}
	var ceiling *int
	if c != nil {
		ceiling = c.Limits.Budget
	}
	o := &p.opt.Run
	o.Budget, _ = machine.EffectiveBudget(pl, budget, ceiling)
	o.Workers, o.Eager, o.MaxArgs = h.Workers, h.Eager, h.MaxArgs
	p.oneByOne(g, h.Eager || h.Workers > 1)
	if p.opt.Setup, err = f.toolFlags.setup(c, began{b.authorFlags, p.flags.OnAsk, b.rehearsal, b.replanned}, g); err != nil {
		return err
	}
	return p.perform(pl, func(ctx context.Context) (*machine.Report, error) {
		return record.Fork(ctx, p.store, id, pl, tools.Set, p.opt)
	})
}
