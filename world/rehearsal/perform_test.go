package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/gate"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world/book"
)

func openStore(t testing.TB) *journal.Store {
	t.Helper()
	store, err := journal.Open(filepath.Join(t.TempDir(), "journal.db"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func decode(t testing.TB, text string) *plan.Plan {
	t.Helper()
	p, err := plan.Decode([]byte(text), plan.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// shop is a live shop: two tools, one of which has effects.
type shop struct {
	set     *tool.Set
	touched int
	stock   string
}

func newShop(t testing.TB) *shop {
	t.Helper()
	s := &shop{stock: `{"left":5}`}
	var err error
	s.set, err = tool.NewSet(
		tool.Tool{Declaration: tool.Declaration{Name: "stock", Effects: tool.Effects{ReadOnly: true}}, Handler: func(context.Context, *tool.Call) (value.Value, error) {
			s.touched++
			return value.MustParse(s.stock), nil
		}},
		tool.Tool{Declaration: tool.Declaration{Name: "order", Effects: tool.Effects{Destructive: true}, Args: []tool.Arg{{Pattern: "/key", Role: tool.Secret}}}, Handler: func(context.Context, *tool.Call) (value.Value, error) {
			s.touched++
			return value.MustText("ordered"), nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// shopWorld is a worldbook of one visit to the shop.
func shopWorld(t testing.TB) *book.Book {
	return compile(t, documents{{"one", append(answered(1, "stock", `{}`, `{"left":5}`), answered(2, "order", `{"n":5}`, `"ordered"`)...)}})
}

// perform rehearses a plan on a worldbook.
func perform(t testing.TB, b *book.Book, text string, c *tool.Catalogue, o PerformOptions) (*machine.Report, *Receipt) {
	t.Helper()
	s, err := New(b, Options{Effectful: func(name string) bool { d := c.Get(name); return d == nil || !d.Effects.ReadOnly }})
	if err != nil {
		t.Fatal(err)
	}
	report, receipt, err := s.Perform(t.Context(), decode(t, text), c, o)
	if err != nil {
		t.Fatal(err)
	}
	return report, receipt
}

const shopping = `[{"id":"a","tool":"stock","args":{}},{"id":"b","tool":"order","args":{"n":"$a.left"}}]`

// The live tools fail the test when they are touched; whatever the plan asks of
// the stage, what was not recorded is a miss.
func TestHostile091_NoPerformanceReachesALiveTool(t *testing.T) {
	live := newShop(t)
	b := shopWorld(t)
	for _, c := range []struct {
		name, plan, status string
		counts             bool
	}{
		{"all recorded", shopping, "ok ok", true},
		{"other args", `[{"id":"a","tool":"order","args":{"n":6}}]`, "tool_error", false},
		{"another state", `[{"id":"a","tool":"order","args":{"n":5}},{"id":"b","tool":"order","args":{"n":5},"after":["a"]}]`, "ok tool_error", false},
		{"a tool that is not there", `[{"id":"a","tool":"nothing","args":{}}]`, "unknown_tool", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			report, receipt := perform(t, b, c.plan, live.set.Catalogue(), PerformOptions{})
			var got []string
			for i := range report.Steps {
				got = append(got, string(report.Steps[i].Status))
			}
			if s := strings.Join(got, " "); s != c.status || receipt.Counts != c.counts || receipt.Counts != (len(receipt.Reasons) == 0) {
				t.Errorf("%s, counts %v (%v); want %s and %v", s, receipt.Counts, receipt.Reasons, c.status, c.counts)
			}
			for i := range receipt.Steps {
				if y := receipt.Steps[i]; y.Way == Missed && (len(y.Evidence) > 0 || y.Reason == "") || y.Way == Recorded && len(y.Evidence) == 0 {
					t.Errorf("step %+v", y)
				}
			}
		})
	}
	if live.touched > 0 {
		t.Errorf("live tools were touched %d times", live.touched)
	}
}

// gateFunc is a gate of one function.
type gateFunc func(call.Request) call.Decision

func (f gateFunc) Judge(_ context.Context, r call.Request) (call.Decision, error) { return f(r), nil }

func TestAReceiptNamesWhatItIsOf(t *testing.T) {
	store, live, b := openStore(t), newShop(t), shopWorld(t)
	asks := gateFunc(func(r call.Request) call.Decision {
		if r.Tool.Name == "order" {
			return call.Decision{Verdict: machine.Ask, Message: "orders cost money"}
		}
		return call.Decision{Verdict: machine.Allow}
	})
	policy := value.MustText("policy").Digest()
	o := PerformOptions{Store: store, Record: record.Options{Policy: policy, Run: run.Options{Gate: asks}}}
	_, receipt := perform(t, b, shopping, live.set.Catalogue(), o)
	if !receipt.Counts || receipt.Step("b").Asked != "orders cost money" || receipt.Step("a").Asked != "" {
		t.Fatalf("receipt %+v", receipt)
	}
	claim := Claim{Plan: decode(t, shopping), Catalogue: live.set.Catalogue(), Policy: policy, World: b.Digest()}
	found, err := Find(t.Context(), store, claim)
	if err != nil || found.Run != receipt.Run || found.Answers != receipt.Answers {
		t.Fatalf("found %+v, %v", found, err)
	}
	changed, err := tool.NewSet(tool.Tool{Declaration: tool.Declaration{Name: "stock"}}, tool.Tool{Declaration: tool.Declaration{Name: "order"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want   string
		change func(*Claim)
	}{
		{"the policy is another", func(c *Claim) { c.Policy = value.Digest{} }},
		{"the tools are declared otherwise now", func(c *Claim) { c.Catalogue = changed.Catalogue() }},
		{"the worldbook is another: ", func(c *Claim) { c.World = strings.Repeat("0", 64) }},
		{"none of this very plan", func(c *Claim) { c.Plan = decode(t, `[{"id":"a","tool":"stock"}]`) }},
	} {
		other := claim
		c.change(&other)
		var missing *Missing
		if _, err := Find(t.Context(), store, other); !errors.As(err, &missing) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	// A rehearsal did nothing: it neither goes on nor is taken over from.
	if _, err := record.Resume(t.Context(), store, receipt.Run, live.set, record.Options{}); !errors.Is(err, record.ErrRehearsal) {
		t.Errorf("resume: %v", err)
	}
	if _, err := record.Fork(t.Context(), store, receipt.Run, decode(t, shopping), live.set, record.Options{}); !errors.Is(err, record.ErrRehearsal) {
		t.Errorf("fork: %v", err)
	}
	// What policy denies is denied on the stage too.
	denies := gateFunc(func(call.Request) call.Decision { return call.Decision{Verdict: machine.Deny} })
	report, receipt := perform(t, b, shopping, live.set.Catalogue(), PerformOptions{Record: record.Options{Run: run.Options{Gate: denies}}})
	if report.Steps[0].Status != machine.Denied || receipt.Counts {
		t.Errorf("%s, counts %v", report.Steps[0].Status, receipt.Counts)
	}
	if live.touched > 0 {
		t.Error("live tools were touched")
	}
}

func TestAReceiptThatWasChangedIsRefused(t *testing.T) {
	_, receipt := perform(t, shopWorld(t), shopping, newShop(t).set.Catalogue(), PerformOptions{})
	text := receipt.Value().String()
	if _, err := ParseReceipt(value.MustParse(text)); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{`"way":"recorded"`, `"way":"rule"`}, {`"plan"`, `"plam"`}, {`"status":"ok"`, `"status":"no"`}} {
		if _, err := ParseReceipt(value.MustParse(strings.Replace(text, c[0], c[1], 1))); err == nil {
			t.Errorf("%s in place of %s was accepted", c[1], c[0])
		}
	}
}

// The real run stops and asks where it does not do what was rehearsed, and says
// what was rehearsed to whoever is asked.
func TestHostile092_ALiveRunThatDiffersAsks(t *testing.T) {
	live, b := newShop(t), shopWorld(t)
	_, receipt := perform(t, b, shopping, live.set.Catalogue(), PerformOptions{})
	if receipt.World.Digest != b.Digest() {
		t.Errorf("the receipt names world %s, want %s", receipt.World.Digest, b.Digest())
	}
	p := decode(t, shopping)
	held := func(r *Receipt) *gate.Gate {
		g := gate.New(gate.Options{Plan: p})
		g.Rehearsed(r.Differs, r.Summary())
		return g
	}
	report, err := run.Do(t.Context(), p, live.set, run.Options{Gate: held(receipt)})
	if err != nil || !report.OK() || live.touched != 2 {
		t.Fatalf("as rehearsed: %s, %v", report.AppendJSON(nil), err)
	}
	live.stock = `{"left":4}` // the world has moved on
	report, err = run.Do(t.Context(), p, live.set, run.Options{Gate: held(receipt)})
	if err != nil || report.Steps[0].Status != machine.OK || report.Steps[1].Status != machine.Waiting || live.touched != 3 {
		t.Fatalf("the stock differs: %s, %v, touched %d", report.AppendJSON(nil), err, live.touched)
	}
	c := report.Steps[1].Cause
	if want := "rehearsed on world Test (" + b.Digest()[:12] + "): of 2 calls answered 2 from recordings"; c == nil || c.Code != CodeDiffers || !strings.Contains(c.Message, want) {
		t.Errorf("cause %+v, want %s", c, want)
	}
	// A step that was not called on the stage is another branch.
	d, err := held(&Receipt{}).Judge(t.Context(), call.Request{Step: "a", Tool: live.set.Catalogue().Get("stock"), Args: value.ObjectOf()})
	if err != nil || d.Verdict != machine.Ask || !strings.Contains(d.Message, "was not called in the rehearsal") {
		t.Errorf("%+v, %v", d, err)
	}
}

// A secret is in none of the files of a rehearsal.
func TestHostile093_ASecretIsInNoRehearsal(t *testing.T) {
	const canary = "canary-5f2d9c"
	dir := t.TempDir()
	store, err := journal.Open(filepath.Join(dir, "journal.db"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	live := newShop(t)
	secret := `[{"id":"a","tool":"order","args":{"n":5,"key":"` + canary + `"}}]`
	s, err := New(shopWorld(t), Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = s.Perform(t.Context(), decode(t, secret), live.set.Catalogue(), PerformOptions{Store: store})
	if !errors.Is(err, record.ErrSecretLiteral) {
		t.Errorf("a secret in the plan: %v", err)
	}
	_, receipt := perform(t, shopWorld(t), `[{"id":"a","tool":"order","args":{"n":5,"key":{"$secret":"shop"}}}]`, live.set.Catalogue(), PerformOptions{Store: store})
	if !strings.Contains(receipt.Value().String(), `"step":"a"`) {
		t.Errorf("receipt %s", receipt.Value())
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	files := 0
	err = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), canary) {
			t.Errorf("the canary is in %s", path)
		}
		files++
		return err
	})
	if err != nil || files == 0 {
		t.Error(files, err)
	}
}

// A rule that was induced knows that its call succeeds only where the recordings
// say so; else nobody knows, and the receipt does not count.
func TestAnOutcomeThatNobodyKnowsDoesNotCount(t *testing.T) {
	catalogue, err := tool.NewCatalogue(&tool.Declaration{Name: "ping", Effects: tool.Effects{ReadOnly: true}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		mark   func(episode, turn int) string
		counts bool
	}{
		{"marked", func(int, int) string { return `,"metadata":{"is_error":false}` }, true},
		{"unmarked", func(int, int) string { return "" }, false},
		{"mixed", func(e, _ int) string { return []string{`,"metadata":{"is_error":false}`, ""}[e%2] }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var docs documents
			for e := range 8 {
				d := document{name: fmt.Sprint("e", e)}
				for i := range 3 {
					call := answered(i, "ping", fmt.Sprintf(`{"n":%d}`, 10*e+i), `"pong"`)
					call[1] = strings.Replace(call[1], `"role":"tool"`, `"role":"tool"`+c.mark(e, i), 1)
					d.events = append(d.events, call...)
				}
				docs = append(docs, d)
			}
			report, receipt := perform(t, compile(t, docs), `[{"id":"a","tool":"ping","args":{"n":99}}]`, catalogue, PerformOptions{})
			if !report.OK() || receipt.Steps[0].Way != Ruled {
				t.Fatalf("%+v, want an answer by a rule", receipt.Steps)
			}
			if receipt.Counts != c.counts {
				t.Errorf("counts: %v, because %q; want %v", receipt.Counts, receipt.Reasons, c.counts)
			}
			if want := "step a has an answer, but whether the call succeeds is unknown to what answered: rule:"; !c.counts && !strings.HasPrefix(strings.Join(receipt.Reasons, ";"), want) {
				t.Errorf("reasons %q, want %s…", receipt.Reasons, want)
			}
		})
	}
}

// Equal states answer where rules were tried, and not where they were induced.
func TestEqualStatesOfATriedWorldbook(t *testing.T) {
	a, c := book.Demo()
	rec := recording(t, documents{{"one", append(append(answered(1, "deposit", `{"amount":5}`, `"Deposited 5. Balance: 105.0"`), answered(2, "withdraw", `{"amount":5}`, `"Withdrew 5. Balance: 100.0"`)...),
		answered(3, "statement", `{}`, `"nothing open"`)...)}})
	a.Episodes, a.Transitions = rec.Episodes, rec.Slices
	a.SourceSnapshots = map[string]string{}
	for _, s := range rec.Sources {
		a.SourceSnapshots[s.ID] = s.Text
	}
	dir := filepath.Join(t.TempDir(), "world")
	if err := book.Write(dir, a, c, book.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	r := begin(t, open(t, dir), Options{Effectful: effectful("deposit", "withdraw", "burn")})
	for _, c := range [][3]string{
		{"statement", `{}`, `recorded "nothing open"`}, // no call yet, and the balance is that of the recording
		{"deposit", `{"amount":7}`, `rule "Deposited 7. Balance: 107.0"`},
		{"statement", `{}`, "miss rehearsal_miss"},
		{"withdraw", `{"amount":7}`, `rule "Withdrew 7. Balance: 100.0"`},
		{"statement", `{}`, `recorded "nothing open"`}, // other calls, the same balance
		{"burn", `{}`, "miss rehearsal_miss"},
		{"statement", `{}`, "miss rehearsal_miss"}, // nobody knows what that did
	} {
		if got := say(t, r, c[0], c[1]); got != c[2] {
			t.Errorf("%s %s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

// What a rule says is a text; where outputs are none it is none.
func TestARuleAnswersInTheFormOfTheRecordings(t *testing.T) {
	s := &Stage{forms: map[string]form{"n": {others: true}, "both": {texts: true, others: true}, "text": {texts: true}}}
	for _, c := range [][3]string{{"n", "5", "5"}, {"n", "five", ""}, {"n", `"5"`, ""}, {"both", "5", ""}, {"text", "5", `"5"`}, {"new", "5", `"5"`}} {
		got, err := s.shape(c[0], c[1])
		if (err != nil) != (c[2] == "") || err == nil && got.String() != c[2] {
			t.Errorf("%s %q: %v, %v; want %s", c[0], c[1], got, err, c[2])
		}
	}
}
