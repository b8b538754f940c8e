package workspace

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/engine"
	"github.com/callsheet/callsheet/world/session"
	"github.com/callsheet/callsheet/world/state"
	"github.com/google/go-cmp/cmp"
)

// agentSession is a session whose agent answers with replies.
func agentSession(t testing.TB, o session.Options, edit func(*book.Artifacts, *book.Config), replies ...*model.Reply) (*recorder, *session.Session) {
	t.Helper()
	m := &recorder{replies: replies}
	a, err := New(Options{Model: m})
	if err != nil {
		t.Fatal(err)
	}
	o.Agent = a
	return m, open(t, compile(t, edit), o)
}

func step(t testing.TB, s *session.Session, typ, args string) (*session.Result, error) {
	t.Helper()
	return s.Step(t.Context(), session.Request{Action: action(typ, args)})
}

func issues(r *session.Result) []string {
	var out []string
	for _, is := range r.Verification.Issues {
		out = append(out, is.Code)
	}
	return out
}

func TestBehaviour24_AConfidentRuleNeedsNoModel(t *testing.T) {
	m, s := agentSession(t, session.Options{}, nil)
	r, err := step(t, s, "withdraw", `{"amount":25}`)
	if err != nil || r.Route != session.ByRule || r.ToolCalls != 0 || len(m.forced) != 0 {
		t.Errorf("%+v, %v, model calls %d", r, err, len(m.forced))
	}
}

func TestBehaviour25_TheTemplateWinsOverTheAgentsText(t *testing.T) {
	m, s := agentSession(t, session.Options{FastPath: session.Never}, nil, calling("apply_rule", `{"rule_id":"withdraw_success"}`),
		calling("submit_transition", `{"outcome":"success","observation":"my own words","rule_ids":["withdraw_success"],"citations":["withdraw_success","note:never_seen"],"effects":[{"op":"decrement","path":"world.balance","value":25}]}`))
	r, err := step(t, s, "withdraw", `{"amount":25}`)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := r.State.Get("world.balance"); r.Observation != "Withdrew 25. Balance: 75.0" || v.String() != "75.0" || r.ToolCalls != 1 {
		t.Errorf("%+v", r)
	}
	if d := cmp.Diff([]string{"uncited_reference"}, issues(r)); d != "" || !r.Verification.Accepted {
		t.Error(d)
	}
	if !slices.Contains(r.Citations, "rule:withdraw_success") {
		t.Errorf("citations %v", r.Citations)
	}
	es, err := s.Memory().Recent(t.Context(), 1)
	if err != nil || es[0].Kind != "predicted" || es[0].Citations[0] != "rule:withdraw_success" {
		t.Errorf("memory %+v, %v", es, err)
	}
	if text := m.last.Messages[0].Text; !strings.Contains(text, "You are the environment") || !strings.Contains(text, "rules_only") {
		t.Errorf("system text %s", text)
	}
}

func untemplated(a *book.Artifacts, _ *book.Config) {
	for i := range a.Rules {
		a.Rules[i].ObservationTemplate = nil
	}
}

func TestBehaviour26_UntemplatedRulesGoToTheAgent(t *testing.T) {
	_, s := agentSession(t, session.Options{}, untemplated, calling("apply_rule", `{"rule_id":"balance_read"}`),
		calling("submit_transition", `{"outcome":"success","observation":"You have 100.0","rule_ids":["balance_read"]}`))
	r, err := step(t, s, "balance", `{}`)
	if err != nil || r.Route != session.ByAgent || r.Observation != "You have 100.0" {
		t.Errorf("%+v, %v", r, err)
	}
	_, s = agentSession(t, session.Options{FastPath: session.Always}, untemplated)
	if r, err = step(t, s, "balance", `{}`); err != nil || r.Route != session.ByRule || !strings.HasPrefix(r.Observation, `{"outcome": "success", "state": {`) {
		t.Errorf("%+v, %v", r, err)
	}
}

const overdraw = `{"outcome":"success","observation":"ok","effects":[{"op":"set","path":"world.balance","value":7}]}`

func TestBehaviour27_TrustPolicies(t *testing.T) {
	_, s := agentSession(t, session.Options{FastPath: session.Never}, nil, calling("submit_transition", overdraw))
	if _, err := step(t, s, "gamble", `{}`); !world.IsFault(err, world.RuntimeError) || !strings.Contains(err.Error(), "verification failed") {
		t.Errorf("got %v", err)
	}
	_, s = agentSession(t, session.Options{FastPath: session.Never, Trust: engine.SchemaChecked}, nil, calling("submit_transition", overdraw))
	r, err := step(t, s, "gamble", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"model_proposed_effects"}, issues(r)); d != "" {
		t.Error(d)
	}
}

func TestBehaviour28_InvariantsThatWereBrokenBefore(t *testing.T) {
	broken, err := state.Parse(value.MustParse(`{"world":{"balance":-5.0}}`))
	if err != nil {
		t.Fatal(err)
	}
	_, s := agentSession(t, session.Options{Initial: &broken}, nil)
	r, err := step(t, s, "balance", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"invariant_preexisting:nonnegative_balance"}, issues(r)); d != "" || r.Verification.Confidence != 0.7 {
		t.Error(d)
	}
	_, s = agentSession(t, session.Options{FastPath: session.Never, Trust: engine.SchemaChecked}, nil, calling("submit_transition", strings.Replace(overdraw, ":7", ":-7", 1)))
	if _, err := step(t, s, "gamble", `{}`); err == nil || !strings.Contains(err.Error(), "never be negative") {
		t.Errorf("got %v", err)
	}
}

func TestBehaviour29_TheBrief(t *testing.T) {
	m, s := agentSession(t, session.Options{FastPath: session.Never}, nil, calling("submit_transition", `{"outcome":"success","observation":"x","rule_ids":["balance_read"]}`),
		calling("submit_transition", `{"outcome":"success","observation":"x","rule_ids":["balance_read"],"citations":["memory:1"]}`))
	if _, err := step(t, s, "balance", `{}`); err != nil {
		t.Fatal(err)
	}
	r, err := s.Step(t.Context(), session.Request{Action: action("balance", `{}`), Metadata: value.MustParse(`{"environment_prompt":"A bank in Oslo.","turn":2}`)})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(m.last.Messages[0].Text, "A bank in Oslo.") {
		t.Errorf("system text %s", m.last.Messages[0].Text)
	}
	check(t, value.MustParse(m.last.Messages[1].Text), map[string]string{"recent_memory.0.id": `"memory:1"`, "state_summary.world.balance": "100.0",
		"retrieved.applicable_rule": `"balance_read"`, "budget": `{"tool_calls":8}`, "context": `{"turn":2}`, "retrieved.rules.0.applies_now": "true"})
	if len(issues(r)) != 0 || !slices.Contains(r.Retrieved, "note:balance_format") || !slices.Contains(r.Retrieved, "memory:1") {
		t.Errorf("issues %v, retrieved %v", issues(r), r.Retrieved)
	}
}

func TestBehaviour30_Notes(t *testing.T) {
	b := compile(t, nil)
	if n := len(b.Engine.Knowledge().Notes); n != 2 {
		t.Errorf("%d notes", n)
	}
	hits, err := b.Search(t.Context(), "  ", []string{"note"}, 8)
	if err != nil || len(hits) != 0 {
		t.Errorf("a blank query found %v, %v", hits, err)
	}
	for _, typ := range []string{"deposit", "balance", "never_heard_of"} {
		r := b.Engine.Retrieve(typ, state.Empty(), true)
		if !slices.ContainsFunc(r.Notes, func(n *world.Note) bool { return n.ID == "single_account" }) {
			t.Errorf("%s does not show the global note", typ)
		}
	}
	a, c := book.Demo()
	a.Notes[0].ActionTypes = []string{"transfer"}
	if err := book.Write(filepath.Join(t.TempDir(), "x"), a, c, book.WriteOptions{}); err == nil || !strings.Contains(err.Error(), "unknown action") {
		t.Errorf("got %v", err)
	}
}

func TestBehaviour31_KeepObservation(t *testing.T) {
	for _, sub := range []string{overdraw, `{"outcome":"success","observation":"ok","effects":[{"op":"remove","path":"world.balance","value":"k"}]}`} {
		_, s := agentSession(t, session.Options{FastPath: session.Never, KeepObservation: true}, nil, calling("submit_transition", sub))
		r, err := step(t, s, "gamble", `{}`)
		if err != nil {
			t.Errorf("%s: %v", sub, err)
			continue
		}
		if v, _ := r.State.Get("world.balance"); v.String() != "100.0" || r.Observation != "ok" || !r.Verification.Accepted || len(r.Plan.Effects) != 0 {
			t.Errorf("%s: %+v", sub, r)
		}
		if d := cmp.Diff([]string{"effects_rejected"}, issues(r)); d != "" {
			t.Error(d)
		}
		rows, err := s.Audit(t.Context(), 0)
		if err != nil || *rows[0].Route != session.ByAgent || rows[0].Error != nil {
			t.Errorf("audit %+v, %v", rows, err)
		}
	}
}

// What is kept is the agent's text, also where a cited rule has a contract that would
// say something else.
func TestBehaviour31_KeepObservationOverAContract(t *testing.T) {
	sub := `{"outcome":"success","rule_ids":["withdraw_success"],"observation":"AGENT TEXT","effects":[{"op":"set","path":"world.balance","value":1}]}`
	_, s := agentSession(t, session.Options{FastPath: session.Never, KeepObservation: true}, nil, calling("submit_transition", sub))
	r, err := step(t, s, "withdraw", `{"amount":1}`)
	if err != nil {
		t.Fatal(err)
	}
	if v, _ := r.State.Get("world.balance"); r.Observation != "AGENT TEXT" || v.String() != "100.0" {
		t.Errorf("%q at balance %s", r.Observation, v)
	}
}

func TestClipping(t *testing.T) {
	if got := ClipSpan(strings.Repeat("é", 100), 40, 3); !strings.HasPrefix(got, strings.Repeat("é", 30)+"\n[... 60 characters omitted; read_turn(turn=3, offset=30) shows them ...]\n") || !strings.HasSuffix(got, "\n"+strings.Repeat("é", 10)) {
		t.Errorf("ClipSpan = %s", got)
	}
	if got, want := clipText("héllo", 2), "hé\n... [truncated 3 characters]"; got != want {
		t.Errorf("clipText = %q, want %q", got, want)
	}
	a := action("shell", `{"command":"ls","keystrokes":[{"keystrokes":"ls\n","duration":0.1},{"duration":0.2}]}`)
	if got, want := CompactAction(a).String(), `{"type":"shell","arguments":{"command":"ls","duration_total":0.3}}`; got != want {
		t.Errorf("CompactAction = %s, want %s", got, want)
	}
}

func TestReadTurn(t *testing.T) {
	_, call := tools(t, func(w *Tools) {
		w.Features.History = true
		w.Memory = fakeMemory{entry(0, "", "screen"), entry(3, "ls", strings.Repeat("0123456789", 3))}
	})
	check(t, call("read_turn", `{"turn":3,"offset":5,"length":10}`), map[string]string{"text": `"5678901234"`, "total_chars": "30", "length": "10", "next_offset": "15"})
	check(t, call("read_turn", `{"turn":3,"offset":25}`), map[string]string{"text": `"56789"`, "length": "5", "next_offset": "null"})
	check(t, call("read_turn", `{"turn":9}`), map[string]string{"error": `"No recorded turn 9"`, "recorded_turns": "[0,3]"})
	check(t, call("read_turn", `{"turn":"x"}`), map[string]string{"error": `"ValueError: turn must be an integer"`})
}
