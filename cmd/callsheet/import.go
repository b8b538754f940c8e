package main

import (
	"fmt"
	"strings"

	"github.com/callsheet/callsheet/plan/importer"
)

type importCmd struct {
	From string `required:"" help:"The format: ${enum}." enum:"${formats}" placeholder:"FORMAT"`
	File string `arg:"" help:"The file, - for standard input."`
	limitFlag
}

// formats lists what can be imported.
func formats() string {
	var names []string
	for _, f := range importer.Formats() {
		names = append(names, f.Name)
	}
	return strings.Join(names, ", ")
}

// Run prints the plan.
func (c *importCmd) Run(a *app) error {
	limits, err := c.limits()
	if err != nil {
		return err
	}
	text, err := a.read(c.File, limits.Bytes)
	if err != nil {
		return err
	}
	doc, err := importer.Import(c.From, text, limits)
	if err != nil {
		return refusal{fmt.Errorf("%s: %w", named(c.File), err)}
	}
	_, err = a.stdout.Write(doc)
	return err
}
