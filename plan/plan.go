// Package plan is the plan document: strict decoding, references, and the
// dependency graph (spec/plan.md §1–§3). It knows nothing of tools.
//
//	p, err := plan.Decode([]byte(`[
//		{"id": "s1", "tool": "search", "args": {"query": "go"}},
//		{"id": "s2", "tool": "fetch", "args": {"doc": "$s1.0"}}
//	]`), plan.Limits{})
//	p.Steps[1].Deps // [0]
//
// What was checked must be what runs, so nothing is guessed: a key in another
// case, a key that stands twice, a field that this version reserves, or text
// that is not strict JSON refuses the whole document, with every fault's place.
package plan

import (
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/callsheet/callsheet/value"
)

// A Plan is a decoded document. It is immutable.
type Plan struct {
	Name     string
	Budget   *int // the plan's own budget in calls, nil without one
	Steps    []Step
	Warnings []Fault // unknown fields; they do not stop a run that is not strict. At most MaxFaults

	ids    ids
	source []byte
	base   string // pointer of the list of steps: "" or "/steps"
	digest atomic.Pointer[value.Digest]
}

// A Step is one tool call of a plan, with what can be known of it before any
// step ran.
type Step struct {
	ID    string
	Tool  string
	Args  value.Value // as written; always an object
	After []string    // without repeats, in the order written

	// Template makes the resolved args: $$ is already unescaped in it, and hole
	// i stands for the reference Refs[i].
	Template *value.Template
	Refs     []Ref

	// Deps are the indexes of the known steps that this one depends on, through
	// after or a reference, ascending and without repeats. A step that
	// references itself has its own index here.
	Deps []int
	// Unknown are the ids in After that no step has: the step is blocked.
	Unknown []string
	// Wave is one more than the largest wave of its dependencies, from 0; -1
	// when the step can never run because it is on a cycle, names an unknown
	// id, or depends on such a step.
	Wave int
}

// A Fault is something wrong with a document.
type Fault struct {
	Code    string // one of the Code constants
	Step    string // id of the step, "" for the document and for a step without a sound id
	Pointer string // RFC 6901, into the document
	Line    int    // where the value at Pointer starts, from 1
	Column  int    // from 1, in bytes
	Message string
}

// Codes of faults (spec/plan.md §7).
const (
	CodeBadDocument  = "bad_document"   // not strict JSON, or not the shape of a plan
	CodeDuplicateKey = "duplicate_key"  // a key that stands twice in one object, at any depth
	CodeTooLarge     = "too_large"      // more text than Limits.Bytes, or too long names over too many strings
	CodeTooManySteps = "too_many_steps" // more steps than Limits.Steps
	CodeTooDeep      = "too_deep"       // nested deeper than Limits.Depth
	CodeDuplicateID  = "duplicate_id"   // ids that are equal after NFKC and case folding
	CodeUnknownField = "unknown_field"  // a field without effect; a warning
)

// MaxFaults is how many faults or warnings of one document are listed: more
// than anyone repairs in one go, and little enough to hand to a model.
const MaxFaults = 100

// An Error is a document that was refused whole.
type Error struct {
	Faults []Fault // never empty; at most MaxFaults, in the order of the document
}

// Error is the first fault with its place, and how many more there are.
func (e *Error) Error() string {
	f := e.Faults[0]
	s := fmt.Sprintf("plan: line %d, column %d: %s", f.Line, f.Column, f.Message)
	if n := len(e.Faults) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more)", n)
	}
	return s
}

// Limits bound a document. A zero field means the default.
type Limits struct {
	Bytes int // of text; DefaultBytes
	Steps int // DefaultSteps
	Depth int // nesting, the outermost array or object counts 1, args included; DefaultDepth, at most value.MaxDepth
}

// The default limits (spec/plan.md §1).
const (
	DefaultBytes = 4 << 20
	DefaultSteps = 10_000
	DefaultDepth = 64
)

// Validate names the field that makes no sense.
func (l Limits) Validate() error {
	for _, f := range []struct {
		name string
		n    int
	}{{"Bytes", l.Bytes}, {"Steps", l.Steps}, {"Depth", l.Depth}} {
		if f.n < 0 {
			return fmt.Errorf("plan: Limits.%s is %d; it must not be negative, and 0 is the default", f.name, f.n)
		}
	}
	return nil
}

func (l Limits) orDefault() Limits {
	if l.Bytes == 0 {
		l.Bytes = DefaultBytes
	}
	if l.Steps == 0 {
		l.Steps = DefaultSteps
	}
	if l.Depth == 0 {
		l.Depth = DefaultDepth
	}
	l.Depth = min(l.Depth, value.MaxDepth)
	return l
}

// Index is the index of the step with exactly this id, -1 if there is none.
func (p *Plan) Index(id string) int { return p.ids.index(id) }

// Pointer is the RFC 6901 pointer of a step into the document.
func (p *Plan) Pointer(step int) string { return p.base + "/" + strconv.Itoa(step) }

// Source is the text that was decoded; it must not be changed.
func (p *Plan) Source() []byte { return p.source }

// Digest is the digest of what the plan means: name, budget and the steps' four
// fields, with numbers as written (spec/plan.md §5). The array and the object
// form of the same plan have the same digest, and so have an absent and a null
// field. Unknown fields are without effect and not in it.
func (p *Plan) Digest() value.Digest {
	if d := p.digest.Load(); d != nil {
		return *d
	}
	steps := make([]value.Value, len(p.Steps))
	for i := range p.Steps {
		s := &p.Steps[i]
		after := make([]value.Value, len(s.After))
		for j, id := range s.After {
			after[j] = value.MustText(id)
		}
		steps[i] = value.ObjectOf(
			value.Member{Key: "id", Value: value.MustText(s.ID)},
			value.Member{Key: "tool", Value: value.MustText(s.Tool)},
			value.Member{Key: "args", Value: s.Args},
			value.Member{Key: "after", Value: value.ListOf(after...)},
		)
	}
	doc := []value.Member{{Key: "steps", Value: value.ListOf(steps...)}}
	if p.Name != "" {
		doc = append(doc, value.Member{Key: "name", Value: value.MustText(p.Name)})
	}
	if p.Budget != nil {
		doc = append(doc, value.Member{Key: "budget", Value: value.Int(int64(*p.Budget))})
	}
	d := value.ObjectOf(doc...).Digest()
	p.digest.Store(&d)
	return d
}
