package config

import (
	"slices"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// knownOverrides refuses overrides of tools that no source has: a misspelt name
// would leave the tool that was meant without its bounds.
func (c *Config) knownOverrides(tools []tool.Tool, origins []*origin) {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	for _, e := range c.Overrides {
		if slices.Contains(names, e.Name) {
			continue
		}
		why := "no source has a tool %q; %s"
		says := didYouMean(e.Name, names)
		for _, from := range origins {
			if reason, ok := from.leftOut[e.Name]; ok {
				why, says = "the tool %q is left out: %s", from.name+": "+reason
			}
		}
		c.doc.faultKey("/overrides/"+value.EscapePointer(e.Name), why, e.Name, says)
	}
}

// knownArgs refuses roles of args that the tool does not have: the arg that was
// meant would keep the role that it has.
func (c *Config) knownArgs(d *tool.Declaration, from *origin) {
	if from.settled {
		return // what a recorded tool was told is in its declaration, and nothing is told it anew
	}
	refuse := func(pointer string, o *Override) {
		if o == nil {
			return
		}
		allowing := *d
		allowing.Allowed = slices.Concat(d.Allowed, o.AllowArgs)
		for _, a := range o.Args {
			if wrong := allowing.MisnamedArg(a.Name); wrong != "" {
				c.doc.faultKey(pointer+"/args/"+value.EscapePointer(a.Name), "args: %s", wrong)
			}
		}
	}
	own, pointer := c.ownOverride(d.Name)
	refuse(pointer, own)
	refuse(at("overrides", d.Name), c.Overrides.Get(d.Name))
}

// setUp applies what the configuration says of a tool. A command has had its
// declaration settled when it was made.
func (c *Config) setUp(d *tool.Declaration, from *origin, o *Opened, limits map[string]call.Limit) {
	own, _ := c.ownOverride(d.Name)
	if own == nil && !from.settled {
		c.settle(d, nil)
	}
	always := c.Approve == "destructive" && d.Effects.Destructive && !d.Effects.ReadOnly
	var limit call.Limit
	for _, over := range []*Override{own, c.Overrides.Get(d.Name)} {
		if over == nil {
			continue
		}
		set(&limit.Concurrency, over.Concurrency)
		set(&limit.Interval, over.Rate)
		always = always || over.Approve == "always"
	}
	if always {
		o.Approve[d.Name] = true
	}
	if limit != (call.Limit{}) {
		limits[d.Name] = limit
	}
}

func set[T, F ~int | ~int64](to *T, from F) {
	if from != 0 {
		*to = T(from)
	}
}

// ownOverride is what a command's own entry says of it and the entry's pointer,
// nil for other tools.
func (c *Config) ownOverride(name string) (*Override, string) {
	for _, e := range c.Sources {
		for _, cmd := range e.Value.Commands {
			if e.Value.Prefix+cmd.Name == name {
				return &cmd.Value.Override, at("sources", e.Name, "commands", cmd.Name)
			}
		}
	}
	return nil, ""
}
