package workspace

import (
	"context"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/internal/python"
)

func (t *Tools) listActions(_ context.Context, _ value.Value) (value.Value, error) {
	t.show("schema:actions")
	actions := t.engine().Knowledge().Actions
	out := make([]value.Value, 0, len(actions))
	for _, a := range actions {
		names := make([]string, 0, len(a.Arguments))
		for _, arg := range a.Arguments {
			names = append(names, arg.Name)
		}
		slices.Sort(names)
		out = append(out, obj("name", a.Name, "description", a.Description, "aliases", world.Texts(a.Aliases...), "arguments", world.Texts(names...)))
	}
	return value.ListOf(out...), nil
}

const withheld = "the official input documents this action's observation format; follow its example"

func (t *Tools) inspectAction(_ context.Context, args value.Value) (value.Value, error) {
	name := text(args, "action_type")
	r := t.engine().Retrieve(name, t.State, false)
	rules := make([]value.Value, len(r.Rules))
	for i, rule := range r.Rules {
		t.discover(rule)
		rules[i] = of(rule)
		if t.Withhold {
			rules[i] = with(rules[i], "observation_template", value.NullValue(), "template_withheld", value.MustText(withheld))
		}
	}
	t.show(r.Artifacts()...)
	invariants := make([]string, len(r.Invariants))
	for i, inv := range r.Invariants {
		invariants[i] = inv.ID
		t.show("invariant:" + inv.ID)
	}
	if t.Features.Compact && r.Type == t.Action.Type {
		brief := make([]value.Value, len(rules))
		for i, rule := range rules {
			brief[i] = only(rule, "id", "description", "conditions", "effects", "outcome", "confidence", "status")
		}
		return obj("note", "The brief shows this action's declaration, notes, contracts and demonstrations already; here are the bodies of its rules. apply_rule tries one.",
			"canonical_action_type", r.Type, "rules", value.ListOf(brief...), "invariant_ids", world.Texts(invariants...)), nil
	}
	return clip(with(of(r.View()), "rules", value.ListOf(rules...)), t.Limits.Text), nil
}

func list[T any](xs []T) value.Value {
	vs := make([]value.Value, len(xs))
	for i := range xs {
		vs[i] = of(xs[i])
	}
	return value.ListOf(vs...)
}

// with sets members of an object.
func with(v value.Value, kv ...any) value.Value {
	ms := make([]value.Member, 0, v.Len()+len(kv)/2)
	for k, m := range v.Members() {
		ms = append(ms, value.Member{Key: k, Value: m})
	}
next:
	for i := 0; i < len(kv); i += 2 {
		for j := range ms {
			if ms[j].Key == kv[i] {
				ms[j].Value = of(kv[i+1])
				continue next
			}
		}
		ms = append(ms, value.Member{Key: kv[i].(string), Value: of(kv[i+1])})
	}
	return value.ObjectOf(ms...)
}

// only keeps members of an object.
func only(v value.Value, keys ...string) value.Value {
	ms := make([]value.Member, 0, len(keys))
	for _, k := range keys {
		if m, ok := v.Get(k); ok {
			ms = append(ms, value.Member{Key: k, Value: m})
		}
	}
	return value.ObjectOf(ms...)
}

func (t *Tools) searchKnowledge(ctx context.Context, args value.Value) (value.Value, error) {
	limit, err := t.limit(args)
	if err != nil {
		return value.Value{}, err
	}
	var kinds []string
	given, _ := args.Get("kinds")
	for _, k := range given.Elements() {
		kinds = append(kinds, python.Str(k))
	}
	hits, err := t.Book.Search(ctx, text(args, "query"), kinds, limit)
	if err != nil {
		return value.Value{}, err
	}
	out := []value.Value{}
	for _, h := range hits {
		t.show(h.ID)
		if h.Kind == "rule" {
			if rule := t.engine().Rule(h.RefID); rule != nil {
				t.discover(rule)
			}
		}
		if t.Features.Evidence && (h.Kind == "evidence" || h.Kind == "demonstration") {
			ev, err := t.Book.Evidence()
			if err != nil {
				return value.Value{}, err
			}
			if record := ev.Resolve(h.RefID); record != nil {
				t.show("evidence:" + record.ID)
				out = append(out, with(evidenceSummary(ev, record, &h.Snippet), "kind", h.Kind))
			}
			continue
		}
		out = append(out, clip(of(h), t.Limits.Text))
	}
	return value.ListOf(out...), nil
}

func evidenceSummary(ev *book.Evidence, e *world.Evidence, snippet *string) value.Value {
	episode, turn := ev.Turn(e.ID)
	args := make([]value.Member, 0, e.Action.Arguments.Len())
	for k, m := range e.Action.Arguments.Members() {
		if k != "keystrokes" {
			args = append(args, value.Member{Key: k, Value: m})
		}
	}
	kv := []any{"id", "evidence:" + e.ID, "episode", episode, "turn", turn, "action_type", e.Action.Type,
		"action_arguments", value.ObjectOf(args...), "observation_chars", python.Runes(e.ObservationText)}
	if snippet != nil {
		kv = append(kv, "snippet", *snippet)
	}
	return obj(append(kv, "read", "read_evidence(id='evidence:"+e.ID+"')")...)
}

func (t *Tools) readEvidence(_ context.Context, args value.Value) (value.Value, error) {
	ev, err := t.Book.Evidence()
	if err != nil {
		return value.Value{}, err
	}
	id, _ := args.Get("id")
	record := ev.Resolve(text(args, "id"))
	if record == nil {
		return failed("Unknown evidence id " + clipText(python.Repr(id), shortEcho) + "; use similar_turns, search_knowledge, or a demonstration's id"), nil
	}
	offset, length, err := t.span(args, t.Limits.Turn)
	if err != nil {
		return value.Value{}, err
	}
	t.show("evidence:" + record.ID)
	neighbours := []value.Value{}
	episode, turn := ev.Turn(record.ID)
	for _, n := range []int{turn - 1, turn + 1} {
		if other := ev.At(episode, n); turn > 0 && other != nil {
			neighbours = append(neighbours, obj("id", "evidence:"+other.ID, "turn", n, "action_type", other.Action.Type))
		}
	}
	summary := evidenceSummary(ev, record, nil)
	summary = only(summary, "id", "episode", "turn", "action_type", "action_arguments", "observation_chars")
	total, got, part, next := page(record.ObservationText, offset, length)
	return with(summary, "total_chars", total, "offset", offset, "length", got, "text", part, "next_offset", next, "neighbours", value.ListOf(neighbours...)), nil
}

// shortEcho is how much of its input an error shows.
const shortEcho = 80

// SimilarTurns are recorded turns like a query, best first, each once, with a
// window of the observation around the first word that matches.
func (t *Tools) SimilarTurns(ctx context.Context, query string, limit int) (value.Value, error) {
	if strings.TrimSpace(query) == "" {
		return value.ListOf(), nil
	}
	hits, err := t.Book.Search(ctx, query, []string{"evidence", "demonstration"}, 2*limit)
	if err != nil {
		return value.Value{}, err
	}
	ev, err := t.Book.Evidence()
	if err != nil {
		return value.Value{}, err
	}
	out := []value.Value{}
	seen := map[string]bool{}
	for _, h := range hits {
		record := ev.Resolve(h.RefID)
		if record == nil || seen[record.ID] || len(out) == limit {
			continue
		}
		seen[record.ID] = true
		t.show("evidence:" + record.ID)
		s := window(record.ObservationText, query)
		out = append(out, evidenceSummary(ev, record, &s))
	}
	return value.ListOf(out...), nil
}

// window is part of a text around the first word of the query that is in it.
func window(text, query string) string {
	const width = 240
	lower := strings.ToLower(text)
	first := -1
	for _, w := range book.Terms(strings.ToLower(query)) {
		if at := strings.Index(lower, w); len(w) > 1 && at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	start := 0
	if first > 0 {
		start = max(0, python.Runes(lower[:first])-width/3)
	}
	out := python.Slice(text, start, start+width)
	if start > 0 {
		out = "…" + out
	}
	if start+width < python.Runes(text) {
		out += "…"
	}
	return out
}
