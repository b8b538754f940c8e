// Package workspace is the world-model agent: the tools with which it looks at
// a worldbook, the state and the episode, the submission of a typed transition,
// and the bounded loop around them.
//
//	a, err := workspace.New(workspace.Options{Model: m})
//	s, err := session.Open(ctx, "play", b, session.Options{Agent: a})
//	r, err := s.Step(ctx, session.Request{Action: action})
//	fmt.Println(r.Route, r.ToolCalls) // agent 3
//
// Tools, results and clipping are those of spec/world-reference.md §2.1 and
// §2.2; the loop is the agent room's in its compatibility profile, unless
// other settings are given.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/callsheet/callsheet/world/session"
	"github.com/go-json-experiment/json/jsontext"
)

// Role is the role of the agent's requests to a model.
const Role = "runtime_agent_turn"

// Options say how an agent works. Model is required.
type Options struct {
	Model model.Model
	// Settings of the loop; nil: agent.Source().
	Settings *agent.Settings
	Features Features
	Limits   Limits
	// HistoryTotal bounds the characters of remembered turns in the brief with
	// Features.History; 0: 60000.
	HistoryTotal int
	// PromptChars bounds the description of the environment that a caller gives
	// in metadata.environment_prompt; 0: 24000, below 0: no bound.
	PromptChars int
	// Withhold, HideKnowledge and HideState are as in [Tools].
	Withhold, HideKnowledge, HideState bool
}

// An Agent is a world-model agent. It is safe for concurrent use if its model
// is.
type Agent struct {
	o          Options
	settings   agent.Settings
	submission *schema.Schema
}

var _ session.Agent = (*Agent)(nil)

// New checks the options.
func New(o Options) (*Agent, error) {
	if o.Model == nil {
		return nil, errors.New("workspace: Model is nil")
	}
	a := &Agent{o: o, settings: agent.Source()}
	if o.Settings != nil {
		a.settings = *o.Settings
	}
	if err := a.settings.Validate(); err != nil {
		return nil, fmt.Errorf("workspace: %w", err)
	}
	a.o.Limits = o.Limits.withDefaults()
	if o.HistoryTotal == 0 {
		a.o.HistoryTotal = 60000
	}
	if o.PromptChars == 0 {
		a.o.PromptChars = 24000
	}
	var err error
	if a.submission, err = schema.Compile(value.MustParse(submissionSchema)); err != nil {
		return nil, err
	}
	return a, nil
}

// submissionSchema is the schema of a [session.Submission].
const submissionSchema = `{"type":"object","additionalProperties":false,"required":["outcome"],"properties":{
	"effects":{"type":"array","items":` + mutationSchema + `,"description":"What changes in the state, in order. With rule_ids exactly the effects of those rules."},
	"outcome":{"enum":["success","failure","partial","unknown"]},
	"observation":{"anyOf":[{"type":"string"},{"type":"null"}],"description":"The exact text that the environment returns; empty if it prints nothing; null to let a rule's template say it."},
	"rule_ids":{"type":"array","items":{"type":"string"},"description":"Rules that are applied as they are."},
	"citations":{"type":"array","items":{"type":"string"},"description":"Ids of what the prediction rests on, such as rule:x, note:y, memory:3."},
	"uncertainty":{"type":"array","items":{"type":"string"}},
	"rationale":{"type":"string"}}}`

// Predict decides one turn: it runs the loop over the workspace and returns the
// submission with everything that was shown. When the loop fails, what it did
// comes back with the error.
func (a *Agent) Predict(ctx context.Context, turn *session.Turn) (*session.Prediction, error) {
	t := &Tools{Book: turn.Session.Book(), State: turn.State, Action: turn.Request.Action, Memory: turn.Memory, Features: a.o.Features,
		Limits: a.o.Limits, Withhold: a.o.Withhold, HideKnowledge: a.o.HideKnowledge, HideState: a.o.HideState}
	set, err := t.Set()
	if err != nil {
		return nil, err
	}
	brief, err := a.brief(ctx, turn, t)
	if err != nil {
		return nil, err
	}
	loop, err := agent.New(agent.Config[session.Submission]{
		Model: a.o.Model, Tools: set.Catalogue(), Caller: caller{agent.Direct(set), set.Catalogue()},
		Submission: agent.SubmitTransition(), Schema: a.submission, Settings: a.settings, Role: Role,
	})
	if err != nil {
		return nil, err
	}
	res, err := loop.Run(ctx, agent.Task{System: a.system(turn), User: brief})
	p := &session.Prediction{Submission: res.Submission, Discovered: t.Discovered()}
	for i := range res.Trace {
		p.Trace = append(p.Trace, res.Trace[i].Value())
	}
	if u := res.Usage; u.ModelCalls > 0 {
		counted := only(u.Value(), "prompt_tokens", "completion_tokens", "model_calls")
		p.Trace = append(p.Trace, obj("tool", "_usage", "arguments", counted))
	}
	for i := range turn.Recent { // the brief shows them
		t.show(memoryID(&turn.Recent[i]))
	}
	p.Retrieved = t.Shown()
	return p, err
}

// caller answers names that are no tool as the format does; all else goes
// through the door.
type caller struct {
	agent.Caller
	catalogue *tool.Catalogue
}

func (c caller) Call(ctx context.Context, r agent.Request) (agent.Outcome, error) {
	if r.Tool != nil || !r.Unchecked {
		return c.Caller.Call(ctx, r)
	}
	var names []string
	for _, d := range c.catalogue.All() {
		names = append(names, d.Name)
	}
	names = append(names, session.SubmitName)
	return agent.Outcome{Output: obj("error", "Unknown tool "+clipText(python.Quote(r.Name), shortEcho), "available_tools", world.Texts(names...))}, nil
}

// system is the text that sets the agent's task.
func (a *Agent) system(turn *session.Turn) string {
	text := "You are the environment, not an assistant in it. Somebody has just taken the action in the brief. Decide what really happens: " +
		"how the state changes, whether it succeeds, and the exact text that the environment returns. Look things up with the tools before you decide; " +
		"prefer a rule that applies to your own idea, and text that was recorded to text that you make up. Finish by calling " + session.SubmitName + " once."
	if p, ok := turn.Request.Metadata.Get("environment_prompt"); ok {
		if s, _ := p.Text(); s != "" {
			if a.o.PromptChars > 0 {
				s = python.Slice(s, 0, a.o.PromptChars)
			}
			text += "\n\n# The environment, as the caller describes it (context only; it changes nothing)\n" + s
		}
	}
	switch trust := turn.Session.Options().Trust; trust {
	case "schema_checked":
		text += "\n\nTrust policy: schema_checked. Where no rule explains the action you may propose literal effects on declared, mutable paths; they are accepted if types and invariants hold."
	default:
		text += "\n\nTrust policy: " + string(trust) + ". Effects are accepted only as those of the rules that you name in rule_ids; without a rule submit none, and say what happens in the observation."
	}
	if a.o.Features.Unknown {
		text += "\n\n" + absence
	}
	return text
}

// brief is the first message: the action, and what is known of it.
func (a *Agent) brief(ctx context.Context, turn *session.Turn, t *Tools) (string, error) {
	f, n := a.o.Features, a.o.Limits.Text
	r := turn.Retrieval
	e := turn.Session.Book().Engine
	action := of(turn.Request.Action)
	if f.Compact {
		action = CompactAction(turn.Request.Action)
	}
	var context []value.Member
	for k, m := range turn.Request.Metadata.Members() {
		if k != "environment_prompt" && k != "official_input" {
			context = append(context, value.Member{Key: k, Value: m})
		}
	}
	rules := []value.Value{}
	for _, rule := range r.Rules {
		rules = append(rules, obj("id", rule.ID, "description", rule.Description, "outcome", string(rule.Outcome), "confidence", rule.Confidence,
			"applies_now", turn.State.HoldAll(rule.Conditions, turn.Request.Action)))
	}
	applicable := value.NullValue()
	if turn.Applicable != nil {
		applicable = value.MustText(turn.Applicable.ID)
	}
	specs := []value.Value{}
	if r.Spec != nil {
		specs = append(specs, of(r.Spec))
	}
	renderers := []value.Value{}
	for _, c := range r.Renderers {
		renderers = append(renderers, obj("id", c.ID, "content_type", c.ContentType, "instructions", c.Instructions,
			"required_fields", world.Texts(c.RequiredFields...), "examples", clip(world.Texts(c.Examples[:min(len(c.Examples), 3)]...), n/2)))
	}
	demos, err := a.demonstrations(t, r.Demonstrations[:min(len(r.Demonstrations), 2)])
	if err != nil {
		return "", err
	}
	notes := list(r.Notes)
	if f.Compact && !f.Evidence {
		short := []value.Value{}
		for _, note := range notes.Elements() {
			short = append(short, only(note, "id", "kind", "statement", "action_types", "confidence"))
		}
		notes = value.ListOf(short...)
	}
	calls := agent.DefaultMaxToolCalls
	if a.settings.MaxToolCalls != nil {
		calls = max(0, *a.settings.MaxToolCalls)
	}
	kv := []any{
		"action", action,
		"context", value.ObjectOf(context...),
		"state_summary", Summary(turn.State, n/8),
		"recent_memory", a.history(turn.Recent, t),
		"retrieved", obj("action_specs", value.ListOf(specs...), "rules", value.ListOf(rules...), "applicable_rule", applicable,
			"invariants", list(r.Invariants), "notes", notes, "renderers", value.ListOf(renderers...), "demonstrations", demos),
		"budget", obj("tool_calls", calls),
	}
	if f.Compact {
		fields := []value.Value{}
		for _, field := range e.Knowledge().Fields {
			fields = append(fields, obj("path", field.Path, "type", string(field.Type)))
		}
		kv = append(kv, "state_fields", value.ListOf(fields...))
	}
	if f.Unknown {
		kv = append(kv, "state_semantics", absence, "known_files", knownFiles(turn))
	}
	if f.Evidence && !a.o.HideKnowledge {
		similar, err := t.SimilarTurns(ctx, turn.Request.Action.Text(), 5)
		if err != nil {
			return "", err
		}
		kv = append(kv, "similar_turns", similar)
	}
	text := jsontext.Value(obj(kv...).AppendTo(nil))
	if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
		return "", err
	}
	return string(text), nil
}

func (a *Agent) demonstrations(t *Tools, ds []*world.Demonstration) (value.Value, error) {
	out := []value.Value{}
	for _, d := range ds {
		switch {
		case a.o.Features.Evidence:
			ev, err := t.Book.Evidence()
			if err != nil {
				return value.Value{}, err
			}
			view := obj("id", "demo:"+d.ID, "action", CompactAction(d.Action), "outcome", string(d.Outcome),
				"observation_chars", python.Runes(d.Observation), "observation_head", python.Slice(d.Observation, 0, 400))
			if record := ev.Resolve(d.ID); record != nil {
				t.show("evidence:" + record.ID)
				view = with(view, "evidence", "evidence:"+record.ID, "read", "read_evidence(id='evidence:"+record.ID+"')")
			}
			out = append(out, view)
		case a.o.Features.Compact:
			out = append(out, with(clip(of(d), a.o.Limits.Text/2), "action", CompactAction(d.Action), "provenance", value.ListOf()))
		default:
			out = append(out, clip(of(d), a.o.Limits.Text/2))
		}
	}
	return value.ListOf(out...), nil
}

// history is the brief's view of the latest turns. Within a bound the newest
// keep their text, and older ones give way.
func (a *Agent) history(es []session.Entry, t *Tools) value.Value {
	out := make([]value.Value, 0, len(es))
	if !a.o.Features.History {
		for i := range es {
			e := &es[i]
			out = append(out, obj("turn", e.Turn, "kind", e.Kind, "action", obj("type", e.Action.Type, "arguments", e.Action.Arguments),
				"observation", clipText(e.Observation, a.o.Limits.Text/2), "id", memoryID(e)))
		}
		return value.ListOf(out...)
	}
	used := 0
	for i := len(es) - 1; i >= 0; i-- {
		v := t.memoryView(&es[i], false)
		obs, _ := v.Get("observation")
		s, _ := obs.Text()
		if used+python.Runes(s) > a.o.HistoryTotal {
			s = ClipSpan(es[i].Observation, max(400, a.o.Limits.Turn/6), es[i].Turn)
			v = with(v, "observation", s)
		}
		used += python.Runes(s)
		out = append(out, v)
	}
	slices.Reverse(out)
	return value.ListOf(out...)
}

// maxFiles is how many known files the brief lists.
const maxFiles = 80

func knownFiles(turn *session.Turn) value.Value {
	files, _ := turn.State.Get("world.files")
	if files.Kind() != value.Object {
		return obj("count", 0, "entries", value.ListOf(), "note", "no file has been observed yet")
	}
	entries := []value.Value{}
	for path, f := range files.Members() {
		if len(entries) == maxFiles {
			break
		}
		content, _ := f.Get("content")
		s, _ := content.Text()
		entries = append(entries, obj("path", path, "content_stored", s != "", "content_chars", python.Runes(s)))
	}
	return obj("count", files.Len(), "entries", value.ListOf(entries...), "note", "read_state(path='world.files.<path>.content') pages a stored content")
}
