// Package rehearsal answers the calls of a run from a worldbook: a stage in
// the place of the world. Nothing here can reach a live tool.
//
//	stage, err := rehearsal.New(b, rehearsal.Options{Effectful: func(tool string) bool { return tool != "get_order" }})
//	run, err := stage.Begin(ctx, dir)
//	a, err := run.Answer(ctx, "get_order", args)
//	if a.Failure != nil && a.Failure.Code == rehearsal.CodeMiss { … }
//
// A call is answered by, in this order: a recorded answer to equal arguments in
// the same state of an episode; a rule; the world-model agent, if there is one
// and it is allowed; else it is a miss (spec/world.md §2). A wrong answer is far
// worse than a miss: where recordings disagree, or the state is not known, there
// is none.
package rehearsal

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/engine"
	"github.com/callsheet/callsheet/world/session"
	"github.com/callsheet/callsheet/world/state"
)

// CodeMiss is the code of the failure that a call has to which nothing can be
// answered.
const CodeMiss = "rehearsal_miss"

// A Way is what answered a call.
type Way string

// The ways, in their order.
const (
	Recorded Way = "recorded"
	Ruled    Way = "rule"
	Agent    Way = "agent"
	Missed   Way = "miss"
)

// An Answer is what a call gets. Exactly one of Output and Failure is set.
type Answer struct {
	Output     value.Value
	Failure    *tool.Failure
	Provenance Provenance
}

// Provenance says where an answer comes from.
type Provenance struct {
	Way       Way      `json:"way"`
	Evidence  []string `json:"evidence"`  // ids of recorded turns, rules, and what an agent cited
	Reason    string   `json:"reason"`    // why the ways before did not answer; "" with a recorded one
	Worldbook string   `json:"worldbook"` // its digest

	// Outcome is what the rule or the agent says became of the call; "" with a
	// recorded answer, which is what the tool really gave.
	Outcome world.Outcome `json:"outcome"`
}

// Options say how a stage answers.
type Options struct {
	// Effectful reports whether a tool may change the world. nil: every tool
	// may, which is safe and finds the least.
	Effectful func(tool string) bool
	// Initial is the state that rules begin with; nil: the schema's defaults if
	// the worldbook was written by hand, else nothing is known. Recordings did not
	// begin in it, so that what they answered after the same calls is no answer
	// here: only what they answered in an equal state is, where the rules were
	// tried.
	Initial *state.State
	// Agent decides what nothing else answers; nil: nobody.
	Agent session.Agent
}

// A Run is one rehearsal: its calls, in their order, are the actions of a
// session. It is safe for concurrent use; calls are answered one at a time.
type Run struct {
	stage *Stage
	s     *session.Session

	mu     sync.Mutex
	before [sha256.Size]byte // holding mu: the effectful calls so far
	blind  bool              // holding mu: the session's state has lost the world
}

// Begin begins a rehearsal, its session in a directory.
func (s *Stage) Begin(ctx context.Context, dir string) (*Run, error) {
	initial, err := s.initial()
	if err != nil {
		return nil, err
	}
	play, err := session.Open(ctx, dir, s.b, session.Options{Initial: &initial, AllowUnvalidated: true, Agent: s.o.Agent, NoSync: true,
		FastPathConfidence: math.SmallestNonzeroFloat64}) // a rule that is supported comes before the agent
	if err != nil {
		return nil, err
	}
	return &Run{stage: s, s: play, before: s.begin}, nil
}

// Close ends the rehearsal; its session stays on disk.
func (r *Run) Close() error { return r.s.Close() }

// Session is the session that the calls are played in.
func (r *Run) Session() *session.Session { return r.s }

// Answer answers a call. A miss is an answer; an error is the harness's own.
func (r *Run) Answer(ctx context.Context, name string, args value.Value) (Answer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stage
	a := world.Action{Type: name, Arguments: args, Raw: value.NullValue()}
	changes := s.o.Effectful(name)
	k := key{name, argsKey(args), r.before}
	if changes {
		r.before = after(r.before, name, args)
	}
	found, reason := s.turns[k], "nothing was recorded of this call in this state"
	if len(found) == 0 && s.begin != ([sha256.Size]byte{}) {
		reason += ", and no recording began in the state that was given"
	}
	if len(found) == 0 && s.tried && !r.blind {
		if at, ok := stateKey(r.s.State()); ok {
			k.at = at
			found = s.turns[k]
		}
	}
	if len(found) > 0 {
		if i := slices.IndexFunc(found, func(f *recorded) bool { return !f.same(found[0]) }); i < 0 {
			return r.recorded(ctx, a, found, changes)
		}
		reason = fmt.Sprintf("%d recordings of this call in this state disagree", len(found))
	}
	ans, why, err := r.play(ctx, a, changes)
	if err != nil {
		return Answer{}, err
	}
	if why != "" {
		reason += "; " + why
		ans = Answer{Failure: &tool.Failure{Code: CodeMiss, Message: "the rehearsal has no answer to " + name + ": " + reason}, Provenance: Provenance{Way: Missed}}
	}
	ans.Provenance.Reason = reason
	ans.Provenance.Worldbook = s.b.Digest()
	return ans, nil
}

// maxCited is how many turns with one answer are named.
const maxCited = 8

func (r *Run) recorded(ctx context.Context, a world.Action, found []*recorded, changes bool) (Answer, error) {
	f := found[0]
	followed, err := r.s.Observe(ctx, a, f.text())
	if err != nil {
		return Answer{}, err
	}
	if changes && !followed {
		r.blind = true
	}
	p := Provenance{Way: Recorded, Worldbook: r.stage.b.Digest()}
	for _, t := range found[:min(len(found), maxCited)] {
		p.Evidence = append(p.Evidence, t.id)
	}
	return Answer{Output: f.output, Failure: f.failure, Provenance: p}, nil
}

// play asks rules and agent; why says why they have no answer.
func (r *Run) play(ctx context.Context, a world.Action, changes bool) (ans Answer, why string, err error) {
	e := r.stage.b.Engine
	working, _, err := r.s.State().Advance()
	if err != nil {
		return ans, "", err
	}
	rule, _, serr := e.Select(working, a, true)
	step := r.s.Step
	switch {
	case serr != nil:
		why = serr.Error()
	case rule == nil || !e.Templated(rule):
		why = "no rule that says what is returned applies"
		if g, what := r.guessed(working, a, nil); g != nil {
			why += ": rule " + g.ID + " " + what
		}
	case r.blind && readsState(rule):
		why = "rule " + rule.ID + " " + lost
	default:
		switch g, what := r.guessed(working, a, rule); g {
		case nil:
		case rule:
			why = "rule " + rule.ID + " " + what
		default:
			why = "rule " + rule.ID + " applies unless rule " + g.ID + " does, which " + what
		}
	}
	if why != "" {
		r.blind = r.blind || changes
		if r.stage.o.Agent == nil {
			return ans, why, nil
		}
		step = r.s.StepByAgent
	}
	res, err := step(ctx, session.Request{Action: a})
	if err != nil {
		if errors.Is(err, session.ErrConflict) || ctx.Err() != nil {
			return ans, "", err
		}
		r.blind = r.blind || changes
		return ans, err.Error(), nil
	}
	ans.Provenance.Way = Ruled
	if res.Route == session.ByAgent {
		ans.Provenance.Way = Agent
	}
	ans.Provenance.Outcome = res.Outcome
	for _, id := range res.Plan.RuleIDs {
		ans.Provenance.Evidence = append(ans.Provenance.Evidence, "rule:"+id)
	}
	for _, id := range res.Citations {
		if !slices.Contains(ans.Provenance.Evidence, id) {
			ans.Provenance.Evidence = append(ans.Provenance.Evidence, id)
		}
	}
	if res.Outcome == world.Failed {
		ans.Failure = &tool.Failure{Code: tool.CodeToolError, Message: res.Observation}
		return ans, "", nil
	}
	if ans.Output, err = r.stage.shape(a.Type, res.Observation); err != nil {
		r.blind = r.blind || changes
		return ans, err.Error(), nil
	}
	return ans, "", nil
}

// lost is why a rule says nothing once the state is.
const lost = "reads the state, which is not known after an effect that no rule explains"

// guessed is the first rule of an action of which it is not known whether it applies:
// nothing that is known speaks against it, and it reads something that is not. It may
// be the chosen one itself, or one that would apply in its place; without a chosen one
// any. what says what is not known. nil: the choice is no guess.
func (r *Run) guessed(s state.State, a world.Action, chosen *world.Rule) (rule *world.Rule, what string) {
	e := r.stage.b.Engine
	if c, err := e.Canonical(a); err == nil {
		a = c
	}
	// What is missing in a state that was whole from the beginning is not there.
	unknown := func(path string) bool {
		return r.blind || !r.stage.whole && !s.Has(state.ParsePath(path))
	}
	for _, rule := range e.RulesOf(a.Type) {
		if chosen != nil && rule.Priority < chosen.Priority || !e.Eligible(rule, s, true) {
			continue
		}
		path := engine.Undecided(rule.Conditions, s, a, unknown)
		if path == "" && r.blind && s.HoldAll(rule.Conditions, a) {
			path = stateScope(rule)
		}
		switch {
		case path == "":
		case r.blind:
			return rule, lost
		default:
			return rule, "would have to know " + path + ", and no state to begin with says it"
		}
	}
	return nil, ""
}

// stateScope is a path of the state that the scope of a rule compares, "" without
// one.
func stateScope(r *world.Rule) string {
	for _, entry := range r.Scope {
		key := engine.ScopeKey(entry.Key)
		if head, _, _ := strings.Cut(key, "."); world.IsNamespace(head) {
			return key
		}
	}
	return ""
}

// shape gives an observation the form that the outputs of the tool have: a text
// where they are texts, or nothing is known of them; what the text says as JSON
// where they never are.
func (s *Stage) shape(name, observation string) (value.Value, error) {
	switch f := s.forms[name]; {
	case f.texts && f.others:
		return value.Value{}, errors.New("the recorded outputs are of several forms, and a rule has but its text")
	case f.others:
		v, err := value.Parse([]byte(observation))
		if err != nil || v.Kind() == value.String {
			return value.Value{}, errors.New("what answers is a text, and the recorded outputs are none")
		}
		return v, nil
	}
	return value.Text(observation)
}

// readsState reports whether a rule depends on the state.
func readsState(r *world.Rule) bool {
	reads := false
	for i := range r.Conditions {
		r.Conditions[i].Leaves(func(l *world.Condition) bool {
			reads = reads || l.Left.Path != nil || l.Right != nil && l.Right.Path != nil
			return !reads
		})
	}
	return reads || stateScope(r) != "" || len(r.Effects) > 0 || r.ObservationTemplate == nil || hasState(*r.ObservationTemplate)
}

func hasState(template string) bool {
	return slices.ContainsFunc(engine.References(template), func(ref string) bool { return strings.HasPrefix(ref, "state_") })
}
