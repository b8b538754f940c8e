package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/engine"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/callsheet/callsheet/world/state"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Request is one action to play. The metadata is context for a model.
type Request struct {
	Action   world.Action `json:"action"`
	Metadata value.Value  `json:"metadata"`
}

// UnmarshalJSONFrom reads a request.
func (r *Request) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Request
	p := plain{Metadata: value.ObjectOf()}
	if err := json.UnmarshalDecode(dec, &p, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	if p.Action.Type == "" {
		return fmt.Errorf("a request needs an action")
	}
	*r = Request(p)
	return nil
}

// A Route says what answered.
type Route string

// The routes.
const (
	ByRule  Route = "rule"
	ByAgent Route = "agent"
	Tracked Route = "tracking" // it was observed, and nothing was predicted
)

// A Result is a step that was committed.
type Result struct {
	Observation  string              `json:"observation"`
	Outcome      world.Outcome       `json:"outcome"`
	State        state.State         `json:"state"` // after the step; written out only when asked for
	Plan         engine.Plan         `json:"plan"`
	Verification engine.Verification `json:"verification"`
	Retrieved    []string            `json:"retrieved_artifacts"`
	Route        Route               `json:"route"`
	ToolCalls    int                 `json:"tool_calls"`
	Citations    []string            `json:"citations"`
}

// An Audit is the record of one step, committed or not.
type Audit struct {
	Timestamp     string               `json:"timestamp"`
	PriorRevision int64                `json:"prior_revision"`
	NewRevision   *int64               `json:"new_revision"`
	Request       Request              `json:"request"`
	Plan          *engine.Plan         `json:"plan"`
	Verification  *engine.Verification `json:"verification"`
	Observation   *string              `json:"observation"`
	Committed     bool                 `json:"committed"`
	Retrieved     []string             `json:"retrieved_artifacts"`
	Route         *Route               `json:"route"`
	ToolCalls     []value.Value        `json:"tool_calls"`
	Citations     []string             `json:"citations"`
	Error         *string              `json:"error"`
}

// An Entry is one turn that the episode remembers.
type Entry struct {
	ID          int64            `json:"id"`
	Turn        int64            `json:"turn"`
	Kind        string           `json:"kind"` // "observed" or "predicted"
	Action      world.Action     `json:"action"`
	Observation string           `json:"observation"`
	Effects     []world.Mutation `json:"effects"`
	Citations   []string         `json:"citations"`
	Metadata    value.Value      `json:"metadata"`
}

// A Submission is a transition that an agent proposes
// (spec/world-reference.md §2.3). Its outcome is required, and members that it
// does not have are refused.
type Submission struct {
	Effects     []world.Mutation `json:"effects"`
	Outcome     world.Outcome    `json:"outcome"`
	Observation *string          `json:"observation"` // "" is one; nil lets a template say it
	RuleIDs     []string         `json:"rule_ids"`
	Citations   []string         `json:"citations"`
	Uncertainty []string         `json:"uncertainty"`
	Rationale   string           `json:"rationale"`
}

// UnmarshalJSONFrom reads a submission.
func (s *Submission) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Submission
	var p plain
	if err := json.UnmarshalDecode(dec, &p, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	switch p.Outcome {
	case world.Success, world.Failed, world.Partial, world.Unknown:
	case "":
		return fmt.Errorf("outcome is missing; it is success, failure, partial or unknown")
	default:
		return fmt.Errorf("outcome is not success, failure, partial or unknown")
	}
	*s = Submission(p)
	return nil
}

// A Turn is what an agent is asked to decide.
type Turn struct {
	Session    *Session
	Memory     *Memory
	Request    Request     // with the canonical action
	State      state.State // the working copy: due events have happened
	Retrieval  *engine.Retrieval
	Applicable *world.Rule // the rule that would apply, nil without one
	Recent     []Entry     // the last turns, oldest first
}

// A Prediction is what an agent made of a turn.
type Prediction struct {
	Submission Submission
	Trace      []value.Value // one record for each tool call, as the audit keeps it
	Retrieved  []string      // ids of everything it was shown, in order
	Discovered []*world.Rule // rules it found besides those retrieved
}

// An Agent decides turns that no confident rule does. When it fails it returns
// what it has done so far together with the error, for the audit.
type Agent interface {
	Predict(ctx context.Context, t *Turn) (*Prediction, error)
}

// Step plays one action (spec/world-reference.md §1). A failure of the
// environment, such as funds that do not suffice, is a step like any other. An
// error leaves the state as it was and an audit row that says why; it is
// [ErrConflict] when another writer is at work or was faster, before any model
// is asked.
func (s *Session) Step(ctx context.Context, req Request) (*Result, error) {
	return s.step(ctx, req, false)
}

// StepByAgent is [Session.Step] without the rules' fast path, whatever the
// policy: for whoever knows that the state has lost the world.
func (s *Session) StepByAgent(ctx context.Context, req Request) (*Result, error) {
	if s.o.Agent == nil {
		return nil, world.Faultf(world.NoApplicableRule, "No world-model agent is configured to decide action %q", req.Action.Type)
	}
	return s.step(ctx, req, true)
}

func (s *Session) step(ctx context.Context, req Request, byAgent bool) (*Result, error) {
	if req.Metadata.IsZero() {
		req.Metadata = value.ObjectOf()
	}
	if req.Action.Arguments.IsZero() {
		req.Action.Arguments = world.NoArguments()
	}
	tx, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	before := s.State()
	audit := &Audit{PriorRevision: before.Revision, Request: req, Timestamp: s.o.Now().UTC().Format(time.RFC3339Nano)}
	res, after, err := func() (r *Result, st state.State, err error) {
		done := false
		defer func() {
			if done {
				return
			}
			// An agent's panic, or the end of its goroutine: the session must not stay
			// locked, and the audit says why there is no step.
			p := recover()
			text := fmt.Sprintf("the agent panicked: %v", p)
			if p == nil {
				text = "the agent ended its goroutine"
			}
			audit.Error = &text
			if err := tx.fail(audit, nil); err != nil && p != nil {
				panic(errors.Join(fmt.Errorf("%v", p), err))
			}
			if p != nil {
				panic(p)
			}
		}()
		r, st, err = s.play(ctx, before, req, audit, byAgent)
		done = true
		return r, st, err
	}()
	if err != nil {
		text := err.Error()
		audit.Error = &text
		return nil, tx.fail(audit, err)
	}
	if err := tx.commit(audit, res, after); err != nil {
		return nil, err
	}
	res.State = s.State()
	return res, nil
}

// play decides, verifies and renders one step, writing nothing.
func (s *Session) play(ctx context.Context, before state.State, req Request, audit *Audit, byAgent bool) (*Result, state.State, error) {
	e := s.book.Engine
	none := state.State{}
	working, due, err := before.Advance()
	if err != nil {
		return nil, none, err
	}
	retrieval := e.Retrieve(req.Action.Type, working, false)
	if req.Action, err = e.Canonical(req.Action); err != nil {
		return nil, none, err
	}
	rule, plan, err := e.Select(working, req.Action, s.o.Wait)
	if err != nil {
		return nil, none, err
	}
	artifacts := retrieval.Artifacts()
	if rule != nil {
		artifacts = merge(artifacts, retrieval.Expose(e, rule))
	}
	route := ByRule
	var retrieved map[string]bool
	switch {
	case s.o.Agent == nil && rule == nil:
		return nil, none, world.Faultf(world.NoApplicableRule, "No rule applies to action %q; configure a world-model agent for it", req.Action.Type)
	case s.o.Agent != nil && (byAgent || !s.fastPath(rule)):
		route = ByAgent
		audit.Route = &route
		var p *Prediction
		memory := &Memory{s: s, held: true}
		recent, err := memory.Recent(ctx, s.o.MemoryRecent)
		if err != nil {
			return nil, none, err
		}
		p, err = s.o.Agent.Predict(ctx, &Turn{Session: s, Memory: memory, Request: req, State: working, Retrieval: retrieval, Applicable: rule, Recent: recent})
		if p != nil {
			audit.ToolCalls = p.Trace
		}
		if err != nil {
			return nil, none, err
		}
		retrieved = map[string]bool{}
		for _, r := range p.Discovered {
			artifacts = merge(artifacts, retrieval.Expose(e, r))
		}
		artifacts = merge(artifacts, p.Retrieved)
		for _, id := range artifacts {
			retrieved[id] = true
		}
		plan = s.planOf(p.Submission, req.Action, retrieval, retrieved)
	}
	audit.Route = &route
	audit.Retrieved = artifacts
	audit.Plan = &plan
	audit.Citations = plan.Citations
	after, verification, err := s.verify(&plan, working, retrieval, retrieved)
	kept := err != nil
	if err != nil {
		if len(verification.Issues) > 0 {
			audit.Verification = &verification
		}
		if !s.o.KeepObservation || route != ByAgent || plan.Observation == nil {
			return nil, none, err
		}
		plan.Effects, plan.RuleIDs, plan.ObservationTemplate = nil, nil, nil
		after, verification = working, engine.Verification{Accepted: true, Confidence: 1}
		verification.Warn("effects_rejected", "%s", python.Slice(world.Named(err), 0, maxRejected))
	}
	if len(due) > 0 {
		verification.Warn("due_events_applied", "Applied due events: %s", strings.Join(due, ", "))
	}
	audit.Verification = &verification
	var text string
	if kept {
		text = *plan.Observation // no contract says it otherwise
	} else if text, err = e.Render(&plan, before, after); err != nil {
		return nil, none, err
	}
	audit.Observation = &text
	calls := 0
	for _, c := range audit.ToolCalls {
		name, _ := c.Get("tool")
		if t, _ := name.Text(); t != SubmitName && t != "_usage" {
			calls++
		}
	}
	return &Result{Observation: text, Outcome: plan.Outcome, Plan: plan, Verification: verification, Retrieved: artifacts,
		Route: route, ToolCalls: calls, Citations: plan.Citations}, after, nil
}

// SubmitName is the tool by which an agent submits a transition.
const SubmitName = "submit_transition"

// maxRejected bounds how many characters of a reason go into a warning.
const maxRejected = 400

// fastPath reports whether a rule decides without the agent.
func (s *Session) fastPath(r *world.Rule) bool {
	switch {
	case r == nil || s.o.FastPath == Never:
		return false
	case s.o.FastPath == Always:
		return true
	}
	return s.book.Engine.Templated(r) && float64(r.Confidence) >= s.o.FastPathConfidence
}

// verify validates the effects, applies them to a copy and checks the result.
func (s *Session) verify(p *engine.Plan, working state.State, r *engine.Retrieval, retrieved map[string]bool) (state.State, engine.Verification, error) {
	e := s.book.Engine
	none := state.State{}
	// Effects of rules are resolved, and what arguments put into them is data.
	// An agent's own effects may still refer to arguments.
	resolved := len(p.RuleIDs) > 0
	if err := e.ValidateEffects(p.Effects, r.Spec, resolved); err != nil {
		return none, engine.Verification{}, err
	}
	effects := p.Effects
	if !resolved {
		var err error
		if effects, err = working.Resolve(effects, p.Action); err != nil {
			return none, engine.Verification{}, err
		}
		// What arguments put into paths is seen only now.
		if err := e.ValidateEffects(effects, r.Spec, true); err != nil {
			return none, engine.Verification{}, err
		}
		p.Effects = effects
	}
	after, err := working.Apply(effects)
	if err != nil {
		return none, engine.Verification{}, err
	}
	if err := e.CheckTypes(after); err != nil {
		return none, engine.Verification{}, err
	}
	v := e.Verify(p, working, after, s.o.Trust, r.Rules, retrieved)
	if !v.Accepted {
		return none, v, world.Faultf(world.RuntimeError, "Transition verification failed: %s", strings.Join(v.Messages(), "; "))
	}
	return after, v, nil
}

// planOf is the plan of a submission. Cited rules say how it is rendered.
func (s *Session) planOf(sub Submission, a world.Action, r *engine.Retrieval, known map[string]bool) engine.Plan {
	if s.o.Wait {
		// A rule that can produce nothing supports nothing: citing it is evidence.
		sub.RuleIDs = slices.DeleteFunc(slices.Clone(sub.RuleIDs), func(id string) bool {
			rule := s.book.Engine.Rule(id)
			if rule == nil || !s.book.Engine.Vacuous(rule) {
				return false
			}
			sub.Citations = append(slices.Clone(sub.Citations), "rule:"+id)
			return true
		})
	}
	p := engine.Plan{Action: a, RuleIDs: sub.RuleIDs, Effects: sub.Effects, Outcome: sub.Outcome, RendererID: "default",
		Uncertainty: sub.Uncertainty, Observation: sub.Observation, Rationale: sub.Rationale}
	var cited []*world.Rule
	for _, id := range sub.RuleIDs {
		for _, rule := range r.Rules {
			if rule.ID == id {
				cited = append(cited, rule)
			}
		}
	}
	if len(cited) > 0 {
		p.RendererID = cited[0].Renderer
		p.ObservationTemplate = cited[0].ObservationTemplate
		// Of several rules the first that has a template renders; that they agree
		// is for the verification.
		for _, rule := range cited {
			if s.book.Engine.Templated(rule) {
				p.RendererID, p.ObservationTemplate = rule.Renderer, rule.ObservationTemplate
				break
			}
		}
	}
	p.Citations = citations(sub.Citations, known)
	for _, id := range sub.RuleIDs {
		p.Citations = merge(p.Citations, []string{"rule:" + id})
	}
	return p
}

// citations brings what an agent cites into the form of ids: a bare one becomes
// the only id of something known that ends in it, anything else stays as it is.
func citations(cited []string, known map[string]bool) []string {
	bySuffix := map[string][]string{}
	for id := range known {
		if _, rest, ok := strings.Cut(id, ":"); ok {
			bySuffix[rest] = append(bySuffix[rest], id)
		}
	}
	var out []string
	for _, c := range cited {
		c = strings.TrimSpace(c)
		if c != "" && !known[c] {
			matches := bySuffix[c]
			if _, rest, ok := strings.Cut(c, ":"); ok && len(matches) == 0 {
				matches = bySuffix[rest]
			}
			if len(matches) == 1 {
				c = matches[0]
			}
		}
		out = append(out, c)
	}
	return merge(out)
}

// merge joins lists, each element once, in the order of its first appearance.
func merge(lists ...[]string) []string {
	var out []string
	seen := map[string]bool{}
	for _, l := range lists {
		for _, s := range l {
			if !seen[s] {
				seen[s] = true
				out = append(out, s)
			}
		}
	}
	return out
}
