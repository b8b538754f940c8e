package workspace

import (
	"context"
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/engine"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/callsheet/callsheet/world/session"
	"github.com/callsheet/callsheet/world/state"
)

// absence says what a missing path means with [Features.Unknown].
const absence = "An absent path means that nothing was observed there in this episode yet, not that there is nothing."

func (t *Tools) readState(_ context.Context, args value.Value) (value.Value, error) {
	path := text(args, "path")
	if path == "" {
		t.show("state:*")
		s := Summary(t.State, t.Limits.Text/4)
		if t.Features.Unknown {
			s = with(s, "semantics", absence)
		}
		return s, nil
	}
	t.show("state:" + path)
	v, ok := t.State.Get(path)
	if !ok {
		out := obj("path", path, "missing", true)
		if t.Features.Unknown {
			out = with(out, "meaning", absence)
		}
		return out, nil
	}
	s, isText := v.Text()
	if !t.Features.Unknown || !isText {
		return obj("path", path, "value", clip(v, t.Limits.Text)), nil
	}
	offset, length, err := t.span(args, t.Limits.Full)
	if err != nil {
		return value.Value{}, err
	}
	total, _, part, next := page(s, offset, length)
	return obj("path", path, "total_chars", total, "offset", offset, "text", part, "next_offset", next), nil
}

func (t *Tools) stateSchema(_ context.Context, args value.Value) (value.Value, error) {
	prefix := text(args, "prefix")
	out := []value.Value{}
	for _, f := range t.engine().Knowledge().Fields {
		if strings.HasPrefix(f.Path, prefix) {
			t.show("schema:" + f.Path)
			if len(out) < 4*t.Limits.List {
				out = append(out, of(f))
			}
		}
	}
	return value.ListOf(out...), nil
}

// memoryView is one remembered turn; whole is as much of it as is ever shown.
func (t *Tools) memoryView(e *session.Entry, whole bool) value.Value {
	id := memoryID(e)
	t.show(id)
	total := python.Runes(e.Observation)
	obs := clipText(e.Observation, t.Limits.Text)
	if t.Features.History {
		obs = ClipSpan(e.Observation, t.Limits.Turn, e.Turn)
		if whole {
			obs = python.Slice(e.Observation, 0, t.Limits.Full)
			if total > t.Limits.Full {
				obs += moreOfTurn(total-t.Limits.Full, e.Turn, t.Limits.Full)
			}
		}
	}
	action := obj("type", e.Action.Type, "arguments", e.Action.Arguments)
	if t.Features.Compact {
		action = CompactAction(e.Action)
	}
	return obj("id", id, "turn", e.Turn, "kind", e.Kind, "action", action, "observation", obs, "observation_chars", total, "effects", briefs(e.Effects))
}

func briefs(ms []world.Mutation) value.Value {
	vs := make([]value.Value, len(ms))
	for i, m := range ms {
		vs[i] = m.Brief()
	}
	return value.ListOf(vs...)
}

func (t *Tools) memoryViews(es []session.Entry, whole func(i int) bool) value.Value {
	vs := make([]value.Value, len(es))
	for i := range es {
		vs[i] = t.memoryView(&es[i], whole(i))
	}
	return value.ListOf(vs...)
}

func (t *Tools) recall(ctx context.Context, args value.Value) (value.Value, error) {
	limit, err := t.limit(args)
	if err != nil || t.Memory == nil {
		return value.ListOf(), err
	}
	es, err := t.Memory.Search(ctx, text(args, "query"), limit)
	if err != nil {
		return value.Value{}, err
	}
	return t.memoryViews(es, func(i int) bool { return i < t.Limits.RecallFull }), nil
}

func (t *Tools) recentTurns(ctx context.Context, args value.Value) (value.Value, error) {
	limit, err := t.limit(args)
	if err != nil || t.Memory == nil {
		return value.ListOf(), err
	}
	es, err := t.Memory.Recent(ctx, limit)
	if err != nil {
		return value.Value{}, err
	}
	return t.memoryViews(es, func(i int) bool { return i >= len(es)-t.Limits.RecallFull }), nil
}

// maxTurnsListed is how many turns are looked through for the numbers that an
// answer about an unknown turn lists.
const maxTurnsListed = 200

func (t *Tools) readTurn(ctx context.Context, args value.Value) (value.Value, error) {
	if t.Memory == nil {
		return failed("No episodic memory in this session"), nil
	}
	turn := int64(-1)
	if v, ok := args.Get("turn"); ok && !v.IsNull() {
		var err error
		if turn, _, err = integer(args, "turn"); err != nil {
			return value.Value{}, err
		}
	}
	es, err := t.Memory.ByTurn(ctx, turn)
	if err != nil {
		return value.Value{}, err
	}
	if len(es) == 0 {
		known, err := t.Memory.Recent(ctx, maxTurnsListed)
		if err != nil {
			return value.Value{}, err
		}
		turns := []value.Value{}
		for i, e := range known { // they are in order
			if i == 0 || e.Turn != known[i-1].Turn {
				turns = append(turns, value.Int(e.Turn))
			}
		}
		return obj("error", "No recorded turn "+value.Int(turn).String(), "recorded_turns", value.ListOf(turns...)), nil
	}
	offset, length, err := t.span(args, t.Limits.Turn)
	if err != nil {
		return value.Value{}, err
	}
	e := &es[0]
	id := memoryID(e)
	t.show(id)
	total, got, part, next := page(e.Observation, offset, length)
	return obj("id", id, "turn", e.Turn, "kind", e.Kind, "action", CompactAction(e.Action), "total_chars", total, "offset", offset,
		"length", got, "text", part, "next_offset", next), nil
}

func (t *Tools) applyRule(_ context.Context, args value.Value) (value.Value, error) {
	id := text(args, "rule_id")
	r := t.engine().Rule(id)
	if r == nil {
		return failed("Unknown rule " + clipText(python.Quote(id), shortEcho) + "; use inspect_action or search_knowledge to find rule ids"), nil
	}
	t.show("rule:" + r.ID)
	t.discover(r)
	not := func(reason string, more ...any) (value.Value, error) {
		return obj(append([]any{"applicable", false, "rule_id", r.ID, "reason", reason}, more...)...), nil
	}
	switch {
	case r.ActionType != t.Action.Type:
		return not("Rule is for action " + python.Quote(r.ActionType) + ", not " + python.Quote(t.Action.Type))
	case !t.engine().Eligible(r, t.State, false):
		return not("Rule is not eligible here (status, confidence, or scope)")
	}
	var unmet []value.Value
	for i := range r.Conditions {
		if !t.State.Holds(&r.Conditions[i], t.Action) {
			unmet = append(unmet, world.WithoutNulls(of(r.Conditions[i])))
		}
	}
	if len(unmet) > 0 {
		return not("Conditions do not hold on the current state", "failed_conditions", value.ListOf(unmet...))
	}
	plan, after, err := t.tryRule(r)
	if err != nil {
		if !world.IsFault(err) {
			return value.Value{}, err
		}
		return not("Effects cannot be applied: " + err.Error())
	}
	observation := value.NullValue()
	hide := t.Withhold && t.engine().Templated(r)
	if !hide {
		if s, err := t.engine().RenderRule(r, engine.Context{Action: t.Action, Before: t.State, After: after, Outcome: plan.Outcome}); err == nil && s != nil {
			observation = value.MustText(clipText(*s, t.Limits.Text))
		}
	}
	kv := []any{"applicable", true, "rule_id", r.ID, "description", r.Description, "outcome", string(plan.Outcome),
		"effects", briefs(plan.Effects), "state_diff", Diff(t.State, after), "observation", observation}
	if hide {
		kv = append(kv, "observation_withheld", withheld)
	}
	inv := t.engine().Invariants(after, t.Action)
	return obj(append(kv, "invariants_ok", inv.Accepted, "invariant_issues", world.Texts(inv.Messages()...),
		"how_to_submit", "To apply this rule, submit exactly these effects with rule_ids=[rule_id]; otherwise leave rule_ids empty and cite the rule.")...), nil
}

func (t *Tools) tryRule(r *world.Rule) (engine.Plan, state.State, error) {
	plan, err := t.engine().PlanOf(r, t.State, t.Action)
	if err != nil {
		return plan, state.State{}, err
	}
	after, err := t.try(plan.Effects, true)
	return plan, after, err
}

func (t *Tools) try(effects []world.Mutation, resolved bool) (state.State, error) {
	e := t.engine()
	if err := e.ValidateEffects(effects, e.Action(t.Action.Type), resolved); err != nil {
		return state.State{}, err
	}
	if !resolved {
		var err error
		if effects, err = t.State.Resolve(effects, t.Action); err != nil {
			return state.State{}, err
		}
	}
	after, err := t.State.Apply(effects)
	if err != nil {
		return state.State{}, err
	}
	return after, e.CheckTypes(after)
}

func (t *Tools) dryRun(_ context.Context, args value.Value) (value.Value, error) {
	var effects []world.Mutation
	after := state.State{}
	given, ok := args.Get("effects")
	err := error(nil)
	if ok {
		if err = world.DecodeValue(given, &effects); err != nil {
			err = world.Faultf("ValidationError", "%s", clipText(err.Error(), t.Limits.Text))
		}
	}
	if err == nil {
		after, err = t.try(effects, false)
	}
	if err != nil {
		return obj("ok", false, "error", world.Named(err)), nil
	}
	inv := t.engine().Invariants(after, t.Action)
	return obj("ok", true, "state_diff", Diff(t.State, after), "invariants_ok", inv.Accepted, "invariant_issues", world.Texts(inv.Messages()...)), nil
}
