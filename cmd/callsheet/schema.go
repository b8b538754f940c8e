package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/value"
)

type schemaCmd struct {
	Of string `arg:"" help:"plan or config." enum:"plan,config"`
}

// Run prints a JSON Schema, indented for people who read it.
func (c *schemaCmd) Run(a *app) error {
	doc := plan.Schema()
	if c.Of == "config" {
		doc = config.Schema()
	}
	_, err := a.stdout.Write(indented(doc))
	return err
}

// indented is v for people who read it, with a newline at the end.
func indented(v value.Value) []byte {
	text := jsontext.Value(v.String())
	if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
		text = jsontext.Value(v.String())
	}
	return append(text, '\n')
}

type versionCmd struct{}

// Run prints the version that the build recorded.
func (versionCmd) Run(a *app) error {
	version, revision := "(unknown)", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "" {
			version = info.Main.Version
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " " + s.Value
			}
		}
	}
	_, err := fmt.Fprintf(a.stdout, "callsheet %s%s %s %s/%s\n", version, revision, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
