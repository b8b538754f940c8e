package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/terminal"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

type toolsCmd struct {
	List listCmd `cmd:"" default:"withargs" help:"List the tools (the default)."`
	Show toolCmd `cmd:"" help:"Show everything about one tool."`
	Call callCmd `cmd:"" help:"Call one tool. Whoever types a call has approved it."`
}

type listCmd struct {
	sourceFlags
	JSON bool `name:"json" help:"Print a catalogue that --tools reads: the shape of MCP's tools/list."`
}

// Run lists the tools.
func (c *listCmd) Run(a *app) error {
	o, err := c.openAlone(context.Background(), a)
	if err != nil {
		return err
	}
	defer o.Close()
	for _, w := range o.Warnings {
		a.err().Line("warning: %s", w)
	}
	all := o.Set.Catalogue().All()
	if c.JSON {
		return a.print(tool.Listing(all))
	}
	var rows [][]terminal.Cell
	for _, d := range all {
		rows = append(rows, terminal.Cells(d.Name, arguments(d.Input), effects(d.Effects, o.Approve[d.Name]), d.Source, firstSentence(d.Description)))
	}
	a.out().Table([]string{"TOOL", "ARGS", "EFFECTS", "SOURCE", "DESCRIPTION"}, rows)
	return nil
}

// arguments are the declared args in short: "path string, head? integer".
func arguments(input *schema.Schema) string {
	var parts []string
	for _, p := range input.Properties() {
		optional := "?"
		if p.Required {
			optional = ""
		}
		parts = append(parts, p.Name+optional+" "+strings.ReplaceAll(p.Types, " or ", "|"))
	}
	switch {
	case parts != nil:
		return strings.Join(parts, ", ")
	case input.Open():
		return "any"
	}
	return "none"
}

// firstSentence is where a description stops being a name for the tool.
func firstSentence(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	if first, _, more := strings.Cut(text, ". "); more {
		return first + "."
	}
	return strings.TrimSpace(text)
}

type toolCmd struct {
	Name string `arg:"" help:"The tool."`
	sourceFlags
}

// Run shows one tool.
func (c *toolCmd) Run(a *app) error {
	o, err := c.openAlone(context.Background(), a)
	if err != nil {
		return err
	}
	defer o.Close()
	d := o.Set.Catalogue().Get(c.Name)
	if d == nil {
		return refuse("there is no tool %q%s", c.Name, nearest(o.Set.Catalogue(), c.Name))
	}
	out := a.out()
	out.Line("%s  from %s", d.Name, d.Source)
	out.Line("effects  %s", effects(d.Effects, o.Approve[d.Name]))
	out.Line("args     %s", arguments(d.Input))
	for _, arg := range d.Args {
		out.Line("role     %s is %s", arg.Pattern, string(arg.Role))
	}
	if len(d.Allowed) > 0 {
		out.Line("allowed  %s, which the schema does not declare", strings.Join(d.Allowed, ", "))
	}
	if d.Description != "" {
		out.Line("")
		out.Line("description:")
		out.Lines("  ", d.Description)
	}
	for _, of := range []struct {
		what   string
		schema *schema.Schema
	}{{"input", d.Input}, {"output", d.Output}} {
		doc := of.schema.Value()
		if doc.IsZero() {
			out.Line("")
			out.Line("%s: no schema", of.what)
			continue
		}
		out.Line("")
		out.Line("%s schema:", of.what)
		out.Lines("  ", strings.TrimSuffix(string(indented(doc)), "\n"))
	}
	return nil
}

// openAlone opens the tools without a plan.
func (s *sourceFlags) openAlone(ctx context.Context, a *app) (*config.Opened, error) {
	f := &toolFlags{sourceFlags: *s}
	c, err := f.configuration()
	if err != nil {
		return nil, err
	}
	o, err := f.open(ctx, a, c, nil)
	if err != nil {
		return nil, err
	}
	if len(o.Set.Catalogue().All()) == 0 {
		return nil, errors.Join(errNoSources, o.Close())
	}
	return o, nil
}

func effects(e tool.Effects, approve bool) string {
	var words []string
	switch {
	case e.ReadOnly:
		words = append(words, "read-only")
	case e.Destructive:
		words = append(words, "destructive")
	default:
		words = append(words, "writes")
	}
	if e.Idempotent && !e.ReadOnly {
		words = append(words, "idempotent")
	}
	if e.Keyed {
		words = append(words, "keyed")
	}
	if approve {
		words = append(words, "approve")
	}
	return strings.Join(words, ", ")
}

type callCmd struct {
	Name string `arg:"" help:"The tool."`
	Args string `arg:"" optional:"" default:"{}" help:"Its args as JSON, - for standard input."`
	sourceFlags
}

// Run calls one tool: a plan of one step, so that it passes the same tests as
// any other call.
func (c *callCmd) Run(a *app) error {
	ctx, interrupted, stop := a.interruptible(a.stopping, nil)
	defer stop()
	defer outliveReaders()()
	text := []byte(c.Args)
	if c.Args == "-" {
		var err error
		if text, err = a.read("-", 0); err != nil {
			return err
		}
	}
	args, err := value.Parse(text)
	if err != nil {
		return refuse("the args are not JSON: %w", err)
	}
	p, err := oneStep(c.Name, args)
	if err != nil {
		return refusal{err}
	}
	o, err := c.openAlone(ctx, a)
	if err != nil {
		return err
	}
	defer o.Close()
	if o.Set.Catalogue().Get(c.Name) == nil {
		return refuse("there is no tool %q%s", c.Name, nearest(o.Set.Catalogue(), c.Name))
	}
	if len(o.Declared) > 0 && o.Set.Handler(c.Name) == nil {
		return refuse("the tool %q is only declared and cannot be called", c.Name)
	}
	g, err := typed(o, p)
	if err != nil {
		return err
	}
	if found := g.vault.Findings(p, o.Set.Catalogue()); len(found) > 0 {
		return refuse("%s", found[0].Message)
	}
	report, err := run.Do(ctx, p, o.Set, run.Options{Limits: o.Limits, Gate: g.gate, Vault: g.vault})
	if err != nil {
		return err
	}
	step := &report.Steps[0]
	if step.Status == machine.OK {
		_, err := io.WriteString(a.stdout, step.Output.String()+"\n")
		return err
	}
	why := "it was not called"
	if step.Cause != nil {
		why = step.Cause.Message
	}
	a.err().Line("%s: %s", string(step.Status), why)
	if interrupted.Load() {
		return exit(exitInterrupted)
	}
	return exit(exitNotOK)
}

// oneStep is a plan that calls a tool with exactly these args: nothing in them
// is a reference.
func oneStep(name string, args value.Value) (*plan.Plan, error) {
	if args.Kind() != value.Object {
		return nil, fmt.Errorf("the args must be an object, not %s", args.Kind())
	}
	literal := value.NewTemplate(args, func(_, text string) value.Answer {
		return value.Answer{Literal: value.MustText(plan.Escape(text))}
	})
	id, err := value.Text(name)
	if err != nil {
		return nil, err
	}
	return plan.Decode([]byte(value.ListOf(value.ObjectOf(
		value.Member{Key: "id", Value: value.MustText("call")},
		value.Member{Key: "tool", Value: id},
		value.Member{Key: "args", Value: literal.Fill(nil)},
	)).String()), plan.Limits{})
}

func nearest(c *tool.Catalogue, name string) string {
	if near := c.Nearest(name, 3); len(near) > 0 {
		return "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return ""
}
