package schema

import (
	"fmt"
	"strconv"
	"strings"

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
