package schema

import (
	"strings"

	"github.com/callsheet/callsheet/value"
)

// A Presence says whether a path can be in the values that fit a schema.
type Presence uint8

// The presences.
const (
	Impossible Presence = iota // no value that fits has it
	Unlikely                   // only with an undeclared key that itself holds a dot
	Possible                   // it may be there; of what is there the schema says nothing
	Known                      // the schema says what is there, if anything is
)

// String is the presence in one word.
func (p Presence) String() string {
	return [...]string{"impossible", "unlikely", "possible", "known"}[p]
}

// At follows a path as [value.Value.Lookup] does (spec/plan.md §2), but through
// the schema: what a reference into a value that fits s may find. sub is the
// schema of what it finds, nil unless that is Known.
//
// Where an undeclared property is allowed, it may be anything. Only a key that
// itself holds a dot is not assumed beside a declared one: "a.b" is the member b
// of a declared a, unless the schema names "a.b". Where a cannot have a b, such a
// key may still be what is meant: the path is Possible if the schema says that
// there are other properties, and else Unlikely.
func (s *Schema) At(path string) (sub *Schema, p Presence) {
	return s.at(newMeter(maxWalk), path)
}

func (s *Schema) at(m *meter, path string) (*Schema, Presence) {
	if s == nil || s.root.trivial() {
		return nil, Possible
	}
	n, p := (&walk{m}).follow(s.root, path)
	switch {
	case m.over:
		return nil, Possible // nothing is known
	case p != Known:
		return nil, p
	}
	return &Schema{root: n, dynamic: s.dynamic, marks: s.marks}, Known
}

// maxWalk bounds the work of following one path; beyond it nothing is known.
const maxWalk = 1 << 14

// A walk goes through a schema as values that fit it would be gone through. When
// its work is used up it finds everything possible.
type walk struct{ *meter }

// follow returns what the values at path must fit: a node when that is known.
func (w *walk) follow(n *node, path string) (*node, Presence) {
	if n.trivial() || !w.spend(1+len(path)/bytesPerWork) {
		return nil, Possible
	}
	head, tail, more := strings.Cut(path, ".")
	var found []*node
	best := Impossible
	if sub, possible := w.step(n, head); possible {
		best = Possible
		if more && sub != nil {
			sub, best = w.follow(sub, tail)
		}
		if best >= Possible {
			found = append(found, sub)
		}
	}
	if more && (w.declares(n, path) || !w.declares(n, head)) {
		if sub, ok := w.property(n, path); ok {
			found = append(found, sub)
		}
	} else if more && len(found) == 0 {
		if _, ok := w.property(n, path); ok && w.extends(n) {
			best = Possible
		} else if ok {
			best = max(best, Unlikely)
		}
	}
	if len(found) == 0 {
		return nil, best
	}
	if u := w.union(found); !u.trivial() {
		return u, Known
	}
	return nil, Possible
}

// extends reports whether n says that there are properties beside the declared
// ones.
func (w *walk) extends(n *node) bool {
	found := false
	n.everywhere(func(m *node) bool {
		found = m.additional != nil && !m.additional.never || m.unevaluatedProperties != nil && !m.unevaluatedProperties.never
		return !found && w.spend(1)
	})
	return found
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
		if sub, ok := w.into(n, func(n *node) (*node, bool) { return w.ownItem(n, i) }); ok {
			found = append(found, sub)
		}
	}
	if len(found) == 0 {
		return nil, false
	}
	return w.union(found), true
}

func (w *walk) property(n *node, name string) (*node, bool) {
	if n.possible&typeObject == 0 {
		return nil, false
	}
	if n.unevaluatedProperties != nil && n.unevaluatedProperties.never && !w.declares(n, name) && !w.evaluatesOthers(n) {
		return nil, false
	}
	return w.into(n, func(n *node) (*node, bool) { return w.ownProperty(n, name) })
}

// evaluatesOthers reports whether some subschema of the same value may evaluate
// properties that none names, so that unevaluatedProperties does not see them.
func (w *walk) evaluatesOthers(n *node) bool {
	found := false
	n.everywhere(func(m *node) bool {
		found = m.additional != nil || m != n && m.unevaluatedProperties != nil || len(m.dependentSchemas) > 0 ||
			m.dynamicRef != nil || m.recursiveRef != nil
		return !found && w.spend(1)
	})
	return found
}

// into asks every subschema that judges the same value what it says of a part,
// and joins the answers: all of those that must hold, one of those that may.
func (w *walk) into(n *node, own func(*node) (*node, bool)) (*node, bool) {
	if !w.spend(1) {
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
		parts = append(parts, w.union(found))
	}
	both := w.intersection(parts)
	return both, both == nil || both.possible != 0
}

// ownProperty is what n itself says of a property: nil for nothing, false when
// there cannot be one.
func (w *walk) ownProperty(n *node, name string) (*node, bool) {
	if n.possible&typeObject == 0 {
		return nil, false
	}
	if n.enum != nil {
		return w.listed(n, func(v value.Value) (value.Value, bool) { return v.Get(name) })
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
		if w.matches(p.pattern, name) {
			known = true
			parts = append(parts, p.node)
		}
	}
	if !known && n.additional != nil {
		parts = append(parts, n.additional)
	}
	both := w.intersection(parts)
	return both, both == nil || both.possible != 0
}

// ownItem is what n itself says of an item.
func (w *walk) ownItem(n *node, i int) (*node, bool) {
	if n.possible&typeList == 0 || n.maxItems != nil && i >= *n.maxItems {
		return nil, false
	}
	if n.enum != nil {
		return w.listed(n, func(v value.Value) (value.Value, bool) {
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
func (w *walk) listed(n *node, part func(value.Value) (value.Value, bool)) (*node, bool) {
	var vals []value.Value
	for _, v := range n.enum {
		p, ok := part(v)
		if !ok {
			continue
		}
		if !w.spend(1 + p.Size()/normalPerWork) {
			return nil, true
		}
		vals = append(vals, p)
	}
	if vals == nil {
		return nil, false
	}
	found := &node{at: n.at}
	found.allow(vals)
	found.possible = found.upperBound()
	return found, true
}

// item is what values that fit n have at an index.
func (w *walk) item(n *node, i int) *node {
	sub, _ := w.into(n, func(n *node) (*node, bool) { return w.ownItem(n, i) })
	return sub
}

// union is a node that any of ns fits; nil, which is anything, swallows the rest.
func (w *walk) union(ns []*node) *node {
	w.spend(len(ns))
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
func (w *walk) intersection(ns []*node) *node {
	w.spend(len(ns))
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
