package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/callsheet/callsheet/internal/lookalike"
)

// Text draws the plan for people, a wave after the other: each step with its
// tool and what it waits for. A ? marks an id that no step has. Characters that
// do not print are escaped.
func (p *Plan) Text() string {
	ids, tools := 0, 0
	for i := range p.Steps {
		ids = max(ids, width(shown(p.Steps[i].ID)))
		tools = max(tools, width(shown(p.Steps[i].Tool)))
	}
	var b strings.Builder
	p.eachWave(func(title string, steps []int) {
		b.WriteString(title + "\n")
		for _, i := range steps {
			s := &p.Steps[i]
			var from []string
			for _, d := range s.Deps {
				from = append(from, shown(p.Steps[d].ID))
			}
			for _, id := range s.Unknown {
				from = append(from, shown(id)+"?")
			}
			b.WriteString("  " + pad(shown(s.ID), ids) + "  ")
			if len(from) > 0 {
				b.WriteString(pad(shown(s.Tool), tools) + "  ← " + strings.Join(from, ", ") + "\n")
			} else {
				b.WriteString(shown(s.Tool) + "\n")
			}
		}
	})
	return b.String()
}

// Mermaid draws the plan as a Mermaid flowchart with a box for each wave. A
// solid arrow is a reference, a dotted one an after alone.
func (p *Plan) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart LR\n")
	box := 0
	p.eachWave(func(title string, steps []int) {
		fmt.Fprintf(&b, "  subgraph w%d[\"%s\"]\n", box, title)
		box++
		for _, i := range steps {
			fmt.Fprintf(&b, "    n%d[\"%s<br/>%s\"]\n", i, entities(p.Steps[i].ID), entities(p.Steps[i].Tool))
		}
		b.WriteString("  end\n")
	})
	ghosts := 0
	for i := range p.Steps {
		s := &p.Steps[i]
		for _, d := range s.Deps {
			arrow := "-.->"
			if slices.ContainsFunc(s.Refs, func(r Ref) bool { return r.Step == d }) {
				arrow = "-->"
			}
			fmt.Fprintf(&b, "  n%d %s n%d\n", d, arrow, i)
		}
		for _, id := range s.Unknown {
			fmt.Fprintf(&b, "  x%d([\"%s?\"]) -.-> n%d\n", ghosts, entities(id), i)
			ghosts++
		}
	}
	return b.String()
}

// eachWave calls f for every wave, counted from 1 for people, and for the steps that never run.
func (p *Plan) eachWave(f func(title string, steps []int)) {
	for w, steps := range p.Waves() {
		f("wave "+strconv.Itoa(w+1), steps)
	}
	var never []int
	for i := range p.Steps {
		if p.Steps[i].Wave < 0 {
			never = append(never, i)
		}
	}
	if never != nil {
		f("never", never)
	}
}

// shown is text with everything escaped that is not drawn: control characters,
// and those that turn the text round or have no width. An id may hold some too.
func shown(text string) string {
	if !lookalike.HoldsHidden(text) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if lookalike.Hidden(r) {
			fmt.Fprintf(&b, `\u{%x}`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// entities is shown text for a label of Mermaid, in which punctuation can end
// the label or start markup.
func entities(text string) string {
	var b strings.Builder
	for _, r := range shown(text) {
		if r == ' ' || r == '_' || r == '-' || r == '.' || unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "#%d;", r)
		}
	}
	return b.String()
}

// width is the number of characters without those that combine with others.
func width(text string) int {
	n := 0
	for _, r := range text {
		if !unicode.IsMark(r) {
			n++
		}
	}
	return n
}

func pad(text string, to int) string { return text + strings.Repeat(" ", to-width(text)) }
