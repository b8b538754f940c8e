package figures

import (
	"context"
	"testing"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/gate"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/schema"
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

// planRun is one run of a plan with --on-ask refuse, except that approve may let
// an ask through. tools answers the calls.
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

// agentRun is one run of an agent that calls what next gives, one call a round,
// until it gives none. A call that is asked about is denied.
type agentRun struct {
	cat    *tool.Catalogue
	policy *policy.Policy
	author policy.Author
	next   func() (name string, args value.Value, ok bool)
	tools  func(name string, args value.Value) value.Value
	own    func(name string, args value.Value) []policy.Origin
}

// drive runs plans by package run and agents by package agent, through the door
// and the gate that everything else goes through: what the figures say holds for
// the program and not for a model of it.
var drive driver

type driver struct{ sets map[*tool.Catalogue]*tool.Set }

// answers is how the tools of a set find who answers them in this run.
type answers struct{}

type answer func(step string, c *tool.Call) value.Value

// set are the tools of a catalogue; making one takes longer than a run.
func (d *driver) set(t testing.TB, cat *tool.Catalogue) *tool.Set {
	t.Helper()
	if s := d.sets[cat]; s != nil {
		return s
	}
	var tools []tool.Tool
	for _, decl := range cat.All() {
		tools = append(tools, tool.Tool{Declaration: *decl, Handler: func(ctx context.Context, c *tool.Call) (value.Value, error) {
			return ctx.Value(answers{}).(answer)(c.Step, c), nil
		}})
	}
	s, err := tool.NewSet(tools...)
	if err != nil {
		t.Fatal(err)
	}
	if d.sets == nil {
		d.sets = map[*tool.Catalogue]*tool.Set{}
	}
	d.sets[cat] = s
	return s
}

// witness is a gate that keeps what another decides.
type witness struct {
	*gate.Gate
	own     func(r call.Request) []policy.Origin
	decided func(r call.Request, d call.Decision)
}

// Judge implements [call.Gate].
func (w *witness) Judge(ctx context.Context, r call.Request) (call.Decision, error) {
	if w.own != nil {
		r.Before = without(r.Args, w.own(r))
	}
	d, err := w.Gate.Judge(ctx, r)
	w.decided(r, d)
	return d, err
}

// without is args with something else in place of what is the user's own, as if
// a person had put it there.
func without(args value.Value, own []policy.Origin) value.Value {
	return replace(args, "", func(ptr string, leaf value.Value) value.Value {
		for _, o := range own {
			if o.Pointer == ptr {
				return value.ListOf(leaf)
			}
		}
		return leaf
	})
}

// decision is what a gate said, as the policy says it.
func decision(d call.Decision) policy.Decision {
	effect := map[machine.Verdict]policy.Effect{machine.Allow: policy.Allow, machine.Ask: policy.Ask, machine.Deny: policy.Deny}[d.Verdict]
	return policy.Decision{Effect: effect, Code: d.Code, Message: d.Message}
}

func (d *driver) plan(t testing.TB, r planRun) []made {
	t.Helper()
	var calls []made
	asked := map[string]policy.Decision{}
	opt := gate.Options{Policy: r.policy, Author: r.author, Plan: r.plan, OnAsk: gate.Refuse}
	if r.approve != nil {
		opt.OnAsk = gate.Prompt
		opt.Ask = func(_ context.Context, q call.Request, d call.Decision) (gate.Verdict, error) {
			asked[q.Step] = decision(d)
			return gate.Verdict{Allow: r.approve(asked[q.Step]), By: "figures"}, nil
		}
	}
	w := &witness{Gate: gate.New(opt)}
	if r.strict && w.Worst() != policy.Allow {
		return nil
	}
	if r.own != nil {
		w.own = func(q call.Request) []policy.Origin { return r.own(r.plan.Index(q.Step), q.Args) }
	}
	w.decided = func(q call.Request, d call.Decision) {
		m := made{step: q.Step, tool: q.Tool.Name, args: q.Args, decision: decision(d), done: d.Verdict == machine.Allow}
		if ask, ok := asked[q.Step]; ok {
			m.decision = ask
		}
		calls = append(calls, m)
	}
	ctx := context.WithValue(t.Context(), answers{}, answer(func(step string, c *tool.Call) value.Value {
		return r.tools(r.plan.Index(step), c.Args)
	}))
	if _, err := run.Do(ctx, r.plan, d.set(t, r.cat), run.Options{Gate: w}); err != nil {
		t.Fatal(err)
	}
	return calls
}

// script is a model that calls what it is given.
type script struct {
	t     testing.TB
	next  func() (name string, args value.Value, ok bool)
	calls []made
}

// Ask implements [model.Model].
func (s *script) Ask(_ context.Context, req *model.Request) (*model.Reply, error) {
	name, args, ok := s.next()
	if !ok {
		return &model.Reply{Calls: []model.Call{{ID: "end", Name: "submit", Arguments: "{}"}}}, nil
	}
	if req.Choice.Mode != model.ModeAuto {
		s.t.Fatal("the loop forces the submission before the script is over")
	}
	s.calls = append(s.calls, made{tool: name, args: args})
	return &model.Reply{Calls: []model.Call{{ID: "c" + itoa(req.Round), Name: name, Arguments: args.String()}}}, nil
}

// maxScript bounds the calls of a scripted agent; no script is as long.
const maxScript = 1000

func (d *driver) agent(t testing.TB, r agentRun) []made {
	t.Helper()
	s := &script{t: t, next: r.next}
	last := func() *made { return &s.calls[len(s.calls)-1] }
	w := &witness{Gate: gate.New(gate.Options{Policy: r.policy, Author: r.author, OnAsk: gate.Refuse})}
	if r.own != nil {
		w.own = func(q call.Request) []policy.Origin { return r.own(q.Tool.Name, q.Args) }
	}
	w.decided = func(q call.Request, d call.Decision) { last().step, last().decision = q.Step, decision(d) }
	a, err := agent.New(agent.Config[map[string]any]{
		Model: s, Tools: d.set(t, r.cat).Catalogue(), Caller: agent.Through{Door: &call.Door{Tools: d.set(t, r.cat), Gate: w}},
		Submission: agent.Submission{Name: "submit"}, Schema: nothing,
		Settings: agent.Settings{MaxToolCalls: agent.Int(maxScript), RepeatLimit: agent.Int(0)},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.WithValue(t.Context(), answers{}, answer(func(_ string, c *tool.Call) value.Value {
		last().done = true
		return r.tools(last().tool, c.Args)
	}))
	if _, err := a.Run(ctx, agent.Task{User: "figures"}); err != nil {
		t.Fatal(err)
	}
	return s.calls
}

// nothing is the schema of a submission that says nothing.
var nothing = schema.MustCompile(`{"type":"object","additionalProperties":false}`)
