package schema

import (
	"strings"

	"github.com/callsheet/callsheet/value"
)

// inPlace applies the keywords that hand the same value to other subschemas.
func (e *evaluation) inPlace(n *node, op operand, out *[]Fault, m *marks) verdict {
	r := fits
	if n.ref != nil {
		r = e.same(n.ref, op, out, m)
	}
	if n.dynamicRef != nil || n.recursiveRef != nil {
		r = min(r, e.same(e.dynamic(n), op, out, m))
	}
	for _, sub := range n.all {
		r = min(r, e.same(sub, op, out, m))
		if r == fails && out == nil {
			return r
		}
	}
	if len(n.any) > 0 {
		r = min(r, e.anyOf(n, op, out, m))
	}
	if len(n.one) > 0 {
		r = min(r, e.oneOf(n, op, out, m))
	}
	if n.not != nil {
		switch e.judge(n.not, op, nil, e.newMarks(n.not)) {
		case fits:
			r = e.fault(out, n, "/not", "fits a schema that it must not fit")
		case maybe:
			r = min(r, maybe)
		}
	}
	if n.cond != nil {
		r = min(r, e.condition(n, op, out, m))
	}
	if !op.hole && op.v.Kind() == value.Object {
		for _, d := range n.dependentSchemas {
			if _, ok := op.v.Get(d.name); ok {
				r = min(r, e.same(d.node, op, out, m))
			}
		}
	}
	return r
}

// same judges op by a subschema and keeps what that evaluated, unless it fails.
func (e *evaluation) same(n *node, op operand, out *[]Fault, m *marks) verdict {
	if m == nil {
		return e.judge(n, op, out, nil)
	}
	own := &marks{}
	r := e.judge(n, op, out, own)
	if r != fails && e.meter.spend(len(own.properties)+len(own.items)) {
		m.merge(own, r)
	}
	return r
}

func (e *evaluation) anyOf(n *node, op operand, out *[]Fault, m *marks) verdict {
	best := fails
	for _, sub := range n.any {
		if e.gaveUp() != "" {
			return maybe
		}
		best = max(best, e.same(sub, op, nil, m))
		if best == fits && m == nil {
			return fits
		}
	}
	if best == fails {
		e.none(n, "/anyOf", n.any, op, out)
	}
	return best
}

func (e *evaluation) oneOf(n *node, op operand, out *[]Fault, m *marks) verdict {
	sure, possible := 0, 0
	for _, sub := range n.one {
		if e.gaveUp() != "" {
			return maybe
		}
		r := e.same(sub, op, nil, m)
		if r != fails {
			possible++
		}
		if r == fits {
			sure++
		}
	}
	switch {
	case possible == 0:
		e.none(n, "/oneOf", n.one, op, out)
		return fails
	case sure > 1:
		return e.fault(out, n, "/oneOf", "fits %d of the alternatives of oneOf, it must fit one", sure)
	case sure == 1 && possible == 1:
		return fits
	}
	return maybe
}

// faultsOf is where a branch writes its faults: nowhere if nobody reads them.
func faultsOf(branch, out *[]Fault) *[]Fault {
	if out == nil {
		return nil
	}
	return branch
}

func (e *evaluation) condition(n *node, op operand, out *[]Fault, m *marks) verdict {
	branch := func(sub *node, out *[]Fault) verdict {
		if sub == nil {
			return fits
		}
		return e.same(sub, op, out, m)
	}
	switch e.same(n.cond, op, nil, m) {
	case fits:
		return branch(n.then, out)
	case fails:
		return branch(n.otherway, out)
	}
	var faults []Fault
	then, otherway := branch(n.then, faultsOf(&faults, out)), branch(n.otherway, nil)
	if then == fails && otherway == fails {
		if out != nil {
			*out = append(*out, faults...)
		}
		return fails
	}
	if then == fits && otherway == fits {
		return fits
	}
	return maybe
}

// none says why no branch fits: by the types if none has the right one, else by
// the faults of the branch that comes nearest. The branches are judged again for
// that, because most are judged for a value that fits one of them.
func (e *evaluation) none(n *node, keyword string, subs []*node, op operand, out *[]Fault) {
	if unread(out) || e.gaveUp() != "" {
		return
	}
	var union typeSet
	for _, sub := range subs {
		union |= sub.possible
	}
	if !op.hole && union != 0 && union&typeOf(op.v) == 0 {
		e.fault(out, n, keyword, "%s", mistyped(op.v, union))
		return
	}
	branches := make([][]Fault, len(subs))
	for i, sub := range subs {
		e.judge(sub, op, &branches[i], e.newMarks(sub))
	}
	if len(branches) == 1 {
		*out = append(*out, branches[0]...)
		return
	}
	nearest := 0
	distance := func(i int) int {
		if !op.hole && subs[i].possible&typeOf(op.v) == 0 {
			return 1 << 20 // another type altogether
		}
		d := len(branches[i])
		for _, f := range branches[i] {
			if strings.HasSuffix(f.Keyword, "/const") || strings.HasSuffix(f.Keyword, "/enum") {
				d += 1 << 10 // most likely the field that says which alternative is meant
			}
		}
		return d
	}
	for i := range branches {
		if distance(i) < distance(nearest) {
			nearest = i
		}
	}
	e.fault(out, n, keyword, "fits none of the %d alternatives of %s; the nearest is number %d", len(subs), keyword[1:], nearest+1)
	*out = append(*out, branches[nearest][:min(len(branches[nearest]), MaxFaults)]...)
	*out = (*out)[:min(len(*out), MaxFaults)]
}

// marks are the parts of one value that some keyword has evaluated, for
// unevaluatedProperties and unevaluatedItems.
type marks struct {
	properties map[string]verdict
	items      map[int]verdict
}

// newMarks are marks for a new value; nil when no keyword asks for them.
func (e *evaluation) newMarks(*node) *marks {
	if !e.schema.marks {
		return nil
	}
	return &marks{}
}

func (m *marks) property(name string, r verdict) {
	if m == nil {
		return
	}
	if m.properties == nil {
		m.properties = make(map[string]verdict)
	}
	m.properties[name] = max(m.properties[name], r)
}

func (m *marks) item(i int, r verdict) {
	if m == nil {
		return
	}
	if m.items == nil {
		m.items = make(map[int]verdict)
	}
	m.items[i] = max(m.items[i], r)
}

// merge takes over what a subschema with verdict r evaluated.
func (m *marks) merge(from *marks, r verdict) {
	for name, was := range from.properties {
		m.property(name, min(was, r))
	}
	for i, was := range from.items {
		m.item(i, min(was, r))
	}
}

// unevaluated judges what no other keyword of n has evaluated.
func (e *evaluation) unevaluated(n *node, v value.Value, out *[]Fault, m *marks) verdict {
	if n.unevaluatedProperties != nil || n.unevaluatedItems != nil {
		e.spend(v.Len())
	}
	r := fits
	judge := func(sub *node, keyword, key string, index int, part value.Value, seen verdict) {
		if seen == fits {
			return
		}
		e.enter(key, index)
		defer e.leave()
		if seen == maybe {
			if e.judge(sub, e.operand(part), nil, e.newMarks(sub)) != fits {
				r = min(r, maybe)
			}
			return
		}
		if sub.never {
			r = e.fault(out, n, keyword, "is not declared by the schema")
			return
		}
		r = min(r, e.judge(sub, e.operand(part), out, e.newMarks(sub)))
	}
	if sub := n.unevaluatedProperties; sub != nil {
		for name, member := range v.Members() {
			judge(sub, "/unevaluatedProperties", name, -1, member, m.properties[name])
			m.property(name, fits)
		}
	}
	if sub := n.unevaluatedItems; sub != nil {
		for i, item := range v.Elements() {
			judge(sub, "/unevaluatedItems", "", i, item, m.items[i])
			m.item(i, fits)
		}
	}
	return r
}
