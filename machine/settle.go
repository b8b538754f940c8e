package machine

import (
	"fmt"
	"slices"
)

func (m *Machine) wait(i int, c *Cause) {
	st := &m.steps[i]
	m.unpend(i)
	st.phase, st.cause = waiting, c
	m.waiting++
	// What stands behind it holds no calls back from others: asking reserves
	// nothing. Each step is passed once, however many others wait.
	stack := append(m.stack[:0], int32(i))
	for len(stack) > 0 {
		j := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, d := range m.dependents(int(j)) {
			if dep := &m.steps[d]; !dep.stalled && dep.phase != settled {
				m.unpend(int(d))
				dep.stalled = true
				stack = append(stack, d)
			}
		}
	}
	m.stack = stack
}

func (m *Machine) unwait(i int) {
	m.steps[i].cause = nil
	m.waiting--
	m.recount(i)
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

// recount finds the steps that stand behind a waiting one when free waits no
// more.
func (m *Machine) recount(free int) {
	m.head = 0
	m.prefix = nil
	m.pendingSum = 0
	for _, j := range m.order {
		st := &m.steps[j]
		st.stalled = false
		for _, d := range m.plan.Steps[j].Deps {
			if dep := &m.steps[d]; d != free && dep.phase == waiting || dep.stalled {
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
	if s == Cancelled {
		return // nothing failed: what depends on it was never started either
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

// trace finds for every stalled step the one that it waits for: the first, in
// the order of its dependencies.
func (m *Machine) trace() {
	for _, j := range m.order {
		st := &m.steps[j]
		if !st.stalled || st.phase == settled {
			continue
		}
		for _, d := range m.plan.Steps[j].Deps {
			if dep := &m.steps[d]; dep.phase == waiting {
				st.behind = int32(d)
				break
			} else if dep.stalled && dep.phase != settled {
				st.behind = dep.behind
				break
			}
		}
	}
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
		return Cancelled, m.cancelledCause(s.ID)
	case st.phase == waiting:
		return Waiting, st.cause
	case st.stalled:
		return Waiting, m.steps[st.behind].cause
	}
	return Cancelled, m.cancelledCause(s.ID)
}

func (m *Machine) cancelledCause(id string) *Cause {
	message := "the run was cancelled before the step settled"
	if m.why != "" {
		message += ": " + m.why
	}
	return &Cause{id, string(Cancelled), message}
}

// blockedCause names what keeps a step from ever running: an unknown id, or the
// cycle that it is on or behind. Every step on the way there has the same cause,
// which is kept for them: a plan may be one long chain of such steps.
func (m *Machine) blockedCause(i int) *Cause {
	if m.blocked == nil {
		m.blocked = make([]*Cause, len(m.steps))
	}
	var way []int
	var cause *Cause
	passed := &Cause{} // marks the steps of this walk
	for cause == nil {
		s := &m.plan.Steps[i]
		switch known := m.blocked[i]; {
		case known == passed:
			cause = &Cause{s.ID, "cycle", "the step depends on itself, directly or through others"}
		case known != nil:
			cause = known
		case len(s.Unknown) > 0:
			way = append(way, i)
			cause = &Cause{s.ID, "unknown_dependency", fmt.Sprintf("after names %q, which is no step", s.Unknown[0])}
		default:
			way = append(way, i)
			m.blocked[i] = passed
			i = s.Deps[slices.IndexFunc(s.Deps, func(d int) bool { return m.plan.Steps[d].Wave < 0 })]
		}
	}
	for _, j := range way {
		m.blocked[j] = cause
	}
	return cause
}
