package engine

import (
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/state"
)

// Undecided is the first path that would have to be known to say whether conditions
// hold for an action, with the action's arguments in it; "" if what is known decides:
// one of them is false, or all of them are read. unknown reports whether nothing is
// known of what is at a path: what a state does not have may be unknown or absent, and
// only who has the state can tell.
func Undecided(conditions []world.Condition, s state.State, a world.Action, unknown func(path string) bool) (path string) {
	for i := range conditions {
		c := &conditions[i]
		needs := ""
		c.Leaves(func(l *world.Condition) bool {
			for _, o := range []*world.Operand{&l.Left, l.Right} {
				if o == nil || o.Path == nil || needs != "" {
					continue
				}
				if p, ok := state.ExpandPath(*o.Path, a); ok {
					if p = state.ParsePath(p).String(); unknown(p) {
						needs = p
					}
				}
			}
			return needs == ""
		})
		switch {
		case needs == "" && !s.Holds(c, a):
			return ""
		case path == "":
			path = needs
		}
	}
	return path
}
