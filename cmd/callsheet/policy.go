package main

import (
	"context"
	"errors"
	"os"

	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/terminal"
	"github.com/callsheet/callsheet/value"
)

type policyCmd struct {
	Check   policyCheckCmd   `cmd:"" help:"Compile the policy against the tools."`
	Test    policyTestCmd    `cmd:"" help:"Judge the calls of the policy's tests."`
	Explain policyExplainCmd `cmd:"" help:"Say which rules judge a step, by what is known of its args."`
}

// policyFlags name the policy: it is in a configuration, and judged with its
// tools.
type policyFlags struct{ toolFlags }

// open opens the tools and compiles the policy. A fault of it is one of the
// configuration, with file, line and column.
func (f *policyFlags) open(ctx context.Context, a *app) (*config.Config, *config.Opened, error) {
	c, err := f.configuration()
	if err != nil {
		return nil, nil, err
	}
	o, err := f.toolFlags.open(ctx, a, c, nil)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case c == nil:
		err = refuse("there is no %s here; callsheet init writes one", config.FileName)
	case o.Policy == nil:
		err = refuse("%s has no policy; write  policy: default", c.File())
	default:
		return c, o, nil
	}
	return nil, nil, errors.Join(err, o.Close())
}

type policyCheckCmd struct{ policyFlags }

// Run compiles the policy.
func (c *policyCheckCmd) Run(a *app) error {
	cfg, o, err := c.open(context.Background(), a)
	if err != nil {
		return err
	}
	defer o.Close()
	doc := o.Policy.Document()
	a.out().Line("%s: the policy holds: base %s, %s, %s, judged against %s", cfg.File(), doc.Base,
		count.Of(len(doc.Rules), "rule"), count.Of(len(doc.Cases), "test"), count.Of(len(o.Set.Catalogue().All()), "tool"))
	a.out().Line("digest %s", o.Policy.Digest())
	return nil
}

type policyTestCmd struct {
	policyFlags
	JSON bool `name:"json" help:"Print the results as one line of JSON."`
}

// Run judges every case of the policy's table. It exits with 1 if one has another
// answer than it wants.
func (c *policyTestCmd) Run(a *app) error {
	_, o, err := c.open(context.Background(), a)
	if err != nil {
		return err
	}
	defer o.Close()
	results := o.Policy.Test()
	failed := 0
	var rows [][]terminal.Cell
	list := make([]value.Value, len(results))
	for i, r := range results {
		verdict := "ok"
		if r.Fault != "" {
			failed++
			verdict = "FAIL"
		}
		rows = append(rows, terminal.Cells(verdict, r.Case.Name, r.Case.Tool, r.Case.Want.String(), r.Fault))
		list[i] = value.ObjectOf(
			value.Member{Key: "name", Value: plain(r.Case.Name)},
			value.Member{Key: "tool", Value: plain(r.Case.Tool)},
			value.Member{Key: "want", Value: plain(r.Case.Want.String())},
			value.Member{Key: "ok", Value: value.BoolValue(r.Fault == "")},
			value.Member{Key: "fault", Value: plain(r.Fault)},
			value.Member{Key: "decision", Value: decisionJSON(r.Decision)},
		)
	}
	if c.JSON {
		err = a.print(value.ObjectOf(
			value.Member{Key: "ok", Value: value.BoolValue(failed == 0)},
			value.Member{Key: "tests", Value: value.ListOf(list...)},
		))
		if err != nil {
			return err
		}
	} else {
		if len(rows) > 0 {
			a.out().Table([]string{"", "TEST", "TOOL", "WANT", "BUT"}, rows)
		}
		a.out().Line("%s, %d failed", count.Of(len(results), "test"), failed)
	}
	if failed > 0 {
		return exit(exitNotOK)
	}
	return nil
}

// decisionJSON is a decision for programs.
func decisionJSON(d policy.Decision) value.Value {
	ms := []value.Member{
		{Key: "effect", Value: plain(d.Effect.String())},
		{Key: "code", Value: plain(d.Code)},
		{Key: "message", Value: plain(d.Message)},
	}
	for k, m := range d.Value().Members() {
		ms = append(ms, value.Member{Key: k, Value: m})
	}
	return value.ObjectOf(ms...)
}

type policyExplainCmd struct {
	Of   string `arg:"" name:"plan|run" help:"A plan's file, - for standard input; or a recorded run, by the beginning of its id."`
	Step string `arg:"" help:"The step."`
	authorFlags
	policyFlags
	journalFlag
	JSON bool `name:"json" help:"Print the decisions as one line of JSON each."`
}

// Validate is called by the parser.
func (c *policyExplainCmd) Validate() error { return c.authorFlags.Validate() }

// Run explains one step: of a plan, what is known before it runs; of a recorded
// run, what was decided about its real values.
func (c *policyExplainCmd) Run(a *app) error {
	ctx := context.Background()
	if _, err := os.Stat(c.Of); c.Of == "-" || err == nil {
		return c.plan(ctx, a)
	}
	return c.run(ctx, a)
}

func (c *policyExplainCmd) plan(ctx context.Context, a *app) error {
	f := planFlags{Plan: c.Of, authorFlags: c.authorFlags, toolFlags: c.toolFlags}
	s, err := a.load(ctx, &f)
	if err != nil {
		return err
	}
	defer s.Close()
	if s.plan == nil {
		_, r := check.Text(s.text, check.Options{Limits: s.config.PlanLimits()})
		return a.refusedPlan(s.file, r, c.JSON)
	}
	i := s.plan.Index(c.Step)
	if i < 0 {
		return refuse("%s has no step %q", c.Of, c.Step)
	}
	if s.tools.Policy == nil {
		return refuse("there is no policy; write  policy: default  into %s", config.FileName)
	}
	promise := s.tools.Policy.Check(s.plan, f.author(s.tools)).Step(i)
	d := s.catalogue().Get(s.plan.Steps[i].Tool)
	if promise == nil || d == nil {
		return refuse("step %q is never judged: its tool is unknown, or it can never run", c.Step)
	}
	if c.JSON {
		return a.print(decisionJSON(promise.Decision))
	}
	a.out().Lines("", promise.Explain(d))
	if !promise.Certain {
		a.out().Line("a rule or a closed list that only the run can judge may change this")
	}
	if s.tools.Approve[d.Name] {
		a.out().Line("the configuration wants a person to approve every call of %s", d.Name)
	}
	return nil
}

func (c *policyExplainCmd) run(ctx context.Context, a *app) error {
	store, id, err := (&storedFlags{c.journalFlag, c.Config}).find(ctx, a, c.Of)
	if err != nil {
		return err
	}
	defer store.Close()
	known := false
	for e, err := range store.Entries(ctx, id, 0) {
		if err != nil {
			return err
		}
		body, err := e.Body(ctx)
		if err != nil {
			return err
		}
		if step, _ := body.Get("step"); !value.Equal(step, plain(c.Step)) {
			continue
		}
		known = true
		if e.Kind != "decision" && e.Kind != "answer" {
			continue
		}
		if c.JSON {
			err = a.print(body)
		} else {
			decided(a.out(), e, body)
		}
		if err != nil {
			return err
		}
	}
	if !known {
		return refuse("the record of run %s has nothing of a step %q", id, c.Step)
	}
	return nil
}

// decided shows one recorded decision with what it rests on.
func decided(out *terminal.Output, e journal.Entry, body value.Value) {
	out.Line("%s  %s", e.Kind, moments(body))
	facts, _ := body.Get("facts")
	if d, ok := facts.Get("policy"); ok {
		text, _ := d.Text()
		out.Line("  policy %s", text)
	}
	rules, _ := facts.Get("rules")
	for _, r := range rules.Elements() {
		text, _ := r.Text()
		out.Line("  rule %s", text)
	}
	about, _ := facts.Get("facts")
	for _, f := range about.Elements() {
		text := func(key string) string {
			v, _ := f.Get(key)
			s, _ := v.Text()
			return s
		}
		line := text("pointer") + ": " + text("role") + ", " + text("integrity")
		if secret, _ := f.Get("secret"); secret.Kind() == value.Bool {
			line += ", secret"
		}
		if sources, ok := f.Get("sources"); ok {
			line += ", from " + sources.String()
		}
		if list := text("accepted"); list != "" {
			line += ", in the list " + list
		}
		out.Line("  %s", line)
	}
}
