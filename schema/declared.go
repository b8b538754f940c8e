package schema

import (
	"maps"
	"slices"

	"github.com/callsheet/callsheet/value"
)

// Undeclared lists the top-level names of args that the schema does not declare,
// in their order (spec/plan.md §3). Names are collected through $ref, allOf,
// anyOf, oneOf, if/then/else and patternProperties. An additionalProperties or
// unevaluatedProperties that the schema states decides instead, and then it is
// [Schema.Validate] that speaks; one that stands in a branch decides only if
// args fit that branch. A schema that names no property at all is open.
func (s *Schema) Undeclared(args value.Value) []string {
	return s.undeclared(newMeter(allowed(args)), args)
}

// undeclared lists a name too when there is not work enough to find it declared.
func (s *Schema) undeclared(m *meter, args value.Value) []string {
	if s == nil || s.root.trivial() || args.Kind() != value.Object {
		return nil
	}
	d := s.declarations()
	if d.open || d.decided {
		return nil
	}
	m.spend(args.Len() / itemsPerWork)
	var names []string
	for name := range args.Members() {
		if !d.has(m, name) {
			names = append(names, name)
		}
	}
	if names == nil || s.decides(m, s.root, args, make(map[*node]bool)) {
		return nil
	}
	return names
}

// Names lists the top-level property names that the schema declares, sorted.
func (s *Schema) Names() []string {
	if s == nil || s.root.trivial() {
		return nil
	}
	return slices.Sorted(maps.Keys(s.declarations().names))
}

// Open reports whether the schema names no property at all and does not say
// whether others are allowed: any arg may be sent, and no check can tell a
// mistyped one from a meant one. A nil Schema is open.
func (s *Schema) Open() bool {
	return s == nil || s.root.trivial() || s.declarations().open
}

// declarations are the property names of a schema, collected once.
type declarations struct {
	names    map[string]bool
	patterns []*pattern
	open     bool // none, and no decision about others
	decided  bool // there is a decision that holds for all values
}

func (d *declarations) has(m *meter, name string) bool {
	if d.names[name] {
		return true
	}
	for _, p := range d.patterns {
		if m.matches(p, name) {
			return true
		}
	}
	return false
}

func (s *Schema) declarations() *declarations {
	s.once.Do(func() {
		d := &s.declared
		d.names, d.open = make(map[string]bool), true
		s.root.everywhere(func(n *node) bool {
			for name := range n.properties {
				d.names[name] = true
			}
			// A property that must be there is declared by that; it does not close
			// the schema.
			for _, name := range n.required {
				d.names[name] = true
			}
			for _, p := range n.patterns {
				d.patterns = append(d.patterns, p.pattern)
			}
			if len(n.properties) > 0 || len(n.patterns) > 0 || n.additional != nil || n.unevaluatedProperties != nil {
				d.open = false
			}
			return true
		})
		s.root.conjuncts(func(n *node) {
			if n.additional != nil || n.unevaluatedProperties != nil {
				d.decided = true
			}
		})
	})
	return &s.declared
}

// everywhere calls f for n and every subschema of the same value, save those
// under not, until f returns false.
func (n *node) everywhere(f func(*node) bool) {
	seen := map[*node]bool{n: true}
	for queue := []*node{n}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if !f(at) {
			return
		}
		for _, list := range [][]*node{at.also(), at.any, at.one, {at.dynamicRef, at.recursiveRef, at.cond, at.then, at.otherway}} {
			for _, m := range list {
				if m != nil && !seen[m] {
					seen[m] = true
					queue = append(queue, m)
				}
			}
		}
	}
}

// declares reports whether n or a subschema of the same value names a property,
// as one that it may have or as one that it must.
func (w *walk) declares(n *node, name string) bool {
	found := false
	n.everywhere(func(n *node) bool {
		if !w.spend(1 + len(n.required)/itemsPerWork) {
			return false
		}
		_, found = n.properties[name]
		found = found || slices.Contains(n.required, name)
		for _, p := range n.patterns {
			found = found || w.matches(p.pattern, name)
		}
		return !found
	})
	return found
}

// decides reports whether the schema itself says what becomes of other names in
// these args.
func (s *Schema) decides(m *meter, n *node, args value.Value, seen map[*node]bool) bool {
	if seen[n] || !m.spend(1) {
		return false
	}
	seen[n] = true
	if n.additional != nil || n.unevaluatedProperties != nil {
		return true
	}
	for _, sub := range slices.Concat(n.also(), []*node{n.dynamicRef, n.recursiveRef}) {
		if sub != nil && s.decides(m, sub, args, seen) {
			return true
		}
	}
	chosen := func(sub *node) bool {
		return (&Schema{root: sub, dynamic: s.dynamic, marks: s.marks}).fits(m, args)
	}
	for _, branches := range [][]*node{n.any, n.one} {
		for _, sub := range branches {
			if chosen(sub) && s.decides(m, sub, args, seen) {
				return true
			}
		}
	}
	if n.cond != nil {
		branch := n.otherway
		if chosen(n.cond) {
			branch = n.then
			if s.decides(m, n.cond, args, seen) {
				return true
			}
		}
		return branch != nil && s.decides(m, branch, args, seen)
	}
	return false
}
