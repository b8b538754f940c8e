package schema

import (
	"fmt"
	"math"
	"strconv"

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

const (
	// The work of one judgement, in subschemas applied, may grow with the size
	// of the value and no faster: anyOf over recursive references would
	// otherwise double it at each level (spec/hostile.md 22).
	workFloor   = 1 << 17
	workPerByte = 4
	// maxFrames bounds the stack, which grows with the nesting of the value
	// times the references on the way.
	maxFrames = 100_000
	// Applying a subschema takes about 50 ns. For as long a pattern goes through
	// so many of its states, and two values are compared over so many bytes.
	statesPerWork = 8
	bytesPerWork  = 64
)

// An evaluation is one judgement of one value.
type evaluation struct {
	schema *Schema
	holes  map[string]*Schema
	path   []step
	scope  []*resource
	naming bool // the value is the name of a property
	work   int
	frames int
	over   string // why the judgement was given up
}

// A step is one token on the way to the value that is judged.
type step struct {
	key   string
	index int // -1: key
}

func (s *Schema) evaluation(v value.Value) *evaluation {
	work := workFloor
	if v.Size() < (math.MaxInt-workFloor)/workPerByte {
		work += v.Size() * workPerByte
	}
	return &evaluation{schema: s, work: work}
}

// spend takes from the bounded work.
func (e *evaluation) spend(n int) {
	if e.work -= n; e.work < 0 && e.over == "" {
		e.over = "judging this value by its schema takes too much work; simplify the schema's anyOf, oneOf or pattern"
	}
}

// operand is v as it stands at the current path.
func (e *evaluation) operand(v value.Value) operand {
	if e.holes != nil && v.Kind() == value.String {
		if s, ok := e.holes[e.pointer()]; ok {
			if s == nil {
				return operand{v: v, hole: true}
			}
			return operand{v: v, hole: true, from: s.root}
		}
	}
	return operand{v: v}
}

func (e *evaluation) pointer() string {
	var b []byte
	for _, s := range e.path {
		b = append(b, '/')
		if s.index >= 0 {
			b = strconv.AppendInt(b, int64(s.index), 10)
		} else {
			b = append(b, value.EscapePointer(s.key)...)
		}
	}
	return string(b)
}

func (e *evaluation) enter(key string, index int) { e.path = append(e.path, step{key, index}) }
func (e *evaluation) leave()                      { e.path = e.path[:len(e.path)-1] }

// fault notes that the current value fails a keyword of n.
func (e *evaluation) fault(out *[]Fault, n *node, keyword, format string, args ...any) verdict {
	if out != nil && len(*out) < MaxFaults {
		*out = append(*out, Fault{e.pointer(), n.at + keyword, e.subject() + " " + fmt.Sprintf(format, args...)})
	}
	return fails
}

// judge applies n to op. Faults go to out (nil: nobody reads them), what was
// evaluated to m (nil: nobody asks).
func (e *evaluation) judge(n *node, op operand, out *[]Fault, m *marks) verdict {
	switch {
	case e.over != "":
		return maybe
	case n.empty:
		return fits
	case n.never:
		return e.fault(out, n, "", "is not allowed here")
	}
	e.spend(1)
	if e.frames++; e.frames > maxFrames {
		e.over = "the value and its schema nest too deep to be judged"
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
	if n.types != 0 && n.types&typeOf(v) == 0 {
		return e.fault(out, n, "/type", "%s", mistyped(v, n.types)), true
	}
	r = fits
	if n.enum != nil {
		r = fails
		for _, want := range n.enum {
			if r = max(r, e.equal(v, want)); r == fits {
				break
			}
		}
		if r == fails && n.isConst {
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
	at := e.pointer()
	for p := range e.holes {
		if len(p) >= len(at) && p[:len(at)] == at && (len(p) == len(at) || p[len(at)] == '/') {
			return true
		}
	}
	return false
}
