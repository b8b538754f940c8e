package main

import (
	"context"

	"github.com/go-json-experiment/json"

	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/gate"
)

type checkCmd struct {
	planFlags
	JSON bool `name:"json" help:"Print the findings as one line of JSON."`
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
		a.out().Check(s.file, report)
	}
	if !report.OK {
		return exit(exitNotOK)
	}
	return nil
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
