package schema

import "github.com/callsheet/callsheet/value"

func (e *evaluation) list(n *node, v value.Value, out *[]Fault, m *marks) verdict {
	r := fits
	if n.minItems != nil && v.Len() < *n.minItems {
		r = e.fault(out, n, "/minItems", "has %d items, the least is %d", v.Len(), *n.minItems)
	}
	if n.maxItems != nil && v.Len() > *n.maxItems {
		r = e.fault(out, n, "/maxItems", "has %d items, the most is %d", v.Len(), *n.maxItems)
	}
	if n.unique && v.Len() > 1 {
		r = min(r, e.distinct(n, v, out))
	}
	if len(n.prefix) > 0 || n.rest != nil {
		e.spend(v.Len() / itemsPerWork)
		for i, item := range v.Elements() {
			sub := n.rest
			if i < len(n.prefix) {
				sub = n.prefix[i]
			}
			if sub == nil {
				break
			}
			m.item(i, fits)
			r = min(r, e.child(sub, "", i, item, out))
			if r == fails && out == nil {
				return r
			}
		}
	}
	if n.contains != nil {
		r = min(r, e.contains(n, v, out, m))
	}
	return r
}

// child judges a part of the current value.
func (e *evaluation) child(n *node, key string, index int, v value.Value, out *[]Fault) verdict {
	if n.empty {
		return fits
	}
	e.enter(key, index)
	r := e.judge(n, e.operand(v), out, e.newMarks(n))
	e.leave()
	return r
}

func (e *evaluation) contains(n *node, v value.Value, out *[]Fault, m *marks) verdict {
	e.spend(v.Len() / itemsPerWork)
	sure, possible := 0, 0
	for i, item := range v.Elements() {
		r := e.child(n.contains, "", i, item, nil)
		if r == fails {
			continue
		}
		possible++
		if r == fits {
			sure++
		}
		if n.containsMarks {
			m.item(i, r)
		}
	}
	least, keyword := 1, "/contains"
	if n.minContains != nil {
		least, keyword = *n.minContains, "/minContains"
	}
	switch {
	case possible < least:
		return e.fault(out, n, keyword, "has %d items that fit contains, the least is %d", possible, least)
	case n.maxContains != nil && sure > *n.maxContains:
		return e.fault(out, n, "/maxContains", "has %d items that fit contains, the most is %d", sure, *n.maxContains)
	case sure < least || n.maxContains != nil && possible > *n.maxContains:
		return maybe
	}
	return fits
}

// distinct judges uniqueItems.
func (e *evaluation) distinct(n *node, v value.Value, out *[]Fault) verdict {
	if !e.meter.spend(v.Size() / normalPerWork) {
		return maybe
	}
	r := fits
	seen := make(map[string]int, v.Len())
	for i, item := range v.Elements() {
		if e.holds(i) {
			r = maybe
			continue
		}
		key := string(normal(nil, item))
		if first, ok := seen[key]; ok {
			return e.fault(out, n, "/uniqueItems", "has equal items at %d and %d", first, i)
		}
		seen[key] = i
	}
	return r
}
