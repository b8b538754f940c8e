package check

import (
	"maps"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// steps judges every step by itself: its tool, what it names, its args.
func (c *checker) steps() {
	for i := range c.Steps {
		d := c.tool(i)
		if d == nil && c.opt.Catalogue != nil {
			c.unknownTool(i)
		}
		c.references(i)
		c.strings(i)
		if d != nil && d.Input != nil {
			c.args(i, d)
		}
	}
}

func (c *checker) unknownTool(i int) {
	c.fail(i, UnknownTool)
	name := c.Steps[i].Tool
	d := c.at(i, "/tool", UnknownTool, Error, "there is no tool %s", value.Quoted(name))
	if c.names.spend() {
		all := c.opt.Catalogue.All()
		found := c.names.toolsLike(c.opt.Catalogue, name)
		d.Message += orNearest(found, func(j int) string { return all[j].Name })
		if len(found) > 0 {
			d.Advice, d.Candidates = Patch{replace(d.Pointer, all[found[0]].Name)}, len(found)
		}
	}
	c.add(d)
}

// args judges a step's args by the input schema of its tool. A reference counts
// as anything that the output schema of its producer allows.
func (c *checker) args(i int, d *tool.Declaration) {
	s := &c.Steps[i]
	if s.Args.Len() > 0 && d.Input.Open() && !c.open[d] {
		c.open[d] = true
		c.add(c.at(i, "/args", OpenSchema, Warning, "the input schema of %s names no property, so a mistyped arg would not be found", value.Quoted(d.Name)))
	}
	var holes map[string]*schema.Schema
	fill := make([]value.Value, len(s.Refs))
	for k, r := range s.Refs {
		fill[k] = value.MustText(r.Text)
		if holes == nil {
			holes = make(map[string]*schema.Schema, len(s.Refs))
		}
		holes[r.Pointer] = c.output(r.Step, r.Path, r.HasPath)
	}
	args := s.Template.Fill(fill) // $$ is gone; references stand as they are, and are holes
	args, secrets := d.SecretHoles(args)
	if holes == nil {
		holes = secrets
	} else {
		maps.Copy(holes, secrets)
	}
	for _, f := range c.work.FitsWithHoles(d.Input, args, holes) {
		c.fail(i, InvalidArgs)
		found := c.at(i, "/args"+f.Pointer, InvalidArgs, Error, "the args of step %s do not fit %s: %s", value.Quoted(s.ID), value.Quoted(d.Name), f)
		if f.Pointer == "" {
			if _, ok := c.document().AtPointer(found.Pointer); !ok {
				found.Pointer = c.Pointer(i) // there are no args to point to
			}
		}
		if v := c.unquoted(d.Input, args, holes, f); !v.IsZero() {
			found.Advice = Patch{{Op: "replace", Path: found.Pointer, Value: v}}
		}
		c.add(found)
	}
	for _, name := range c.work.Undeclared(d.Input, args) {
		if slices.Contains(d.Allowed, name) {
			continue
		}
		f := c.at(i, "/args/"+value.EscapePointer(name), InvalidArgs, Error, "%s declares no arg %s", value.Quoted(d.Name), value.Quoted(name))
		f.Advice = Patch{remove(f.Pointer)}
		if len(holes) > 0 && c.decidesInBranches(d) {
			f.Severity = Warning // what a reference brings may choose a branch that allows it
		} else {
			c.fail(i, InvalidArgs)
		}
		c.add(f)
	}
}

// unquoted is the object or list that stands as JSON in a text which is at fault, if
// the fault goes away when it stands there itself; else the zero Value.
func (c *checker) unquoted(input *schema.Schema, args value.Value, holes map[string]*schema.Schema, f schema.Fault) value.Value {
	at, _ := args.AtPointer(f.Pointer)
	text, ok := at.Text()
	if !ok || f.Pointer == "" || !strings.ContainsAny(text, "{[") || c.full() || !c.names.spend() {
		return value.Value{}
	}
	v, err := value.Parse(text)
	if err != nil || v.Kind() != value.Object && v.Kind() != value.List {
		return value.Value{}
	}
	then, err := Patch{{Op: "replace", Path: f.Pointer, Value: v}}.Apply(args)
	if err != nil {
		return value.Value{}
	}
	// What refers to a step in there may bring anything.
	more := maps.Clone(holes)
	value.NewTemplate(v, func(pointer, text string) value.Answer {
		if _, _, isRef := c.Read(text); isRef {
			if more == nil {
				more = make(map[string]*schema.Schema)
			}
			more[f.Pointer+pointer] = nil
		}
		return value.Answer{}
	})
	for _, g := range c.work.FitsWithHoles(input, then, more) {
		if strings.HasPrefix(g.Pointer, f.Pointer) {
			return value.Value{}
		}
	}
	return v
}

// decidesInBranches reports whether the schema may allow undeclared args in one
// of its branches only.
func (c *checker) decidesInBranches(d *tool.Declaration) bool {
	may, known := c.branches[d]
	if !known {
		text := d.Input.Value().String()
		may = strings.Contains(text, `"additionalProperties"`) || strings.Contains(text, `"unevaluatedProperties"`)
		c.branches[d] = may
	}
	return may
}

// output is what a reference finds, nil for anything.
func (c *checker) output(step int, path string, hasPath bool) *schema.Schema {
	if step < 0 {
		return nil
	}
	d := c.tool(step)
	switch {
	case d == nil:
		return nil
	case !hasPath:
		return d.Output
	}
	sub, _ := c.part(d, path)
	return sub
}

// part is what the output of a tool has at a path.
func (c *checker) part(d *tool.Declaration, path string) (*schema.Schema, schema.Presence) {
	at := origin{d, path}
	p, ok := c.parts[at]
	if !ok {
		p.schema, p.presence = c.work.At(d.Output, path)
		c.parts[at] = p
	}
	return p.schema, p.presence
}

// origin is a path in the output of a tool.
type origin struct {
	tool *tool.Declaration
	path string
}

// part is what is known of an origin.
type part struct {
	schema   *schema.Schema
	presence schema.Presence
}
