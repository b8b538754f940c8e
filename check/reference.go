package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// badReference is the status of a step that names what is not there.
const badReference = string(machine.BadReference)

// references judges what a step's args name, and what its after names.
func (c *checker) references(i int) {
	s := &c.Steps[i]
	for k := range s.Refs {
		r := &s.Refs[k]
		switch {
		case r.Step == i:
			c.add(c.selfReference(i, r))
		case r.Step >= 0:
			c.path(i, r)
		case r.Text[1] == '{' || r.Text[1] == '[':
			c.fail(i, badReference)
			c.add(c.foreign(i, r.Pointer, r.Text, Error))
		default:
			c.fail(i, badReference)
			c.add(c.unknownReference(i, r))
		}
	}
	for _, id := range s.Unknown {
		c.add(c.unknownDependency(i, id))
	}
	if slices.Contains(s.After, s.ID) {
		mentions := c.afters(i, s.ID)
		d := c.at(i, "", SelfReference, Error, "step %s waits for itself%s", value.Quoted(s.ID), c.countedFromOne(i))
		d.Pointer = mentions[0]
		d.Advice = rename(mentions, c.idBefore(i))
		c.add(d)
	}
}

// selfReference is the most common mistake of real models: they count steps
// from 1 where the plan counts from 0, so the step before is what they meant.
func (c *checker) selfReference(i int, r *plan.Ref) Diagnostic {
	d := c.at(i, "/args"+r.Pointer, SelfReference, Error, "step %s refers to its own result%s", value.Quoted(c.Steps[i].ID), c.countedFromOne(i))
	if i > 0 && !c.full() {
		if text := c.reference(i-1, r.Path, r.HasPath); text != "" {
			_, d.Candidates = c.before(i)
			d.Advice = Patch{replace(d.Pointer, text)}
		}
	}
	return d
}

func (c *checker) countedFromOne(i int) string {
	if i == 0 {
		return ""
	}
	return "; did you count from 1? The step before it is " + value.Quoted(c.Steps[i-1].ID)
}

func (c *checker) idBefore(i int) string {
	if i == 0 {
		return ""
	}
	return c.Steps[i-1].ID
}

// unknownReference looks for the ids that the text may have meant. An id may
// hold dots, so the text is cut at each of its first dots.
func (c *checker) unknownReference(i int, r *plan.Ref) Diagnostic {
	body := r.Text[1:]
	d := c.at(i, "/args"+r.Pointer, UnknownReference, Error, "the reference %s names no step", value.Quoted(r.Text))
	if c.full() || !c.names.spend() {
		return d
	}
	if c.withDots(&d, i, r) {
		return d
	}
	const cuts = 3 // dots of an id that are looked at
	var best []int
	var path string
	var hasPath bool
	least := 0
	for end, n := 0, 0; end < len(body) && n < cuts; n++ {
		if dot := strings.IndexByte(body[end:], '.'); dot < 0 {
			end = len(body)
		} else {
			end += dot
		}
		if found, d := c.names.steps(c.graph, i, body[:end]); len(found) > 0 && (best == nil || d <= least) {
			best, least, path, hasPath = found, d, "", end < len(body)
			if hasPath {
				path = body[end+1:]
			}
		}
		end++
	}
	if c.arbitrary(best) {
		return d
	}
	d.Message += orNearest(best, func(j int) string { return "$" + c.Steps[j].ID })
	for _, j := range best {
		if text := c.reference(j, path, hasPath); text != "" {
			d.Advice, d.Candidates = Patch{replace(d.Pointer, text)}, len(best)
			break
		}
	}
	return d
}

// withDots advises a path with dots for one in brackets, if that leads somewhere.
func (c *checker) withDots(d *Diagnostic, i int, r *plan.Ref) bool {
	ours := c.bracketed(i, r.Text)
	if ours == "" {
		return false
	}
	d.Message += "; a path is written with dots, here " + value.Quoted(ours)
	d.Advice, d.Candidates = Patch{replace(d.Pointer, ours)}, 1
	return true
}

// arbitrary reports whether steps that are equally near to a wrong id differ only
// in their numbers: of s1, s2 and s3, none is what $s9 meant.
func (c *checker) arbitrary(found []int) bool {
	stem := func(i int) string { return strings.TrimRight(c.Steps[found[i]].ID, "0123456789") }
	for i := 1; i < len(found); i++ {
		if stem(i) != stem(0) {
			return false
		}
	}
	return len(found) > 1
}

func (c *checker) unknownDependency(i int, id string) Diagnostic {
	d := c.at(i, "", UnknownDependency, Error, "after of step %s names %s, which no step has", value.Quoted(c.Steps[i].ID), value.Quoted(id))
	if c.full() {
		return d
	}
	mentions := c.afters(i, id)
	d.Pointer = mentions[0]
	if !c.names.spend() {
		return d
	}
	wanted := strings.TrimPrefix(id, "$")
	found, _ := c.names.steps(c.graph, i, wanted)
	if c.arbitrary(found) {
		return d
	}
	d.Message += orNearest(found, func(j int) string { return c.Steps[j].ID })
	if len(found) > 0 {
		d.Advice, d.Candidates = rename(mentions, c.Steps[found[0]].ID), len(found)
	}
	return d
}

// path judges a path by what the producer's tool declares of its output.
func (c *checker) path(i int, r *plan.Ref) {
	if !r.HasPath {
		return
	}
	producer := c.tool(r.Step)
	if producer == nil || producer.Output == nil {
		return
	}
	severity, says := Error, "cannot have %s"
	switch _, p := c.part(producer, r.Path); p {
	case schema.Impossible:
		c.fail(i, badReference)
	case schema.Unlikely:
		severity, says = Warning, "declares no %s, and has it only if a key that is not declared holds the dot"
	default:
		return
	}
	d := c.at(i, "/args"+r.Pointer, ImpossiblePath, severity, "the output of %s, which step %s calls, "+says,
		value.Quoted(producer.Name), value.Quoted(c.Steps[r.Step].ID), value.Quoted(r.Path))
	c.withDots(&d, i, r)
	c.add(d)
}

// tool is the declaration of step i's tool, nil when it is not known.
func (c *checker) tool(i int) *tool.Declaration {
	if c.opt.Catalogue == nil {
		return nil
	}
	return c.opt.Catalogue.Get(c.Steps[i].Tool)
}

// cycles names what waits for itself. The place of a cycle is the dependency
// that looks forward in the plan, since that is the one that is wrong.
func (c *checker) cycles() {
	for _, cycle := range c.Cycles() {
		if len(cycle) == 1 {
			c.add(c.ownCycle(cycle[0]))
			continue
		}
		at, by, candidates := 0, -1, 0
		for k, i := range cycle {
			if next := cycle[(k+1)%len(cycle)]; next < i {
				continue
			}
			if by, candidates = c.before(i); by >= 0 {
				at = k
				break
			}
		}
		i, next := cycle[at], cycle[(at+1)%len(cycle)]
		d := c.at(i, "", Cycle, Error, "%s", c.around(cycle))
		d.Pointer, d.Advice = c.turn(i, next, by)
		if d.Advice != nil && by >= 0 {
			d.Candidates = candidates
		}
		c.add(d)
	}
}

// ownCycle is a step that waits for itself. Its advice is that of all its
// self-references at once.
func (c *checker) ownCycle(i int) Diagnostic {
	d := c.at(i, "", Cycle, Error, "step %s waits for itself", value.Quoted(c.Steps[i].ID))
	d.Pointer, d.Advice = c.turn(i, i, i-1)
	if d.Advice != nil && i > 0 {
		_, d.Candidates = c.before(i)
	}
	return d
}

// turn is where step i names step from, and the patch that makes it name step
// to there instead. Without a to, an after that names from is only taken out;
// nothing can be put in the place of a reference.
func (c *checker) turn(i, from, to int) (pointer string, patch Patch) {
	whole := true
	for k := range c.Steps[i].Refs {
		r := &c.Steps[i].Refs[k]
		if r.Step != from {
			continue
		}
		at := c.Pointer(i) + "/args" + r.Pointer
		if pointer == "" {
			pointer = at
		}
		text := ""
		if to >= 0 {
			text = c.reference(to, r.Path, r.HasPath)
		}
		if text == "" {
			whole = false
			continue
		}
		patch = append(patch, replace(at, text))
	}
	if id := c.Steps[from].ID; slices.Contains(c.Steps[i].After, id) {
		mentions := c.afters(i, id)
		if pointer == "" {
			pointer = mentions[0]
		}
		other := ""
		if to >= 0 {
			other = c.Steps[to].ID
		}
		patch = append(patch, rename(mentions, other)...)
	}
	if !whole {
		patch = nil
	}
	return pointer, patch
}

// around tells a cycle in its order.
func (c *checker) around(cycle []int) string {
	const shown = 8 // steps, so that a long cycle is still a sentence
	var b strings.Builder
	b.WriteString(value.Quoted(c.Steps[cycle[0]].ID))
	for k := range min(len(cycle), shown) {
		if k > 0 {
			b.WriteString(", which")
		}
		b.WriteString(" waits for ")
		b.WriteString(value.Quoted(c.Steps[cycle[(k+1)%len(cycle)]].ID))
	}
	if len(cycle) > shown {
		fmt.Fprintf(&b, " and so on, a cycle of %d steps", len(cycle))
	}
	return b.String()
}
