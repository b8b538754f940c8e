package workspace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/session"
	"github.com/callsheet/callsheet/world/state"
	"github.com/google/go-cmp/cmp"
)

// The numbers are those of spec/world-reference.md §2.6.

func compile(t testing.TB, edit func(*book.Artifacts, *book.Config)) *book.Book {
	t.Helper()
	a, c := book.Demo()
	if edit != nil {
		edit(a, c)
	}
	dir := filepath.Join(t.TempDir(), "world")
	if err := book.Write(dir, a, c, book.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	b, err := book.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func open(t testing.TB, b *book.Book, o session.Options) *session.Session {
	t.Helper()
	o.NoSync = true
	s, err := session.Open(t.Context(), t.TempDir(), b, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func action(typ, args string) world.Action {
	return world.Action{Type: typ, Arguments: value.MustParse(args), Raw: value.NullValue()}
}

// tools is the workspace of withdraw 25 on the ledger, balance 100.0.
func tools(t testing.TB, edit func(*Tools)) (*Tools, func(name, args string) value.Value) {
	t.Helper()
	b := compile(t, nil)
	st, err := b.Engine.Initial()
	if err != nil {
		t.Fatal(err)
	}
	w := &Tools{Book: b, State: st, Action: action("withdraw", `{"amount":25}`)}
	if edit != nil {
		edit(w)
	}
	set, err := w.Set()
	if err != nil {
		t.Fatal(err)
	}
	return w, func(name, args string) value.Value {
		t.Helper()
		out, err := set.Handler(name)(t.Context(), &tool.Call{Args: value.MustParse(args), Progress: func(tool.Progress) {}})
		if err != nil {
			t.Fatalf("%s %s: %v", name, args, err)
		}
		return out
	}
}

func at(t testing.TB, v value.Value, path string) string {
	t.Helper()
	got, err := v.Lookup(path)
	if err != nil {
		return "missing"
	}
	return got.String()
}

func check(t testing.TB, v value.Value, want map[string]string) {
	t.Helper()
	for path, w := range want {
		if got := at(t, v, path); got != w {
			t.Errorf("%s = %s, want %s, in %s", path, got, w, v)
		}
	}
}

// A recorder is a model that answers with replies and keeps what it was asked.
type recorder struct {
	replies []*model.Reply
	forced  []string
	senders [][]string
	last    *model.Request
}

func (m *recorder) Ask(_ context.Context, r *model.Request) (*model.Reply, error) {
	m.forced = append(m.forced, r.Choice.Name)
	var from []string
	for _, msg := range r.Messages {
		from = append(from, msg.From.String())
	}
	m.senders = append(m.senders, from)
	m.last = r
	if len(m.replies) == 0 {
		return nil, errors.New("the script is over")
	}
	reply := m.replies[0]
	if len(m.replies) > 1 {
		m.replies = m.replies[1:]
	}
	return reply, nil
}

func calling(name, args string) *model.Reply {
	return &model.Reply{Calls: []model.Call{{ID: "c", Name: name, Arguments: args}}}
}

func saying(text string) *model.Reply { return &model.Reply{Text: text} }

const good = `{"outcome":"success","observation":"done"}`

// play makes one step of an unknown action with the agent alone, and returns
// the audit row.
func play(t testing.TB, settings *agent.Settings, replies ...*model.Reply) (*recorder, session.Audit, error) {
	t.Helper()
	m := &recorder{replies: replies}
	a, err := New(Options{Model: m, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, compile(t, nil), session.Options{Agent: a, FastPath: session.Never})
	_, err = s.Step(t.Context(), session.Request{Action: action("gamble", `{}`)})
	rows, aerr := s.Audit(t.Context(), 0)
	if aerr != nil || len(rows) != 1 {
		t.Fatalf("%d audit rows, %v", len(rows), aerr)
	}
	return m, rows[0], err
}

// trace is the audit's calls as "tool" or "tool!error".
func trace(a session.Audit) []string {
	var out []string
	for _, c := range a.ToolCalls {
		name, _ := c.Get("tool")
		s, _ := name.Text()
		if e, ok := c.Get("error"); ok {
			t, _ := e.Text()
			s += "!" + t
		}
		out = append(out, s)
	}
	return out
}

func limits(calls int) *agent.Settings {
	s := agent.Source()
	s.MaxToolCalls = agent.Int(calls)
	return &s
}

// 1 and 2 are TestMemory of the session; here are the views of it.
func TestBehaviour01_RecentIsOldestFirst(t *testing.T) {
	w, call := tools(t, func(w *Tools) { w.Memory = fakeMemory{entry(1, "ls", "README.md"), entry(2, "cat README.md", "hello")} })
	got := call("recent_turns", `{}`)
	check(t, got, map[string]string{"0.id": `"memory:1"`, "1.id": `"memory:2"`, "1.turn": "2", "1.observation_chars": "5", "1.effects": "[]"})
	if !slices.Contains(w.Shown(), "memory:2") {
		t.Errorf("shown %v", w.Shown())
	}
}

func entry(n int64, command, obs string) session.Entry {
	return session.Entry{ID: n, Turn: n, Kind: "observed", Action: action("shell", fmt.Sprintf(`{"command":%q}`, command)), Observation: obs}
}

type fakeMemory []session.Entry

func (m fakeMemory) Recent(_ context.Context, n int) ([]session.Entry, error) {
	return m[max(0, len(m)-n):], nil
}

func (m fakeMemory) Search(_ context.Context, q string, n int) ([]session.Entry, error) {
	out := []session.Entry{}
	for _, e := range m {
		if q != "" && strings.Contains(e.Action.Text()+e.Observation, q) && len(out) < n {
			out = append(out, e)
		}
	}
	return out, nil
}

func (m fakeMemory) ByTurn(_ context.Context, turn int64) ([]session.Entry, error) {
	out := []session.Entry{}
	for _, e := range m {
		if e.Turn == turn {
			out = append(out, e)
		}
	}
	return out, nil
}

func TestBehaviour02_RecallByAFileNameAndByTheAction(t *testing.T) {
	_, call := tools(t, func(w *Tools) { w.Memory = fakeMemory{entry(1, "ls", "main.go"), entry(2, "cat README.md", "hello")} })
	for query, want := range map[string]string{"main.go": `"memory:1"`, "cat README.md": `"memory:2"`, "": "missing"} {
		got := call("recall", fmt.Sprintf(`{"query":%q}`, query))
		if at(t, got, "0.id") != want || got.Len() > 1 {
			t.Errorf("recall %q = %s", query, got)
		}
	}
}

func TestBehaviour03_SubmitComesLast(t *testing.T) {
	m, _, err := play(t, nil, calling("submit_transition", good))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range m.last.Tools {
		names = append(names, d.Name)
	}
	want := []string{"list_actions", "inspect_action", "search_knowledge", "read_state", "state_schema", "recall", "recent_turns", "apply_rule", "dry_run", "submit_transition"}
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
	w, _ := tools(t, func(w *Tools) { w.Features = Features{History: true, Evidence: true}; w.HideState = true })
	set, err := w.Set()
	if err != nil {
		t.Fatal(err)
	}
	names = nil
	for _, d := range set.Catalogue().All() {
		names = append(names, d.Name)
	}
	if d := cmp.Diff([]string{"list_actions", "inspect_action", "search_knowledge", "recall", "recent_turns", "read_turn", "read_evidence"}, names); d != "" {
		t.Error(d)
	}
}

func TestBehaviour04_ListActions(t *testing.T) {
	w, call := tools(t, nil)
	check(t, call("list_actions", `{}`), map[string]string{"1.name": `"withdraw"`, "1.arguments": `["amount"]`, "2.arguments": "[]"})
	if d := cmp.Diff([]string{"schema:actions"}, w.Shown()); d != "" {
		t.Error(d)
	}
}

func TestBehaviour05_InspectAction(t *testing.T) {
	w, call := tools(t, nil)
	check(t, call("inspect_action", `{"action_type":"withdraw"}`), map[string]string{
		"rules.0.id": `"withdraw_success"`, "rules.1.id": `"withdraw_insufficient"`, "rules.2": "missing", "notes.0.id": `"balance_format"`,
		"canonical_action_type": `"withdraw"`, "action_specs.0.name": `"withdraw"`, "demonstrations": "[]",
		"artifact_ids": `["rule:withdraw_success","rule:withdraw_insufficient","renderer:ledger","note:balance_format","note:single_account"]`})
	for _, id := range []string{"rule:withdraw_success", "note:balance_format", "invariant:nonnegative_balance"} {
		if !slices.Contains(w.Shown(), id) {
			t.Errorf("%s was not noted: %v", id, w.Shown())
		}
	}
	_, call = tools(t, func(w *Tools) { w.Features.Compact = true })
	check(t, call("inspect_action", `{"action_type":"withdraw"}`), map[string]string{"rules.0.outcome": `"success"`, "rules.0.priority": "missing",
		"invariant_ids": `["nonnegative_balance"]`, "notes": "missing"})
}

func TestBehaviour06_SearchKnowledge(t *testing.T) {
	w, call := tools(t, nil)
	check(t, call("search_knowledge", `{"query":"fractional digit"}`), map[string]string{"0.id": `"note:balance_format"`, "0.kind": `"note"`})
	if len(w.Discovered()) != 0 {
		t.Errorf("discovered %v", w.Discovered())
	}
	got := call("search_knowledge", `{"query":"withdrawal","kinds":["rule"]}`)
	for _, h := range got.Elements() {
		check(t, h, map[string]string{"kind": `"rule"`})
	}
	if !slices.Contains(w.Shown(), "rule:withdraw_success") || !slices.ContainsFunc(w.Discovered(), func(r *world.Rule) bool { return r.ID == "withdraw_success" }) {
		t.Errorf("shown %v, discovered %v", w.Shown(), w.Discovered())
	}
}

func TestBehaviour07_UnknownTool(t *testing.T) {
	m, a, err := play(t, nil, calling("read_mind", `{}`), calling("submit_transition", good))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"read_mind!Unknown tool 'read_mind'", "submit_transition", "_usage"}, trace(a)); d != "" {
		t.Error(d)
	}
	answer := value.MustParse(m.last.Messages[3].Text)
	check(t, answer, map[string]string{"available_tools.0": `"list_actions"`, "available_tools.9": `"submit_transition"`})
}

func TestBehaviour08_ReadState(t *testing.T) {
	w, call := tools(t, nil)
	check(t, call("read_state", `{"path":"world.balance"}`), map[string]string{"path": `"world.balance"`, "value": "100.0"})
	if !slices.Contains(w.Shown(), "state:world.balance") {
		t.Errorf("shown %v", w.Shown())
	}
	check(t, call("read_state", `{}`), map[string]string{"world.balance": "100.0", "step": "0", "pending_events": "0", "epistemic": "{}"})
	check(t, call("read_state", `{"path":"world.zzz"}`), map[string]string{"missing": "true", "value": "missing"})
	_, call = tools(t, func(w *Tools) {
		w.Features.Unknown = true
		w.State, _ = state.Parse(value.MustParse(`{"world":{"text":"héllo wörld"}}`))
	})
	check(t, call("read_state", `{"path":"world.text","offset":1,"length":4}`), map[string]string{"total_chars": "11", "text": `"éllo"`, "next_offset": "5"})
}

func TestBehaviour09_ApplyRule(t *testing.T) {
	_, call := tools(t, nil)
	check(t, call("apply_rule", `{"rule_id":"withdraw_success"}`), map[string]string{"applicable": "true",
		"effects": `[{"op":"decrement","path":"world.balance","value":25}]`, "observation": `"Withdrew 25. Balance: 75.0"`,
		"state_diff": `{"world.balance":{"before":100.0,"after":75.0}}`, "invariants_ok": "true", "outcome": `"success"`})
	check(t, call("apply_rule", `{"rule_id":"withdraw_insufficient"}`), map[string]string{"applicable": "false",
		"failed_conditions": `[{"left":{"path":"world.balance"},"op":"lt","right":{"action_arg":"amount"}}]`})
	check(t, call("apply_rule", `{"rule_id":"deposit_success"}`), map[string]string{"applicable": "false", "reason": `"Rule is for action 'deposit', not 'withdraw'"`})
	check(t, call("apply_rule", `{"rule_id":"zzz"}`), map[string]string{"applicable": "missing", "error": `"Unknown rule 'zzz'; use inspect_action or search_knowledge to find rule ids"`})
}

func TestBehaviour10_DryRun(t *testing.T) {
	w, call := tools(t, nil)
	check(t, call("dry_run", `{"effects":[{"op":"set","path":"world.balance","value":-5}]}`), map[string]string{"ok": "true", "invariants_ok": "false"})
	check(t, call("dry_run", `{"effects":[{"op":"set","path":"world.nope","value":1}]}`), map[string]string{"ok": "false", "error": `"ValueError: Undeclared state path: world.nope"`})
	check(t, call("dry_run", `{"effects":[{"op":"zap","path":"world.balance"}]}`), map[string]string{"ok": "false"})
	got := call("state_schema", `{"prefix":"world"}`)
	check(t, got, map[string]string{"0.path": `"world.balance"`, "1": "missing"})
	if v, _ := w.State.Get("world.balance"); v.String() != "100.0" {
		t.Errorf("balance %s", v)
	}
}

func TestBehaviour11_Diff(t *testing.T) {
	s, err := state.Parse(value.MustParse(`{"revision":3,"world":{"x":1,"empty":{}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := Diff(state.Empty(), s).String(), `{"world.x":{"before":"<absent>","after":1}}`; got != want {
		t.Errorf("Diff = %s, want %s", got, want)
	}
	var ms []value.Member
	for i := range 60 {
		ms = append(ms, value.Member{Key: fmt.Sprintf("k%02d", i), Value: value.MustText(strings.Repeat("x", 400))})
	}
	big, err := state.Parse(value.ObjectOf(value.Member{Key: "world", Value: value.ObjectOf(ms...)}))
	if err != nil {
		t.Fatal(err)
	}
	d := Diff(state.Empty(), big)
	if d.Len() != 51 || d.Key(50) != "..." || !strings.Contains(d.At(0).String(), "[truncated 100 characters]") {
		t.Errorf("%d changes, last %s, first %s", d.Len(), d.Key(d.Len()-1), d.At(0))
	}
}

func TestBehaviour12_WithheldTemplates(t *testing.T) {
	_, call := tools(t, func(w *Tools) { w.Withhold = true })
	got := call("inspect_action", `{"action_type":"withdraw"}`)
	check(t, got, map[string]string{"rules.0.observation_template": "null"})
	if at(t, got, "rules.0.template_withheld") == "missing" {
		t.Error("nothing says that the template is withheld")
	}
	got = call("apply_rule", `{"rule_id":"withdraw_success"}`)
	check(t, got, map[string]string{"applicable": "true", "observation": "null"})
	if at(t, got, "observation_withheld") == "missing" {
		t.Error("nothing says that the observation is withheld")
	}
}

func TestBehaviour13_NoMemory(t *testing.T) {
	w, call := tools(t, func(w *Tools) { w.Memory = fakeMemory{entry(1, "ls", "README.md")} })
	check(t, call("recall", `{"query":"README.md"}`), map[string]string{"0.id": `"memory:1"`, "0.turn": "1"})
	if !slices.Contains(w.Shown(), "memory:1") {
		t.Errorf("shown %v", w.Shown())
	}
	_, call = tools(t, func(w *Tools) { w.Features.History = true })
	check(t, call("read_turn", `{"turn":1}`), map[string]string{"error": `"No episodic memory in this session"`})
	if got := call("recall", `{"query":"x"}`).String() + call("recent_turns", `{}`).String(); got != "[][]" {
		t.Errorf("got %s", got)
	}
}
