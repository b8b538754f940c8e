package engine

import (
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/callsheet/callsheet/world/state"
	"github.com/go-json-experiment/json"
)

// A checker validates effects. With resolved set, texts are data and tokens in
// them mean nothing.
type checker struct {
	e        *Engine
	spec     *world.ActionSpec
	resolved bool
}

// ValidateEffects checks effects against the state schema
// (spec/world-reference.md §3.6). With resolved set their values are data, and
// are not read for references. spec may be nil; references are refused then.
func (e *Engine) ValidateEffects(ms []world.Mutation, spec *world.ActionSpec, resolved bool) error {
	return checker{e, spec, resolved}.effects(ms)
}

func (c checker) argument(path string) (world.Type, error) {
	name, tail, deep := strings.Cut(path, ".")
	var arg *world.Argument
	if c.spec != nil {
		arg = c.spec.Arguments.Get(name)
	}
	if arg == nil {
		return "", world.Faultf(world.ValueError, "Undeclared action argument: %s", path)
	}
	if !deep || tail == "" {
		return arg.Type, nil
	}
	if !arg.Type.IsContainer() {
		return "", world.Faultf(world.ValueError, "Cannot traverse argument: %s", path)
	}
	return world.AnyType, nil
}

// field finds the declared field that a path is, or lies under.
func (c checker) field(path string) (*field, string, error) {
	normal := path
	if !c.resolved {
		for _, arg := range state.Tokens(path) {
			if _, err := c.argument(arg); err != nil {
				return nil, "", err
			}
		}
		normal = state.ReplaceTokens(path, "__key__")
	}
	// As it will be followed: an argument may have put brackets into it.
	normal = state.ParsePath(normal).String()
	if strings.ContainsAny(normal, "{}") || normal == "" || strings.HasPrefix(normal, ".") || strings.HasSuffix(normal, ".") || strings.Contains(normal, "..") {
		return nil, "", world.Faultf(world.ValueError, "Invalid state path: %s", path)
	}
	if f := c.e.fields[normal]; f != nil {
		return f, normal, nil
	}
	for at := strings.LastIndexByte(normal, '.'); at > 0; at = strings.LastIndexByte(normal[:at], '.') {
		if f := c.e.fields[normal[:at]]; f != nil && f.Type.IsContainer() {
			return f, normal, nil
		}
	}
	return nil, "", world.Faultf(world.ValueError, "Undeclared state path: %s", path)
}

// valueType is the type of a value that may hold references.
func (c checker) valueType(v value.Value) (world.Type, error) {
	if c.resolved {
		return world.TypeOf(v), nil
	}
	switch v.Kind() {
	case value.Object:
		if ref, ok := v.Get("$action_arg"); ok {
			if v.Len() != 1 {
				return "", world.Faultf(world.ValueError, "Dynamic argument values cannot contain extra fields")
			}
			return c.argument(python.Str(ref))
		}
		if ref, ok := v.Get("$state_path"); ok {
			if !c.e.k.Extended || v.Len() != 1 {
				return "", world.Faultf(world.ValueError, "State-value interpolation is not implemented")
			}
			f, normal, err := c.field(python.Str(ref))
			if err != nil {
				return "", err
			}
			if f.Path != normal {
				return world.AnyType, nil
			}
			return f.Type, nil
		}
		for k, m := range v.Members() {
			for _, arg := range state.Tokens(k) {
				if _, err := c.argument(arg); err != nil {
					return "", err
				}
			}
			if _, err := c.valueType(m); err != nil {
				return "", err
			}
		}
	case value.List:
		for _, e := range v.Elements() {
			if _, err := c.valueType(e); err != nil {
				return "", err
			}
		}
	case value.String:
		s, _ := v.Text()
		if strings.Contains(s, "{state_before.") || strings.Contains(s, "{state_after.") {
			return "", world.Faultf(world.ValueError, "State-value interpolation is not implemented")
		}
		args := state.Tokens(s)
		for _, arg := range args {
			if _, err := c.argument(arg); err != nil {
				return "", err
			}
		}
		if len(args) == 1 && state.ReplaceTokens(s, "") == "" {
			return c.argument(args[0])
		}
	}
	return world.TypeOf(v), nil
}

func (c checker) effects(ms []world.Mutation) error {
	for i := range ms {
		if err := c.effect(&ms[i]); err != nil {
			return err
		}
	}
	return nil
}

func (c checker) effect(m *world.Mutation) error {
	f, normal, err := c.field(m.Path)
	if err != nil {
		return err
	}
	for _, p := range c.e.immutable {
		if normal == p || strings.HasPrefix(normal, p+".") || strings.HasPrefix(p, normal+".") {
			return world.Faultf(world.ValueError, "Effect modifies immutable state: %s", m.Path)
		}
	}
	switch m.Op {
	case world.Schedule:
		if m.DelaySteps == nil {
			return world.Faultf(world.ValueError, "Scheduled effects require delay_steps")
		}
		nested := []world.Mutation{{Op: world.Set, Path: m.Path, Value: m.Value}}
		if effects, ok := m.Value.Get("effects"); ok {
			if effects.Kind() != value.List {
				return world.Faultf(world.ValueError, "Scheduled effects at %s must be a list", m.Path)
			}
			nested = nil
			if err := effects.Decode(&nested, json.RejectUnknownMembers(true)); err != nil {
				return world.Faultf(world.ValueError, "Scheduled effects at %s: %v", m.Path, err)
			}
		}
		return c.effects(nested)
	case world.Delete:
		return nil
	}
	actual, err := c.valueType(m.Value)
	if err != nil {
		return err
	}
	expected := world.AnyType
	if f.Path == normal {
		expected = f.Type
	}
	number := func(t world.Type) bool {
		return t == world.IntegerType || t == world.NumberType || t == world.AnyType
	}
	switch m.Op {
	case world.Merge, world.Remove:
		if expected != world.ObjectType && expected != world.AnyType {
			return world.Faultf(world.ValueError, "%s requires object state: %s", m.Op, m.Path)
		}
		if m.Op == world.Merge && actual != world.ObjectType && actual != world.AnyType {
			return world.Faultf(world.ValueError, "merge requires an object value: %s", m.Path)
		}
		if m.Op == world.Remove && !isKeys(m.Value) {
			return world.Faultf(world.ValueError, "remove requires a key or a list of keys: %s", m.Path)
		}
	case world.Increment, world.Decrement:
		if !number(expected) || !number(actual) {
			return world.Faultf(world.ValueError, "Non-numeric arithmetic effect: %s", m.Path)
		}
		if expected == world.IntegerType && actual == world.NumberType {
			return world.Faultf(world.ValueError, "Fractional effect on integer state: %s", m.Path)
		}
	case world.Append:
		if expected != world.ArrayType && expected != world.AnyType {
			return world.Faultf(world.ValueError, "Append requires array state: %s", m.Path)
		}
	default:
		if expected != world.AnyType && actual != world.AnyType && actual != expected && !(expected == world.NumberType && actual == world.IntegerType) {
			return world.Faultf(world.ValueError, "Effect type %s does not match %s: %s", actual, expected, m.Path)
		}
	}
	return nil
}

func isKeys(v value.Value) bool {
	if v.Kind() == value.List {
		for _, e := range v.Elements() {
			if e.Kind() != value.String {
				return false
			}
		}
		return true
	}
	return v.Kind() == value.String
}

// CheckTypes checks that every declared field that is present has its type.
func (e *Engine) CheckTypes(s state.State) error {
	for _, f := range e.typed {
		if fits, ok := s.Fits(f.at, f.Type); ok && !fits {
			return world.Faultf(world.ValueError, "State type mismatch at %s", f.Path)
		}
	}
	return nil
}

// CheckRule lists what is wrong with a rule by the schemas alone.
func (e *Engine) CheckRule(r *world.Rule) []string {
	known := e.actions[r.ActionType]
	if known == nil || known.spec.Name != r.ActionType {
		return []string{"unknown action " + python.Quote(r.ActionType)}
	}
	var out []string
	if e.renderers[r.Renderer] == nil {
		out = append(out, "unknown renderer "+python.Quote(r.Renderer))
	}
	c := checker{e: e, spec: known.spec}
	if err := c.effects(r.Effects); err != nil {
		out = append(out, "effects: "+err.Error())
	}
	for i := range r.Conditions {
		if err := e.CheckCondition(&r.Conditions[i], known.spec); err != nil {
			out = append(out, "condition: "+err.Error())
		}
	}
	if r.ObservationTemplate != nil {
		for _, ref := range braces(*r.ObservationTemplate) {
			if err := c.reference(ref); err != nil {
				out = append(out, "template: "+err.Error())
			}
		}
	}
	return out
}

// CheckCondition checks that a condition refers to declared paths and
// arguments, and is of the plain form unless extensions are on.
func (e *Engine) CheckCondition(c *world.Condition, spec *world.ActionSpec) error {
	if c.IsGroup() && !e.k.Extended {
		return world.Faultf(world.ValueError, "any, all and not are an extension that this package does not declare")
	}
	var err error
	ch := checker{e: e, spec: spec}
	c.Leaves(func(l *world.Condition) bool {
		for _, o := range []*world.Operand{&l.Left, l.Right} {
			switch {
			case o == nil:
			case o.Path != nil:
				_, _, err = ch.field(*o.Path)
			case o.ActionArg != nil:
				_, err = ch.argument(*o.ActionArg)
			}
			if err != nil {
				return false
			}
		}
		return true
	})
	return err
}

// CheckRenderer lists what is wrong with a contract for the actions that use
// it.
func (e *Engine) CheckRenderer(r *world.RenderContract) []string {
	related := append([]string(nil), r.ActionTypes...)
	for i := range e.k.Rules {
		if e.k.Rules[i].Renderer == r.ID {
			related = append(related, e.k.Rules[i].ActionType)
		}
	}
	var out []string
	seen := map[string]bool{}
	for _, name := range related {
		if seen[name] {
			continue
		}
		seen[name] = true
		known := e.actions[name]
		if known == nil || known.spec.Name != name {
			out = append(out, "unknown action "+python.Quote(name))
			continue
		}
		refs := r.RequiredFields
		if r.Template != nil {
			refs = append(append([]string(nil), refs...), braces(*r.Template)...)
		}
		for _, ref := range refs {
			if err := (checker{e: e, spec: known.spec}).reference(ref); err != nil {
				out = append(out, err.Error())
			}
		}
	}
	return out
}

func (c checker) reference(ref string) error {
	if tail, ok := strings.CutPrefix(ref, "state_before."); ok {
		_, _, err := c.field(tail)
		return err
	}
	if tail, ok := strings.CutPrefix(ref, "state_after."); ok {
		_, _, err := c.field(tail)
		return err
	}
	if tail, ok := strings.CutPrefix(ref, "action.arguments."); ok {
		_, err := c.argument(tail)
		return err
	}
	if ref != "action.type" && ref != "outcome" {
		return world.Faultf(world.ValueError, "Unsupported renderer reference: %s", ref)
	}
	return nil
}

// braces are the texts between { and }, whatever they hold.
func braces(s string) []string {
	var out []string
	for {
		open := strings.IndexByte(s, '{')
		if open < 0 {
			return out
		}
		s = s[open+1:]
		end := strings.IndexAny(s, "{}")
		if end < 0 {
			return out
		}
		if end > 0 && s[end] == '}' {
			out = append(out, s[:end])
		}
		s = s[end:]
		if s[0] == '}' {
			s = s[1:]
		}
	}
}
