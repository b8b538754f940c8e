package engine

import (
	"slices"

	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/state"
)

// Bounds of a retrieval (spec/world-reference.md §1): what a model is shown at
// most.
const (
	maxRules = 12
	maxDemos = 4
	maxNotes = 12
)

// A Retrieval is what is known of one action type in one state.
type Retrieval struct {
	Type           string // the canonical name; the one asked for when it is unknown
	Spec           *world.ActionSpec
	Rules          []*world.Rule
	Renderers      []*world.RenderContract
	Demonstrations []*world.Demonstration
	Notes          []*world.Note
	Invariants     []world.Invariant
}

// Retrieve collects what is known of an action type. Which rules are eligible
// may depend on the state; with anyState it does not.
func (e *Engine) Retrieve(actionType string, s state.State, anyState bool) *Retrieval {
	r := &Retrieval{Type: actionType, Invariants: e.k.Invariants}
	known := e.actions[actionType]
	if known == nil {
		r.Notes = e.general.notes
		return r
	}
	r.Type, r.Spec, r.Demonstrations, r.Notes = known.spec.Name, known.spec, known.demos, known.notes
	for _, rule := range known.rules {
		if len(r.Rules) == maxRules {
			break
		}
		if e.Eligible(rule, s, anyState) {
			r.Rules = append(r.Rules, rule)
		}
	}
	for _, c := range known.renderers {
		if slices.Contains(c.ActionTypes, r.Type) || slices.ContainsFunc(r.Rules, func(rule *world.Rule) bool { return rule.Renderer == c.ID }) {
			r.Renderers = append(r.Renderers, c)
		}
	}
	return r
}

// Artifacts are the ids of what was retrieved, in order.
func (r *Retrieval) Artifacts() []string {
	out := make([]string, 0, len(r.Rules)+len(r.Renderers)+len(r.Demonstrations)+len(r.Notes))
	for _, x := range r.Rules {
		out = append(out, "rule:"+x.ID)
	}
	for _, x := range r.Renderers {
		out = append(out, "renderer:"+x.ID)
	}
	for _, x := range r.Demonstrations {
		out = append(out, "demo:"+x.ID)
	}
	for _, x := range r.Notes {
		out = append(out, "note:"+x.ID)
	}
	return out
}

// A View is a retrieval as a document.
type View struct {
	CanonicalActionType string                  `json:"canonical_action_type"`
	ActionSpecs         []*world.ActionSpec     `json:"action_specs"`
	Rules               []*world.Rule           `json:"rules"`
	Renderers           []*world.RenderContract `json:"renderers"`
	Demonstrations      []*world.Demonstration  `json:"demonstrations"`
	Notes               []*world.Note           `json:"notes"`
	Invariants          []world.Invariant       `json:"invariants"`
	ArtifactIDs         []string                `json:"artifact_ids"`
}

// View is the retrieval as a document.
func (r *Retrieval) View() View {
	v := View{r.Type, nil, r.Rules, r.Renderers, r.Demonstrations, r.Notes, r.Invariants, r.Artifacts()}
	if r.Spec != nil {
		v.ActionSpecs = []*world.ActionSpec{r.Spec}
	}
	return v
}

// Expose adds a rule and its renderer that were found in another way than by
// retrieval, and returns their ids.
func (r *Retrieval) Expose(e *Engine, rule *world.Rule) []string {
	ids := []string{"rule:" + rule.ID}
	if !slices.Contains(r.Rules, rule) {
		r.Rules = append(slices.Clip(r.Rules), rule)
	}
	if c := e.renderers[rule.Renderer]; c != nil {
		ids = append(ids, "renderer:"+c.ID)
		if !slices.Contains(r.Renderers, c) {
			r.Renderers = append(slices.Clip(r.Renderers), c)
		}
	}
	return ids
}
