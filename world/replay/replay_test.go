package replay

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/episode"
	"github.com/google/go-cmp/cmp"
)

func compile(t testing.TB, edit func(*book.Artifacts)) *book.Book {
	t.Helper()
	a, c := book.Demo()
	edit(a)
	dir := filepath.Join(t.TempDir(), "world")
	if err := book.Write(dir, a, c, book.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	return open(t, dir)
}

func open(t testing.TB, dir string) *book.Book {
	t.Helper()
	b, err := book.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func ledgerCases(t testing.TB) []Case {
	t.Helper()
	cases, err := ReadCases("ledger_cases.jsonl", read(t, "ledger_cases.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return cases
}

func asIs(*book.Artifacts) {}

func TestLedgerReportIsTheReferences(t *testing.T) {
	b := compile(t, asIs)
	r, err := Run(t.Context(), b, ledgerCases(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := world.AppendDocument(nil, r)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(read(t, "ledger_replay_report.json")), string(got)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if src := ledgerCases(t)[0].SourceIDs[0]; src != episode.SourceID(read(t, "ledger_reference.txt")) {
		t.Errorf("the case's source is %s", src)
	}
	dir := filepath.Join(t.TempDir(), "promoted")
	if err := Promote(b, r, dir); err != nil {
		t.Fatal(err)
	}
	p := open(t, dir)
	if p.Manifest.Status() != book.Validated || p.Manifest.ArtifactDigest() != b.Manifest.ArtifactDigest() {
		t.Errorf("promoted: %+v", p.Manifest)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "validation/replay.json")); err != nil || string(text) != string(got) {
		t.Errorf("the report in it: %s, %v", text, err)
	}
}

func TestAWrongRuleRegresses(t *testing.T) {
	good := compile(t, asIs)
	bad := compile(t, func(a *book.Artifacts) { a.Rules[1].Effects[0].Op = world.Increment })
	r, err := Run(t.Context(), bad, ledgerCases(t), good)
	if err != nil {
		t.Fatal(err)
	}
	if r.PassedCases != 0 || *r.BaselinePassedCases != 1 || len(r.Regressions) != 1 || r.PromotionEligible {
		t.Errorf("report %+v", r)
	}
	want := []string{"step 3: observation mismatch", "step 3: state mismatch at world.balance", "step 4: observation mismatch", "step 4: state mismatch at world.balance"}
	if d := cmp.Diff(want, r.Cases[0].Errors); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if err := Promote(bad, r, filepath.Join(t.TempDir(), "x")); !world.IsFault(err, world.ValueError) || !strings.Contains(err.Error(), "Promotion rejected") {
		t.Errorf("got %v", err)
	}
	ok, err := Run(t.Context(), good, ledgerCases(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := Promote(bad, ok, filepath.Join(t.TempDir(), "x")); err == nil || !strings.Contains(err.Error(), "exact artifacts") {
		t.Errorf("another's report: %v", err)
	}
}

func TestWhatStopsACaseAndWhatSpeaksAgainstPromotion(t *testing.T) {
	b := compile(t, asIs)
	step := func(typ, args, obs string) string {
		return fmt.Sprintf(`{"action":{"type":%q,"arguments":%s},"expected_observation":%q}`, typ, args, obs)
	}
	doc := func(extra, state string, steps ...string) string {
		return fmt.Sprintf(`{"id":"c","trajectory_group":"g","source_ids":["s"],"split":"validation","initial_state":{"world":%s},"steps":[%s]%s}`, state, strings.Join(steps, ","), extra)
	}
	for _, c := range []struct{ name, doc, want string }{
		{"unobserved condition", doc("", "{}", step("withdraw", `{"amount":1}`, "")), "ValueError: Rule withdraw_success requires unobserved state; replay cannot establish applicability"},
		{"unobserved effect", doc("", "{}", step("deposit", `{"amount":1}`, "")), "ValueError: Rule deposit_success updates unobserved state at world.balance"},
		{"known absent", doc(`,"known_absent_paths":["world.balance"]`, "{}", step("withdraw", `{"amount":1}`, "")), `NoApplicableRule: No rule applies to action "withdraw"; configure a world-model agent for it`},
		{"complete", doc(`,"initial_state_complete":true`, "{}", step("deposit", `{"amount":1}`, "")), "ValueError: Cannot increment missing path world.balance"},
		{"missing argument", doc("", `{"balance":1.0}`, step("balance", "{}", "Balance: 1.0"), step("deposit", "{}", "")), "KeyError: 'amount'"},
		{"invalid", doc(`,"initial_state_complete":true`, `{"balance":1.0}`, step("deposit", "{}", "")), "InvalidAction: Missing required argument 'amount' for action 'deposit'"},
		{"mismatch", doc("", `{"balance":1.0}`, step("balance", "{}", "Balance: 2.0")), "step 1: observation mismatch"},
	} {
		cases, err := ReadCases("x", []byte(c.doc))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		r, err := Run(t.Context(), b, cases, nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := strings.Join(r.Cases[0].Errors, "|"); got != c.want || r.PromotionEligible {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
	r, err := Run(t.Context(), b, nil, nil)
	if err != nil || strings.Join(r.Reasons, "|") != "Executable rules remain untested by passing replay cases|No replay cases supplied|No independent validation trajectory supplied" {
		t.Errorf("no cases: %+v, %v", r, err)
	}
	cases := append(ledgerCases(t), ledgerCases(t)...)
	if _, err := Run(t.Context(), b, cases, nil); !world.IsFault(err, world.ValueError) {
		t.Errorf("two of one id: %v", err)
	}
	cases[1].ID, cases[1].Split = "other", "test"
	if _, err := Run(t.Context(), b, cases, nil); err == nil || !strings.Contains(err.Error(), "splits validation and test") {
		t.Errorf("a group across splits: %v", err)
	}
}

func TestBadCasesAreNamedWithTheirLine(t *testing.T) {
	_, err := ReadCases("c.jsonl", append(append([]byte{}, read(t, "ledger_cases.jsonl")...), `{"id":"x"}`...))
	if err == nil || !strings.Contains(err.Error(), "c.jsonl: line 2") {
		t.Errorf("got %v", err)
	}
}

// The cases are played on what a package runs by; nothing is promoted that it was
// not compiled into.
func TestPromotionPublishesWhatWasPlayed(t *testing.T) {
	whole := compile(t, asIs)
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(whole.Dir())); err != nil {
		t.Fatal(err)
	}
	replace := func(name, old, with string) {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		edited := strings.Replace(string(text), old, with, 1)
		if edited == string(text) {
			t.Fatalf("%s has no %s", name, old)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(edited), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sum := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%x", sha256.Sum256(text))
	}
	before := sum("rules/index.jsonl")
	replace("rules/index.jsonl", `"priority": 10`, `"priority": 11`)
	replace("manifest.json", `"rules/index.jsonl": "`+before, `"rules/index.jsonl": "`+sum("rules/index.jsonl"))
	b := open(t, dir)
	r, err := Run(t.Context(), b, ledgerCases(t), nil)
	if err != nil || !r.PromotionEligible {
		t.Fatalf("%+v, %v", r, err)
	}
	to := filepath.Join(t.TempDir(), "promoted")
	if err := Promote(b, r, to); !errors.Is(err, book.ErrIntegrity) || !strings.Contains(err.Error(), "the rules that it plays are not those of") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(to); err == nil {
		t.Error("it was promoted")
	}
}

func TestPatchAndPromote(t *testing.T) {
	bad := compile(t, func(a *book.Artifacts) { a.Rules[1].Effects[0].Op = world.Increment })
	a, _ := book.Demo()
	rule, err := world.AppendDocument(nil, a.Rules[1])
	if err != nil {
		t.Fatal(err)
	}
	var p book.Patch
	if err := world.Decode(fmt.Appendf(nil, `{"base_artifact_digest":%q,"rationale":"withdrawing takes","failed_case_ids":["synthetic-ledger-reference"],
		"edits":[{"collection":"rules","key":"withdraw_success","operation":"replace","value":%s}]}`, bad.Manifest.ArtifactDigest(), rule), &p); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "patched")
	r, err := Patch(t.Context(), bad, &p, ledgerCases(t), dir)
	if err != nil || !r.PromotionEligible || *r.BaselinePassedCases != 0 {
		t.Fatalf("report %+v, %v", r, err)
	}
	if err := Promote(open(t, dir), r, filepath.Join(t.TempDir(), "v")); err != nil {
		t.Error(err)
	}
	if _, err := Patch(t.Context(), open(t, dir), &p, ledgerCases(t), filepath.Join(t.TempDir(), "again")); !world.IsFault(err, world.ValueError) {
		t.Errorf("a stale patch: %v", err)
	}
}
