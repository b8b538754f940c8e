package machine

import (
	"fmt"
	"math"
	"time"

	"github.com/callsheet/callsheet/tool"
)

// Apply takes in an event. An error means that the event does not fit the
// state: a driver's mistake, or a record of another run. Nothing has changed
// then.
func (m *Machine) Apply(e Event) error {
	if e.Kind == Cancel {
		m.cancel(e.Message)
		return nil
	}
	if e.Step < 0 || e.Step >= len(m.steps) {
		return fmt.Errorf("event for step number %d of a plan of %d", e.Step, len(m.steps))
	}
	st := &m.steps[e.Step]
	switch e.Kind {
	case Judged:
		if e.Verdict == Undecided || e.Verdict > Ask {
			return m.misfit(e, "was judged without a verdict")
		}
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
			m.unmake(st)
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
		if e.Resolution == 0 || e.Resolution > GiveUp {
			return m.misfit(e, "was resolved without a resolution")
		}
		m.resolved(e)
	case Reopened:
		if st.phase != waiting || st.lost {
			return m.misfit(e, "does not wait for a verdict")
		}
		if !e.Args.IsZero() {
			if st.before.IsZero() {
				st.before = st.args
			}
			st.args = e.Args
		}
		m.unwait(e.Step)
		m.makeReady(e.Step)
	default:
		return m.misfit(e, fmt.Sprintf("has an event of no kind (%d)", e.Kind))
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
			m.settle(i, Cancelled, m.cancelledCause(m.plan.Steps[i].ID))
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
		st.person = st.person || e.Person
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
	if f == nil && e.Withheld {
		m.running--
		st.output, st.withheld = e.Output, true
		m.settle(i, OK, nil)
		return
	}
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
	if f.Code == tool.CodeToolChanged {
		m.unmake(st)
		m.settle(i, Denied, &Cause{id, f.Code, f.Message})
		return
	}
	effect := !st.decl.Effects.ReadOnly
	try.MayHaveHappened = effect && !f.Retryable && !f.NotStarted
	switch {
	case f.Lost && !st.decl.Effects.Repeatable():
		m.running--
		m.settle(i, Uncertain, &Cause{id, f.Code, f.Message})
		return
	case f.Code == tool.CodeCancelled && (f.Lost || f.NotStarted):
		// By what the call says, not by whether Cancel has come: both are on their
		// way at once, and the status must not depend on which is first.
		m.running--
		m.settle(i, Cancelled, m.cancelledCause(id))
		return
	}
	if retry := f.Retryable || f.Lost; !retry || int(st.attempt) >= st.decl.MaxAttempts() || m.cancelled {
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
		d = min(min(base, maxDelay)<<min(st.attempt-2, 20), maxDelay) // bounded first: a shift must not overflow
		h := uint32(2166136261)
		for _, b := range []byte(m.plan.Steps[i].ID) {
			h = (h ^ uint32(b)) * 16777619
		}
		h = (h ^ uint32(st.attempt)) * 16777619
		d -= time.Duration(float64(d) * 0.5 * float64(h%1024) / 1024)
	}
	return max(d, min(max(f.After, 0), maxRetryAfter))
}

// lost decides about a call that was out when the process died, or that was
// given up because the run was interrupted.
func (m *Machine) lost(e Event) {
	i, st := e.Step, &m.steps[e.Step]
	try := &st.tries[len(st.tries)-1]
	try.Start, try.End, try.Failure, try.Crashed = e.Start, e.End, e.Failure, e.Failure == nil
	started := e.Failure == nil || !e.Failure.NotStarted
	try.MayHaveHappened = e.Failure != nil && started && !st.decl.Effects.ReadOnly
	if started && !st.decl.Effects.Repeatable() {
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
		m.settle(i, Cancelled, m.cancelledCause(m.plan.Steps[i].ID))
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

// cancel stops new calls. What is out settles by its own events.
func (m *Machine) cancel(why string) {
	if m.cancelled {
		return
	}
	m.cancelled, m.why = true, why
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
				m.settle(i, Cancelled, m.cancelledCause(m.plan.Steps[i].ID))
			}
		}
	}
	m.finish()
}

// unmake undoes the last call of a step, which was begun and not made.
func (m *Machine) unmake(st *step) {
	st.tries = st.tries[:len(st.tries)-1]
	m.calls--
	m.left++
	m.running--
}

// takeBack settles a step whose call cancellation came before.
func (m *Machine) takeBack(i int) {
	st := &m.steps[i]
	m.unmake(st)
	id := m.plan.Steps[i].ID
	if k := len(st.tries); k > 0 && st.tries[k-1].Failure != nil {
		f := st.tries[k-1].Failure
		m.settle(i, ToolError, &Cause{id, f.Code, f.Message})
		return
	}
	m.settle(i, Cancelled, m.cancelledCause(id))
}
