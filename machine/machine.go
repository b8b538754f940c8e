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

// Defaults (spec/plan.md §8).
const (
	DefaultEagerWorkers = 8
	DefaultMaxArgs      = 16 << 20
	maxDelay            = 30 * time.Second // of a backoff
	maxRetryAfter       = 60 * time.Second // that a tool can ask for
)

// An ActionKind is what the driver is to do.
type ActionKind uint8

// The actions.
const (
	Judge ActionKind = iota // ask the gate; answer with a Judged event
	Call                    // call the tool; answer with an Answered event
)

// An Action is what the machine wants done for one step.
type Action struct {
	Kind    ActionKind
	Step    int // index in the plan
	Attempt int // from 1
	Rerun   bool
	Tool    *tool.Declaration
	Args    value.Value
	// Refs say where the args came from: at the pointer of a Ref stands that
	// step's output or a part of it, everything else is a literal of the plan.
	// After an edit by a person everything is the person's: Refs is nil.
	Refs   []plan.Ref
	Edited bool
	Delay  time.Duration // to wait before the call
}

// An EventKind is what happened.
type EventKind uint8

// The events.
const (
	Judged   EventKind = iota // the gate or a person decided: Verdict, Code, Message
	Answered                  // a call ended: Output, or Failure
	NotMade                   // the call that was offered was not made, because the run was cancelled
	Lost                      // resume only: the call was begun and no outcome is recorded
	Resolved                  // a person settled a lost call: Resolution, Output
	Reopened                  // a waiting step is to be judged again, with Args when they were edited
	Reused                    // the step's Output is known from another run: no call is made
	Cancel                    // the run is cancelled; no new call is offered
)

// A Verdict is what a gate answers.
type Verdict uint8

// The verdicts.
const (
	Allow Verdict = iota
	Deny
	Ask
)

// String is the verdict as records and policies spell it.
func (v Verdict) String() string { return [...]string{"allow", "deny", "ask"}[v] }

// A Resolution is what a person knows of a call whose outcome was lost.
type Resolution uint8

// The resolutions.
const (
	Happened     Resolution = iota // with this Output
	DidNotHappen                   // it is called again, and charged
	GiveUp                         // the step ends uncertain
)

// An Event tells the machine what happened. Times are data to it: they only go
// into the report.
type Event struct {
	Kind       EventKind
	Step       int
	Attempt    int
	Verdict    Verdict
	Code       string
	Message    string
	Output     value.Value
	Failure    *tool.Failure
	Resolution Resolution
	Args       value.Value
	Start, End time.Time
	Unrecorded bool // the journal could not keep this outcome
}

// A State is what the run is doing.
type State uint8

// The states.
const (
	Running  State = iota // calls are out, or Next has more
	Paused                // nothing can go on until a person decides
	Finished              // every step has its status
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
	approved bool // a verdict allows every attempt with these args
	edited   bool
	lost     bool // waits for a resolution, not for a verdict
	stalled  bool // depends on a waiting step
	inPend   bool // its worst case is in pendingSum
	open     int32
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

	left       int // calls
	calls      int
	reserved   int     // sum of steps[i].reserved
	pendingSum int     // worst cases of the steps that may still need a call and have not started
	prefix     fenwick // the same by place; built when first needed
	head       int     // no place below it is unsettled, unless waiting or stalled
	given      bool    // a budget was given
	fill       []value.Value
	stack      []int32
	news       []int // settled since the last call of Settled
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

// hopeless reports that a reference of the step names nothing: it can never
// need a call.
func hopeless(s *plan.Step) bool {
	for i := range s.Refs {
		if s.Refs[i].Step < 0 {
			return true
		}
	}
	return false
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

// State says whether the run goes on, waits for a person, or is over.
func (m *Machine) State() State {
	switch {
	case m.unsettled == 0:
		return Finished
	case m.running > 0 || len(m.again) > 0:
		return Running
	case m.cancelled:
		return Finished
	case m.ready.first() >= 0:
		return Running
	case m.waiting > 0:
		return Paused
	}
	return Finished
}

// Next returns the next action that may be taken now. ok is false when nothing
// may start until an event comes; State says why. Every action is offered once.
func (m *Machine) Next() (a Action, ok bool) {
	if len(m.again) > 0 {
		a = m.again[0]
		m.again = m.again[1:]
		return a, true
	}
	for !m.cancelled && m.running < m.opt.Workers {
		place := m.ready.first()
		if place < 0 {
			return Action{}, false
		}
		i := int(m.order[place])
		if w := m.plan.Steps[i].Wave; !m.opt.Eager && w > m.wave {
			if m.running > 0 {
				return Action{}, false
			}
			m.wave = w
		}
		if !m.mayStart(i, place) {
			return Action{}, false
		}
		m.ready.remove(place)
		if a, ok = m.admit(i); ok {
			return a, true
		}
	}
	return Action{}, false
}

// Take offers the next action of one step, whatever the number of workers, the
// wave and the order say: a record shows that it was begun. ok is false when the
// step has no action to offer, which means that the record is of another run.
// Only replay uses it; everything that was recorded is taken before Next is
// asked.
func (m *Machine) Take(i int) (a Action, ok bool) {
	for k := range m.again {
		if m.again[k].Step == i {
			a = m.again[k]
			m.again = append(m.again[:k], m.again[k+1:]...)
			return a, true
		}
	}
	st := &m.steps[i]
	if st.phase != ready {
		return Action{}, false
	}
	m.ready.remove(int(st.place))
	m.wave = max(m.wave, m.plan.Steps[i].Wave)
	return m.admit(i)
}

// mayStart is the rule that keeps parallel runs equal to sequential ones
// (spec/plan.md §5): a step may start before others that come first in the order
// only if the calls that are left suffice for all of them at their worst.
func (m *Machine) mayStart(i, place int) bool {
	free := m.left - m.reserved
	if free >= m.pendingSum {
		return true
	}
	if m.prefix == nil {
		m.prefix = newFenwick(len(m.order))
		for p, j := range m.order {
			if m.steps[j].inPend {
				m.prefix.add(p, int(m.steps[j].worst))
			}
		}
	}
	if free >= int(m.steps[i].worst)+m.prefix.below(place) {
		return true
	}
	for m.head < len(m.order) {
		st := &m.steps[m.order[m.head]]
		if st.phase != settled && st.phase != waiting && !st.stalled {
			break
		}
		m.head++
	}
	return m.head == place
}

// admit tests a ready step in the order of spec/plan.md §3: references, the
// tool's name, the schema, policy, the budget.
func (m *Machine) admit(i int) (Action, bool) {
	s, st := &m.plan.Steps[i], &m.steps[i]
	m.unpend(i)
	if st.args.IsZero() {
		if !m.resolve(i) {
			return Action{}, false
		}
	}
	if !st.approved {
		if st.decl == nil {
			m.settle(i, UnknownTool, &Cause{s.ID, string(UnknownTool), fmt.Sprintf("there is no tool %q", s.Tool)})
			return Action{}, false
		}
		if f := st.decl.CheckArgs(st.args); f != nil {
			m.settle(i, InvalidArgs, &Cause{s.ID, f.Code, f.Message})
			return Action{}, false
		}
		if m.opt.Gate {
			st.phase = judging
			m.running++
			m.reserve(st, st.worst)
			return m.action(Judge, i, 1), true
		}
	}
	m.running++
	m.reserve(st, max(0, st.worst-st.attempt))
	return m.begin(i, st.attempt+1, false)
}

// resolve fills in the references. It spends no memory on args that are too
// large.
func (m *Machine) resolve(i int) bool {
	s, st := &m.plan.Steps[i], &m.steps[i]
	if len(s.Refs) == 0 {
		st.args = s.Template.Fill(nil)
	} else {
		m.fill = m.fill[:0]
		for k := range s.Refs {
			r := &s.Refs[k]
			if r.Step < 0 {
				m.settle(i, BadReference, &Cause{s.ID, string(BadReference), fmt.Sprintf("%s is meant as a reference but names no step; write $$ for a text that starts with $", r.Text)})
				return false
			}
			v := m.steps[r.Step].output
			if r.HasPath {
				var err error
				if v, err = v.Lookup(r.Path); err != nil {
					m.settle(i, BadReference, &Cause{s.ID, string(BadReference), fmt.Sprintf("%s: %v", r.Text, err)})
					return false
				}
			}
			m.fill = append(m.fill, v)
		}
		if n := s.Template.Size(m.fill); n > m.opt.MaxArgs {
			m.settle(i, BadReference, &Cause{s.ID, "args_too_large", fmt.Sprintf("the resolved args are %s bytes, the limit is %d", bytesOf(n), m.opt.MaxArgs)})
			return false
		}
		st.args = s.Template.Fill(m.fill)
		clear(m.fill)
	}
	if d := st.args.Depth(); d > maxArgsDepth {
		st.args = value.Value{}
		m.settle(i, BadReference, &Cause{s.ID, "args_too_deep", fmt.Sprintf("the resolved args nest %d deep, the limit is %d", d, maxArgsDepth)})
		return false
	}
	return true
}

// maxArgsDepth leaves room for what records and messages wrap around args.
const maxArgsDepth = value.MaxDepth - 100

func bytesOf(n int) string {
	if n == math.MaxInt {
		return "more than 2^63"
	}
	return fmt.Sprint(n)
}

// begin spends a call on attempt number n.
func (m *Machine) begin(i int, n int32, rerun bool) (Action, bool) {
	st := &m.steps[i]
	if m.left == 0 {
		m.running--
		c := &Cause{m.plan.Steps[i].ID, string(BudgetExhausted), "no call was left in the budget"}
		if k := len(st.tries); k > 0 && st.tries[k-1].Failure != nil {
			c.Message += "; the last error was: " + st.tries[k-1].Failure.Error()
		}
		m.settle(i, BudgetExhausted, c)
		return Action{}, false
	}
	m.left--
	m.calls++
	if !rerun && st.reserved > 0 {
		st.reserved--
		m.reserved--
	}
	st.phase, st.attempt = calling, n
	if st.tries == nil {
		st.tries = st.first[:0]
	}
	st.tries = append(st.tries, Attempt{N: int(n), Rerun: rerun})
	a := m.action(Call, i, int(n))
	a.Rerun = rerun
	return a, true
}

func (m *Machine) action(k ActionKind, i, attempt int) Action {
	st := &m.steps[i]
	a := Action{Kind: k, Step: i, Attempt: attempt, Tool: st.decl, Args: st.args, Refs: m.plan.Steps[i].Refs, Edited: st.edited}
	if st.edited {
		a.Refs = nil
	}
	return a
}

func (m *Machine) reserve(st *step, n int32) {
	m.reserved += int(n - st.reserved)
	st.reserved = n
}

// unpend takes a step out of those that have not started.
func (m *Machine) unpend(i int) {
	st := &m.steps[i]
	if !st.inPend {
		return
	}
	st.inPend = false
	m.pendingSum -= int(st.worst)
	if m.prefix != nil {
		m.prefix.add(int(st.place), -int(st.worst))
	}
}

// Apply takes in an event. An error means that the event does not fit the
// state: a driver's mistake, or a record of another run. Nothing has changed
// then.
func (m *Machine) Apply(e Event) error {
	if e.Kind == Cancel {
		m.cancel()
		return nil
	}
	if e.Step < 0 || e.Step >= len(m.steps) {
		return fmt.Errorf("event for step number %d of a plan of %d", e.Step, len(m.steps))
	}
	st := &m.steps[e.Step]
	switch e.Kind {
	case Judged:
		switch st.phase {
		case judging:
		case waiting:
			if st.lost {
				return m.misfit(e, "waits for a resolution, not for a verdict")
			}
			if e.Verdict == Ask {
				return nil
			}
		default:
			return m.misfit(e, "was not to be judged")
		}
		m.judged(e)
	case Answered:
		if st.phase != calling || int(st.attempt) != e.Attempt {
			return m.misfit(e, fmt.Sprintf("has no call of attempt %d out", e.Attempt))
		}
		m.answered(e)
	case NotMade:
		if st.phase != calling || int(st.attempt) != e.Attempt || !m.cancelled {
			return m.misfit(e, "has no call that cancellation could have stopped")
		}
		m.takeBack(e.Step)
	case Reused:
		switch st.phase {
		case judging:
			m.running--
		case calling:
			k := len(st.tries) - 1
			st.tries = st.tries[:k]
			m.calls--
			m.left++
			m.running--
		default:
			return m.misfit(e, "has no call that an old outcome could stand for")
		}
		st.output = e.Output
		m.settle(e.Step, OK, nil)
	case Lost:
		if st.phase != calling || int(st.attempt) != e.Attempt {
			return m.misfit(e, fmt.Sprintf("has no call of attempt %d out", e.Attempt))
		}
		m.lost(e)
	case Resolved:
		if st.phase != waiting || !st.lost {
			return m.misfit(e, "does not wait for a resolution")
		}
		m.resolved(e)
	case Reopened:
		if st.phase != waiting || st.lost {
			return m.misfit(e, "does not wait for a verdict")
		}
		if !e.Args.IsZero() {
			st.args, st.edited = e.Args, true
		}
		m.unwait(e.Step)
		m.makeReady(e.Step)
	}
	m.finish()
	return nil
}

func (m *Machine) misfit(e Event, what string) error {
	return fmt.Errorf("step %q %s", m.plan.Steps[e.Step].ID, what)
}

func (m *Machine) judged(e Event) {
	i, st := e.Step, &m.steps[e.Step]
	if st.phase == judging {
		m.running--
		m.reserve(st, 0)
		if m.cancelled {
			m.settle(i, Cancelled, cancelledCause(m.plan.Steps[i].ID))
			return
		}
	} else {
		m.unwait(i)
	}
	switch e.Verdict {
	case Deny:
		code := e.Code
		if code == "" {
			code = string(Denied)
		}
		m.settle(i, Denied, &Cause{m.plan.Steps[i].ID, code, e.Message})
	case Ask:
		if m.left == 0 {
			m.settle(i, BudgetExhausted, &Cause{m.plan.Steps[i].ID, string(BudgetExhausted), "no call was left in the budget"})
			return
		}
		code := e.Code
		if code == "" {
			code = "needs_approval"
		}
		m.wait(i, &Cause{m.plan.Steps[i].ID, code, e.Message})
	case Allow:
		st.approved = true
		if st.phase == waiting {
			m.makeReady(i)
			return
		}
		// The worker that was judging goes on to the call.
		m.running++
		m.reserve(st, st.worst)
		if a, ok := m.begin(i, st.attempt+1, false); ok {
			m.again = append(m.again, a)
		}
	}
}

func (m *Machine) answered(e Event) {
	i, st := e.Step, &m.steps[e.Step]
	id := m.plan.Steps[i].ID
	try := &st.tries[len(st.tries)-1]
	try.Start, try.End, try.Failure, try.Unrecorded = e.Start, e.End, e.Failure, e.Unrecorded
	f := e.Failure
	if f == nil {
		f = st.decl.CheckOutput(e.Output)
		try.Failure = f
		if f == nil {
			m.running--
			st.output = e.Output
			m.settle(i, OK, nil)
			return
		}
	}
	effect := !st.decl.Effects.ReadOnly
	try.MayHaveHappened = effect && !f.Retryable
	retry := f.Retryable
	if f.Lost {
		if !st.decl.Effects.Repeatable() {
			m.running--
			m.settle(i, Uncertain, &Cause{id, f.Code, f.Message})
			return
		}
		if m.cancelled && f.Code == tool.CodeCancelled {
			m.running--
			m.settle(i, Cancelled, cancelledCause(id))
			return
		}
		retry = true
	}
	if !retry || int(st.attempt) >= st.decl.MaxAttempts() || m.cancelled {
		m.running--
		m.settle(i, ToolError, &Cause{id, f.Code, f.Message})
		return
	}
	if a, ok := m.begin(i, st.attempt+1, false); ok {
		a.Delay = m.delay(i, f)
		m.again = append(m.again, a)
	}
}

// delay is how long to wait before the attempt that begins: what the tool asked
// for, or a doubling backoff with jitter. The jitter is a function of the step
// and the attempt, so that a replay waits alike.
func (m *Machine) delay(i int, f *tool.Failure) time.Duration {
	st := &m.steps[i]
	d := time.Duration(0)
	if base := st.decl.Delay; base > 0 {
		d = min(base<<min(st.attempt-2, 20), maxDelay)
		h := uint32(2166136261)
		for _, b := range []byte(m.plan.Steps[i].ID) {
			h = (h ^ uint32(b)) * 16777619
		}
		h = (h ^ uint32(st.attempt)) * 16777619
		d -= time.Duration(float64(d) * 0.5 * float64(h%1024) / 1024)
	}
	return max(d, min(max(f.After, 0), maxRetryAfter))
}

// lost decides about a call that was out when the process died.
func (m *Machine) lost(e Event) {
	i, st := e.Step, &m.steps[e.Step]
	try := &st.tries[len(st.tries)-1]
	try.Start, try.Crashed = e.Start, true
	if !st.decl.Effects.Repeatable() {
		m.running--
		m.reserve(st, 0)
		st.lost = true
		try.MayHaveHappened = true
		m.wait(i, &Cause{m.plan.Steps[i].ID, string(Uncertain), "the process ended while the call was out; say with resolve whether it happened"})
		return
	}
	m.rerun(i)
}

// rerun makes the same attempt again. It is charged; where no budget was given
// the worst case grows by it.
func (m *Machine) rerun(i int) {
	st := &m.steps[i]
	if !m.given && m.left < math.MaxInt {
		m.left++
	}
	if m.cancelled {
		m.running--
		m.settle(i, Cancelled, cancelledCause(m.plan.Steps[i].ID))
		return
	}
	if a, ok := m.begin(i, st.attempt, true); ok {
		m.again = append(m.again, a)
	}
}

func (m *Machine) resolved(e Event) {
	i, st := e.Step, &m.steps[e.Step]
	st.lost = false
	m.unwait(i)
	try := &st.tries[len(st.tries)-1]
	switch e.Resolution {
	case Happened:
		if f := st.decl.CheckOutput(e.Output); f != nil {
			try.Failure = f
			m.settle(i, ToolError, &Cause{m.plan.Steps[i].ID, f.Code, f.Message})
			return
		}
		try.Resolved = "happened"
		st.output = e.Output
		m.settle(i, OK, nil)
	case DidNotHappen:
		try.Resolved, try.MayHaveHappened = "did_not_happen", false
		m.running++
		m.reserve(st, max(0, st.worst-st.attempt))
		m.rerun(i)
	case GiveUp:
		try.Resolved = "gave_up"
		m.settle(i, Uncertain, &Cause{m.plan.Steps[i].ID, string(Uncertain), "a person gave up finding out whether it happened"})
	}
}

func (m *Machine) wait(i int, c *Cause) {
	st := &m.steps[i]
	st.phase, st.cause = waiting, c
	m.waiting++
	m.recount()
}

func (m *Machine) unwait(i int) {
	m.steps[i].cause = nil
	m.waiting--
	m.recountWithout(i)
}

func (m *Machine) makeReady(i int) {
	st := &m.steps[i]
	st.phase = ready
	if !st.inPend && st.attempt == 0 {
		st.inPend = true
		m.pendingSum += int(st.worst)
		if m.prefix != nil {
			m.prefix.add(int(st.place), int(st.worst))
		}
	}
	m.ready.add(int(st.place))
}

// recount finds the steps that stand behind a waiting one: asking reserves
// nothing, so neither they nor it hold calls back from others.
func (m *Machine) recount() { m.recountWithout(-1) }

func (m *Machine) recountWithout(free int) {
	m.head = 0
	m.prefix = nil
	m.pendingSum = 0
	for _, j := range m.order {
		st := &m.steps[j]
		st.stalled = false
		for _, d := range m.plan.Steps[j].Deps {
			dep := &m.steps[d]
			if d != free && dep.phase == waiting || dep.stalled {
				st.stalled = true
				break
			}
		}
		st.inPend = !st.stalled && (st.phase == pending || st.phase == ready)
		if st.inPend {
			m.pendingSum += int(st.worst)
		}
	}
}

// settle gives step i its final status and carries it on: an ok step may make
// others ready, any other skips what depends on it.
func (m *Machine) settle(i int, s Status, c *Cause) {
	st := &m.steps[i]
	m.unpend(i)
	m.reserve(st, 0)
	st.phase, st.status, st.cause = settled, s, c
	m.unsettled--
	m.news = append(m.news, i)
	if s == OK {
		for _, d := range m.dependents(i) {
			dep := &m.steps[d]
			if dep.open--; dep.open == 0 && dep.phase == pending && m.plan.Steps[d].Wave >= 0 {
				m.makeReady(int(d))
			}
		}
		return
	}
	stack := append(m.stack[:0], int32(i))
	for len(stack) > 0 {
		j := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, d := range m.dependents(int(j)) {
			dep := &m.steps[d]
			if dep.phase == settled {
				continue
			}
			m.unpend(int(d))
			dep.phase, dep.status, dep.cause = settled, Skipped, c
			m.unsettled--
			m.news = append(m.news, int(d))
			stack = append(stack, d)
		}
	}
	m.stack = stack
}

// finish settles what can never run once nothing else can change.
func (m *Machine) finish() {
	if m.unsettled == 0 || m.running > 0 || len(m.again) > 0 || m.waiting > 0 || m.ready.first() >= 0 && !m.cancelled {
		return
	}
	for i := range m.steps {
		st := &m.steps[i]
		if st.phase == settled {
			continue
		}
		st.status, st.cause = m.leftover(i)
		st.phase = settled
		m.unsettled--
		m.news = append(m.news, i)
	}
}

// leftover is the status of a step that has none of its own yet.
func (m *Machine) leftover(i int) (Status, *Cause) {
	st, s := &m.steps[i], &m.plan.Steps[i]
	switch {
	case s.Wave < 0:
		return Blocked, m.blockedCause(i)
	case m.cancelled:
		return Cancelled, cancelledCause(s.ID)
	case st.phase == waiting:
		return Waiting, st.cause
	case st.stalled:
		for _, d := range s.Deps {
			if dep := &m.steps[d]; dep.phase == waiting || dep.stalled {
				_, c := m.leftover(d)
				return Waiting, c
			}
		}
	}
	return Cancelled, cancelledCause(s.ID)
}

func cancelledCause(id string) *Cause {
	return &Cause{id, string(Cancelled), "the run was cancelled before the step settled"}
}

// blockedCause names what keeps a step from ever running: an unknown id, or the
// cycle that it is on or behind.
func (m *Machine) blockedCause(i int) *Cause {
	seen := map[int]bool{}
	for !seen[i] {
		seen[i] = true
		s := &m.plan.Steps[i]
		if len(s.Unknown) > 0 {
			return &Cause{s.ID, "unknown_dependency", fmt.Sprintf("after names %q, which is no step", s.Unknown[0])}
		}
		for _, d := range s.Deps {
			if m.plan.Steps[d].Wave < 0 {
				i = d
				break
			}
		}
	}
	return &Cause{m.plan.Steps[i].ID, "cycle", "the step depends on itself, directly or through others"}
}

// cancel stops new calls. What is out settles by its own events.
func (m *Machine) cancel() {
	if m.cancelled {
		return
	}
	m.cancelled = true
	// Retries that were granted but not handed out are not made.
	for _, a := range m.again {
		m.takeBack(a.Step)
	}
	m.again = nil
	for i := range m.steps {
		if m.steps[i].phase == waiting {
			m.waiting--
			if m.steps[i].lost {
				m.settle(i, Uncertain, m.steps[i].cause)
			} else {
				m.settle(i, Cancelled, cancelledCause(m.plan.Steps[i].ID))
			}
		}
	}
	m.finish()
}

// takeBack undoes a call that was begun and not made.
func (m *Machine) takeBack(i int) {
	st := &m.steps[i]
	k := len(st.tries) - 1
	st.tries = st.tries[:k]
	m.calls--
	m.left++
	m.running--
	id := m.plan.Steps[i].ID
	if k > 0 && st.tries[k-1].Failure != nil {
		f := st.tries[k-1].Failure
		m.settle(i, ToolError, &Cause{id, f.Code, f.Message})
		return
	}
	m.settle(i, Cancelled, cancelledCause(id))
}

// Calls is the number of calls begun so far.
func (m *Machine) Calls() int { return m.calls }

// Left is the number of calls that the budget still has.
func (m *Machine) Left() int { return m.left }

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

// Output is the output of a step that is ok.
func (m *Machine) Output(i int) value.Value { return m.steps[i].output }

// Cause is why a step is not ok, nil while there is nothing to say.
func (m *Machine) Cause(i int) *Cause { return m.steps[i].cause }
