package machine

import (
	"fmt"
	"math"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

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
		if f := m.checkArgs(st); f != nil {
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

// checkArgs judges resolved args. What was recorded with an output that the record
// does not hold was judged then.
func (m *Machine) checkArgs(st *step) *tool.Failure {
	if st.guessed {
		return nil
	}
	return st.decl.CheckArgs(st.args)
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
			if m.steps[r.Step].withheld {
				st.guessed = true
			} else if r.HasPath {
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
	return Action{
		Kind: k, Step: i, Attempt: attempt, Tool: st.decl, Args: st.args, Refs: m.plan.Steps[i].Refs,
		Before: st.before, Approved: st.person, Guessed: st.guessed && st.before.IsZero(),
	}
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
