// Package engine is the pure part of a step: it types an action, selects among
// all eligible rules, validates effects, verifies a transition and renders what
// the environment says. It reads and writes nothing.
//
//	e, err := engine.New(knowledge)
//	working, due, err := s.Advance()
//	action, err := e.Canonical(action)
//	rule, plan, err := e.Select(working, action, false)
//	after, err := working.Apply(plan.Effects)
//	text, err := e.Render(plan, s, after)
//
// What it does and in which order is spec/world-reference.md §3; where it does
// better is spec/world.md §3.
package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/callsheet/callsheet/world/state"
)

// Knowledge is what an engine works with: the executable part of a worldbook.
type Knowledge struct {
	Actions        []world.ActionSpec
	Fields         []world.StateField
	Rules          []world.Rule
	Invariants     []world.Invariant
	Renderers      []world.RenderContract
	Notes          []world.Note
	Demonstrations []world.Demonstration
	Scope          map[string]string // of the package: environment_id, tenant, …
	MinConfidence  float64           // below it a rule is not eligible
	Extended       bool              // $state_path and any/all/not are allowed
}

// An Engine is immutable and safe for concurrent use. Its cost for one action
// does not depend on the rules of others.
type Engine struct {
	k         Knowledge
	actions   map[string]*action // by name and alias
	rules     map[string]*world.Rule
	order     map[string]int // of rules in the worldbook
	renderers map[string]*world.RenderContract
	fields    map[string]*field
	typed     []*field // in the order of the schema
	immutable []string
	general   action // what is known of an action that is not declared
}

// An action is everything known of one action type.
type action struct {
	spec      *world.ActionSpec
	rules     []*world.Rule           // by priority, confidence and id, descending
	renderers []*world.RenderContract // that name the action, or that a rule of it uses
	demos     []*world.Demonstration  // the first maxDemos
	notes     []*world.Note           // the first maxNotes
}

type field struct {
	*world.StateField
	at state.Path
}

// New makes an engine. Two actions that share a name or alias, a rule of an
// unknown action or renderer, and two rules of one id are errors.
func New(k Knowledge) (*Engine, error) {
	e := &Engine{k: k, actions: map[string]*action{}, rules: map[string]*world.Rule{}, order: map[string]int{}, renderers: map[string]*world.RenderContract{}, fields: map[string]*field{}}
	for i := range k.Actions {
		spec := &k.Actions[i]
		a := &action{spec: spec}
		for _, name := range append([]string{spec.Name}, spec.Aliases...) {
			if have := e.actions[name]; have != nil && have != a {
				return nil, fmt.Errorf("the action name or alias %q means both %q and %q", name, have.spec.Name, spec.Name)
			}
			e.actions[name] = a
		}
	}
	for i := range k.Renderers {
		r := &k.Renderers[i]
		e.renderers[r.ID] = r
	}
	users := map[string][]*action{} // of a renderer, by its rules
	for i := range k.Rules {
		r := &k.Rules[i]
		a := e.actions[r.ActionType]
		switch {
		case a == nil || a.spec.Name != r.ActionType:
			return nil, fmt.Errorf("rule %q is for the unknown action %q", r.ID, r.ActionType)
		case e.renderers[r.Renderer] == nil:
			return nil, fmt.Errorf("rule %q uses the unknown renderer %q", r.ID, r.Renderer)
		case e.rules[r.ID] != nil:
			return nil, fmt.Errorf("two rules have the id %q", r.ID)
		}
		e.rules[r.ID], e.order[r.ID] = r, i
		a.rules = append(a.rules, r)
		if u := users[r.Renderer]; len(u) == 0 || u[len(u)-1] != a {
			users[r.Renderer] = append(u, a)
		}
	}
	for i := range k.Fields {
		f := &k.Fields[i]
		c := &field{f, state.ParsePath(f.Path)}
		e.fields[f.Path] = c
		e.typed = append(e.typed, c)
		if !f.Mutable {
			e.immutable = append(e.immutable, f.Path)
		}
	}
	for _, spec := range k.Actions {
		a := e.actions[spec.Name]
		slices.SortFunc(a.rules, func(x, y *world.Rule) int {
			return cmp.Or(cmp.Compare(y.Priority, x.Priority), cmp.Compare(y.Confidence, x.Confidence), strings.Compare(y.ID, x.ID))
		})
	}
	for i := range k.Demonstrations {
		d := &k.Demonstrations[i]
		if a := e.actions[d.Action.Type]; a != nil && a.spec.Name == d.Action.Type && len(a.demos) < maxDemos {
			a.demos = append(a.demos, d)
		}
	}
	for i := range k.Renderers {
		r := &k.Renderers[i]
		for _, name := range r.ActionTypes {
			if a := e.actions[name]; a != nil && a.spec.Name == name {
				a.uses(r)
			}
		}
		for _, a := range users[r.ID] {
			a.uses(r)
		}
	}
	for i := range k.Notes {
		n := &k.Notes[i]
		if n.Status != world.Supported {
			continue
		}
		if len(n.ActionTypes) == 0 {
			e.general.note(n)
			for _, spec := range k.Actions {
				e.actions[spec.Name].note(n)
			}
		}
		for _, name := range n.ActionTypes {
			if a := e.actions[name]; a != nil && a.spec.Name == name {
				a.note(n)
			}
		}
	}
	return e, nil
}

func (a *action) uses(r *world.RenderContract) {
	if n := len(a.renderers); n == 0 || a.renderers[n-1] != r {
		a.renderers = append(a.renderers, r)
	}
}

func (a *action) note(n *world.Note) {
	if k := len(a.notes); k < maxNotes && (k == 0 || a.notes[k-1] != n) {
		a.notes = append(a.notes, n)
	}
}

// Knowledge is what the engine was made of; it must not be changed.
func (e *Engine) Knowledge() *Knowledge { return &e.k }

// Rule returns a rule by id, nil without one.
func (e *Engine) Rule(id string) *world.Rule { return e.rules[id] }

// RulesOf returns the rules of an action in the order of the worldbook.
func (e *Engine) RulesOf(action string) []*world.Rule {
	known := e.actions[action]
	if known == nil {
		return nil
	}
	out := slices.Clone(known.rules)
	slices.SortFunc(out, func(a, b *world.Rule) int { return cmp.Compare(e.order[a.ID], e.order[b.ID]) })
	return out
}

// Renderer returns a contract by id, nil without one.
func (e *Engine) Renderer(id string) *world.RenderContract { return e.renderers[id] }

// Action returns the declaration of a name or alias, nil without one.
func (e *Engine) Action(name string) *world.ActionSpec {
	if a := e.actions[name]; a != nil {
		return a.spec
	}
	return nil
}

// Initial is the state that the schema's defaults describe.
func (e *Engine) Initial() (state.State, error) {
	s := state.Empty()
	for _, f := range e.typed {
		if f.Default.IsNull() || f.Default.IsZero() {
			continue
		}
		var err error
		if s, err = s.Apply([]world.Mutation{{Op: world.Set, Path: f.Path, Value: f.Default}}); err != nil {
			return s, fmt.Errorf("default of %s: %w", f.Path, err)
		}
	}
	return s, nil
}

// Canonical checks an action against its declaration and gives it its own name
// in place of an alias (spec/world-reference.md §3.2). An unknown action passes.
func (e *Engine) Canonical(a world.Action) (world.Action, error) {
	known := e.actions[a.Type]
	if known == nil {
		return a, nil
	}
	for _, arg := range known.spec.Arguments {
		v, ok := a.Arguments.Get(arg.Name)
		switch {
		case !ok && arg.Required:
			return a, world.Faultf(world.InvalidAction, "Missing required argument %s for action %s", python.Quote(arg.Name), python.Quote(known.spec.Name))
		case !ok:
		case !arg.Type.Fits(v):
			return a, world.Faultf(world.InvalidAction, "Argument %s must be %s, got %s", python.Quote(arg.Name), arg.Type, python.TypeName(v))
		case arg.Enum.Kind() == value.List && !oneOf(v, arg.Enum):
			return a, world.Faultf(world.InvalidAction, "Argument %s must be one of %s", python.Quote(arg.Name), python.Repr(arg.Enum))
		}
	}
	a.Type = known.spec.Name
	return a, nil
}

func oneOf(v, list value.Value) bool {
	for _, e := range list.Elements() {
		if python.Equal(v, e) {
			return true
		}
	}
	return false
}

// Eligible reports whether a rule may be used in a state: it is supported,
// confident enough, and its scope is that of the package and the state. With
// anyState its conditions on the state are taken to hold.
func (e *Engine) Eligible(r *world.Rule, s state.State, anyState bool) bool {
	if r.Status != world.Supported || float64(r.Confidence) < e.k.MinConfidence {
		return false
	}
	for _, entry := range r.Scope {
		key := ScopeKey(entry.Key)
		if head, _, _ := strings.Cut(key, "."); world.IsNamespace(head) {
			if anyState {
				continue
			}
			v, ok := s.Get(key)
			if !ok || python.Str(v) != entry.Value {
				return false
			}
		} else if have, ok := e.k.Scope[key]; !ok || have != entry.Value {
			return false
		}
	}
	return true
}

// ScopeKey is the name of a scope entry; two have older names.
func ScopeKey(key string) string {
	switch key {
	case "tenant_scope":
		return "tenant"
	case "version":
		return "environment_version"
	}
	return key
}

// Vacuous reports whether a rule can produce no transition: it has no effects
// and nothing to render.
func (e *Engine) Vacuous(r *world.Rule) bool { return len(r.Effects) == 0 && e.template(r) == nil }

// template is the rule's own template, or its contract's; nil without one.
func (e *Engine) template(r *world.Rule) *string {
	if t := r.ObservationTemplate; t != nil && *t != "" {
		return t
	}
	if c := e.renderers[r.Renderer]; c != nil && c.Template != nil && *c.Template != "" {
		return c.Template
	}
	return nil
}

// Templated reports whether a rule's observation can be rendered.
func (e *Engine) Templated(r *world.Rule) bool { return e.template(r) != nil }
