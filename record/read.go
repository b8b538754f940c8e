package record

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// A History is what the journal says of one run.
type History struct {
	Summary  journal.Summary
	Plan     *plan.Plan
	Origin   string // the first run of a line of forks: its idempotency keys go on
	Forked   string // the run that this one was forked from, "" otherwise
	Parent   string // the run whose tool started it
	Contents Contents
	Budget   *int
	Workers  int
	Eager    bool
	MaxArgs  int
	Started  time.Time
	Past     []run.Past
	Tools    map[string]string // digest of each tool's definition when the run began
	Setup    value.Value       // see [Options]; no value when there was none
	Gated    bool              // a gate judged every call

	declared []value.Value // the tools of the plan when the run began
	kept     *machine.Report

	asks map[string]*openAsk // by step: the last ask, while it is open
	lost map[string]*lostCall
}

// openAsk is an ask that nobody has answered for good.
type openAsk struct {
	Ask
	decided bool
}

// lostCall is a call that waits for a resolution.
type lostCall struct {
	attempt int
	index   int // of its record
}

// startBody is the body of record 0.
func startBody(p *plan.Plan, c *tool.Catalogue, opt *Options, budget *int, origin, forked string) value.Value {
	tools := []value.Member{}
	var declared []value.Value
	seen := map[string]bool{}
	for i := range p.Steps {
		name := p.Steps[i].Tool
		if d := c.Get(name); d != nil && !seen[name] {
			seen[name] = true
			tools = append(tools, value.Member{Key: name, Value: text(d.Digest().String())})
			declared = append(declared, value.ObjectOf(
				value.Member{Key: "definition", Value: d.Definition()},
				value.Member{Key: "attempts", Value: value.Int(int64(d.MaxAttempts()))},
			))
		}
	}
	ms := []value.Member{
		{Key: "plan", Value: value.MustText(source(p, opt.Contents))},
		{Key: "contents", Value: text(string(opt.Contents))},
		{Key: "workers", Value: value.Int(int64(opt.Run.Workers))},
		{Key: "eager", Value: value.BoolValue(opt.Run.Eager)},
		{Key: "max_args", Value: value.Int(int64(opt.Run.MaxArgs))},
		{Key: "gated", Value: value.BoolValue(opt.Run.Gate != nil)},
		{Key: "tools", Value: value.ObjectOf(tools...)},
		{Key: "declared", Value: value.ListOf(declared...)},
		{Key: "setup", Value: opt.Setup},
		{Key: "origin", Value: optional(origin)},
		{Key: "forked", Value: optional(forked)},
		{Key: "parent", Value: optional(opt.Parent)},
	}
	if budget != nil {
		ms = append(ms, value.Member{Key: "budget", Value: value.Int(int64(*budget))})
	}
	return of(ms...)
}

// source is the text of a plan as contents lets it be kept: whole, or without
// args, which leaves what depends on what.
func source(p *plan.Plan, contents Contents) string {
	if contents == Full {
		return string(p.Source())
	}
	steps := make([]value.Value, len(p.Steps))
	for i := range p.Steps {
		s := &p.Steps[i]
		var after []value.Value
		for _, d := range s.Deps {
			after = append(after, text(p.Steps[d].ID))
		}
		for _, id := range s.Unknown {
			after = append(after, text(id))
		}
		steps[i] = value.ObjectOf(
			value.Member{Key: "id", Value: text(s.ID)},
			value.Member{Key: "tool", Value: text(s.Tool)},
			value.Member{Key: "after", Value: value.ListOf(after...)},
		)
	}
	return value.ListOf(steps...).String()
}

// Load reads the record of a run. It takes no lock, so the run may be going on.
func Load(ctx context.Context, store *journal.Store, id string) (*History, error) {
	sum, err := store.Summary(ctx, id)
	if err != nil {
		return nil, err
	}
	h, err := newHistory(sum)
	if err != nil {
		return nil, err
	}
	return h, h.read(ctx, store.Entries(ctx, id, 0))
}

func newHistory(sum journal.Summary) (*History, error) {
	if sum.Kind != KindPlan && sum.Kind != KindRehearsal {
		return nil, fmt.Errorf("run %s: %w: its kind is %q", sum.ID, ErrNotAPlan, sum.Kind)
	}
	return &History{Summary: sum, Started: sum.Started, asks: map[string]*openAsk{}, lost: map[string]*lostCall{}, Tools: map[string]string{}}, nil
}

func (h *History) read(ctx context.Context, entries iter.Seq2[journal.Entry, error]) error {
	for e, err := range entries {
		if err != nil {
			return err
		}
		body, err := e.Body(ctx)
		if err != nil {
			return err
		}
		if err := h.take(e, body); err != nil {
			return fmt.Errorf("record %d (%s): %w", e.Index, e.Kind, err)
		}
	}
	if h.Plan == nil {
		return fmt.Errorf("the run has no start record")
	}
	return nil
}

func str(v value.Value, key string) string {
	m, _ := v.Get(key)
	s, _ := m.Text()
	return s
}

func num(v value.Value, key string) int {
	m, _ := v.Get(key)
	n, _ := m.Int()
	return int(n)
}

func flag(v value.Value, key string) bool {
	m, _ := v.Get(key)
	b, _ := m.Bool()
	return b
}

func when(v value.Value, key string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, str(v, key))
	return t
}

// take adds one record to the history.
func (h *History) take(e journal.Entry, body value.Value) error {
	step := str(body, "step")
	past := func(ev machine.Event) { h.Past = append(h.Past, run.Past{Step: step, Event: ev}) }
	switch e.Kind {
	case "start":
		return h.begin(body)
	case kindDecision:
		v, err := verdict(str(body, "verdict"))
		if err != nil {
			return err
		}
		past(machine.Event{Kind: machine.Judged, Verdict: v, Person: flag(body, "person"), Code: str(body, "code"), Message: str(body, "message")})
		h.setArgs(step, str(body, "args_digest"))
		delete(h.asks, step)
		if ask, ok := body.Get("ask"); ok && v == machine.Ask {
			args, _ := ask.Get("args")
			d, err := value.ParseDigest(str(ask, "digest"))
			if err != nil {
				return err
			}
			h.asks[step] = &openAsk{Ask: Ask{Run: h.Summary.ID, Step: step, Tool: str(ask, "tool"), Args: args, Code: str(body, "code"), Message: str(body, "message"), Expires: when(ask, "expires"), Digest: d}}
		}
	case kindIntent:
		h.Past = append(h.Past, run.Past{Step: step, Begun: true, Event: machine.Event{Attempt: num(body, "attempt"), Start: e.Time}})
		if args, ok := body.Get("args"); ok {
			h.setArgs(step, args.Digest().String())
		} else {
			h.setArgs(step, str(body, "args_digest"))
		}
	case kindOutcome:
		h.outcome(step, body, past)
	case kindLost:
		past(machine.Event{Kind: machine.Lost, Attempt: num(body, "attempt")})
		h.lost[step] = &lostCall{attempt: num(body, "attempt"), index: e.Index}
	case kindReused:
		out, _ := body.Get("output")
		past(machine.Event{Kind: machine.Reused, Output: out})
		h.setArgs(step, str(body, "args_digest"))
	case kindAnswer:
		h.answer(e, step, body, past)
	case kindReopened:
		args, _ := body.Get("args")
		past(machine.Event{Kind: machine.Reopened, Args: args})
		delete(h.asks, step)
	case kindStopped, kindEnd:
		if r, ok := body.Get("report"); ok {
			h.kept = readReport(h.Summary.ID, r)
		}
	case kindResumed:
		h.kept = nil
	case kindResolution:
		if l := h.lost[step]; l != nil && l.index == num(body, "of") {
			out, _ := body.Get("output")
			past(machine.Event{Kind: machine.Resolved, Resolution: resolution(str(body, "resolution")), Output: out})
			delete(h.lost, step)
		}
	}
	return nil
}

// setArgs notes the digest of args that the latest event of a step was about.
func (h *History) setArgs(step, digest string) {
	d, err := value.ParseDigest(digest)
	if err != nil || h.Past[len(h.Past)-1].Step != step {
		return
	}
	h.Past[len(h.Past)-1].Args = d
}

func (h *History) begin(body value.Value) error {
	var err error
	if h.Plan, err = plan.Decode([]byte(str(body, "plan")), unlimited); err != nil {
		return err
	}
	h.Contents = Contents(str(body, "contents"))
	h.Workers, h.Eager, h.MaxArgs = num(body, "workers"), flag(body, "eager"), num(body, "max_args")
	h.Origin, h.Forked, h.Parent = str(body, "origin"), str(body, "forked"), str(body, "parent")
	if h.Origin == "" {
		h.Origin = h.Summary.ID
	}
	if b, ok := body.Get("budget"); ok {
		n, _ := b.Int()
		budget := int(n)
		h.Budget = &budget
	}
	h.Setup, _ = body.Get("setup")
	h.Gated = flag(body, "gated")
	declared, _ := body.Get("declared")
	for _, d := range declared.Elements() {
		h.declared = append(h.declared, d)
	}
	tools, _ := body.Get("tools")
	for name, d := range tools.Members() {
		h.Tools[name], _ = d.Text()
	}
	return nil
}

// unlimited are the limits for a plan that was accepted before: those of then
// may have been higher than the defaults of now.
var unlimited = plan.Limits{Bytes: 1 << 31, Steps: 1 << 31, Depth: value.MaxDepth}

func (h *History) outcome(step string, body value.Value, past func(machine.Event)) {
	ev := machine.Event{Kind: machine.Answered, Attempt: num(body, "attempt"), Start: when(body, "start"), End: when(body, "end")}
	if f, ok := body.Get("failure"); ok {
		ev.Failure = &tool.Failure{
			Code: str(f, "code"), Message: str(f, "message"), Stack: str(f, "stack"),
			Retryable: flag(f, "retryable"), Lost: flag(f, "lost"), NotStarted: flag(f, "not_started"), After: time.Duration(num(f, "after_ms")) * time.Millisecond,
		}
		past(ev)
		return
	}
	if out, ok := body.Get("output"); ok {
		ev.Output = out
		past(ev)
		return
	}
	// The output was withheld, because it feeds a secret arg: the call counts
	// as begun, and as lost when the run goes on.
}

func (h *History) answer(e journal.Entry, step string, body value.Value, past func(machine.Event)) {
	ask := h.asks[step]
	if ask == nil || ask.decided || str(body, "approves") != ask.Digest.String() || e.Time.After(ask.Expires) {
		return // void: of another ask, or too late
	}
	ask.decided = true
	if args, ok := body.Get("args"); ok {
		past(machine.Event{Kind: machine.Reopened, Args: args})
		return
	}
	v, err := verdict(str(body, "verdict"))
	if err != nil || v == machine.Ask {
		return
	}
	message := "a person said no"
	if v == machine.Allow {
		message = "a person said yes"
	}
	if by := str(body, "by"); by != "" {
		message += " (" + by + ")"
	}
	if why := str(body, "why"); why != "" {
		message += ": " + why
	}
	past(machine.Event{Kind: machine.Judged, Verdict: v, Person: true, Code: "person", Message: message})
}

func verdict(s string) (machine.Verdict, error) {
	for _, v := range []machine.Verdict{machine.Allow, machine.Deny, machine.Ask} {
		if v.String() == s {
			return v, nil
		}
	}
	return machine.Deny, fmt.Errorf("verdict %q is none", s)
}

func resolution(s string) machine.Resolution {
	switch s {
	case "happened":
		return machine.Happened
	case "did_not_happen":
		return machine.DidNotHappen
	}
	return machine.GiveUp
}

// Asks are the open asks of a run, in plan order.
func (h *History) Asks() []Ask {
	var as []Ask
	for i := range h.Plan.Steps {
		if a := h.asks[h.Plan.Steps[i].ID]; a != nil && !a.decided {
			as = append(as, a.Ask)
		}
	}
	return as
}

// Catalogue is that of the run as far as its plan uses it, from the record. Its
// digest is not that of the whole catalogue.
func (h *History) Catalogue() (*tool.Catalogue, error) {
	decls := make([]*tool.Declaration, len(h.declared))
	for i, v := range h.declared {
		definition, _ := v.Get("definition")
		d, err := tool.ParseDefinition(definition)
		if err != nil {
			return nil, err
		}
		d.Attempts = num(v, "attempts")
		decls[i] = d
	}
	return tool.NewCatalogue(decls...)
}

// Report rebuilds the report as of the last record, from nothing but the record.
// Of a run whose record does not hold all outputs it is the one that was kept
// when the run last stopped, without them; while it goes on there is none, and
// the error is [ErrDigestsOnly] or [*run.MisfitError].
func (h *History) Report() (*machine.Report, error) {
	if h.kept != nil {
		return h.kept, nil
	}
	if h.Contents != Full {
		return nil, fmt.Errorf("run %s: %w", h.Summary.ID, ErrDigestsOnly)
	}
	replay, err := h.Replay()
	if err != nil {
		return nil, err
	}
	for at, p := range h.Past {
		if err := replay.Apply(at, p); err != nil {
			return nil, err
		}
	}
	r := replay.Report()
	r.Run = h.Summary.ID
	return r, nil
}

// Replay begins a replay of the run, from its start.
func (h *History) Replay() (*run.Replay, error) {
	c, err := h.Catalogue()
	if err != nil {
		return nil, err
	}
	o := h.options()
	o.Past = nil
	if h.Gated {
		o.Gate = past{}
	}
	return run.NewReplay(h.Plan, c, o), nil
}

// past stands for the gate of a run that is only read.
type past struct{}

// Judge is never called.
func (past) Judge(context.Context, call.Request) (call.Decision, error) {
	return call.Decision{}, errors.New("a record is read, not judged")
}

func (h *History) options() run.Options {
	return run.Options{Budget: h.Budget, Workers: h.Workers, Eager: h.Eager, MaxArgs: h.MaxArgs, Past: h.Past}
}

// Lost are the steps whose last call was begun before a crash, was found to have
// no outcome, and was not resolved, in plan order. Those whose tool is safe to
// repeat are called again by resume.
func (h *History) Lost() []string {
	var steps []string
	for i := range h.Plan.Steps {
		if id := h.Plan.Steps[i].ID; h.lost[id] != nil {
			steps = append(steps, id)
		}
	}
	return steps
}
