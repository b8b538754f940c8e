package engine

import (
	"strings"

	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/state"
)

// Follow finds the rule that explains a turn that really happened: the one that
// applies, if what it renders is the very observation, white space aside
// (spec/world-reference.md §3.13). before is the state as it was, working its
// working copy; next is the state after the rule. ok is false when no rule
// explains the turn.
func (e *Engine) Follow(before, working state.State, a world.Action, observation string) (plan Plan, next state.State, ok bool) {
	rule, plan, err := e.Select(working, a, true)
	if err != nil || rule == nil || !e.Templated(rule) {
		return Plan{}, working, false
	}
	next, err = working.Apply(plan.Effects)
	if err != nil || e.CheckTypes(next) != nil {
		return Plan{}, working, false
	}
	text, err := e.Render(&plan, before, next)
	if err != nil || text != observation && strings.Join(strings.Fields(text), " ") != strings.Join(strings.Fields(observation), " ") {
		return Plan{}, working, false
	}
	return plan, next, true
}
