package schema

import "github.com/callsheet/callsheet/value"

func (e *evaluation) object(n *node, v value.Value, out *[]Fault, m *marks) verdict {
	r := fits
	if n.minProperties != nil && v.Len() < *n.minProperties {
		r = e.fault(out, n, "/minProperties", "has %d properties, the least is %d", v.Len(), *n.minProperties)
	}
	if n.maxProperties != nil && v.Len() > *n.maxProperties {
		r = e.fault(out, n, "/maxProperties", "has %d properties, the most is %d", v.Len(), *n.maxProperties)
	}
	e.spend(len(n.required))
	for _, name := range n.required {
		if _, ok := v.Get(name); !ok {
			r = e.missing(n, "/required", name, "", out)
		}
	}
	for _, d := range n.dependentRequired {
		if _, ok := v.Get(d.name); !ok {
			continue
		}
		e.spend(1 + len(d.need))
		for _, name := range d.need {
			if _, ok := v.Get(name); !ok {
				r = e.missing(n, "/dependentRequired/"+value.EscapePointer(d.name), name, ", which "+value.Quoted(d.name)+" asks for", out)
			}
		}
	}
	if r == fails && out == nil {
		return r
	}
	e.spend(v.Len() / itemsPerWork)
	if n.names != nil {
		for name := range v.Members() {
			r = min(r, e.name(n, name, out))
		}
	}
	if n.properties == nil && n.patterns == nil && n.additional == nil {
		return r
	}
	for name, member := range v.Members() {
		sub, known := n.properties[name]
		if known {
			r = min(r, e.child(sub, name, -1, member, out))
		}
		for _, p := range n.patterns {
			if e.meter.matches(p.pattern, name) {
				known = true
				r = min(r, e.child(p.node, name, -1, member, out))
			}
		}
		if !known && n.additional != nil {
			known = true
			if n.additional.never && unread(out) {
				return fails
			} else if n.additional.never {
				e.spend(len(n.properties)) // they are listed
				e.enter(name, -1)
				r = e.fault(out, n, "/additionalProperties", "is not declared; the schema has %s", n.listing())
				e.leave()
			} else {
				r = min(r, e.child(n.additional, name, -1, member, out))
			}
		}
		if known {
			m.property(name, fits)
		}
		if r == fails && out == nil {
			return r
		}
	}
	return r
}

func (e *evaluation) missing(n *node, keyword, name, why string, out *[]Fault) verdict {
	if !unread(out) {
		e.spend(faultWork)
		*out = append(*out, Fault{e.pointer(), n.at + keyword, "missing property " + value.Quoted(name) + why})
	}
	return fails
}

// name judges the name of a property.
func (e *evaluation) name(n *node, name string, out *[]Fault) verdict {
	e.enter(name, -1)
	e.naming = true
	r := e.judge(n.names, operand{v: value.MustText(name)}, out, nil)
	e.naming = false
	e.leave()
	return r
}
