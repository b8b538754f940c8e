package schema

import (
	"strings"

	"github.com/callsheet/callsheet/value"
)

// At follows a path as [value.Value.Lookup] does (spec/plan.md §2), but through
// the schema: what a reference into a value that fits s may find. sub is the
// schema of what it finds, nil when the schema says nothing of it; known says
// whether it does. possible is false when no value that fits s has such a path.
//
// Where an undeclared property is allowed, it may be anything. Only a key that
// itself holds a dot is not assumed beside a declared one: "a.b" is the member b
// of a declared a, unless "a.b" is declared.
func (s *Schema) At(path string) (sub *Schema, known, possible bool) {
	if s == nil || s.root.trivial() {
		return nil, false, true
	}
	w := &walk{budget: maxWalk}
	n, possible := w.follow(s.root, path)
	if !possible {
		return nil, false, false
	}
	if n == nil || n.empty {
		return nil, false, true
	}
	return &Schema{root: n, dynamic: s.dynamic, marks: s.marks}, true, true
}

// maxWalk bounds how many subschemas one path is followed through; beyond it
// nothing is known.
const maxWalk = 10_000

type walk struct{ budget int }

// follow returns what the values at path must fit, nil for anything.
func (w *walk) follow(n *node, path string) (*node, bool) {
	if n == nil || n.empty {
		return nil, true
	}
	head, tail, more := strings.Cut(path, ".")
	var found []*node
	sub, possible := w.step(n, head)
	if possible && more {
		sub, possible = w.follow(sub, tail)
	}
	if possible {
		found = append(found, sub)
	}
	if more && (!declares(n, head) || declares(n, path)) {
		if sub, ok := w.property(n, path); ok {
			found = append(found, sub)
		}
	}
	if len(found) == 0 {
		return nil, false
	}
	return union(found), true
}

// step goes one token down: into an object by a name, into a list by an index.
func (w *walk) step(n *node, token string) (*node, bool) {
	var found []*node
	if n.possible&typeObject != 0 {
		if sub, ok := w.property(n, token); ok {
			found = append(found, sub)
		}
	}
	if i, ok := value.Index(token); ok && n.possible&typeList != 0 {
		if sub, ok := w.into(n, func(n *node) (*node, bool) { return n.ownItem(i) }); ok {
			found = append(found, sub)
		}
	}
	if len(found) == 0 {
		return nil, false
	}
	return union(found), true
}

func (w *walk) property(n *node, name string) (*node, bool) {
	if n.possible&typeObject == 0 {
		return nil, false
	}
	if n.unevaluatedProperties != nil && n.unevaluatedProperties.never && !declares(n, name) && !n.evaluatesOthers() {
		return nil, false
	}
	return w.into(n, func(n *node) (*node, bool) { return n.ownProperty(name) })
}

// evaluatesOthers reports whether some subschema of the same value may evaluate
// properties that none names, so that unevaluatedProperties does not see them.
func (n *node) evaluatesOthers() bool {
	found := false
	n.everywhere(func(m *node) bool {
		found = m.additional != nil || m != n && m.unevaluatedProperties != nil || len(m.dependentSchemas) > 0 ||
			m.dynamicRef != nil || m.recursiveRef != nil
		return !found
	})
	return found
}

// into asks every subschema that judges the same value what it says of a part,
// and joins the answers: all of those that must hold, one of those that may.
func (w *walk) into(n *node, own func(*node) (*node, bool)) (*node, bool) {
	if w.budget--; w.budget < 0 {
		return nil, true
	}
	sub, possible := own(n)
	if !possible {
		return nil, false
	}
	parts := []*node{sub}
	for _, m := range n.also() {
		if sub, possible = w.into(m, own); !possible {
			return nil, false
		}
		parts = append(parts, sub)
	}
	var branches [][]*node
	branches = append(branches, n.any, n.one)
	if n.cond != nil && n.then != nil && n.otherway != nil {
		branches = append(branches, []*node{n.then, n.otherway})
	}
	for _, branch := range branches {
		if len(branch) == 0 {
			continue
		}
		var found []*node
		for _, m := range branch {
			if sub, possible := w.into(m, own); possible {
				found = append(found, sub)
			}
		}
		if len(found) == 0 {
			return nil, false
		}
		parts = append(parts, union(found))
	}
	both := intersection(parts)
	return both, both == nil || both.possible != 0
}

// ownProperty is what n itself says of a property: nil for nothing, false when
// there cannot be one.
func (n *node) ownProperty(name string) (*node, bool) {
	if n.possible&typeObject == 0 {
		return nil, false
	}
	if n.enum != nil {
		return n.listed(func(v value.Value) (value.Value, bool) { return v.Get(name) })
	}
	if n.maxProperties != nil && *n.maxProperties == 0 {
		return nil, false
	}
	var parts []*node
	sub, known := n.properties[name]
	if known {
		parts = append(parts, sub)
	}
	for _, p := range n.patterns {
		if p.pattern.MatchString(name) {
			known = true
			parts = append(parts, p.node)
		}
	}
	if !known && n.additional != nil {
		parts = append(parts, n.additional)
	}
	both := intersection(parts)
	return both, both == nil || both.possible != 0
}

// ownItem is what n itself says of an item.
func (n *node) ownItem(i int) (*node, bool) {
	if n.possible&typeList == 0 || n.maxItems != nil && i >= *n.maxItems {
		return nil, false
	}
	if n.enum != nil {
		return n.listed(func(v value.Value) (value.Value, bool) {
			if v.Kind() != value.List || i >= v.Len() {
				return value.Value{}, false
			}
			return v.At(i), true
		})
	}
	sub := n.rest
	if i < len(n.prefix) {
		sub = n.prefix[i]
	}
	return sub, sub == nil || sub.possible != 0
}

// listed is what the values of n's enum have at a part.
func (n *node) listed(part func(value.Value) (value.Value, bool)) (*node, bool) {
	found := &node{at: n.at}
	for _, v := range n.enum {
		if p, ok := part(v); ok {
			found.enum = append(found.enum, p)
		}
	}
	if found.enum == nil {
		return nil, false
	}
	found.possible = found.upperBound()
	return found, true
}

// property is what values that fit n have under name.
func (n *node) property(name string) (*node, bool) {
	return (&walk{budget: maxWalk}).property(n, name)
}

// item is what values that fit n have at an index.
func (n *node) item(i int) *node {
	w := &walk{budget: maxWalk}
	sub, _ := w.into(n, func(n *node) (*node, bool) { return n.ownItem(i) })
	return sub
}

// union is a node that any of ns fits; nil, which is anything, swallows the rest.
func union(ns []*node) *node {
	for _, n := range ns {
		if n == nil || n.empty {
			return nil
		}
	}
	if len(ns) == 1 {
		return ns[0]
	}
	u := &node{any: ns}
	u.possible = u.upperBound()
	return u
}

// intersection is a node that all of ns fit, nil when none says anything.
func intersection(ns []*node) *node {
	var said []*node
	for _, n := range ns {
		if n != nil && !n.empty {
			said = append(said, n)
		}
	}
	switch len(said) {
	case 0:
		return nil
	case 1:
		return said[0]
	}
	both := &node{all: said}
	both.possible = both.upperBound()
	return both
}
