package figures

import (
	"testing"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// made is one call that a driver came to, and the answer to it.
type made struct {
	step     string
	tool     string
	args     value.Value
	decision policy.Decision
	done     bool // the tool was called
}

// A driver carries out plans and agents' calls against a policy. The figures go
// through this door alone, so that they hold for every way of running.
type driver interface {
	// plan runs a plan with --on-ask refuse, except that approve may let an ask
	// through. tools answers the calls.
	plan(t testing.TB, r planRun) []made
	// agent judges and makes the calls that next gives, one after the other,
	// until it gives none. A call that is asked about is denied.
	agent(t testing.TB, r agentRun) []made
}

type planRun struct {
	plan    *plan.Plan
	cat     *tool.Catalogue
	policy  *policy.Policy
	author  policy.Author
	tools   func(step int, args value.Value) value.Value
	approve func(policy.Decision) bool // nil approves nothing
	strict  bool                       // start nothing when the check finds an ask or a denial
	// own gives the parts of a step's args that count as the user's own whatever
	// the grants say: for the ablation alone.
	own func(step int, args value.Value) []policy.Origin
}

type agentRun struct {
	cat    *tool.Catalogue
	policy *policy.Policy
	author policy.Author
	next   func(last *made) (name string, args value.Value, ok bool)
	tools  func(name string, args value.Value) value.Value
	own    func(name string, args value.Value) []policy.Origin
}

// drive is the driver of all figures.
var drive driver = direct{}

// direct drives a session alone: steps in plan order, one at a time.
type direct struct{}

func (direct) plan(t testing.TB, r planRun) []made {
	t.Helper()
	flow := r.policy.Check(r.plan, r.author)
	if r.strict && flow.Worst() != policy.Allow {
		return nil
	}
	s := r.policy.Session("figures", r.author)
	outputs := make([]value.Value, len(r.plan.Steps))
	var calls []made
	for i := range r.plan.Steps {
		step := &r.plan.Steps[i]
		fill := make([]value.Value, len(step.Refs))
		ready := true
		for h, ref := range step.Refs {
			if ref.Step < 0 || outputs[ref.Step].IsZero() {
				ready = false
				break
			}
			fill[h] = outputs[ref.Step]
			if ref.HasPath {
				var err error
				if fill[h], err = fill[h].Lookup(ref.Path); err != nil {
					ready = false
					break
				}
			}
		}
		if !ready {
			continue // skipped or bad_reference
		}
		c := policy.Call{Step: step.ID, Tool: r.cat.Get(step.Tool), Args: step.Template.Fill(fill), Origins: policy.Origins(r.plan, i), Promise: flow.Step(i)}
		if r.own != nil {
			c.Origins = append(c.Origins, r.own(i, c.Args)...)
		}
		m := made{step: step.ID, tool: step.Tool, args: c.Args, decision: s.Judge(c)}
		m.done = m.decision.Effect == policy.Allow || m.decision.Effect == policy.Ask && r.approve != nil && r.approve(m.decision)
		if m.done {
			outputs[i] = r.tools(i, c.Args)
			s.Begin(c)
			s.End(c, "ok", outputs[i])
		}
		calls = append(calls, m)
	}
	return calls
}

func (direct) agent(t testing.TB, r agentRun) []made {
	t.Helper()
	s := r.policy.Session("figures", r.author)
	var calls []made
	var last *made
	for n := 1; ; n++ {
		name, args, ok := r.next(last)
		if !ok {
			return calls
		}
		c := policy.Call{Step: "1." + itoa(n), Tool: r.cat.Get(name), Args: args}
		if r.own != nil {
			c.Origins = r.own(name, args)
		}
		m := made{step: c.Step, tool: name, args: args}
		if f := c.Tool.CheckArgs(args); f != nil {
			m.decision = policy.Decision{Effect: policy.Deny, Code: f.Code, Message: f.Message}
		} else if m.decision = s.Judge(c); m.decision.Effect == policy.Allow {
			m.done = true
			s.Begin(c)
			s.End(c, "ok", r.tools(name, args))
		}
		calls = append(calls, m)
		last = &calls[len(calls)-1]
	}
}
