package check

import "github.com/callsheet/callsheet/value"

// fate is what becomes of a step whatever the tools answer.
type fate uint8

const (
	runs    fate = iota // as far as can be known
	fails               // its turn comes, and it cannot end ok
	skipped             // something that it waits for fails
	blocked             // its turn never comes
)

// fates finds the steps that never run, and says why. A failure passes on over
// every dependency and wins over a block (spec/plan.md §3).
func (c *checker) fates() {
	var failing []int
	for i := range c.Steps {
		switch {
		case c.Steps[i].Wave < 0:
			c.fate[i] = blocked
		case c.fails[i] != "":
			c.fate[i] = fails
			failing = append(failing, i)
		}
	}
	for ; len(failing) > 0; failing = failing[1:] {
		for _, j := range c.dependents()[failing[0]] {
			if c.fate[j] != skipped {
				c.fate[j] = skipped
				failing = append(failing, j)
			}
		}
	}
	onCycle := make(map[int]bool)
	for _, cycle := range c.Cycles() {
		for _, i := range cycle {
			onCycle[i] = true
		}
	}
	for i := range c.Steps {
		switch c.fate[i] {
		case skipped:
			if d := c.first(i, fails); d >= 0 {
				c.never(i, "skipped", "it waits for "+value.Quoted(c.Steps[d].ID)+", which fails for certain ("+c.fails[d]+")")
			} else {
				c.never(i, "skipped", "it waits for "+value.Quoted(c.Steps[c.first(i, skipped)].ID)+", which will be skipped")
			}
		case blocked:
			switch {
			case len(c.Steps[i].Unknown) > 0:
				c.never(i, "blocked", "it waits for "+value.Quoted(c.Steps[i].Unknown[0])+", which no step has as its id")
			case onCycle[i]:
				c.never(i, "blocked", "it waits for itself")
			default:
				c.never(i, "blocked", "it waits for "+value.Quoted(c.Steps[c.first(i, blocked)].ID)+", which is blocked")
			}
		}
	}
}

// first is the first dependency of step i, other than i, with a fate; -1 if
// there is none.
func (c *checker) first(i int, f fate) int {
	for _, d := range c.Steps[i].Deps {
		if d != i && c.fate[d] == f {
			return d
		}
	}
	return -1
}

func (c *checker) never(i int, fate, why string) {
	c.add(c.at(i, "", NeverRuns, Error, "step %s will be %s whatever happens: %s", value.Quoted(c.Steps[i].ID), fate, why))
}
