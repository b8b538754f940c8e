package state

import (
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/internal/python"
)

// An operand that has been looked up.
type operand struct {
	n       node
	missing bool // there is nothing
	broken  bool // its path names an argument that the action does not carry
}

// Holds evaluates a condition on the state before an action
// (spec/world-reference.md §3.4). A missing operand, a comparison of what does
// not compare and an argument that is not there are false; exists and
// not_exists look at the left side only.
func (s State) Holds(c *world.Condition, a world.Action) bool {
	switch {
	case c.Not != nil:
		return !s.Holds(c.Not, a)
	case c.Any != nil:
		for i := range c.Any {
			if s.Holds(&c.Any[i], a) {
				return true
			}
		}
		return false
	case c.All != nil:
		return s.HoldAll(c.All, a)
	}
	left := s.operand(&c.Left, a)
	if left.broken {
		return false
	}
	switch c.Op {
	case "exists":
		return !left.missing
	case "not_exists":
		return left.missing
	}
	if left.missing || c.Right == nil {
		return false
	}
	right := s.operand(c.Right, a)
	if right.missing || right.broken {
		return false
	}
	switch c.Op {
	case "contains":
		return contains(left.n, right.n.value())
	case "in":
		return contains(right.n, left.n.value())
	}
	l, r := left.n.value(), right.n.value()
	switch c.Op {
	case "eq":
		return python.Equal(l, r)
	case "ne":
		return !python.Equal(l, r)
	}
	order, ok := python.Compare(l, r)
	if !ok {
		return false
	}
	switch c.Op {
	case "gt":
		return order > 0
	case "gte":
		return order >= 0
	case "lt":
		return order < 0
	case "lte":
		return order <= 0
	}
	return false
}

// HoldAll reports whether every condition holds.
func (s State) HoldAll(cs []world.Condition, a world.Action) bool {
	for i := range cs {
		if !s.Holds(&cs[i], a) {
			return false
		}
	}
	return true
}

func (s State) operand(o *world.Operand, a world.Action) operand {
	switch {
	case o.Path != nil:
		path, ok := ExpandPath(*o.Path, a)
		if !ok {
			return operand{broken: true}
		}
		n, ok := s.find(ParsePath(path))
		return operand{n: n, missing: !ok}
	case o.ActionArg != nil:
		v, ok := Argument(a, *o.ActionArg)
		return operand{n: node{v: v}, missing: !ok}
	}
	return operand{n: node{v: o.Literal}}
}

// contains is v in n: an element, a substring, or a key.
func contains(n node, v value.Value) bool {
	switch n.kind() {
	case value.List:
		if n.l != nil {
			for _, e := range n.l.items {
				if python.Equal(e.value(), v) {
					return true
				}
			}
			return false
		}
		for _, e := range n.v.Elements() {
			if python.Equal(e, v) {
				return true
			}
		}
	case value.Object:
		if key, ok := v.Text(); ok {
			_, ok = n.child(key)
			return ok
		}
	case value.String:
		s, _ := n.v.Text()
		sub, ok := v.Text()
		return ok && strings.Contains(s, sub)
	}
	return false
}
