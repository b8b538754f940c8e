package build

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/engine"
	"github.com/callsheet/callsheet/world/state"
)

// emit makes rules of the branches that are determined, tries them on every
// episode, and keeps those that nothing contradicts.
func (in *inducer) emit(a *book.Artifacts, r *Report) {
	fields := map[string]world.Type{}
	index := map[string]int{}
	var rules []world.Rule
	for _, g := range in.groups {
		index[g.action]++
		id := fmt.Sprintf("%s_%d", g.action, index[g.action])
		if g.why != "" {
			if len(g.turns) >= minSupport {
				a.Unresolved = append(a.Unresolved, "rule "+id+": "+g.why)
			}
			continue
		}
		rule := world.Rule{ID: id, ActionType: g.action, Conditions: g.when, Effects: g.effects, Outcome: g.outcome, Renderer: "default", Status: world.Supported, Confidence: 1}
		template := g.template()
		rule.ObservationTemplate = &template
		rule.Description = fmt.Sprintf("Induced from %d recorded turns of %s.", len(g.turns), g.action)
		for _, q := range g.quantities() {
			fields["world."+q] = world.NumberType
			rule.Conditions = append(rule.Conditions, world.Condition{Left: path("world." + q), Op: "exists"})
		}
		for _, c := range g.when {
			if p := *c.Left.Path; !strings.Contains(p, "{") {
				fields[p] = world.NumberType
			}
		}
		for _, s := range g.turns[:min(len(g.turns), maxProvenance)] {
			rule.Provenance = append(rule.Provenance, s.ep.Ref(append(slices.Clone(s.slice.Actions), s.slice.Results...)...))
		}
		rules = append(rules, rule)
	}
	for arg := range in.maps {
		fields["world.known_"+arg] = world.ObjectType
	}
	for _, p := range slices.Sorted(maps.Keys(fields)) {
		a.StateSchema.Fields = append(a.StateSchema.Fields, world.StateField{Path: p, Type: fields[p], Mutable: true, Visibility: "world",
			Default: value.NullValue(), Description: "Followed through the recorded observations."})
	}
	verdicts := in.try(a, rules)
	for i := range rules {
		rule, v := &rules[i], verdicts[rules[i].ID]
		switch {
		case v.wrong > 0:
			r.Rejected++
			a.Rejected = append(a.Rejected, value.ObjectOf(value.Member{Key: "rule", Value: value.MustText(rule.ID)},
				value.Member{Key: "reason", Value: value.MustText(fmt.Sprintf("%d of %d recorded turns contradict it", v.wrong, v.wrong+v.right+v.held))}))
			continue
		case v.held > 0:
			r.Rules++
		default:
			r.Tentative++
			rule.Status = world.Tentative
		}
		// Laplace's rule of succession: eight turns that agree make 0.9.
		n := float64(v.right + v.held)
		rule.Confidence = world.Real((n + 1) / (n + 2))
		a.Rules = append(a.Rules, *rule)
	}
}

func (g *group) template() string {
	var b strings.Builder
	at := 0
	for _, p := range g.pieces {
		if !p.slot {
			b.WriteString(p.text)
			continue
		}
		switch s := g.sources[at]; {
		case s.arg != "":
			b.WriteString("{action.arguments." + s.arg + "}")
		case s.quantity != "":
			b.WriteString("{state_after.world." + s.quantity + "}")
		default:
			b.WriteString(s.literal)
		}
		at++
	}
	return b.String()
}

// A verdict is how often a rule said what was recorded.
type verdict struct{ right, held, wrong int }

// try plays every episode with the rules. What an observation shows of a
// quantity is taken in after the turn, so that a rule is judged on what was
// really so.
func (in *inducer) try(a *book.Artifacts, rules []world.Rule) map[string]*verdict {
	out := map[string]*verdict{}
	for i := range rules {
		out[rules[i].ID] = &verdict{}
	}
	e, err := engine.New(engine.Knowledge{Actions: a.ActionSchema.Actions, Fields: a.StateSchema.Fields, Rules: rules, Renderers: a.Renderers})
	if err != nil {
		return out // the artifacts' check will say so
	}
	s, last := state.Empty(), -1
	for _, t := range in.turns {
		if t.epIndex != last {
			s, last = state.Empty(), t.epIndex
		}
		if !t.clear {
			s = state.Empty()
			continue
		}
		if rule, plan, err := e.Select(s, t.action, false); err == nil && rule != nil {
			v := out[rule.ID]
			after, err := s.Apply(plan.Effects)
			text := ""
			if err == nil {
				text, err = e.Render(&plan, s, after)
			}
			switch {
			case err != nil || text != t.text:
				v.wrong++
			case in.held[t.epIndex]:
				v.held++
			default:
				v.right++
			}
			if err == nil && text == t.text {
				s = after
			}
		} else if err != nil {
			for _, r := range e.RulesOf(t.action.Type) { // they contradict each other
				out[r.ID].wrong++
			}
		}
		if g := in.byTurn[t]; g.why == "" {
			slots := slotsOf(t)
			for _, q := range g.quantities() {
				if v, ok := g.shown(slots, q); ok {
					if next, err := s.Apply([]world.Mutation{{Op: world.Set, Path: "world." + q, Value: v}}); err == nil {
						s = next
					}
				}
			}
		} else {
			s = state.Empty() // nobody knows what it did
		}
	}
	return out
}

func slotsOf(t *turn) []piece {
	return slices.DeleteFunc(scan(t.text, t.action), func(p piece) bool { return !p.slot })
}
