// Package machine is the pure state machine of a run: events in, the next
// actions or the report out (spec/plan.md §2–§6). It has no I/O, no clock, no
// goroutine and no randomness, so the in-process runner, resume after a crash,
// rehearsal and a distributed engine can all drive the same one and must come to
// the same report.
//
//	m := machine.New(p, catalogue, machine.Options{})
//	for {
//		a, ok := m.Next()
//		if !ok {
//			break // nothing to do until an event comes, or at all: see State
//		}
//		out, failure := doTheCall(a)
//		m.Apply(machine.Event{Kind: machine.Answered, Step: a.Step, Attempt: a.Attempt, Output: out, Failure: failure})
//	}
//	report := m.Report()
package machine

import (
	"fmt"
	"math"
	"time"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// Options of a run. The zero value is a sequential run without a gate whose
// budget is the plan's worst case.
type Options struct {
	Budget  *int // calls; nil: the worst case, so that it never binds. See [EffectiveBudget]
	Workers int  // calls that may run at once; 0: 1, or DefaultEagerWorkers with Eager
	Eager   bool // a step may start before the wave of its dependencies is done
	Gate    bool // every call needs a verdict: a Judge action comes before its first Call
	MaxArgs int  // bytes of resolved args; 0: DefaultMaxArgs
}

// Validate names the field that makes no sense.
func (o *Options) Validate() error {
	switch {
	case o.Budget != nil && *o.Budget < 0:
		return fmt.Errorf("machine: Budget is %d; a budget is at least 0", *o.Budget)
	case o.Workers < 0:
		return fmt.Errorf("machine: Workers is %d; it must not be negative, and 0 is the default", o.Workers)
	case o.MaxArgs < 0:
		return fmt.Errorf("machine: MaxArgs is %d; it must not be negative, and 0 is the default", o.MaxArgs)
	}
	return nil
}

// Defaults (spec/plan.md §8).
const (
	DefaultEagerWorkers = 8
	DefaultMaxArgs      = 16 << 20
	maxDelay            = 30 * time.Second // of a backoff
	maxRetryAfter       = 60 * time.Second // that a tool can ask for
)

type phase uint8

const (
	pending phase = iota // dependencies are open
	ready                // every dependency is ok
	judging              // the gate was asked
	calling              // to be called, or called
	waiting              // a person is asked
	settled
)

type step struct {
	decl     *tool.Declaration
	phase    phase
	status   Status
	approved bool        // a verdict allows every attempt with these args
	person   bool        // the verdict was a person's
	before   value.Value // the resolved args, when a person edited them
	withheld bool        // output stands for one that the record does not hold
	guessed  bool        // args were made with a withheld output
	lost     bool        // waits for a resolution, not for a verdict
	stalled  bool        // depends on a waiting step, directly or through others
	inPend   bool        // its worst case is in pendingSum
	open     int32
	behind   int32 // while stalled: the step that waits for a person; set by trace
	attempt  int32 // of the last call
	reserved int32 // attempts held back for it while it runs
	worst    int32
	place    int32 // in the order (wave, plan position)
	args     value.Value
	output   value.Value
	tries    []Attempt
	first    [1]Attempt // what tries begins with: most steps need one
	cause    *Cause
}

// A Machine is the state of one run. It is not safe for concurrent use.
type Machine struct {
	plan  *plan.Plan
	opt   Options
	steps []step
	order []int32 // steps that can run, by (wave, plan position)

	// dependents of step i are edges[starts[i]:starts[i+1]]
	starts, edges []int32

	ready     minSet // by place
	again     []Action
	wave      int // the wave that is running, unless eager
	running   int // judging or calling
	waiting   int
	unsettled int
	cancelled bool
	why       string // the run was cancelled

	left       int // calls
	calls      int
	reserved   int     // sum of steps[i].reserved
	pendingSum int     // worst cases of the steps that may still need a call and have not started
	prefix     fenwick // the same by place; built when first needed
	head       int     // no place below it is unsettled, unless waiting or stalled
	given      bool    // a budget was given
	fill       []value.Value
	stack      []int32
	news       []int    // settled since the last call of Settled
	blocked    []*Cause // by step: why it can never run; nil until asked for
}

// WorstCase is the number of calls that a plan can need: for each step with a
// known tool, its attempts. It saturates.
func WorstCase(p *plan.Plan, c *tool.Catalogue) int {
	n := 0
	for i := range p.Steps {
		if d := c.Get(p.Steps[i].Tool); d != nil {
			a := d.MaxAttempts()
			if n > math.MaxInt-a {
				return math.MaxInt
			}
			n += a
		}
	}
	return n
}

// EffectiveBudget is the budget that binds: the flag replaces the plan's own,
// and ceiling bounds both. lowered reports that the ceiling did so. nil means
// that none was given (spec/plan.md §4).
func EffectiveBudget(p *plan.Plan, flag, ceiling *int) (budget *int, lowered bool) {
	budget = p.Budget
	if flag != nil {
		budget = flag
	}
	if ceiling == nil || budget != nil && *budget <= *ceiling {
		return budget, false
	}
	return ceiling, budget != nil
}

// New starts a machine. The plan and the catalogue must not change; neither can.
// A field that [Options.Validate] refuses counts as 0.
func New(p *plan.Plan, c *tool.Catalogue, opt Options) *Machine {
	if opt.Workers <= 0 {
		opt.Workers = 1
		if opt.Eager {
			opt.Workers = DefaultEagerWorkers
		}
	}
	if opt.MaxArgs <= 0 {
		opt.MaxArgs = DefaultMaxArgs
	}
	n := len(p.Steps)
	m := &Machine{plan: p, opt: opt, steps: make([]step, n), unsettled: n, given: opt.Budget != nil}
	m.left = WorstCase(p, c)
	if m.given {
		m.left = max(0, *opt.Budget)
	}
	m.arrange()
	for i := range p.Steps {
		s, st := &p.Steps[i], &m.steps[i]
		st.decl = c.Get(s.Tool)
		st.open = int32(len(s.Deps))
		if s.Wave < 0 {
			continue
		}
		if st.decl != nil && !hopeless(s) {
			st.worst = int32(min(st.decl.MaxAttempts(), math.MaxInt32))
		}
		st.inPend = true
		m.pendingSum += int(st.worst)
		if st.open == 0 {
			m.makeReady(i)
		}
	}
	m.finish()
	return m
}

// arrange sorts the steps by (wave, plan position) and turns the dependencies
// around.
func (m *Machine) arrange() {
	steps := m.plan.Steps
	n := len(steps)
	waves := 0
	edges := 0
	for i := range steps {
		waves = max(waves, steps[i].Wave+1)
		edges += len(steps[i].Deps)
	}
	at := make([]int32, waves+1)
	m.starts = make([]int32, n+1)
	for i := range steps {
		if w := steps[i].Wave; w >= 0 {
			at[w+1]++
		}
		for _, d := range steps[i].Deps {
			m.starts[d+1]++
		}
	}
	for w := range waves {
		at[w+1] += at[w]
	}
	m.order = make([]int32, at[waves])
	for i := range steps {
		m.starts[i+1] += m.starts[i]
		if w := steps[i].Wave; w >= 0 {
			m.order[at[w]] = int32(i)
			m.steps[i].place = at[w]
			at[w]++
		}
	}
	m.edges = make([]int32, edges)
	next := append([]int32(nil), m.starts[:n]...)
	for i := range steps {
		for _, d := range steps[i].Deps {
			m.edges[next[d]] = int32(i)
			next[d]++
		}
	}
	m.ready = newMinSet(len(m.order))
}

func (m *Machine) dependents(i int) []int32 { return m.edges[m.starts[i]:m.starts[i+1]] }

// Waiting lists the steps that wait for a person, in plan order; lost says
// which of them wait for a resolution and not for a verdict.
func (m *Machine) Waiting() (steps []int, lost []bool) {
	for i := range m.steps {
		if m.steps[i].phase == waiting {
			steps = append(steps, i)
			lost = append(lost, m.steps[i].lost)
		}
	}
	return steps, lost
}

// Settled lists the steps that settled since it was last called, in the order in
// which they did. The slice is valid until the next event.
func (m *Machine) Settled() []int {
	n := m.news
	m.news = m.news[:0]
	return n
}

// Waits reports whether a step waits for a person.
func (m *Machine) Waits(i int) bool { return m.steps[i].phase == waiting }

// Status is the status of a step, "" while it has none.
func (m *Machine) Status(i int) Status {
	if m.steps[i].phase != settled {
		return ""
	}
	return m.steps[i].status
}

// Cause is why a step is not ok, nil while there is nothing to say.
func (m *Machine) Cause(i int) *Cause { return m.steps[i].cause }
