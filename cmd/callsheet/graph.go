package main

import (
	"errors"
	"io"

	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/plan"
)

type graphCmd struct {
	Plan   string `arg:"" help:"The plan, - for standard input."`
	Format string `help:"text or mermaid." enum:"text,mermaid" default:"text"`
	limitFlag
}

// Run draws a plan.
func (c *graphCmd) Run(a *app) error {
	limits, err := c.limits()
	if err != nil {
		return err
	}
	text, err := a.read(c.Plan, limits.Bytes)
	if err != nil {
		return err
	}
	p, err := plan.Decode(text, limits)
	var refused *plan.Error
	if errors.As(err, &refused) {
		_, r := check.Text(text, check.Options{Limits: limits})
		return a.refusedPlan(named(c.Plan), r, false)
	} else if err != nil {
		return err
	}
	drawing := p.Text()
	if c.Format == "mermaid" {
		drawing = p.Mermaid()
	}
	_, err = io.WriteString(a.stdout, drawing)
	return err
}
