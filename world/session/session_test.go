package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func compile(t testing.TB, a *book.Artifacts, c *book.Config, o book.WriteOptions) *book.Book {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "world")
	if err := book.Write(dir, a, c, o); err != nil {
		t.Fatal(err)
	}
	b, err := book.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func ledger(t testing.TB) *book.Book {
	a, c := book.Demo()
	return compile(t, a, c, book.WriteOptions{})
}

func open(t testing.TB, dir string, b *book.Book, o Options) *Session {
	t.Helper()
	o.NoSync = true
	s, err := Open(t.Context(), dir, b, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func request(typ, args string) Request {
	return Request{Action: world.Action{Type: typ, Arguments: value.MustParse(args), Raw: value.NullValue()}}
}

func TestLedgerStepsAreTheReferences(t *testing.T) {
	s := open(t, t.TempDir(), ledger(t), Options{})
	var results []*Result
	for _, amount := range []string{"25", "1000"} {
		r, err := s.Step(t.Context(), request("withdraw", `{"amount":`+amount+`}`))
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	got, err := world.AppendDocument(nil, results)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/ledger_step_results.json")
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	rows, err := s.Audit(t.Context(), 0)
	if err != nil || len(rows) != 2 || !rows[1].Committed || *rows[1].NewRevision != 2 || *rows[1].Route != ByRule {
		t.Errorf("audit %+v, %v", rows, err)
	}
}

func TestFailedStepsLeaveAnAuditRowAndNothingElse(t *testing.T) {
	s := open(t, t.TempDir(), ledger(t), Options{})
	for _, c := range []struct{ typ, args, fault, text string }{
		{"deposit", `{}`, world.InvalidAction, "Missing required argument 'amount' for action 'deposit'"},
		{"deposit", `{"amount":"5"}`, world.InvalidAction, "Argument 'amount' must be number, got str"},
		{"deposit", `{"amount":true}`, world.InvalidAction, "Argument 'amount' must be number, got bool"},
		{"transfer", `{}`, world.NoApplicableRule, "No rule applies to action \"transfer\""},
		{"deposit", `{"amount":-500}`, world.RuntimeError, "Transition verification failed: Available balance must never be negative."},
	} {
		_, err := s.Step(t.Context(), request(c.typ, c.args))
		if !world.IsFault(err, c.fault) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s %s: got %v, want %s: %s", c.typ, c.args, err, c.fault, c.text)
		}
	}
	rows, err := s.Audit(t.Context(), 0)
	if err != nil || len(rows) != 5 {
		t.Fatalf("audit %d rows, %v", len(rows), err)
	}
	for _, r := range rows {
		if r.Committed || r.Error == nil || r.NewRevision != nil {
			t.Errorf("audit %+v", r)
		}
	}
	if n, err := s.Memory().Count(t.Context()); n != 0 || err != nil || s.State().Revision != 0 || s.State().Step != 0 {
		t.Errorf("memory %d, %v, state %s", n, err, s.State().Value())
	}
}

func TestWhatMayNotBePlayedIsRefusedBeforeAnythingIsCreated(t *testing.T) {
	b := ledger(t)
	dir := filepath.Join(t.TempDir(), "play")
	for _, status := range []string{"candidate", "reconstructed"} {
		m := &book.Book{Manifest: b.Manifest, Engine: b.Engine}
		m.Manifest.Metadata = value.MustParse(`{"construction_kind":"reconstructed"}`)
		if status == "candidate" {
			m.Manifest.Metadata = value.MustParse(`{"validation_status":"candidate"}`)
		}
		if _, err := Open(t.Context(), dir, m, Options{}); !world.IsFault(err, world.ValueError) {
			t.Errorf("%s: got %v", status, err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: a directory was created", status)
		}
	}
	open(t, dir, b, Options{}).Close()
	a, c := book.Demo()
	a.Notes = nil
	if _, err := Open(t.Context(), dir, compile(t, a, c, book.WriteOptions{}), Options{}); !errors.Is(err, ErrOtherWorld) {
		t.Errorf("got %v, want %v", err, ErrOtherWorld)
	}
}

func TestASessionIsReadBack(t *testing.T) {
	dir, b := t.TempDir(), ledger(t)
	s := open(t, dir, b, Options{})
	for i := range 700 { // more than the deltas between two snapshots of a small state
		if _, err := s.Step(t.Context(), request("deposit", fmt.Sprintf(`{"amount":%d}`, i%7))); err != nil {
			t.Fatal(err)
		}
	}
	want := s.State().Value().String()
	at, err := s.StateAt(t.Context(), 333)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	s = open(t, dir, b, Options{})
	if got := s.State().Value().String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	var snapshots int
	if err := s.db.QueryRow("SELECT count(*) FROM snapshots").Scan(&snapshots); err != nil || snapshots < 2 {
		t.Errorf("%d snapshots, %v", snapshots, err)
	}
	fork := filepath.Join(t.TempDir(), "fork")
	if err := s.Fork(t.Context(), fork, 333); err != nil {
		t.Fatal(err)
	}
	f := open(t, fork, b, Options{})
	if got := f.State().Value().String(); got != at.Value().String() {
		t.Errorf("fork is at %s, want %s", got, at.Value())
	}
	if n, err := f.Memory().Count(t.Context()); n != 333 || err != nil {
		t.Errorf("the fork remembers %d turns, %v", n, err)
	}
	if _, err := f.Step(t.Context(), request("deposit", `{"amount":1}`)); err != nil || f.State().Revision != 334 {
		t.Errorf("the fork does not go on: %v", err)
	}
	if s.State().Value().String() != want {
		t.Error("the fork changed its source")
	}
	if info, err := Inspect(t.Context(), fork); err != nil || info.Revision != 334 || info.Turns != 334 || info.Failed != 0 || info.ForkedFrom != dir || info.World != b.Manifest.ArtifactDigest() {
		t.Errorf("Inspect = %+v, %v", info, err)
	}
	if _, err := Inspect(t.Context(), t.TempDir()); err == nil {
		t.Error("a directory without a session was inspected")
	}
	if err := s.Fork(t.Context(), fork, 1); err == nil {
		t.Error("a fork overwrote a session")
	}
	if err := s.Fork(t.Context(), filepath.Join(t.TempDir(), "x"), 9999); err == nil || !strings.Contains(err.Error(), "no revision 9999") {
		t.Errorf("a fork from the future: %v", err)
	}
}

type agentFunc func(context.Context, *Turn) (*Prediction, error)

func (f agentFunc) Predict(ctx context.Context, t *Turn) (*Prediction, error) { return f(ctx, t) }

func TestTheSecondWriterConflictsBeforeAnyModelIsAsked(t *testing.T) {
	dir, b := t.TempDir(), ledger(t)
	started, finish := make(chan bool), make(chan bool)
	text := "done"
	slow := agentFunc(func(context.Context, *Turn) (*Prediction, error) {
		close(started)
		<-finish
		return &Prediction{Submission: Submission{Outcome: world.Success, Observation: &text}}, nil
	})
	paid := 0
	other := agentFunc(func(context.Context, *Turn) (*Prediction, error) {
		paid++
		return &Prediction{Submission: Submission{Outcome: world.Success, Observation: &text}}, nil
	})
	first := open(t, dir, b, Options{Agent: slow})
	second := open(t, dir, b, Options{Agent: other})
	done := make(chan error)
	go func() {
		_, err := first.Step(t.Context(), request("gamble", `{}`))
		done <- err
	}()
	<-started
	for _, s := range []*Session{second, first} {
		if _, err := s.Step(t.Context(), request("gamble", `{}`)); !errors.Is(err, ErrConflict) {
			t.Errorf("got %v, want %v", err, ErrConflict)
		}
	}
	close(finish)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := second.Step(t.Context(), request("gamble", `{}`)); !errors.Is(err, ErrConflict) {
		t.Errorf("a stale writer: got %v, want %v", err, ErrConflict)
	}
	if paid != 0 {
		t.Errorf("%d models were paid for a conflict", paid)
	}
	if second.State().Revision != 1 {
		t.Errorf("the second writer has not taken in what the first did: revision %d", second.State().Revision)
	}
	if _, err := second.Step(t.Context(), request("gamble", `{}`)); err != nil || paid != 1 {
		t.Errorf("the step cannot be made again: %v", err)
	}
}

func TestTheTraceOfAFailedAgentIsKept(t *testing.T) {
	trace := []value.Value{value.MustParse(`{"tool":"read_state","arguments":{}}`), value.MustParse(`{"tool":"_usage","arguments":{"model_calls":3}}`)}
	broken := errors.New("made 3 calls without a valid submission")
	s := open(t, t.TempDir(), ledger(t), Options{Agent: agentFunc(func(context.Context, *Turn) (*Prediction, error) {
		return &Prediction{Trace: trace}, broken
	})})
	if _, err := s.Step(t.Context(), request("gamble", `{}`)); !errors.Is(err, broken) {
		t.Fatalf("got %v", err)
	}
	rows, err := s.Audit(t.Context(), 0)
	if err != nil || len(rows) != 1 || len(rows[0].ToolCalls) != 2 || *rows[0].Route != ByAgent || *rows[0].Error != broken.Error() {
		t.Errorf("audit %+v, %v", rows, err)
	}
}

func TestAnAgentThatPanicsLeavesTheSessionUsable(t *testing.T) {
	calm := "done"
	panics := true
	s := open(t, t.TempDir(), ledger(t), Options{Agent: agentFunc(func(context.Context, *Turn) (*Prediction, error) {
		if panics {
			panic("boom")
		}
		return &Prediction{Submission: Submission{Outcome: world.Success, Observation: &calm}}, nil
	})})
	func() {
		defer func() {
			if p := recover(); p == nil {
				t.Error("the panic was swallowed")
			}
		}()
		s.Step(t.Context(), request("gamble", `{}`))
	}()
	panics = false
	if r, err := s.Step(t.Context(), request("gamble", `{}`)); err != nil || r.Observation != calm {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestTwoRulesOfOneTextMayBeCited(t *testing.T) {
	a, c := book.Demo()
	more := world.Rule{ID: "fee", ActionType: "deposit", Description: "", Outcome: world.Success, Renderer: "ledger", Status: world.Supported, Confidence: 0.1,
		ObservationTemplate: a.Rules[0].ObservationTemplate}
	a.Rules = append(a.Rules, more)
	c.MinRuleConfidence = 0.05
	cite := func(text *string) error {
		a.Rules[4].ObservationTemplate = text
		s := open(t, t.TempDir(), compile(t, a, c, book.WriteOptions{}), Options{FastPath: Never, Agent: agentFunc(func(_ context.Context, turn *Turn) (*Prediction, error) {
			return &Prediction{Submission: Submission{Outcome: world.Success, RuleIDs: []string{"deposit_success", "fee"},
				Effects: []world.Mutation{{Op: world.Increment, Path: "world.balance", Value: value.Int(5)}}}}, nil
		})})
		_, err := s.Step(t.Context(), request("deposit", `{"amount":5}`))
		return err
	}
	if err := cite(a.Rules[0].ObservationTemplate); err != nil {
		t.Errorf("equal texts: %v", err)
	}
	if err := cite(nil); err != nil {
		t.Errorf("one text: %v", err)
	}
	other := "something else"
	if err := cite(&other); err == nil || !strings.Contains(err.Error(), "deposit_success and fee") {
		t.Errorf("two texts: got %v, want both named", err)
	}
}

func TestRulesMayReadState(t *testing.T) {
	a, c := book.Demo()
	a.Rules[0].Effects[0] = world.Mutation{Op: world.Set, Path: "world.balance", Value: value.MustParse(`{"$state_path":"world.balance"}`)}
	a.Rules[0].Conditions = []world.Condition{{Not: &world.Condition{Left: world.Operand{ActionArg: ptr("amount"), Literal: value.NullValue()}, Op: "not_exists"}}}
	s := open(t, t.TempDir(), compile(t, a, c, book.WriteOptions{Extended: true}), Options{})
	r, err := s.Step(t.Context(), request("deposit", `{"amount":5}`))
	if err != nil || r.Observation != "Deposited 5. Balance: 100.0" {
		t.Errorf("got %+v, %v", r, err)
	}
}

func ptr[T any](x T) *T { return &x }

func TestConflictingRulesFailTheStep(t *testing.T) {
	a, c := book.Demo()
	for i := range 40 { // beyond what is retrieved
		r := a.Rules[3]
		r.ID, r.Priority = fmt.Sprintf("extra_%02d", i), int64(100-i)
		r.Conditions = []world.Condition{{Left: world.Operand{ActionArg: ptr("nothing"), Literal: value.NullValue()}, Op: "exists"}}
		r.Conditions[0].Left = world.Operand{Path: ptr("world.balance"), Literal: value.NullValue()}
		r.Conditions[0].Op = "lt"
		r.Conditions[0].Right = &world.Operand{Literal: value.Int(0)}
		a.Rules = append(a.Rules, r)
	}
	clash := a.Rules[3]
	clash.ID, clash.ObservationTemplate = "clash", ptr("Other")
	a.Rules = append(a.Rules, clash)
	s := open(t, t.TempDir(), compile(t, a, c, book.WriteOptions{}), Options{})
	if _, err := s.Step(t.Context(), request("balance", `{}`)); !world.IsFault(err, world.AmbiguousRuleError) || !strings.Contains(err.Error(), "clash, balance_read") {
		t.Errorf("got %v", err)
	}
}

// An empty observation is a prediction; with Wait, rules that can produce nothing
// leave the turn to the agent.
func TestAnEmptyObservationIsAPrediction(t *testing.T) {
	a, c := book.Demo()
	a.Rules[3].ObservationTemplate = nil // of balance: it can produce nothing any more
	agent := agentFunc(func(context.Context, *Turn) (*Prediction, error) {
		return &Prediction{Submission: Submission{Outcome: world.Success, Observation: ptr("")}}, nil
	})
	s := open(t, t.TempDir(), compile(t, a, c, book.WriteOptions{}), Options{Agent: agent, Wait: true, FastPath: Always})
	r, err := s.Step(t.Context(), request("balance", `{}`))
	if err != nil || r.Observation != "" || r.Route != ByAgent || r.State.Revision != 1 {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestMemory(t *testing.T) {
	dir, b := t.TempDir(), ledger(t)
	texts := []string{"README.md\nmain.go", "# Привет 余额不足"}
	s := open(t, dir, b, Options{Agent: agentFunc(func(_ context.Context, turn *Turn) (*Prediction, error) {
		return &Prediction{Submission: Submission{Outcome: world.Success, Observation: &texts[turn.State.Step-1]}}, nil
	})})
	for _, c := range []string{`{"command":"ls"}`, `{"command":"cat README.md"}`} {
		if _, err := s.Step(t.Context(), request("shell", c)); err != nil {
			t.Fatal(err)
		}
	}
	m := s.Memory()
	recent, err := m.Recent(t.Context(), 5)
	if err != nil || len(recent) != 2 || recent[0].ID != 1 || recent[1].Turn != 2 {
		t.Errorf("Recent = %+v, %v", recent, err)
	}
	for query, want := range map[string][]int64{"main.go": {1}, "cat README.md": {2, 1}, "": {}, "привет": {2}, "余额": {2}, "nowhere": {}} {
		found, err := m.Search(t.Context(), query, 8)
		ids := []int64{}
		for _, e := range found {
			ids = append(ids, e.ID)
		}
		if err != nil || !cmp.Equal(ids, want) {
			t.Errorf("Search(%q) = %v, %v; want %v", query, ids, err, want)
		}
	}
	s.Close()
	if n, err := open(t, dir, b, Options{}).Memory().Count(t.Context()); n != 2 || err != nil {
		t.Errorf("Count = %d, %v", n, err)
	}
}

// Whatever is asked of a ledger, the session says what a plain balance says,
// also after it was opened again.
func TestASessionAgreesWithAPlainBalance(t *testing.T) {
	b := ledger(t)
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "s")
		if err != nil {
			rt.Fatal(err)
		}
		s, err := Open(t.Context(), dir, b, Options{NoSync: true})
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { s.Close() }()
		balance := 100
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			n := rapid.IntRange(0, 150).Draw(rt, "amount")
			want := ""
			switch op := rapid.SampledFrom([]string{"deposit", "withdraw", "balance", "reopen"}).Draw(rt, "op"); op {
			case "reopen":
				s.Close()
				if s, err = Open(t.Context(), dir, b, Options{NoSync: true}); err != nil {
					rt.Fatal(err)
				}
				continue
			case "balance":
				want = fmt.Sprintf("Balance: %d.0", balance)
				n = -1
			case "deposit":
				balance += n
				want = fmt.Sprintf("Deposited %d. Balance: %d.0", n, balance)
			default:
				want = fmt.Sprintf("Insufficient funds. Balance: %d.0", balance)
				if n <= balance {
					balance -= n
					want = fmt.Sprintf("Withdrew %d. Balance: %d.0", n, balance)
				}
			}
			typ, _, _ := strings.Cut(strings.ToLower(want), " ")
			req := request(map[string]string{"deposited": "deposit", "withdrew": "withdraw", "insufficient": "withdraw", "balance:": "balance"}[typ], fmt.Sprintf(`{"amount":%d}`, n))
			r, err := s.Step(t.Context(), req)
			if err != nil || r.Observation != want {
				rt.Fatalf("got %+v, %v; want %s", r, err, want)
			}
		}
	})
}

const childEnv = "SESSION_TEST_DIRS"
