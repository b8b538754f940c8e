// Package plan is the plan document: strict decoding, references, and the
// dependency graph (spec/plan.md §1–§3). It knows nothing of tools.
//
//	p, err := plan.Decode([]byte(`[
//		{"id": "s1", "tool": "search", "args": {"query": "go"}},
//		{"id": "s2", "tool": "fetch", "args": {"doc": "$s1.0"}}
//	]`), plan.Limits{})
//	p.Steps[1].Deps // [0]
package plan

import "github.com/callsheet/callsheet/value"

// A Plan is a decoded document. It is immutable.
type Plan struct {
	Name     string
	Budget   *int // the plan's own budget, nil without one
	Steps    []Step
	Warnings []Fault // unknown fields and what else does not stop a run
	source   []byte
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

// A Ref is a reference in a step's args. It is also the provenance of what the
// resolved args hold at Pointer; everything that is not below the pointer of
// some Ref is a literal of the plan.
type Ref struct {
	Pointer string // RFC 6901, relative to args
	Text    string // as written, with the $
	Step    int    // index of the producing step; -1: meant as a reference, but to nothing (bad_reference)
	Path    string // what follows the id and its dot; see HasPath
	HasPath bool   // "$s1." has the path "", "$s1" has none
}

// A Fault is something wrong with a document.
type Fault struct {
	Code    string // of spec/plan.md §7: "bad_document", "duplicate_id", …
	Step    string // id of the step, "" for the document
	Pointer string // RFC 6901, into the document
	Line    int    // from 1
	Column  int    // from 1, in bytes
	Message string
}

// An Error is a document that was refused whole.
type Error struct {
	Faults []Fault // never empty; at most 100
}

func (e *Error) Error() string { return e.Faults[0].Message }

// Limits bound a document. A zero field means the default.
type Limits struct {
	Bytes int // of text; DefaultBytes
	Steps int // DefaultSteps
	Depth int // nesting, the outermost array or object counts 1, args included; DefaultDepth
}

// The default limits (spec/plan.md §1).
const (
	DefaultBytes = 4 << 20
	DefaultSteps = 10_000
	DefaultDepth = 64
)

// Decode reads a plan strictly. The error is an [*Error].
func Decode(text []byte, limits Limits) (*Plan, error) { return nil, nil }

// Digest is the digest of what the plan means: name, budget and the steps' four
// fields, with numbers as written (spec/plan.md §5).
func (p *Plan) Digest() value.Digest { return value.Digest{} }

// Position is the line and column of a pointer into the document, from 1.
func (p *Plan) Position(pointer string) (line, column int) { return 0, 0 }
