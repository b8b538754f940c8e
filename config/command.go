package config

import (
	"fmt"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/command"
	"github.com/callsheet/callsheet/tool/group"
	"github.com/callsheet/callsheet/value"
)

// BelowVariable is set in the environment of every program that is started as a
// tool, so that a callsheet which runs below one knows it: a tool must not approve
// calls (spec/hostile.md 67).
const BelowVariable = "CALLSHEET_BELOW"

// command makes the tool of one program. An error is a [*command.SpecError], or
// that of secret, which gives the value of a secret by name.
func (c *Config) command(source, name string, from *Command, secret func(string) (string, error), running *group.List) (tool.Tool, error) {
	spec := command.Spec{
		Declaration: tool.Declaration{Name: name, Description: from.Description, Effects: tool.Undeclared(), Source: "command:" + source},
		Command:     from.Command,
		Stdin:       from.Stdin,
		Dir:         from.Dir,
		Env:         append([]string(nil), from.Env...),
		Params:      make(map[string]command.Param, len(from.Params)),
		Format:      command.Format(from.Output),
		Groups:      running,
	}
	for _, e := range from.Params {
		spec.Params[e.Name] = command.Param{AllowDash: e.Value.AllowDash, Embed: e.Value.Embed, JSON: e.Value.JSON, Path: command.PathKind(e.Value.Path)}
	}
	for _, e := range from.EnvSecrets {
		v, err := secret(e.Value)
		if err != nil {
			return tool.Tool{}, fmt.Errorf("variable %s: %w", e.Name, err)
		}
		spec.Env = append(spec.Env, e.Name+"="+v)
	}
	spec.Env = append(spec.Env, BelowVariable+"=1")
	var err error
	if spec.Input, err = compile(from.Input, "/input"); err != nil {
		return tool.Tool{}, err
	}
	if spec.Output, err = compile(from.OutputSchema, "/output_schema"); err != nil {
		return tool.Tool{}, err
	}
	c.settle(&spec.Declaration, &from.Override)
	return command.New(spec)
}

func compile(doc value.Value, pointer string) (*schema.Schema, error) {
	if doc.IsZero() {
		return nil, nil
	}
	s, err := schema.Compile(doc)
	if err != nil {
		return nil, &command.SpecError{Pointer: pointer, Reason: err.Error()}
	}
	return s, nil
}

// settle puts what the configuration says of a tool over what it declares.
func (c *Config) settle(d *tool.Declaration, own *Override) {
	if own != nil {
		own.apply(d)
	}
	if o := c.Overrides.Get(d.Name); o != nil {
		o.apply(d)
	}
	if ceiling := int(c.Limits.Output); ceiling > 0 && (d.MaxOutput == 0 && ceiling < tool.DefaultMaxOutput || d.MaxOutput > ceiling) {
		d.MaxOutput = ceiling
	}
}
