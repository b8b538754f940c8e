package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/go-json-experiment/json"

	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/gate"
)

type checkCmd struct {
	planFlags
	JSON bool   `name:"json" help:"Print the findings as one line of JSON."`
	Fix  bool   `help:"Repair wrong references where the checker knows how, print the repaired plan, and judge that."`
	Out  string `help:"Write the repaired plan to this file instead." placeholder:"FILE"`
}

// Validate is called by the parser.
func (c *checkCmd) Validate() error {
	switch {
	case c.Out != "" && !c.Fix:
		return errors.New("--out needs --fix: it is for the repaired plan")
	case c.Fix && c.JSON && c.Out == "":
		return errors.New("--fix with --json needs --out: standard output is for the findings")
	}
	return c.planFlags.Validate()
}

// Run judges a plan. What is wrong with it is found, not refused: a malformed
// document too.
func (c *checkCmd) Run(a *app) error {
	s, err := a.load(context.Background(), &c.planFlags)
	if err != nil {
		return err
	}
	defer s.Close()
	if s.plan != nil {
		if s.guard, err = newGuard(s.tools, gate.Options{Author: c.author(s.tools), Plan: s.plan}); err != nil {
			return err
		}
	}
	report := s.check(&c.planFlags)
	out := a.out()
	if c.Fix {
		fixed := check.Fix(s.text, s.options(&c.planFlags))
		report = fixed.Report
		if c.Out != "" {
			err = os.WriteFile(c.Out, fixed.Text, 0o600)
		} else {
			out = a.err() // standard output is the plan's
			_, err = a.stdout.Write(fixed.Text)
		}
		if err != nil {
			return err
		}
		c.changes(a, fixed)
	}
	if c.JSON {
		if err := a.print(report); err != nil {
			return err
		}
	} else {
		if s.tools != nil {
			for _, w := range s.tools.Warnings {
				a.err().Line("warning: %s", w)
			}
		}
		out.Check(s.file, report)
	}
	if !report.OK {
		return exit(exitNotOK)
	}
	return nil
}

// changes says what was repaired.
func (c *checkCmd) changes(a *app, f check.Fixed) {
	if c.JSON {
		return
	}
	for _, ch := range f.Changes {
		of := ""
		if ch.Candidates > 1 {
			of = fmt.Sprintf(", one of %d that it could be", ch.Candidates)
		}
		a.err().Line("fixed: step %s %s: %s is now %s%s", ch.Step, ch.Pointer, ch.Old, ch.New, of)
	}
}

// print writes v to standard output as one line of JSON.
func (a *app) print(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(append(line, '\n'))
	return err
}

// refusedPlan says on standard error why a plan is not run.
func (a *app) refusedPlan(file string, r *check.Report, asJSON bool) error {
	if asJSON {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if _, err := a.stderr.Write(append(line, '\n')); err != nil {
			return err
		}
	} else {
		a.err().Diagnostics(file, r.Diagnostics)
		a.err().Line("callsheet: the plan was refused; nothing was called")
	}
	return exit(exitRefused)
}
