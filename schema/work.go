package schema

import (
	"math"

	"github.com/callsheet/callsheet/value"
)

// A Work bounds how much judging is done for many questions together, so that a
// plan is judged in bounded time whatever the schemas of its tools say. A unit
// is one subschema applied to one value, which takes about 50 ns. When nothing
// is left, nothing more is known: no path is impossible, and no fault is found.
// A Work is not safe for concurrent use.
type Work struct {
	left int
	over bool
}

// NewWork is a Work of so many units.
func NewWork(units int) *Work { return &Work{left: units} }

// Left is how many units are left.
func (w *Work) Left() int { return w.left }

// Over reports whether the answer to some question is not known because it would
// have taken more than was left, or more than one question may take.
func (w *Work) Over() bool { return w.over }

// At is [Schema.At].
func (w *Work) At(s *Schema, path string) (*Schema, Presence) {
	m := w.begin(maxWalk)
	defer w.end(m)
	return s.at(m, path)
}

// FitsWithHoles is [Schema.FitsWithHoles].
func (w *Work) FitsWithHoles(s *Schema, args value.Value, holes map[string]*Schema) []Fault {
	m := w.begin(allowed(args))
	defer w.end(m)
	return s.fitsWithHoles(m, args, holes)
}

// Undeclared is [Schema.Undeclared], but for names of which it is not known.
func (w *Work) Undeclared(s *Schema, args value.Value) []string {
	m := w.begin(allowed(args))
	defer w.end(m)
	if names := s.undeclared(m, args); !m.over {
		return names
	}
	return nil
}

// begin gives one question at most limit.
func (w *Work) begin(limit int) *meter {
	n := max(0, min(limit, w.left))
	return &meter{given: n, left: n}
}

func (w *Work) end(m *meter) {
	w.left -= m.given - m.left
	w.over = w.over || m.over
}

const (
	// The work of one judgement may grow with the size of the value and no
	// faster: anyOf over recursive references would otherwise double it at each
	// level (spec/hostile.md 22).
	workFloor   = 1 << 17
	workPerByte = 4
	// A unit is the time in which a pattern goes through so many of its states,
	// so many bytes are passed over, and so many brought into a form in which
	// values can be compared.
	statesPerWork = 8
	bytesPerWork  = 64
	normalPerWork = 8
	itemsPerWork  = 2 // members or items that are passed over
	// faultWork is what it takes to say what is wrong.
	faultWork = 16
)

// allowed is how much the judgement of v may take.
func allowed(v value.Value) int {
	if n := v.Size(); n < (math.MaxInt-workFloor)/workPerByte {
		return workFloor + n*workPerByte
	}
	return math.MaxInt
}

// A meter counts the work of one question.
type meter struct {
	given, left int
	over        bool // more was needed
}

func newMeter(n int) *meter { return &meter{given: n, left: n} }

// spend takes n units, and reports whether they were there.
func (m *meter) spend(n int) bool {
	if n > m.left {
		m.left, m.over = 0, true
	} else {
		m.left -= n
	}
	return !m.over
}

// matches pays for the match before it is made.
func (m *meter) matches(p *pattern, s string) bool {
	return m.spend(1+len(s)*p.states/statesPerWork) && p.MatchString(s)
}
