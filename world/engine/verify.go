package engine

import (
	"fmt"
	"strings"

	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/state"
)

// An Issue is one finding of a verification.
type Issue struct {
	Code     string `json:"code"`
	Message  string `json:"message"`
	Severity string `json:"severity"` // "error" or "warning"
}

// A Verification says whether a transition may be committed.
type Verification struct {
	Accepted   bool       `json:"accepted"`
	Issues     []Issue    `json:"issues"`
	Confidence world.Real `json:"confidence"`
}

func (v *Verification) add(severity, code, format string, args ...any) {
	v.Issues = append(v.Issues, Issue{code, fmt.Sprintf(format, args...), severity})
	if severity == "error" {
		v.Accepted = false
	}
}

// Warn adds a warning.
func (v *Verification) Warn(code, format string, args ...any) {
	v.add("warning", code, format, args...)
}

// Messages are the texts of the issues.
func (v *Verification) Messages() []string {
	out := make([]string, len(v.Issues))
	for i, is := range v.Issues {
		out[i] = is.Message
	}
	return out
}

// A Trust policy says which effects without a rule are accepted.
type Trust string

// The policies. SchemaChecked takes effects that pass the schema, the types and
// the invariants, and flags them.
const (
	RulesOnly     Trust = "rules_only"
	SchemaChecked Trust = "schema_checked"
)

// Invariants checks all invariants on a state.
func (e *Engine) Invariants(s state.State, a world.Action) Verification {
	v := Verification{Accepted: true, Confidence: 1}
	for i := range e.k.Invariants {
		inv := &e.k.Invariants[i]
		if !s.Holds(&inv.Condition, a) {
			v.add(inv.Severity, "invariant:"+inv.ID, "%s", inv.Description)
			v.Confidence = 0.7
		}
	}
	return v
}

// Verify checks a transition from before, the working copy, to after
// (spec/world-reference.md §3.9). known are the rules that the plan may cite,
// retrieved what it may cite besides; nil when nothing was retrieved.
func (e *Engine) Verify(p *Plan, before, after state.State, trust Trust, known []*world.Rule, retrieved map[string]bool) Verification {
	v := e.Invariants(after, p.Action)
	was := e.Invariants(before, p.Action)
	for i := range v.Issues {
		is := &v.Issues[i]
		for _, old := range was.Issues {
			if is.Severity == "error" && old.Code == is.Code {
				is.Severity = "warning"
				is.Code = "invariant_preexisting:" + strings.TrimPrefix(is.Code, "invariant:")
				is.Message = "Already violated before this transition: " + is.Message
				break
			}
		}
	}
	v.Accepted = true
	for _, is := range v.Issues {
		v.Accepted = v.Accepted && is.Severity != "error"
	}
	e.support(&v, p, before, after, trust, known)
	context := Context{p.Action, before, after, p.Outcome}
	if c := e.renderers[p.RendererID]; c != nil && (p.ObservationTemplate != nil || c.Template != nil || p.Observation == nil) {
		for _, ref := range c.RequiredFields {
			if _, ok := context.Get(ref); !ok {
				v.add("error", "missing_render_field", "Renderer %s requires absent field %s", c.ID, ref)
			}
		}
	}
	if retrieved != nil {
		var unknown []string
		for _, c := range p.Citations {
			if !retrieved[c] {
				unknown = append(unknown, c)
			}
		}
		if len(unknown) > 0 {
			v.Warn("uncited_reference", "Citations were not retrieved during this step: %s", strings.Join(unknown, ", "))
		}
	}
	return v
}

// support checks that the cited rules say what the plan does.
func (e *Engine) support(v *Verification, p *Plan, before, after state.State, trust Trust, known []*world.Rule) {
	if len(p.RuleIDs) == 0 {
		switch {
		case len(p.Effects) > 0 && trust == SchemaChecked:
			v.Warn("model_proposed_effects", "No rule is cited; the effects passed the schema, the types and the invariants, and were accepted as the model's proposal.")
		case len(p.Effects) > 0:
			v.add("error", "unsupported_plan", "The plan has effects but cites no rule that supports them.")
		default:
			v.Warn("unsupported_plan", "The plan cites no rule; its observation is the agent's own.")
		}
		return
	}
	cited := make([]*world.Rule, 0, len(p.RuleIDs))
	var missing []string
	twice := ""
	for i, id := range p.RuleIDs {
		for _, before := range p.RuleIDs[:i] {
			if before == id {
				twice = id
			}
		}
		found := false
		for _, r := range known {
			if r.ID == id {
				cited, found = append(cited, r), true
				break
			}
		}
		if !found {
			missing = append(missing, id)
		}
	}
	switch {
	case len(missing) > 0:
		v.add("error", "unknown_rule", "The plan cites rules that were not retrieved: %s", strings.Join(missing, ", "))
		return
	case twice != "":
		v.add("error", "duplicate_rule", "The plan cites rule %s twice", twice)
		return
	}
	var expected []string
	for _, r := range cited {
		if r.ActionType != p.Action.Type || !e.Eligible(r, before, false) {
			v.add("error", "ineligible_rule", "Rule %s is not eligible for this action and scope", r.ID)
			return
		}
	}
	for _, r := range cited {
		if !before.HoldAll(r.Conditions, p.Action) {
			v.add("error", "inapplicable_rule", "The conditions of rule %s do not hold before the transition", r.ID)
			return
		}
	}
	for _, r := range cited {
		if r.Outcome != p.Outcome {
			v.add("error", "unsupported_outcome", "The outcome is %s, that of rule %s is %s", p.Outcome, r.ID, r.Outcome)
			return
		}
		effects, err := before.Resolve(r.Effects, p.Action)
		if err != nil {
			v.add("error", "inapplicable_rule", "Rule %s refers to a missing value %s", r.ID, err)
			return
		}
		for _, m := range effects {
			expected = append(expected, effectText(m))
		}
	}
	supported := make(map[string]bool, len(expected))
	for _, t := range expected {
		supported[t] = true
	}
	same := len(expected) == len(p.Effects)
	for i, m := range p.Effects {
		t := effectText(m)
		if !supported[t] {
			v.add("error", "unsupported_effect", "No cited rule has the effect %s", t)
			return
		}
		same = same && expected[i] == t
	}
	if !same {
		v.add("error", "effect_sequence_mismatch", "The effects must be those of the cited rules, in their order and number")
		return
	}
	e.rendering(v, p, before, after, cited)
}

// rendering checks that the plan is rendered as its rules say. Several rules
// may be cited when what they render is the same text (spec/world.md §3.5).
func (e *Engine) rendering(v *Verification, p *Plan, before, after state.State, cited []*world.Rule) {
	if len(cited) == 1 {
		r := cited[0]
		if r.Renderer != p.RendererID || !sameText(r.ObservationTemplate, p.ObservationTemplate) {
			v.add("error", "unsupported_rendering", "The plan does not render as rule %s says", r.ID)
		}
		return
	}
	var first *world.Rule
	var text string
	for _, r := range cited {
		t, err := e.RenderRule(r, Context{p.Action, before, after, p.Outcome})
		switch {
		case err != nil:
			v.add("error", "unsupported_rendering", "Rule %s cannot be rendered: %v", r.ID, err)
			return
		case t == nil:
		case first == nil:
			first, text = r, *t
		case *t != text:
			v.add("error", "unsupported_rendering", "Rules %s and %s render different texts", first.ID, r.ID)
			return
		}
	}
}

func sameText(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
