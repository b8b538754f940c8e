package schema

import "github.com/callsheet/callsheet/value"

// hole judges what every value that fits from has in common: its types, the
// list of values when from has one, and the parts that it must have.
func (e *evaluation) hole(n *node, from *node, out *[]Fault) verdict {
	if n.types == 0 && n.only() {
		return fits
	}
	if from == nil || from.possible == 0 {
		return maybe
	}
	have := from.possible
	if n.types != 0 && n.types&have == 0 {
		if unread(out) {
			return fails
		}
		return e.fault(out, n, "/type", "is a reference to %s, the schema says %s", have.article(), n.types)
	}
	if vals := e.values(from); vals != nil {
		return e.listed(n, vals, out)
	}
	r := maybe
	if n.types != 0 && have&^n.types == 0 && n.only() {
		r = fits
	}
	switch have {
	case typeObject:
		r = min(r, e.holeObject(n, from, out))
	case typeList:
		least := 0
		e.conjuncts(from, func(c *node) {
			if c.minItems != nil {
				least = max(least, *c.minItems)
			}
		})
		for i := range min(least, 1+len(n.prefix)) {
			sub := n.rest
			if i < len(n.prefix) {
				sub = n.prefix[i]
			}
			if sub != nil {
				r = min(r, e.holePart(sub, "", i, e.walk().item(from, i), out))
			}
		}
	}
	return r
}

// listed judges a hole that can hold only one of vals.
func (e *evaluation) listed(n *node, vals []value.Value, out *[]Fault) verdict {
	sure, possible := 0, 0
	for _, v := range vals {
		if !e.meter.spend(1) {
			return maybe
		}
		r, _ := e.literal(n, v, nil, nil)
		if r == fits {
			sure++
		}
		if r != fails {
			possible++
		}
	}
	switch {
	case possible == 0 && unread(out):
		return fails
	case possible == 0:
		return e.fault(out, n, "", "is a reference to one of %s, none of which fits", alternatives(vals))
	case sure == len(vals):
		return fits
	}
	return maybe
}

// holeObject judges the properties that whatever fills the hole must have.
func (e *evaluation) holeObject(n *node, from *node, out *[]Fault) verdict {
	r := fits
	for _, name := range n.required {
		if !e.meter.spend(1) {
			return maybe
		}
		if _, possible := e.walk().property(from, name); !possible {
			r = e.missing(n, "/required", name, " in what the reference stands for", out)
		}
	}
	e.conjuncts(from, func(c *node) {
		for _, name := range c.required {
			if !e.meter.spend(1) {
				return
			}
			sub, known := n.properties[name]
			if !known && len(n.patterns) == 0 {
				sub = n.additional
			}
			if sub == nil {
				continue
			}
			part, _ := e.walk().property(from, name)
			r = min(r, e.holePart(sub, name, -1, part, out))
		}
	})
	if r == fails {
		return fails
	}
	return fits
}

func (e *evaluation) holePart(n *node, key string, index int, from *node, out *[]Fault) verdict {
	e.enter(key, index)
	r := e.judge(n, operand{hole: true, from: from}, out, nil)
	e.leave()
	return r
}

// only reports whether the types are all that n itself asks for.
func (n *node) only() bool {
	return n.enum == nil && n.inFormat == nil && n.minimum == nil && n.maximum == nil && n.above == nil && n.below == nil &&
		n.multipleOf == nil && n.minLength == nil && n.maxLength == nil && n.pattern == nil && n.minItems == nil &&
		n.maxItems == nil && !n.unique && len(n.prefix) == 0 && n.rest == nil && n.contains == nil && n.minProperties == nil &&
		n.maxProperties == nil && len(n.required) == 0 && n.properties == nil && len(n.patterns) == 0 && n.additional == nil &&
		n.names == nil && len(n.dependentRequired) == 0 && len(n.dependentSchemas) == 0 &&
		n.unevaluatedItems == nil && n.unevaluatedProperties == nil
}

// maxConjuncts bounds how many subschemas are looked at to learn something of
// one value; what lies beyond counts as unknown.
const maxConjuncts = 256

// conjuncts calls f for n and for every subschema that its values must fit too.
func (n *node) conjuncts(f func(*node)) {
	seen := map[*node]bool{n: true}
	for queue := []*node{n}; len(queue) > 0; queue = queue[1:] {
		f(queue[0])
		for _, m := range queue[0].also() {
			if !seen[m] && len(seen) < maxConjuncts {
				seen[m] = true
				queue = append(queue, m)
			}
		}
	}
}

// conjuncts is [node.conjuncts], paid for.
func (e *evaluation) conjuncts(n *node, f func(*node)) {
	n.conjuncts(func(c *node) {
		e.spend(1)
		f(c)
	})
}

// walk goes on through the schema of a hole with the work that is left.
func (e *evaluation) walk() *walk { return &walk{e.meter} }

// values are the only values that fit n, nil when there is no such list.
func (e *evaluation) values(n *node) []value.Value {
	var vals []value.Value
	e.conjuncts(n, func(c *node) {
		if vals == nil {
			vals = c.enum
		}
	})
	return vals
}
