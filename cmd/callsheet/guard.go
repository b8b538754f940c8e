package main

import (
	"context"
	"errors"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/gate"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/terminal"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// authorFlags say whose words the plan's literals are.
type authorFlags struct {
	Author string `help:"Who wrote the plan: user, whose literals are trusted, or model, of whose literals only those that --task holds are." enum:"user,model" default:"user" placeholder:"user|model"`
	Task   string `help:"The task that the model wrote the plan for, in the user's own words." placeholder:"TEXT"`
}

// Validate is called by the parser.
func (f *authorFlags) Validate() error {
	if f.Task != "" && f.Author != "model" {
		return errors.New("--task is what a model was told: it needs --author model")
	}
	return nil
}

// kind is the author of a plan.
func (f *authorFlags) kind() policy.AuthorKind {
	if f.Author == "model" {
		return policy.Planner
	}
	return policy.Person
}

// author is who wrote the calls. A model has read what the servers say of their
// tools, also those that are not trusted.
func author(kind policy.AuthorKind, task string, tools *config.Opened) policy.Author {
	a := policy.Author{Kind: kind}
	if kind == policy.Person {
		return a
	}
	a.Grants = policy.NewGrants(task)
	for _, name := range tools.Untrusted {
		a.Seen = a.Seen.Join(policy.Label{Integrity: policy.Untrusted, Sources: []policy.Source{{Step: "the description", Tool: name}}})
	}
	return a
}

// A guard is what stands between calls and tools: the policy, approvals and
// secrets.
type guard struct {
	gate   *gate.Gate
	vault  *gate.Vault
	policy *policy.Policy
	digest value.Digest // of what the gate decides by
}

// newGuard makes the guard of a run. Of o, what the tools and the configuration
// say is filled in here.
func newGuard(tools *config.Opened, o gate.Options) (*guard, error) {
	o.Policy, o.Approve = tools.Policy, tools.Approve
	g := &guard{gate: gate.New(o), policy: tools.Policy, digest: gate.Digest(tools.Policy, tools.Approve, o.OnAsk, o.Author.Kind)}
	if g.policy == nil {
		g.policy = policy.None
	}
	var err error
	g.vault, err = gate.NewVault(tools.Secrets, tools.Unset...)
	return g, err
}

// findings are what the guard will ask or deny. Of a step whose secrets cannot be
// had nothing else is told.
func (g *guard) findings(p *plan.Plan, c *tool.Catalogue) []check.Diagnostic {
	ds := g.vault.Findings(p, c)
	told := map[string]bool{}
	for _, d := range ds {
		told[d.Step] = true
	}
	for _, d := range g.gate.Findings(p) {
		if !told[d.Step] {
			ds = append(ds, d)
		}
	}
	return ds
}

// noPolicy is said of a run without a policy (spec/policy.md).
const noPolicy = "no policy: nothing is asked or denied but what approve names; callsheet init writes a configuration with one"

// onAsk is what happens to a call about which a person should be asked: what the
// flag says, else a prompt where somebody is there and a pause elsewhere.
func (p *performance) onAsk() (gate.OnAsk, func(context.Context, call.Request, call.Decision) (gate.Verdict, error), error) {
	switch p.flags.OnAsk {
	case "pause":
		return gate.Pause, nil, nil
	case "refuse":
		return gate.Refuse, nil, nil
	}
	screen := p.app.person()
	if screen == nil {
		if p.flags.OnAsk == "prompt" {
			return "", nil, refuse("--on-ask prompt: there is no terminal to ask at")
		}
		return gate.Pause, nil, nil
	}
	prompt := terminal.NewPrompt(screen, p.app.stdin)
	return gate.Prompt, func(ctx context.Context, r call.Request, d call.Decision) (gate.Verdict, error) {
		release := p.hold()
		defer release()
		choice, why := prompt.Ask(ctx, terminal.Question{
			Step: r.Step, Tool: r.Tool.Name, Decl: r.Tool, Args: r.Tool.Redact(r.Args), Code: d.Code, Message: d.Message,
		})
		v := gate.Verdict{By: record.Whoami(), Later: choice == terminal.Later, Allow: choice == terminal.Approve}
		v.Why = "a person said no (" + v.By + ")"
		if v.Allow {
			v.Why = "a person said yes (" + v.By + ")"
		} else if why != "" {
			v.Why += ": " + why
		}
		return v, nil
	}, nil
}

// guard puts the guard of a plan's run in place.
func (p *performance) guard(tools *config.Opened, pl *plan.Plan, by policy.Author) (*guard, error) {
	on, ask, err := p.onAsk()
	if err != nil {
		return nil, err
	}
	g, err := newGuard(tools, gate.Options{Author: by, Plan: pl, OnAsk: on, Ask: ask})
	if err != nil {
		return nil, refusal{err}
	}
	if tools.Policy == nil && !p.flags.Quiet && !p.flags.JSON {
		p.app.err().Line("%s", noPolicy)
	}
	p.opt.Run.Vault, p.opt.Policy, p.opt.Asker = g.vault, g.digest, g.gate
	if tools.Policy != nil || len(tools.Approve) > 0 {
		p.opt.Run.Gate = g.gate // one that allows everything has nothing to record
	}
	return g, nil
}

// typed is the gate of a call that a person types: whoever types it has approved
// it, and a denial still holds.
func typed(tools *config.Opened, pl *plan.Plan) (*guard, error) {
	return newGuard(tools, gate.Options{Plan: pl, OnAsk: gate.Prompt, Ask: func(context.Context, call.Request, call.Decision) (gate.Verdict, error) {
		return gate.Verdict{Allow: true, By: record.Whoami(), Why: "typed by a person"}, nil
	}})
}

// mayStart reports whether the guard lets a plan begin at all: its secrets are
// there and, where nobody is to be asked, nothing asks.
func (g *guard) mayStart(pl *plan.Plan, c *tool.Catalogue, onAsk string) bool {
	if len(g.vault.Findings(pl, c)) > 0 {
		return false
	}
	return onAsk != "refuse" || g.gate.Worst() == policy.Allow
}

// oneByOne holds a run to one call at a time where the policy looks back at the
// calls before, and says so if more were wanted.
func (p *performance) oneByOne(g *guard, wanted bool) {
	if !g.policy.LooksBack() {
		return
	}
	p.opt.Run.Workers, p.opt.Run.Eager = 1, false
	if wanted {
		p.app.err().Line("warning: the policy looks at the calls before, so one call is made at a time")
	}
}
