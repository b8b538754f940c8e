// Package gate puts a policy, approvals and secrets at the door through which
// every call goes.
//
//	pol, err := policy.Default().Compile(set.Catalogue())
//	g := gate.New(gate.Options{Policy: pol, Plan: p})
//	if g.Worst() != policy.Allow {
//		// a person will be asked, or something denied: known before anything runs
//	}
//	report, err := run.Do(ctx, p, set, run.Options{Gate: g})
//
// It decides nothing by itself: package policy does, which is pure, and people.
package gate

import (
	"context"
	"fmt"
	"sync"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/value"
)

// OnAsk says what happens to a call about which a person should be asked.
type OnAsk string

// The ways. Pause is the zero value's meaning.
const (
	Pause  OnAsk = "pause"  // the run pauses when nothing else can go on
	Refuse OnAsk = "refuse" // the call is denied, with code needs_approval
	Prompt OnAsk = "prompt" // the person at the terminal is asked at once
)

// A Verdict is what a person says when asked at once.
type Verdict struct {
	Later bool // neither yes nor no: the run pauses for it
	Allow bool
	By    string
	Why   string
}

// Options of a gate.
type Options struct {
	Policy *policy.Policy // nil: policy.None
	Author policy.Author  // of the calls
	Plan   *plan.Plan     // whose steps are judged; nil for an agent
	// Approve names the tools every call of which a person must approve, whatever
	// the policy says.
	Approve map[string]bool
	OnAsk   OnAsk
	// Ask asks the person at once; needed for Prompt. It may take its time.
	Ask func(ctx context.Context, r call.Request, d call.Decision) (Verdict, error)
}

// A Gate judges the calls of one run. It is safe for concurrent use.
type Gate struct {
	opt  Options
	flow *policy.Flow
	// doubt and note are those of Rehearsed.
	doubt func(call.Request) (code, message string)
	note  string

	mu      sync.Mutex
	session *policy.Session // made when the run has an id, for rules that look at it; holding mu
}

var (
	_ call.Follower = (*Gate)(nil)
	_ call.Asker    = (*Gate)(nil)
)

// New makes the gate of a run.
func New(o Options) *Gate {
	if o.Policy == nil {
		o.Policy = policy.None
	}
	g := &Gate{opt: o}
	if o.Plan != nil {
		g.flow = o.Policy.Check(o.Plan, o.Author)
	}
	return g
}

// Rehearsed makes the gate ask a person also about calls that the policy allows
// and of which doubt says why ("" is no doubt), and tells note to whoever is
// asked about any call. It must be called before the first call is judged.
func (g *Gate) Rehearsed(doubt func(call.Request) (code, message string), note string) {
	g.doubt, g.note = doubt, note
}

// Digest is the digest of everything that a decision of this gate rests on,
// but for what people say: a run goes on only under the same.
func Digest(p *policy.Policy, approve map[string]bool, o OnAsk, author policy.AuthorKind) value.Digest {
	if p == nil {
		p = policy.None
	}
	ms := []value.Member{
		{Key: "policy", Value: value.MustText(p.Digest().String())},
		{Key: "refuse", Value: value.BoolValue(o == Refuse)},
		{Key: "author", Value: value.MustText(author.String())},
	}
	names := map[string]any{}
	for name, on := range approve {
		if on {
			names[name] = true
		}
	}
	set, err := value.Of(names)
	if err != nil {
		panic("gate: a tool's name is not UTF-8: " + err.Error())
	}
	return value.ObjectOf(append(ms, value.Member{Key: "approve", Value: set})...).Digest()
}

// Worst is the worst answer that any step of the plan can be known to get.
func (g *Gate) Worst() policy.Effect {
	worst := policy.Allow
	if g.flow == nil {
		return worst
	}
	worst = g.flow.Worst()
	for i := range g.opt.Plan.Steps {
		if g.flow.Step(i) != nil && g.opt.Approve[g.opt.Plan.Steps[i].Tool] {
			worst = max(worst, policy.Ask)
		}
	}
	return worst
}

// Findings are what the gate will ask or deny, for the checker.
func (g *Gate) Findings(p *plan.Plan) []check.Diagnostic {
	var ds []check.Diagnostic
	for i := range p.Steps {
		s := &p.Steps[i]
		promise := g.flow.Step(i)
		if promise == nil {
			continue
		}
		d := check.Diagnostic{Step: s.ID, Pointer: p.Pointer(i), Severity: check.Warning}
		switch {
		case promise.Effect == policy.Deny:
			d.Code, d.Message = check.Denied, promise.Message
			if promise.Certain {
				d.Severity = check.Error
			}
		case promise.Effect == policy.Ask:
			d.Code, d.Message = check.NeedsApproval, promise.Message
		case g.opt.Approve[s.Tool]:
			d.Code, d.Message = check.NeedsApproval, approveMessage(s.Tool)
		default:
			continue
		}
		ds = append(ds, d)
	}
	return ds
}

func approveMessage(tool string) string {
	return fmt.Sprintf("the configuration wants a person to approve every call of %s", tool)
}

// in is the session, begun with the run of the first request; holding mu.
func (g *Gate) in(r call.Request) *policy.Session {
	if g.session == nil {
		g.session = g.opt.Policy.Session(r.Run, g.opt.Author)
	}
	return g.session
}

// call turns a request into what a policy judges.
func (g *Gate) call(r call.Request) policy.Call {
	c := policy.Call{Step: r.Step, Tool: r.Tool, Args: r.Args}
	if p := g.opt.Plan; p != nil {
		for _, ref := range r.Refs {
			if ref.Step >= 0 {
				c.Origins = append(c.Origins, policy.Origin{Pointer: ref.Pointer, Step: p.Steps[ref.Step].ID, Path: ref.Path, HasPath: ref.HasPath})
			}
		}
		if i := p.Index(r.Step); i >= 0 && g.flow != nil && r.Before.IsZero() {
			c.Promise = g.flow.Step(i)
		}
	}
	if !r.Before.IsZero() {
		c.Origins = policy.Edited(r.Before, r.Args, c.Origins)
	}
	return c
}

// Judge implements [call.Gate]. A call that is let through counts as made from
// now on, so that of two calls that race for the last place under a limit one is
// refused.
func (g *Gate) Judge(ctx context.Context, r call.Request) (call.Decision, error) {
	d := g.judge(r, g.call(r))
	if d.Verdict != machine.Ask {
		return d, nil
	}
	return g.Ask(ctx, r, d)
}

// Ask implements [call.Asker].
func (g *Gate) Ask(ctx context.Context, r call.Request, d call.Decision) (call.Decision, error) {
	switch g.opt.OnAsk {
	case Refuse:
		d.Verdict, d.Code = machine.Deny, policy.CodeNeedsApproval
		d.Message += "; nobody is asked"
		return d, nil
	case Prompt:
		if g.opt.Ask == nil {
			return d, nil
		}
		v, err := g.opt.Ask(ctx, r, d)
		if err != nil || v.Later {
			return d, err
		}
		d.By, d.Person, d.Verdict = v.By, true, machine.Deny
		if v.Why != "" {
			d.Message = v.Why
		}
		d.Code = "person"
		if v.Allow {
			d.Verdict = machine.Allow
			c := g.call(r).Approved()
			g.mu.Lock()
			g.in(r).Begin(c)
			g.mu.Unlock()
		}
	}
	return d, nil
}

func (g *Gate) judge(r call.Request, c policy.Call) call.Decision {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.in(r).Judge(c)
	code, doubt := "", ""
	if g.doubt != nil {
		code, doubt = g.doubt(r)
	}
	out := call.Decision{Code: d.Code, Message: d.Message, By: "policy", Facts: d.Value()}
	switch d.Effect {
	case policy.Deny:
		out.Verdict = machine.Deny
	case policy.Ask:
		out.Verdict = machine.Ask
	case policy.Allow:
		switch {
		case g.opt.Approve[r.Tool.Name]:
			out.Verdict, out.Code, out.By, out.Message = machine.Ask, policy.CodeNeedsApproval, "configuration", approveMessage(r.Tool.Name)
		case doubt != "":
			out.Verdict, out.Code, out.By, out.Message, doubt = machine.Ask, code, "rehearsal", doubt, ""
		default:
			out.Verdict = machine.Allow
			g.in(r).Begin(c)
		}
	}
	if out.Verdict == machine.Ask {
		for _, more := range []string{doubt, g.note} {
			if more != "" {
				out.Message += "; " + more
			}
		}
	}
	return out
}

// Allowed implements [call.Follower].
func (g *Gate) Allowed(r call.Request) {
	c := g.call(r)
	if r.Approved {
		c = c.Approved()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.in(r).Begin(c)
}

// Ended implements [call.Follower].
func (g *Gate) Ended(r call.Request, o call.Outcome) {
	c := g.call(r)
	if r.Approved {
		c = c.Approved()
	}
	status := machine.OK
	switch f := o.Failure; {
	case f == nil:
	case g.opt.Plan != nil && (f.Retryable || f.Lost && r.Tool.Effects.Repeatable()) && r.Attempt < r.Tool.MaxAttempts():
		return // tried again without being judged again, so a limit counts it all the while
	case f.Lost && !r.Tool.Effects.ReadOnly, f.Code == string(machine.Uncertain):
		// It may have had its effect, also where the report says tool_error because
		// it was safe to repeat, and where a person gave it up.
		status = machine.Uncertain
	default:
		status = machine.ToolError
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.in(r).End(c, string(status), o.Output)
}
