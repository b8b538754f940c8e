// Package schema compiles JSON Schemas (draft-07 and 2020-12) and judges values
// by them, with every fault and its path.
//
//	s, err := schema.Compile(value.MustParse(`{"type": "object", "required": ["to"]}`))
//	for _, f := range s.Validate(value.MustParse(`{}`)) {
//		fmt.Println(f) // missing property "to"
//	}
//
// Documents are checked against their metaschema and their references resolved
// by github.com/santhosh-tekuri/jsonschema; the judging is done here, over
// [value.Value] as it is, for four reasons: numbers stay exact and an exponent
// such as 1e400000000 is never expanded; the work is bounded whatever schema a
// tool server sends; values with holes can be judged before a run
// ([Schema.FitsWithHoles]); and nothing is converted.
//
// Nothing is fetched: a reference to another document is an error at compile
// time. Patterns are RE2.
package schema

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/callsheet/callsheet/value"
)

// A Schema is a compiled JSON Schema. It is immutable and safe for concurrent
// use. A nil Schema is one that says nothing: everything fits.
type Schema struct {
	doc  value.Value
	root *node
	// dynamic is set when some $dynamicRef or $recursiveRef makes the meaning of
	// a subschema depend on the way to it.
	dynamic bool
	// marks is set when some unevaluated* keyword needs to know what its
	// neighbours have looked at.
	marks bool

	once     sync.Once
	declared declarations // set by once
}

// A Fault is one way in which a value does not fit.
type Fault struct {
	Pointer string // RFC 6901 pointer into the value, "" for the whole
	Keyword string // pointer into the schema of the keyword that failed
	Message string // a sentence for people and models; never more than 80 characters of the value
}

// String is the pointer and the message; the message alone when the whole value
// is at fault.
func (f Fault) String() string {
	if f.Pointer == "" {
		return f.Message
	}
	return f.Pointer + ": " + f.Message
}

// MaxFaults is how many faults are listed: more than anyone repairs at once.
const MaxFaults = 100

// Value is the document that was compiled; the zero Value for a schema that
// [Schema.At] put together.
func (s *Schema) Value() value.Value {
	if s == nil {
		return value.Value{}
	}
	return s.doc
}

// Validate lists every fault of v, at most [MaxFaults], in the order of their
// pointers; none means that v fits. The work is bounded by the size of v: a
// schema that needs more than that is a fault of its own.
func (s *Schema) Validate(v value.Value) []Fault {
	if s == nil || s.root.trivial() {
		return nil
	}
	e := s.evaluation(newMeter(allowed(v)))
	var out []Fault
	e.judge(s.root, operand{v: v}, &out, e.newMarks(s.root))
	if why := e.gaveUp(); why != "" {
		return []Fault{{Message: why}}
	}
	return inOrder(out)
}

// Fits reports whether v has no fault, at less cost than [Schema.Validate].
func (s *Schema) Fits(v value.Value) bool {
	if s == nil || s.root.trivial() {
		return true
	}
	return s.fits(newMeter(allowed(v)), v)
}

func (s *Schema) fits(m *meter, v value.Value) bool {
	e := s.evaluation(m)
	return e.judge(s.root, operand{v: v}, nil, e.newMarks(s.root)) == fits && e.gaveUp() == ""
}

// FitsWithHoles judges args some of whose strings are holes, named by their
// pointers: in a run something else will stand there, any value that fits the
// hole's schema (nil: any value at all). Only what is certainly wrong is listed:
// faults of the literal parts whatever the holes hold, and holes that nothing
// can fill. Undeclared args are not looked at ([Schema.Undeclared]).
func (s *Schema) FitsWithHoles(args value.Value, holes map[string]*Schema) []Fault {
	if len(holes) == 0 {
		return s.Validate(args)
	}
	return s.fitsWithHoles(newMeter(allowed(args)), args, holes)
}

func (s *Schema) fitsWithHoles(m *meter, args value.Value, holes map[string]*Schema) []Fault {
	if s == nil || s.root.trivial() {
		return nil
	}
	e := s.evaluation(m)
	if len(holes) > 0 {
		e.holes = holes
	}
	var out []Fault
	e.judge(s.root, e.operand(args), &out, e.newMarks(s.root))
	if e.gaveUp() != "" {
		return nil // not certain
	}
	return inOrder(out)
}

func inOrder(out []Fault) []Fault {
	slices.SortStableFunc(out, func(a, b Fault) int {
		return cmp.Or(strings.Compare(a.Pointer, b.Pointer), strings.Compare(a.Keyword, b.Keyword))
	})
	// The same subschema may be reached twice, through allOf and through $ref.
	return slices.Compact(out)
}
