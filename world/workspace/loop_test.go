package workspace

import (
	"errors"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world/session"
	"github.com/google/go-cmp/cmp"
)

func TestBehaviour14_ApplyThenSubmit(t *testing.T) {
	m := &recorder{replies: []*model.Reply{calling("apply_rule", `{"rule_id":"withdraw_success"}`),
		calling("submit_transition", `{"outcome":"success","rule_ids":["withdraw_success"],"effects":[{"op":"decrement","path":"world.balance","value":25}]}`)}}
	a, err := New(Options{Model: m})
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, compile(t, nil), session.Options{Agent: a, FastPath: session.Never})
	if _, err := s.Step(t.Context(), session.Request{Action: action("withdraw", `{"amount":25}`)}); err != nil {
		t.Fatal(err)
	}
	rows, err := s.Audit(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"apply_rule", "submit_transition", "_usage"}, trace(rows[0])); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"system", "user", "assistant", "tool"}, m.senders[1]); d != "" {
		t.Error(d)
	}
	check(t, value.MustParse(m.last.Messages[3].Text), map[string]string{"applicable": "true"})
	check(t, rows[0].ToolCalls[2], map[string]string{"arguments.model_calls": "2"})
	check(t, rows[0].ToolCalls[1], map[string]string{"arguments.effects": "1", "arguments.rule_ids": `["withdraw_success"]`})
}

func TestBehaviour15_InvalidSubmissions(t *testing.T) {
	_, a, err := play(t, nil, calling("final", `{"outcome":"success","zzz":1}`), calling("submit_transition", `{}`), calling("submit_transition", good))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"submit_transition!invalid submission", "submit_transition!invalid submission", "submit_transition", "_usage"}, trace(a)); d != "" {
		t.Error(d)
	}
	check(t, a.ToolCalls[3], map[string]string{"arguments.model_calls": "3"})
	_, a, err = play(t, nil, calling("submit_transition", `{}`))
	var p *agent.ProtocolError
	if !errors.As(err, &p) || p.Code != agent.CodeInvalid || !strings.Contains(err.Error(), "3 times") {
		t.Errorf("got %v", err)
	}
	if len(a.ToolCalls) != 4 {
		t.Errorf("the trace is lost: %v", trace(a))
	}
}

func TestBehaviour16_MaxRounds(t *testing.T) {
	s := agent.Source()
	s.MaxRounds = agent.Int(3)
	s.MaxInvalidSubmissions = agent.Int(9)
	_, _, err := play(t, &s, calling("final", `{}`), calling("list_actions", `{}`), calling("final", `{}`), calling("list_actions", `{}`))
	if err == nil || !strings.Contains(err.Error(), "calls without a valid submission") {
		t.Errorf("got %v", err)
	}
	s = agent.Source()
	s.MaxInvalidSubmissions = agent.Int(99)
	m, _, err := play(t, &s, calling("final", `{}`))
	if err == nil || len(m.forced) != 20 {
		t.Errorf("%d rounds, %v", len(m.forced), err)
	}
}

func TestBehaviour17_TheBudgetForcesTheSubmission(t *testing.T) {
	m, _, err := play(t, limits(2), calling("list_actions", `{}`), calling("read_state", `{}`), calling("submit_transition", good))
	if d := cmp.Diff([]string{"", "", "submit_transition"}, m.forced); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

func TestBehaviour18_CallsPastTheBudget(t *testing.T) {
	m, _, err := play(t, limits(1), calling("list_actions", `{}`))
	if err == nil || !strings.Contains(err.Error(), "budget") {
		t.Errorf("got %v", err)
	}
	if d := cmp.Diff([]string{"", "submit_transition", "submit_transition"}, m.forced); d != "" {
		t.Error(d)
	}
	if text := m.last.Messages[len(m.last.Messages)-1].Text; !strings.Contains(text, "budget is exhausted") {
		t.Errorf("it was told %s", text)
	}
	_, a, err := play(t, limits(1), calling("list_actions", `{}`), calling("list_actions", `{}`), calling("submit_transition", good))
	if err != nil || a.ToolCalls[1].String() != `{"tool":"list_actions","error":"refused: tool budget exhausted"}` {
		t.Errorf("%v, trace %v", err, a.ToolCalls)
	}
}

func TestBehaviour19_FinalAlone(t *testing.T) {
	_, a, err := play(t, nil, calling("final", good))
	if d := cmp.Diff([]string{"submit_transition", "_usage"}, trace(a)); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

func TestBehaviour20_PlainReplies(t *testing.T) {
	m, _, err := play(t, nil, saying("I think so"), calling("submit_transition", good))
	if err != nil || !strings.Contains(m.last.Messages[3].Text, "submit_transition") {
		t.Errorf("%v, %s", err, m.last.Messages[3].Text)
	}
	var p *agent.ProtocolError
	if _, _, err = play(t, nil, saying("I think so")); !errors.As(err, &p) || p.Code != agent.CodeNoCall {
		t.Errorf("got %v", err)
	}
}

func TestBehaviour21_NonsenseOutcome(t *testing.T) {
	m, a, err := play(t, nil, calling("submit_transition", `{"outcome":"nonsense"}`), calling("submit_transition", good))
	if err != nil {
		t.Fatal(err)
	}
	if trace(a)[0] != "submit_transition!invalid submission" {
		t.Errorf("trace %v", trace(a))
	}
	if answer := m.last.Messages[3]; answer.From.String() != "tool" || !strings.Contains(answer.Text, "Invalid submission") {
		t.Errorf("%s: %s", answer.From, answer.Text)
	}
}

func TestBehaviour22_AHugePayloadIsNotEchoed(t *testing.T) {
	m, _, err := play(t, nil, calling("submit_transition", strings.Repeat("x", 200_000)), calling("submit_transition", good))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(m.last.Messages[3].Text); n >= 2000 {
		t.Errorf("the answer has %d characters", n)
	}
}
