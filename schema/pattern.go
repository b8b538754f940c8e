package schema

import (
	"maps"
	"slices"

	"github.com/callsheet/callsheet/value"
)

// Reach follows a pointer pattern — the tokens of an RFC 6901 pointer, of which
// "*" stands for any one name or index — through what the schema declares. It
// returns how many of the tokens something is declared for, and where that is
// not all of them, the names that are declared in that place, sorted; none where
// there is nothing inside.
//
// As with [Schema.Undeclared], a stated additionalProperties or
// unevaluatedProperties decides about other names, and a place that names no
// property at all is open; unlike there, this holds at every depth. What cannot be
// found out within bounds counts as declared.
func (s *Schema) Reach(tokens []string) (reached int, names []string) {
	if s == nil {
		return len(tokens), nil
	}
	w := &walk{newMeter(maxWalk)}
	n := s.root
	for i, token := range tokens {
		if n.trivial() {
			break
		}
		sub, declared := w.declared(n, token)
		if w.over {
			break
		}
		if !declared {
			have, _, _ := w.names(n)
			return i, slices.Sorted(maps.Keys(have))
		}
		n = sub
	}
	return len(tokens), nil
}

// declared is what the values that fit n have at a token of a pattern, if
// anything is declared there.
func (w *walk) declared(n *node, token string) (*node, bool) {
	var found []*node
	add := func(sub *node, possible bool) {
		if possible {
			found = append(found, sub)
		}
	}
	item := func(i int) {
		add(w.into(n, func(n *node) (*node, bool) { return w.ownItem(n, i) }))
	}
	if n.possible&typeList != 0 {
		if i, ok := value.Index(token); ok {
			item(i)
		} else if token == "*" {
			for i := range w.longestPrefix(n) + 1 {
				item(i)
			}
		}
	}
	if n.possible&typeObject != 0 {
		names, patterns, open := w.names(n)
		switch {
		case token != "*":
			if name := value.UnescapePointer(token); open || w.declares(n, name) {
				add(w.property(n, name))
			}
		case open || patterns:
			add(nil, true)
		default:
			for _, name := range slices.Sorted(maps.Keys(names)) {
				add(w.property(n, name))
			}
		}
	}
	if len(found) == 0 {
		return nil, false
	}
	return w.union(found), true
}

// names are the properties that n or a subschema of the same value names, one by
// one or by patterns; open says that there may be any other, because it is said so
// or because nothing is named.
func (w *walk) names(n *node) (names map[string]bool, patterns, open bool) {
	names = map[string]bool{}
	closed := false
	n.everywhere(func(m *node) bool {
		for name := range m.properties {
			names[name] = true
		}
		for _, name := range m.required {
			names[name] = true
		}
		patterns = patterns || len(m.patterns) > 0
		closed = closed || len(m.properties) > 0 || len(m.patterns) > 0 || m.additional != nil || m.unevaluatedProperties != nil
		return w.spend(1 + len(m.properties) + len(m.required))
	})
	return names, patterns, !closed || w.extends(n)
}

// longestPrefix is how many items of a list have a schema of their own at most.
func (w *walk) longestPrefix(n *node) int {
	longest := 0
	n.everywhere(func(m *node) bool {
		longest = max(longest, len(m.prefix))
		return w.spend(1)
	})
	return longest
}
