package config

import (
	"context"

	"github.com/callsheet/callsheet/tool"
)

// Declare is [Open] for whoever calls nothing: no server is started, no secret is
// read, and no tool of the set has a handler. In the place of the servers' tools
// stand the recorded ones that no other source has, as they were declared when a
// run used them.
func Declare(c *Config, opt Options, recorded []*tool.Declaration) (*Opened, error) {
	c, o := c.opening()
	var origins []*origin
	known := map[string]bool{}
	servers, untrusted := 0, false
	add := func(from *origin) {
		origins = append(origins, from)
		for i := range from.tools {
			from.tools[i].Handler = nil
			known[from.tools[i].Name] = true
		}
	}
	for _, e := range c.Sources {
		if e.Value.MCP != nil {
			servers++
			untrusted = untrusted || !e.Value.MCP.Trust
			continue
		}
		from := &origin{name: "source " + e.Name, pointer: at("sources", e.Name), unread: true}
		from.open(context.Background(), c, e.Name, &e.Value, opt)
		add(from)
	}
	for _, name := range opt.Tools {
		add(flagged(name))
	}
	// Without any source the recordings say what there is; with sources that are
	// no servers, a tool that none of them has is none.
	if servers > 0 || len(origins) == 0 {
		from := &origin{name: "the recordings", settled: true, untrusted: untrusted}
		for _, d := range recorded {
			if !known[d.Name] {
				from.tools = append(from.tools, tool.Tool{Declaration: *d})
			}
		}
		origins = append(origins, from)
	}
	if servers > 0 {
		c.Overrides = c.overridesOf(origins)
	}
	if err := o.gather(c, origins, Options{}); err != nil {
		return nil, err
	}
	return o, nil
}

// overridesOf are the overrides of tools that are known: those of a server that
// was not started may be of tools that were never recorded.
func (c *Config) overridesOf(origins []*origin) Map[Override] {
	var kept Map[Override]
	for _, e := range c.Overrides {
		for _, from := range origins {
			for i := range from.tools {
				if from.tools[i].Name == e.Name {
					kept = append(kept, e)
				}
			}
		}
	}
	return kept
}
