package record

import (
	"context"
	"errors"
	"fmt"
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
	Summary journal.Summary
	Plan    *plan.Plan
	Origin  string // the first run of a line of forks: its idempotency keys go on
	Forked  string // the run that this one was forked from, "" otherwise
	Parent  string // the run whose tool started it
	Budget  *int
	Workers int
	Eager   bool
	MaxArgs int
	Started time.Time
	Past    []run.Past
	Gated   bool // a gate judged every call
	// AskRepeats says that the run asks about effects that the run it was forked
	// from had.
	AskRepeats bool

	kept *machine.Report

	Questions
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
			declared = append(declared, declaration(d))
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
		{Key: "ask_repeats", Value: value.BoolValue(opt.AskRepeats && forked != "")},
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
	if err := each(ctx, id, store.Entries(ctx, id, 0), h.take); err != nil {
		return nil, err
	}
	if h.Plan == nil {
		return nil, fmt.Errorf("run %s has no start record", id)
	}
	h.gather()
	return h, nil
}

func newHistory(sum journal.Summary) (*History, error) {
	if sum.Kind != KindPlan && sum.Kind != KindRehearsal {
		return nil, fmt.Errorf("run %s: %w: its kind is %q", sum.ID, ErrNotAPlan, sum.Kind)
	}
	return &History{Summary: sum, Started: sum.Started, Questions: newQuestions(sum.ID)}, nil
}

// gather puts everything about a step whose output was withheld to the place where
// that happened, because a replay makes the call again there: the record of an
// earlier resume has that at its end. An attempt to make it again that failed
// changes nothing but the count of calls.
func (h *History) gather() {
	of := map[string][]run.Past{} // by step: what belongs to its place
	for i := range h.Past {
		if p := &h.Past[i]; !p.Begun && p.Event.Withheld {
			of[p.Step] = nil
		}
	}
	if len(of) == 0 {
		return
	}
	held := map[string]*run.Past{}
	first := map[string]bool{}
	for i := range h.Past {
		p := h.Past[i]
		if _, ok := of[p.Step]; !ok {
			continue
		}
		switch {
		case !p.Begun && p.Event.Withheld:
			held[p.Step] = &p
		case held[p.Step] == nil:
			continue // before it was withheld: it stays where it is
		case !p.Begun && p.Event.Kind == machine.Answered:
		case !p.Begun && p.Event.Kind == machine.Resolved:
			held[p.Step] = nil
			of[p.Step] = append(of[p.Step], p)
		default:
			of[p.Step] = append(of[p.Step], p)
		}
	}
	for step, p := range held {
		// A call that was found lost, and that is not safe to repeat, waits for a
		// person: it has no answer any more.
		more := of[step]
		if p != nil && (len(more) == 0 || more[len(more)-1].Begun || h.repeatable(step)) {
			of[step] = append(more, *p)
		}
	}
	var past []run.Past
	for _, p := range h.Past {
		more, ok := of[p.Step]
		switch {
		case !ok:
			past = append(past, p)
		case first[p.Step]:
		case !p.Begun && p.Event.Withheld:
			first[p.Step] = true
			past = append(past, more...)
		default:
			past = append(past, p)
		}
	}
	h.Past = past
}

// repeatable reports whether the tool of a step was safe to repeat.
func (h *History) repeatable(step string) bool {
	at := h.Plan.Index(step)
	for _, v := range h.declared {
		definition, _ := v.Get("definition")
		if at >= 0 && str(definition, "name") == h.Plan.Steps[at].Tool {
			e, _ := definition.Get("effects")
			return tool.Effects{ReadOnly: flag(e, "readOnly"), Idempotent: flag(e, "idempotent"), Keyed: flag(e, "keyed")}.Repeatable()
		}
	}
	return false
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
	said, err := h.Questions.take(e, body)
	if err != nil {
		return err
	}
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
	case kindReused:
		out, _ := body.Get("output")
		past(machine.Event{Kind: machine.Reused, Output: out})
		h.setArgs(step, str(body, "args_digest"))
	case kindReopened:
		args, _ := body.Get("args")
		past(machine.Event{Kind: machine.Reopened, Args: args})
	case kindStopped, kindEnd:
		if r, ok := body.Get("report"); ok {
			h.kept = readReport(h.Summary.ID, r)
		}
	case kindResumed:
		h.kept = nil
	}
	switch a, r := said.answer, said.resolution; {
	case a != nil && !a.Args.IsZero():
		past(machine.Event{Kind: machine.Reopened, Args: a.Args})
	case a != nil && a.Allow:
		past(machine.Event{Kind: machine.Judged, Verdict: machine.Allow, Person: true, Code: codePerson, Message: a.message()})
	case a != nil:
		past(machine.Event{Kind: machine.Judged, Verdict: machine.Deny, Person: true, Code: codePerson, Message: a.message()})
	case r != nil:
		past(machine.Event{Kind: machine.Resolved, Resolution: r.What, Output: r.Output})
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
	h.Gated, h.AskRepeats = flag(body, "gated"), flag(body, "ask_repeats")
	return nil
}

// unlimited are the limits for a plan that was accepted before: those of then
// may have been higher than the defaults of now.
var unlimited = plan.Limits{Bytes: 1 << 31, Steps: 1 << 31, Depth: value.MaxDepth}

func (h *History) outcome(step string, body value.Value, past func(machine.Event)) {
	ev := machine.Event{Kind: machine.Answered, Attempt: num(body, "attempt"), Start: when(body, "start"), End: when(body, "end")}
	if f, ok := body.Get("failure"); ok {
		ev.Failure = parseFailure(f)
		past(ev)
		return
	}
	if out, ok := body.Get("output"); ok {
		ev.Output = out
		past(ev)
		return
	}
	// The output was withheld, because it feeds a secret arg.
	ev.Output, ev.Withheld = withheld, true
	past(ev)
}

// parseFailure reads what failureBody wrote.
func parseFailure(f value.Value) *tool.Failure {
	return &tool.Failure{
		Code: str(f, "code"), Message: str(f, "message"), Stack: str(f, "stack"),
		Retryable: flag(f, "retryable"), Lost: flag(f, "lost"), NotStarted: flag(f, "not_started"), After: time.Duration(num(f, "after_ms")) * time.Millisecond,
	}
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
