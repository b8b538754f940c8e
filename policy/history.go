package policy

import (
	"math/big"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/callsheet/callsheet/value"
)

// Statuses of a call in the history, besides those of spec/plan.md §3.
const (
	StatusRunning = "running" // began and has not ended
	statusOK      = "ok"
	statusLost    = "uncertain"
)

// pastStatuses are those that a call which was let through can have.
var pastStatuses = []string{StatusRunning, statusOK, statusLost, "tool_error", "cancelled"}

// past is one call of the history.
type past struct {
	step, tool, status string
	args, output       value.Value
}

// happened reports whether the call had its effect, may have had it, or is about
// to: what a limit counts. A call that failed for good is not counted.
func (c *past) happened() bool {
	return c.status == statusOK || c.status == StatusRunning || c.status == statusLost
}

// history is the calls so far, in the order in which they began.
type history struct{ calls []*past }

func (h *history) before(tool string) bool {
	for _, c := range h.calls {
		if c.tool == tool && c.status == statusOK {
			return true
		}
	}
	return false
}

func (h *history) times(tool string) int {
	n := 0
	for _, c := range h.calls {
		if c.tool == tool && c.happened() {
			n++
		}
	}
	return n
}

// sum adds up an arg of the calls of a tool, exactly. A call without the arg adds
// nothing.
func (h *history) sum(tool, arg string) ref.Val {
	total, any := new(big.Rat), false
	for _, c := range h.calls {
		if c.tool != tool || !c.happened() {
			continue
		}
		v, ok := c.args.Get(arg)
		if !ok || v.IsNull() {
			continue
		}
		text, _ := v.Number()
		r, ok := parseNumber(text)
		if !ok {
			return types.NewErr("%s of an earlier %s is no number that can be added exactly", arg, tool)
		}
		total.Add(total, r)
		any = true
	}
	if !any {
		return types.Double(0)
	}
	f, ok := exactDouble(total)
	if !ok {
		return types.NewErr("the sum of %s over %s is not exact as a double", arg, tool)
	}
	return types.Double(f)
}

// last is the latest call of the tool that ended ok and had these args.
func (h *history) last(tool string, with traits.Mapper) ref.Val {
next:
	for i := len(h.calls) - 1; i >= 0; i-- {
		c := h.calls[i]
		if c.tool != tool || c.status != statusOK {
			continue
		}
		if with != nil {
			for it := with.Iterator(); it.HasNext() == types.True; {
				key := it.Next()
				have, ok := c.args.Get(string(key.(types.String)))
				if !ok {
					continue next
				}
				switch eq := toCEL(have, dynShape, true).Equal(with.Get(key)); {
				case types.IsError(eq):
					return eq
				case eq != types.True:
					continue next
				}
			}
		}
		return &handle{callRecord, c}
	}
	what := "call of " + tool + " that ended ok"
	if with != nil && with.Size() != types.Int(0) {
		what += " with those args"
	}
	return types.WrapErr(&missingFact{what})
}

// callRecord types a call of the history.
var callRecord = func() *record {
	r := newRecord("call")
	text := func(name string, get func(*past) string) {
		r.fields[name] = &field{
			shape: &shape{cel: types.StringType}, required: true,
			isSet: func(any) bool { return true },
			get:   func(c any) (any, error) { return types.String(get(c.(*past))), nil },
		}
	}
	text("tool", func(c *past) string { return c.tool })
	text("step", func(c *past) string { return c.step })
	text("status", func(c *past) string { return c.status })
	r.fields["status"].words = pastStatuses
	open := func(name string, get func(*past) value.Value) {
		r.fields[name] = &field{
			shape: dynShape, required: true,
			isSet: func(c any) bool { return !get(c.(*past)).IsZero() },
			get: func(c any) (any, error) {
				v := get(c.(*past))
				if v.IsZero() {
					return nil, &missingFact{name + " of step " + c.(*past).step}
				}
				return toCEL(v, dynShape, true), nil
			},
		}
	}
	open("args", func(c *past) value.Value { return c.args })
	open("output", func(c *past) value.Value { return c.output })
	return r
}()
