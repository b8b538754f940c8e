package build

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/episode"
	"github.com/callsheet/callsheet/world/session"
	"github.com/callsheet/callsheet/world/state"
	"github.com/google/go-cmp/cmp"
)

func record(t testing.TB, episodes ...[][2]string) *episode.Recording {
	t.Helper()
	dir := t.TempDir()
	var b strings.Builder
	for i, e := range episodes {
		for _, turn := range e {
			fmt.Fprintf(&b, "{\"episode_id\":\"e%d\",\"action\":%s,\"observation\":%s}\n", i, turn[0], value.MustText(turn[1]))
		}
	}
	name := filepath.Join(dir, "trace.jsonl")
	if err := os.WriteFile(name, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	rec, err := episode.Read(t.Context(), []string{name}, episode.Options{})
	if err != nil || len(rec.Faults) > 0 {
		t.Fatal(err, rec.Faults)
	}
	return rec
}

func config() *book.Config {
	c := book.Defaults()
	c.EnvironmentID, c.Name = "test.world", "Test"
	return &c
}

func built(t testing.TB, rec *episode.Recording) (*book.Artifacts, *Report) {
	t.Helper()
	a, r, err := Build(rec, config(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	return a, r
}

// bank records episodes of a bank, each from its own balance.
func bank(rng *rand.Rand, episodes, turns int, lie bool) [][][2]string {
	var out [][][2]string
	for e := range episodes {
		balance := 50 + rng.IntN(200)
		var turnsOf [][2]string
		for i := range turns {
			amount := 1 + rng.IntN(150)
			typ := []string{"deposit", "withdraw", "balance"}[rng.IntN(3)]
			text := fmt.Sprintf("Balance: %d.0", balance)
			switch {
			case typ == "deposit":
				balance += amount
				text = fmt.Sprintf("Deposited %d. Balance: %d.0", amount, balance)
			case typ == "withdraw" && amount <= balance:
				balance -= amount
				text = fmt.Sprintf("Withdrew %d. Balance: %d.0", amount, balance)
			case typ == "withdraw":
				text = fmt.Sprintf("Insufficient funds. Balance: %d.0", balance)
			}
			if lie && e == episodes-1 && i > turns/2 && typ == "withdraw" {
				text = fmt.Sprintf("Withdrew %d. Balance: %d.0", amount, balance+1)
			}
			action := fmt.Sprintf(`{"type":%q,"arguments":{"amount":%d}}`, typ, amount)
			if typ == "balance" {
				action = `{"type":"balance","arguments":{}}`
			}
			turnsOf = append(turnsOf, [2]string{action, text})
		}
		out = append(out, turnsOf)
	}
	return out
}

func TestABankIsInduced(t *testing.T) {
	a, r := built(t, record(t, bank(rand.New(rand.NewPCG(1, 2)), 8, 40, false)...))
	if r.Rules != 4 || r.Rejected != 0 || r.Tentative != 0 {
		t.Fatalf("report %+v; unresolved %v", r, a.Unresolved)
	}
	dir := filepath.Join(t.TempDir(), "bank")
	if err := book.Write(dir, a, config(), book.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	b, err := book.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	initial, err := state.Parse(value.MustParse(`{"world":{"balance":100.0}}`))
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(t.Context(), t.TempDir(), b, session.Options{Initial: &initial, AllowUnvalidated: true, NoSync: true, FastPath: session.Always})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct{ typ, args, want string }{
		{"withdraw", `{"amount":25}`, "Withdrew 25. Balance: 75.0"}, {"withdraw", `{"amount":1000}`, "Insufficient funds. Balance: 75.0"},
		{"deposit", `{"amount":5}`, "Deposited 5. Balance: 80.0"}, {"balance", `{}`, "Balance: 80.0"},
	} {
		r, err := s.Step(t.Context(), session.Request{Action: world.Action{Type: c.typ, Arguments: value.MustParse(c.args)}})
		if err != nil || r.Observation != c.want {
			t.Errorf("%s %s: got %+v, %v; want %s", c.typ, c.args, r, err, c.want)
		}
	}
}

// One recording is one witness, however often it is there: what it says alone is
// tentative, and a copy of it that is written otherwise holds nothing against it.
func TestACopyOfARecordingIsNoWitness(t *testing.T) {
	one := bank(rand.New(rand.NewPCG(1, 2)), 1, 40, false)
	var copies [][][2]string
	for i := range 8 {
		var e [][2]string
		for _, turn := range one[0] {
			e = append(e, [2]string{strings.ReplaceAll(turn[0], ":", ":"+strings.Repeat(" ", i)), turn[1]})
		}
		copies = append(copies, e)
	}
	_, alone := built(t, record(t, one...))
	_, many := built(t, record(t, copies...))
	if alone.Rules != 0 || alone.Tentative == 0 || many.Rules != 0 || many.Tentative != alone.Tentative {
		t.Errorf("alone %+v, copied %+v; want the same tentative rules and none that is supported", alone, many)
	}
}

func TestKeysThatAreThereAreInduced(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var eps [][][2]string
	for range 8 {
		have := map[string]bool{}
		var e [][2]string
		for range 40 {
			k := []string{"apple", "pear", "plum"}[rng.IntN(3)]
			if rng.IntN(2) == 0 {
				have[k] = true
				e = append(e, [2]string{fmt.Sprintf(`{"type":"add","arguments":{"item":%q}}`, k), "Added " + k})
				continue
			}
			text := "Removed " + k
			if !have[k] {
				text = "There is no " + k
			}
			delete(have, k)
			e = append(e, [2]string{fmt.Sprintf(`{"type":"remove","arguments":{"item":%q}}`, k), text})
		}
		eps = append(eps, e)
	}
	a, r := built(t, record(t, eps...))
	if r.Rules != 3 || r.Rejected != 0 {
		t.Fatalf("report %+v; unresolved %v, rejected %v", r, a.Unresolved, a.Rejected)
	}
	for _, rule := range a.Rules {
		if rule.ActionType == "remove" && (len(rule.Conditions) != 1 || *rule.Conditions[0].Left.Path != "world.known_item.{action.arguments.item}") {
			t.Errorf("rule %+v", rule)
		}
	}
}

func TestWhatHeldOutTurnsContradictIsRejected(t *testing.T) {
	a, r := built(t, record(t, bank(rand.New(rand.NewPCG(5, 6)), 8, 40, true)...))
	if r.Rejected == 0 {
		t.Fatalf("report %+v, unresolved %v", r, a.Unresolved)
	}
	if slices.ContainsFunc(a.Rules, func(rule world.Rule) bool { return strings.Contains(*rule.ObservationTemplate, "Withdrew") }) {
		t.Errorf("a rule that was contradicted stayed: %v", a.Rules)
	}
}

func TestWhatIsNotDeterminedMakesNoRule(t *testing.T) {
	same := [2]string{`{"type":"deposit","arguments":{"amount":20}}`, "Deposited 20"}
	for name, rec := range map[string]*episode.Recording{
		"a number that may be a constant or an argument": record(t, [][2]string{same, same, same}, [][2]string{same, same, same}),
		"two turns": record(t, [][2]string{{`{"type":"a","arguments":{}}`, "x"}}, [][2]string{{`{"type":"a","arguments":{}}`, "x"}}),
		"answers that nothing tells apart": record(t, [][2]string{{`{"type":"roll"}`, "heads"}, {`{"type":"roll"}`, "tails"}, {`{"type":"roll"}`, "heads"}, {`{"type":"roll"}`, "tails"}, {`{"type":"roll"}`, "heads"}, {`{"type":"roll"}`, "tails"}},
			[][2]string{{`{"type":"roll"}`, "heads"}}),
		"braces": record(t, [][2]string{{`{"type":"a"}`, "{x}"}, {`{"type":"a"}`, "{x}"}, {`{"type":"a"}`, "{x}"}}, [][2]string{{`{"type":"a"}`, "{x}"}}),
	} {
		if a, r := built(t, rec); r.Rules+r.Tentative != 0 {
			t.Errorf("%s: %d rules: %+v", name, len(a.Rules), a.Rules)
		}
	}
	one := [2]string{`{"type":"ping"}`, "pong"}
	a, r := built(t, record(t, [][2]string{one, one, one, one}))
	if r.Tentative != 1 || a.Rules[0].Status != world.Tentative {
		t.Errorf("one episode: %+v, %+v", r, a.Rules)
	}
}

func TestDeclarations(t *testing.T) {
	rec := record(t, [][2]string{{`{"type":"a","arguments":{"n":1,"s":"x","z":null}}`, "1"}, {`{"type":"a","arguments":{"n":1.5}}`, "2"}, {`{"type":"a","arguments":{"n":2,"s":3}}`, "3"}, {`"no action here, just words"`, "?"}})
	a, r := built(t, rec)
	got := map[string]string{}
	for _, arg := range a.ActionSchema.Actions[0].Arguments {
		got[arg.Name] = fmt.Sprintf("%s %v", arg.Type, arg.Required)
	}
	if d := cmp.Diff(map[string]string{"n": "number true", "s": "any false", "z": "any false"}, got); d != "" {
		t.Error(d)
	}
	if r.Unreadable != 1 || len(a.Evidence) != 3 || len(a.Demonstrations) != 3 || !strings.Contains(a.Unresolved[0], "no action type") {
		t.Errorf("report %+v, unresolved %v", r, a.Unresolved)
	}
}

func TestTheSameRecordingGivesTheSameBytes(t *testing.T) {
	rec := record(t, bank(rand.New(rand.NewPCG(7, 8)), 6, 30, false)...)
	var hashes []book.Hashes
	for range 2 {
		a, _ := built(t, rec)
		dir := filepath.Join(t.TempDir(), "w")
		if err := book.Write(dir, a, config(), book.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		b, err := book.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		hashes = append(hashes, b.Manifest.Files)
	}
	if d := cmp.Diff(hashes[0], hashes[1]); d != "" {
		t.Error(d)
	}
}

func TestNothingReadableIsAnError(t *testing.T) {
	rec := record(t, [][2]string{{`"just words, no action"`, "?"}})
	if _, _, err := Build(rec, config(), Options{}); err == nil || !strings.Contains(err.Error(), "readable action") {
		t.Errorf("got %v", err)
	}
}
