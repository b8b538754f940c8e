package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/callsheet/callsheet/value"
)

// A verdict is what is known of a value that may have holes. Without holes it
// is never maybe. The order matters: a conjunction is the least of its parts.
type verdict uint8

const (
	fails verdict = iota
	maybe
	fits
)

// An operand is what is judged: a literal, or a hole that will hold some value
// which fits from (nil: any value).
type operand struct {
	v    value.Value
	hole bool
	from *node
}

// maxFrames bounds the stack, which grows with the nesting of the value times
// the references on the way.
const maxFrames = 100_000

// An evaluation is one judgement of one value.
type evaluation struct {
	schema *Schema
	holes  map[string]*Schema
	meter  *meter
	path   []step
	at     []byte // the pointer that path makes, if there are holes
	scope  []*resource
	naming bool // the value is the name of a property
	frames int
	deep   bool // maxFrames was reached
}

// A step is one token on the way to the value that is judged.
type step struct {
	key   string
	index int // -1: key
	from  int // where its token begins in the pointer
}

func (s *Schema) evaluation(m *meter) *evaluation { return &evaluation{schema: s, meter: m} }

// gaveUp is why the judgement was given up, "" when it was not.
func (e *evaluation) gaveUp() string {
	if e.deep {
		return "the value and its schema nest too deep to be judged"
	}
	if e.meter.over {
		return "judging this value by its schema takes too much work; simplify the schema's anyOf, oneOf or pattern"
	}
	return ""
}

// spend takes from the bounded work.
func (e *evaluation) spend(n int) { e.meter.spend(n) }

// operand is v as it stands at the current path.
func (e *evaluation) operand(v value.Value) operand {
	if e.holes != nil && v.Kind() == value.String {
		e.spend(len(e.at) / bytesPerWork)
		if s, ok := e.holes[string(e.at)]; ok {
			if s == nil {
				return operand{v: v, hole: true}
			}
			return operand{v: v, hole: true, from: s.root}
		}
	}
	return operand{v: v}
}

func (e *evaluation) enter(key string, index int) {
	s := step{key, index, len(e.at)}
	e.path = append(e.path, s)
	if e.holes != nil {
		e.at = e.appendStep(e.at, s)
	}
}

func (e *evaluation) leave() {
	last := len(e.path) - 1
	e.at, e.path = e.at[:e.path[last].from], e.path[:last]
}

// pointer is where the current value stands.
func (e *evaluation) pointer() string {
	if e.holes != nil {
		e.spend(len(e.at) / bytesPerWork)
		return string(e.at)
	}
	var b []byte
	for _, s := range e.path {
		b = e.appendStep(b, s)
	}
	return string(b)
}

func (e *evaluation) appendStep(b []byte, s step) []byte {
	b = append(b, '/')
	if s.index >= 0 {
		return strconv.AppendInt(b, int64(s.index), 10)
	}
	e.spend(len(s.key) / bytesPerWork)
	return append(b, value.EscapePointer(s.key)...)
}

// unread reports whether nobody reads another fault, so that none need be put
// into words.
func unread(out *[]Fault) bool { return out == nil || len(*out) >= MaxFaults }

// fault notes that the current value fails a keyword of n.
func (e *evaluation) fault(out *[]Fault, n *node, keyword, format string, args ...any) verdict {
	if !unread(out) {
		e.spend(faultWork)
		*out = append(*out, Fault{e.pointer(), n.at + keyword, e.subject() + " " + fmt.Sprintf(format, args...)})
	}
	return fails
}

// judge applies n to op. Faults go to out (nil: nobody reads them), what was
// evaluated to m (nil: nobody asks).
func (e *evaluation) judge(n *node, op operand, out *[]Fault, m *marks) verdict {
	switch {
	case e.meter.over || e.deep:
		return maybe
	case n.empty:
		return fits
	case n.never:
		return e.fault(out, n, "", "is not allowed here")
	}
	e.spend(1)
	if e.frames++; e.frames > maxFrames {
		e.deep = true
	}
	pushed := e.schema.dynamic && n.resource != nil
	if pushed {
		e.scope = append(e.scope, n.resource)
	}
	r, wrong := fits, false
	switch {
	case op.hole:
		r = e.hole(n, op.from, out)
		wrong = r == fails
	default:
		r, wrong = e.literal(n, op.v, out, m)
	}
	if !wrong {
		r = min(r, e.inPlace(n, op, out, m))
		if m != nil && !op.hole {
			r = min(r, e.unevaluated(n, op.v, out, m))
		}
	}
	if pushed {
		e.scope = e.scope[:len(e.scope)-1]
	}
	e.frames--
	return r
}

// literal applies the keywords that look at the value itself and at its parts.
// A value of the wrong type, or outside the enum, has no further faults that are
// worth reading.
func (e *evaluation) literal(n *node, v value.Value, out *[]Fault, m *marks) (r verdict, wrong bool) {
	if v.Kind() == value.Number {
		e.spend(v.Size() / bytesPerWork) // its digits are looked at
	}
	if n.types != 0 && n.types&typeOf(v) == 0 {
		if unread(out) {
			return fails, true
		}
		return e.fault(out, n, "/type", "%s", mistyped(v, n.types)), true
	}
	r = fits
	if n.enum != nil {
		r = e.among(n, v)
		if r == fails && unread(out) {
			return fails, true
		} else if r == fails && n.isConst {
			return e.fault(out, n, "/const", "is %s, the schema says %s", describe(v), value.Excerpt(n.enum[0].String())), true
		} else if r == fails {
			return e.fault(out, n, "/enum", "is %s, the schema allows %s", describe(v), alternatives(n.enum)), true
		}
	}
	switch v.Kind() {
	case value.Number:
		r = min(r, e.number(n, v, out))
	case value.String:
		r = min(r, e.text(n, v, out))
	case value.List:
		r = min(r, e.list(n, v, out, m))
	case value.Object:
		r = min(r, e.object(n, v, out, m))
	}
	return r, false
}

func (e *evaluation) number(n *node, v value.Value, out *[]Fault) verdict {
	if n.minimum == nil && n.maximum == nil && n.above == nil && n.below == nil && n.multipleOf == nil {
		return fits
	}
	literal, _ := v.Number()
	d := parse(literal)
	if !d.bounded() {
		return e.fault(out, n, "", "is the number %s, which goes beyond %d digits and is not compared", value.Excerpt(literal), maxMagnitude)
	}
	r := fits
	wrong := func(keyword, format string, bound *decimal) {
		if r = fails; !unread(out) {
			e.fault(out, n, keyword, format, value.Excerpt(literal), value.Excerpt(bound.literal))
		}
	}
	if n.minimum != nil && d.cmp(*n.minimum) < 0 {
		wrong("/minimum", "is %s, the least is %s", n.minimum)
	}
	if n.maximum != nil && d.cmp(*n.maximum) > 0 {
		wrong("/maximum", "is %s, the most is %s", n.maximum)
	}
	if n.above != nil && d.cmp(*n.above) <= 0 {
		wrong("/exclusiveMinimum", "is %s, it must be above %s", n.above)
	}
	if n.below != nil && d.cmp(*n.below) >= 0 {
		wrong("/exclusiveMaximum", "is %s, it must be below %s", n.below)
	}
	if n.multipleOf != nil && !d.multipleOf(*n.multipleOf) {
		wrong("/multipleOf", "is %s, it must be a multiple of %s", n.multipleOf)
	}
	return r
}

func (e *evaluation) text(n *node, v value.Value, out *[]Fault) verdict {
	if n.minLength == nil && n.maxLength == nil && n.pattern == nil && n.inFormat == nil {
		return fits
	}
	e.spend(v.Size() / bytesPerWork)
	s, _ := v.Text()
	r := fits
	if n.minLength != nil || n.maxLength != nil {
		length := utf8.RuneCountInString(s)
		if n.minLength != nil && length < *n.minLength {
			r = e.fault(out, n, "/minLength", "has %d characters, the least is %d", length, *n.minLength)
		}
		if n.maxLength != nil && length > *n.maxLength {
			r = e.fault(out, n, "/maxLength", "has %d characters, the most is %d", length, *n.maxLength)
		}
	}
	if n.pattern != nil && !e.meter.matches(n.pattern, s) {
		if unread(out) {
			return fails
		}
		r = e.fault(out, n, "/pattern", "is %s, which does not match the pattern %s", value.Quoted(s), value.Quoted(n.pattern.String()))
	}
	if n.inFormat != nil && e.meter.spend(len(s)/normalPerWork) && !n.inFormat(s) {
		if unread(out) {
			return fails
		}
		r = e.fault(out, n, "/format", "is %s, which is no %s", value.Quoted(s), value.Excerpt(n.format))
	}
	return r
}

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

// dynamic is what n's $dynamicRef or $recursiveRef means here: the outermost
// resource on the way that has the anchor.
func (e *evaluation) dynamic(n *node) *node {
	if n.recursiveRef != nil {
		to := n.recursiveRef
		if to.resource != nil && to.resource.recursive && to.resource.root == to {
			for _, r := range e.scope {
				if r.recursive {
					return r.root
				}
			}
		}
		return to
	}
	to := n.dynamicRef
	if n.dynamicAnchor != "" && to.resource != nil && to.resource.anchors[n.dynamicAnchor] == to {
		for _, r := range e.scope {
			if found := r.anchors[n.dynamicAnchor]; found != nil {
				return found
			}
		}
	}
	return to
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

// holds reports whether item i of the current value is or has a hole.
func (e *evaluation) holds(i int) bool {
	if e.holes == nil {
		return false
	}
	e.enter("", i)
	defer e.leave()
	return e.open()
}

// open reports whether the current value is or has a hole.
func (e *evaluation) open() bool {
	e.spend(len(e.holes) * (1 + len(e.at)/bytesPerWork))
	at := e.pointer()
	for p := range e.holes {
		if rest, ok := strings.CutPrefix(p, at); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

// among judges whether v is one of n's enum, numbers being compared by their
// value.
func (e *evaluation) among(n *node, v value.Value) verdict {
	if k := v.Kind(); (k == value.List || k == value.Object) && e.holes != nil && e.open() {
		e.spend(len(n.enum) / itemsPerWork)
		return min(maybe, truth(slices.ContainsFunc(n.enum, func(want value.Value) bool {
			return want.Kind() == k && want.Len() == v.Len()
		})))
	}
	var room [64]byte
	return truth(e.meter.spend(v.Size()/normalPerWork) && n.listed[string(normal(room[:0], v))])
}

func truth(b bool) verdict {
	if b {
		return fits
	}
	return fails
}

// normal appends a text that two values share exactly if JSON Schema calls them
// equal.
func normal(dst []byte, v value.Value) []byte {
	switch v.Kind() {
	case value.Number:
		literal, _ := v.Number()
		d := parse(literal)
		if d.neg {
			dst = append(dst, '-')
		}
		dst = append(append(dst, d.digits...), 'e')
		return strconv.AppendInt(dst, d.exp, 10)
	case value.List:
		dst = append(dst, '[')
		for _, item := range v.Elements() {
			dst = append(normal(dst, item), ',')
		}
		return append(dst, ']')
	case value.Object:
		keys := make([]string, 0, v.Len())
		for k := range v.Members() {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		dst = append(dst, '{')
		for _, k := range keys {
			m, _ := v.Get(k)
			dst = append(normal(append(value.AppendQuote(dst, k), ':'), m), ',')
		}
		return append(dst, '}')
	}
	return v.AppendTo(dst)
}
