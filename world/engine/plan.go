package engine

import (
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/callsheet/callsheet/world/state"
)

// A Plan is a transition that is proposed: by a rule, or by an agent.
type Plan struct {
	Action              world.Action     `json:"action"`
	RuleIDs             []string         `json:"rule_ids"`
	PreconditionNotes   []string         `json:"precondition_notes"`
	Effects             []world.Mutation `json:"effects"`
	Outcome             world.Outcome    `json:"outcome"`
	RendererID          string           `json:"renderer_id"`
	ObservationTemplate *string          `json:"observation_template"`
	Uncertainty         []string         `json:"uncertainty"`
	Observation         *string          `json:"observation"`
	Citations           []string         `json:"citations"`
	Rationale           string           `json:"rationale"`
}

// PlanOf is the plan of a rule for an action: its effects with everything
// resolved that they refer to. The error is a fault of type KeyError.
func (e *Engine) PlanOf(r *world.Rule, s state.State, a world.Action) (Plan, error) {
	effects, err := s.Resolve(r.Effects, a)
	if err != nil {
		return Plan{}, err
	}
	return Plan{Action: a, RuleIDs: []string{r.ID}, Effects: effects, Outcome: r.Outcome, RendererID: r.Renderer, ObservationTemplate: r.ObservationTemplate}, nil
}

// Select chooses the rule that answers an action in a state: of all eligible
// rules whose conditions hold and whose plan resolves, those of the highest
// priority. They must agree in everything they do, else the fault is an
// AmbiguousRuleError; of equal ones the most confident, then the last by id.
// Without a rule it is nil. With wait, rules that can produce nothing are left
// out.
func (e *Engine) Select(s state.State, a world.Action, wait bool) (*world.Rule, Plan, error) {
	known := e.actions[a.Type]
	if known == nil {
		return nil, Plan{}, nil
	}
	var best *world.Rule
	var plan Plan
	var signature string
	var finalists []string
	conflict := false
	for _, r := range known.rules { // by priority, then confidence and id, descending
		if best != nil && r.Priority < best.Priority {
			break
		}
		if !e.Eligible(r, s, false) || wait && e.Vacuous(r) || !s.HoldAll(r.Conditions, a) {
			continue
		}
		p, err := e.PlanOf(r, s, a)
		if err != nil {
			continue // it needs what this action does not carry
		}
		finalists = append(finalists, r.ID)
		if best == nil {
			best, plan = r, p
			continue
		}
		if signature == "" {
			signature = plan.signature()
		}
		conflict = conflict || p.signature() != signature
	}
	if conflict {
		return nil, Plan{}, world.Faultf(world.AmbiguousRuleError, "Incompatible rules apply at the same priority: %s", strings.Join(finalists, ", "))
	}
	return best, plan, nil
}

// signature is everything about a plan but which rule made it.
func (p *Plan) signature() string {
	var b strings.Builder
	b.WriteString(string(p.Outcome))
	b.WriteByte(0)
	b.WriteString(p.RendererID)
	b.WriteByte(0)
	if p.ObservationTemplate != nil {
		b.WriteByte(1)
		b.WriteString(*p.ObservationTemplate)
	}
	for _, m := range p.Effects {
		b.WriteByte(0)
		b.WriteString(effectText(m))
	}
	return b.String()
}

// effectText is how effects are compared: without nulls, so that 25 and 25.0
// differ and a missing delay equals a null one.
func effectText(m world.Mutation) string { return python.Dumps(m.Brief(), python.LineStyle) }

// Render writes the observation of a plan: from its own template, else from its
// contract's, else the plan's own observation, else the outcome and the state
// as JSON. before is the state as it was loaded. A reference to what is not
// there is a fault of type KeyError.
func (e *Engine) Render(p *Plan, before, after state.State) (string, error) {
	template := p.ObservationTemplate
	if template == nil || *template == "" {
		template = nil
		if c := e.renderers[p.RendererID]; c != nil && c.Template != nil && *c.Template != "" {
			template = c.Template
		}
	}
	switch {
	case template != nil:
		return Fill(*template, Context{p.Action, before, after, p.Outcome})
	case p.Observation != nil:
		return *p.Observation, nil
	}
	doc := value.ObjectOf(value.Member{Key: "outcome", Value: value.MustText(string(p.Outcome))}, value.Member{Key: "state", Value: after.Value()})
	return python.Dumps(doc, python.LineStyle), nil
}

// RenderRule writes what a rule's template says, nil when it has none.
func (e *Engine) RenderRule(r *world.Rule, c Context) (*string, error) {
	t := e.template(r)
	if t == nil {
		return nil, nil
	}
	text, err := Fill(*t, c)
	if err != nil {
		return nil, err
	}
	return &text, nil
}

// A Context is what a template may refer to.
type Context struct {
	Action        world.Action
	Before, After state.State
	Outcome       world.Outcome
}

// Get looks up a reference such as state_after.world.balance.
func (c Context) Get(ref string) (value.Value, bool) {
	head, tail, more := strings.Cut(ref, ".")
	switch head {
	case "outcome":
		return value.MustText(string(c.Outcome)), !more
	case "state_before":
		if !more {
			return c.Before.Value(), true
		}
		return c.Before.Get(tail)
	case "state_after":
		if !more {
			return c.After.Value(), true
		}
		return c.After.Get(tail)
	case "action":
		part, rest, deeper := strings.Cut(tail, ".")
		switch part {
		case "type":
			return value.MustText(c.Action.Type), !deeper
		case "arguments":
			if !deeper {
				return c.Action.Arguments, true
			}
			return state.Argument(c.Action, rest)
		case "raw":
			if !deeper && !c.Action.Raw.IsZero() {
				return c.Action.Raw, true
			}
			return state.Argument(world.Action{Arguments: c.Action.Raw}, rest)
		}
	}
	return value.Value{}, false
}

// References are the tokens of a template: {letters, digits, _ and .}.
func References(template string) []string {
	var refs []string
	tokens(template, func(ref string) (string, error) {
		refs = append(refs, ref)
		return "", nil
	})
	return refs
}

// Fill puts values into the tokens of a template, each as str() writes it. What
// is put in is not looked at again.
func Fill(template string, c Context) (string, error) {
	return tokens(template, func(ref string) (string, error) {
		v, ok := c.Get(ref)
		if !ok {
			return "", world.Faultf(world.KeyError, "Template references missing value %s", ref)
		}
		return python.Str(v), nil
	})
}

func tokens(template string, f func(ref string) (string, error)) (string, error) {
	var b strings.Builder
	for {
		open := strings.IndexByte(template, '{')
		if open < 0 {
			b.WriteString(template)
			return b.String(), nil
		}
		end := open + 1
		for end < len(template) && isReference(template[end]) {
			end++
		}
		if end == open+1 || end == len(template) || template[end] != '}' {
			b.WriteString(template[:open+1])
			template = template[open+1:]
			continue
		}
		s, err := f(template[open+1 : end])
		if err != nil {
			return "", err
		}
		b.WriteString(template[:open])
		b.WriteString(s)
		template = template[end+1:]
	}
}

func isReference(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '.'
}
