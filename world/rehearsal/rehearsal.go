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
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/engine"
	"github.com/callsheet/callsheet/world/episode"
	"github.com/callsheet/callsheet/world/internal/python"
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
}

// Options say how a stage answers.
type Options struct {
	// Effectful reports whether a tool may change the world. nil: every tool
	// may, which is safe and finds the least.
	Effectful func(tool string) bool
	// Initial is the state that rules begin with; nil: the schema's defaults if
	// the worldbook was written by hand, else nothing is known.
	Initial *state.State
	// Agent decides what nothing else answers; nil: nobody.
	Agent session.Agent
}

// A Stage answers from one worldbook. It is safe for concurrent use.
type Stage struct {
	b     *book.Book
	o     Options
	turns map[key][]*recorded
}

// key is a call in a state of an episode: the tool, its arguments by value, and
// the effectful calls before it.
type key struct {
	tool   string
	args   [sha256.Size]byte
	before [sha256.Size]byte
}

type recorded struct {
	id      string
	output  value.Value
	failure *tool.Failure
}

func (r *recorded) same(o *recorded) bool {
	if (r.failure == nil) != (o.failure == nil) {
		return false
	}
	if r.failure != nil {
		return r.failure.Code == o.failure.Code && r.failure.Message == o.failure.Message
	}
	return value.Equal(r.output, o.output)
}

// New reads the recordings of a worldbook. One without any is a stage that
// knows rules only.
func New(b *book.Book, o Options) (*Stage, error) {
	if o.Effectful == nil {
		o.Effectful = func(string) bool { return true }
	}
	s := &Stage{b: b, o: o, turns: map[key][]*recorded{}}
	eps, slices, err := b.Recording()
	if err != nil {
		return nil, err
	}
	ev, err := b.Evidence()
	if err != nil {
		return nil, err
	}
	byEpisode := map[string][]*episode.Slice{}
	for i := range slices {
		byEpisode[slices[i].EpisodeID] = append(byEpisode[slices[i].EpisodeID], &slices[i])
	}
	for i := range eps {
		s.learn(&eps[i], byEpisode[eps[i].ID], ev)
	}
	return s, nil
}

// learn indexes the turns of an episode up to where its state is no longer
// determined: by an effectful call that has no certain result, or that was
// under way together with others.
func (s *Stage) learn(e *episode.Episode, slices []*episode.Slice, ev *book.Evidence) {
	effectful := make(map[string]bool, len(slices)) // by event
	for _, sl := range slices {
		a, ok := episode.ReadAction(sl.ActionOf(e))
		effectful[sl.Actions[0]] = !ok || s.o.Effectful(a.Type)
	}
	var before [sha256.Size]byte
	for _, sl := range slices {
		a, ok := episode.ReadAction(sl.ActionOf(e))
		changes := effectful[sl.Actions[0]]
		beside := false // an effectful call was under way at the same time
		for _, c := range sl.Concurrent {
			beside = beside || effectful[c]
		}
		certain := ok && sl.Alignment != episode.Ambiguous
		if changes && (!certain || len(sl.Concurrent) > 0) {
			return
		}
		if certain && !beside {
			results := sl.ResultsOf(e)
			if len(results) == 1 {
				r := &recorded{id: "event:" + results[0].ID}
				if record := ev.Resolve("evidence_" + sl.ID); record != nil {
					r.id = "evidence:" + record.ID
				}
				r.output, r.failure = output(results[0])
				k := key{a.Type, argsKey(a.Arguments), before}
				s.turns[k] = append(s.turns[k], r)
			}
		}
		if changes {
			before = after(before, a.Type, a.Arguments)
		}
	}
}

// after is the state of an episode after one more effectful call.
func after(before [sha256.Size]byte, name string, args value.Value) [sha256.Size]byte {
	h := sha256.New()
	h.Write(before[:])
	k := argsKey(args)
	fmt.Fprintf(h, "%d:%s", len(name), name)
	h.Write(k[:])
	return [sha256.Size]byte(h.Sum(nil))
}

// argsKey is the digest of arguments with numbers by value: 1, 1.0 and 1e0 are
// one, and an integer that no float holds is none but itself.
func argsKey(args value.Value) [sha256.Size]byte {
	return sha256.Sum256(python.Append(nil, byValue(args), python.DigestStyle))
}

func byValue(v value.Value) value.Value {
	switch v.Kind() {
	case value.Number:
		lit, _ := v.Number()
		return value.MustText("number " + python.CanonicalNumber(lit))
	case value.String:
		s, _ := v.Text()
		return value.MustText("text " + s)
	case value.List:
		vs := make([]value.Value, 0, v.Len())
		for _, e := range v.Elements() {
			vs = append(vs, byValue(e))
		}
		return value.ListOf(vs...)
	case value.Object:
		ms := make([]value.Member, 0, v.Len())
		for k, m := range v.Members() {
			ms = append(ms, value.Member{Key: k, Value: byValue(m)})
		}
		return value.ObjectOf(ms...)
	}
	return v
}

// output is the result of a call as a tool returns it: the structured content
// of an MCP result, else the text of its parts, else the content as it is.
func output(e *episode.Event) (value.Value, *tool.Failure) {
	out := e.Content
	if e.IsMCP() {
		if v, ok := out.Get("structuredContent"); ok && !v.IsNull() {
			out = v
		} else if c, ok := out.Get("content"); ok && c.Kind() == value.List {
			out = value.MustText(episode.ResultText(e))
		}
	}
	if e.Kind != episode.Error {
		return out, nil
	}
	f := &tool.Failure{Code: tool.CodeToolError, Message: episode.ResultText(e)}
	if code, ok := out.Get("code"); ok && code.Kind() == value.String {
		f.Code, _ = code.Text()
		if m, ok := out.Get("message"); ok && m.Kind() == value.String {
			f.Message, _ = m.Text()
		}
	}
	return value.Value{}, f
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
	initial := s.o.Initial
	if initial == nil && s.b.Manifest.Kind() != book.Authored {
		none := state.Empty()
		initial = &none
	}
	play, err := session.Open(ctx, dir, s.b, session.Options{Initial: initial, AllowUnvalidated: true, Agent: s.o.Agent, NoSync: true,
		FastPathConfidence: math.SmallestNonzeroFloat64}) // a rule that is supported comes before the agent
	if err != nil {
		return nil, err
	}
	return &Run{stage: s, s: play}, nil
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
	text := ""
	switch {
	case f.failure != nil:
		text = f.failure.Message
	default:
		var isText bool
		if text, isText = f.output.Text(); !isText {
			text = f.output.String()
		}
	}
	followed, err := r.s.Observe(ctx, a, text)
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
	case r.blind && readsState(rule):
		why = "rule " + rule.ID + " reads the state, which is not known after an effect that no rule explains"
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
	ans.Output, err = value.Text(res.Observation)
	return ans, "", err
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
	return reads || len(r.Effects) > 0 || r.ObservationTemplate == nil || hasState(*r.ObservationTemplate)
}

func hasState(template string) bool {
	return slices.ContainsFunc(engine.References(template), func(ref string) bool { return strings.HasPrefix(ref, "state_") })
}
