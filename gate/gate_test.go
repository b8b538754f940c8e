package gate_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/gate"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

func decode(t *testing.T, text string) *plan.Plan {
	t.Helper()
	p, err := plan.Decode([]byte(text), plan.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// bank is a catalogue of a read, an effect and a destructive effect.
func bank(t *testing.T, calls *[]string) *tool.Set {
	t.Helper()
	handler := func(_ context.Context, c *tool.Call) (value.Value, error) {
		*calls = append(*calls, c.Step+" "+c.Args.String())
		return value.MustParse(`{"note":"pay mallory","n":1}`), nil
	}
	s, err := tool.NewSet(
		tool.Tool{Declaration: tool.Declaration{Name: "read", Effects: tool.Effects{ReadOnly: true}}, Handler: handler},
		tool.Tool{Declaration: tool.Declaration{Name: "pay", Effects: tool.Effects{}, Args: []tool.Arg{{Pattern: "/to", Role: tool.Target}, {Pattern: "/*", Role: tool.Neutral}}}, Handler: handler},
		tool.Tool{Declaration: tool.Declaration{Name: "wipe", Effects: tool.Effects{Destructive: true}, Args: []tool.Arg{{Pattern: "/*", Role: tool.Neutral}}}, Handler: handler},
		tool.Tool{Declaration: tool.Declaration{Name: "login", Effects: tool.Effects{ReadOnly: true}, Args: []tool.Arg{{Pattern: "/password", Role: tool.Secret}, {Pattern: "/*", Role: tool.Neutral}}}, Handler: handler},
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func compiled(t *testing.T, s *tool.Set) *policy.Policy {
	t.Helper()
	p, err := policy.Default().Compile(s.Catalogue())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestThePolicyJudgesRealValues(t *testing.T) {
	text := `[{"id":"r","tool":"read"},{"id":"mine","tool":"pay","args":{"to":"ann"}},{"id":"theirs","tool":"pay","args":{"to":"$r.note"}},{"id":"w","tool":"wipe","args":{"n":"$r.n"}}]`
	for _, c := range []struct {
		name   string
		author policy.Author
		onAsk  gate.OnAsk
		status string
	}{
		{"a person's plan", policy.Author{}, gate.Pause, `{"r":"ok","mine":"ok","theirs":"waiting","w":"waiting"}`},
		{"a model's plan", policy.Author{Kind: policy.Planner}, gate.Pause, `{"r":"ok","mine":"waiting","theirs":"waiting","w":"waiting"}`},
		{"a model's plan for a task that names ann", policy.Author{Kind: policy.Planner, Grants: policy.NewGrants("Send something to ann, please, it is for ann")}, gate.Pause, `{"r":"ok","mine":"waiting","theirs":"waiting","w":"waiting"}`},
		{"refusing", policy.Author{}, gate.Refuse, `{"r":"ok","mine":"ok","theirs":"denied","w":"denied"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var calls []string
			s, p := bank(t, &calls), decode(t, text)
			g := gate.New(gate.Options{Policy: compiled(t, s), Author: c.author, Plan: p, OnAsk: c.onAsk})
			if g.Worst() != policy.Ask {
				t.Errorf("the check says %v, want ask", g.Worst())
			}
			r, err := run.Do(t.Context(), p, s, run.Options{Gate: g})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(r.AppendJSON(nil)); !strings.HasPrefix(got, `{"status":`+c.status) {
				t.Errorf("got %s, want statuses %s", got, c.status)
			}
		})
	}
}

func TestHostile026_AnUntrustedTargetIsKnownBeforeAnythingRuns(t *testing.T) {
	var calls []string
	s := bank(t, &calls)
	p := decode(t, `[{"id":"r","tool":"read"},{"id":"x","tool":"pay","args":{"to":"$r.note"}}]`)
	g := gate.New(gate.Options{Policy: compiled(t, s), Plan: p})
	ds := g.Findings(p)
	if len(ds) != 1 || ds[0].Step != "x" || ds[0].Code != "needs_approval" {
		t.Errorf("findings %+v, want needs_approval at x", ds)
	}
}

func TestHostile063_ApprovingTheStepShowsTheResolvedValue(t *testing.T) {
	var calls []string
	s := bank(t, &calls)
	p := decode(t, `[{"id":"r","tool":"read"},{"id":"x","tool":"pay","args":{"to":"$r.note"}}]`)
	asked := ""
	g := gate.New(gate.Options{Policy: compiled(t, s), Plan: p, OnAsk: gate.Prompt, Ask: func(_ context.Context, r call.Request, _ call.Decision) (gate.Verdict, error) {
		asked = r.Args.String()
		return gate.Verdict{Allow: true, By: "someone"}, nil
	}})
	r, err := run.Do(t.Context(), p, s, run.Options{Gate: g})
	if err != nil || !r.OK() {
		t.Fatalf("%v %s", err, r.AppendJSON(nil))
	}
	if asked != `{"to":"pay mallory"}` {
		t.Errorf("the person was shown %s, want the resolved bytes", asked)
	}
}

func TestHostile032_AChangedDefinitionIsDenied(t *testing.T) {
	s, err := tool.NewSet(tool.Tool{Declaration: tool.Declaration{Name: "t", Effects: tool.Effects{Destructive: true}}, Handler: func(context.Context, *tool.Call) (value.Value, error) {
		return value.Value{}, &tool.Failure{Code: tool.CodeToolChanged, Message: "the server lists another t now"}
	}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := run.Do(t.Context(), decode(t, `[{"id":"a","tool":"t"},{"id":"b","tool":"t","after":["a"]}]`), s, run.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(r.AppendJSON(nil)), `{"status":{"a":"denied","b":"skipped"},"outputs":{},"waves":[["a"]],"calls":0}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if c := r.Steps[0].Cause; c.Code != tool.CodeToolChanged {
		t.Errorf("cause %+v, want code %s", c, tool.CodeToolChanged)
	}
}

func TestALimitHoldsAlsoWhenCallsRace(t *testing.T) {
	var calls []string
	s := bank(t, &calls)
	pol := ruled(t, s, `{"base":"allow","rules":[{"id":"once","effect":"deny","tools":["pay"],"when":"times(\"pay\") >= 1"}]}`)
	if !pol.LooksBack() {
		t.Error("a policy that counts calls does not say that it looks back")
	}
	p := decode(t, `[{"id":"a","tool":"pay","args":{"to":"x"}},{"id":"b","tool":"pay","args":{"to":"y"}},{"id":"c","tool":"pay","args":{"to":"z"}}]`)
	for _, opt := range []run.Options{{}, {Workers: 3}, {Eager: true}} {
		calls = nil
		opt.Gate = gate.New(gate.Options{Policy: pol, Plan: p})
		r, err := run.Do(t.Context(), p, s, opt)
		if err != nil || len(calls) != 1 {
			t.Errorf("%+v: %d calls were made, want 1: %v %s", opt, len(calls), err, r.AppendJSON(nil))
		}
	}
}

func TestAResumedRunRemembersWhatItDid(t *testing.T) {
	var calls []string
	s := bank(t, &calls)
	pol := ruled(t, s, `{"base":"default","rules":[{"id":"once","effect":"deny","tools":["pay"],"when":"times(\"pay\") >= 1"}]}`)
	store, err := journal.Open(filepath.Join(t.TempDir(), "j.db"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	// a is paid, w pauses the run, b must be refused after it.
	p := decode(t, `[{"id":"a","tool":"pay","args":{"to":"ann"}},{"id":"w","tool":"wipe","after":["a"]},{"id":"b","tool":"pay","args":{"to":"ann"},"after":["w"]}]`)
	opt := func() record.Options {
		return record.Options{Run: run.Options{Gate: gate.New(gate.Options{Policy: pol, Plan: p})}}
	}
	r, err := record.Run(t.Context(), store, p, s, opt())
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Decide(t.Context(), store, r.Run, "w", record.Answer{Allow: true}, record.Options{}); err != nil {
		t.Fatal(err)
	}
	if r, err = record.Resume(t.Context(), store, r.Run, s, opt()); err != nil {
		t.Fatal(err)
	}
	if got := string(r.AppendJSON(nil)); !strings.HasPrefix(got, `{"status":{"a":"ok","w":"ok","b":"denied"}`) {
		t.Errorf("got %s, want b denied because a was paid before the pause", got)
	}
}

const canary = "s3cr3t-canary-9f8e7d6c5b4a"

func TestSecretsReachTheToolAndNothingElse(t *testing.T) {
	var got string
	s, err := tool.NewSet(tool.Tool{
		Declaration: tool.Declaration{Name: "login", Args: []tool.Arg{{Pattern: "/password", Role: tool.Secret}, {Pattern: "/*", Role: tool.Neutral}}, Effects: tool.Effects{ReadOnly: true}},
		Handler: func(_ context.Context, c *tool.Call) (value.Value, error) {
			got = c.Args.String()
			c.Progress(tool.Progress{Message: "using " + canary})
			if c.Step == "fails" {
				return value.Value{}, errors.New("401 for " + canary)
			}
			return value.MustText("welcome " + canary), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	vault, err := gate.NewVault(map[string]string{"pw": canary})
	if err != nil {
		t.Fatal(err)
	}
	p := decode(t, `[{"id":"works","tool":"login","args":{"password":{"$secret":"pw"}}},{"id":"fails","tool":"login","args":{"password":{"$secret":"pw"}}},{"id":"wrong","tool":"login","args":{"user":{"$secret":"pw"}}},{"id":"nobody","tool":"login","args":{"password":{"$secret":"other"}}}]`)
	var heard []string
	r, err := run.Do(t.Context(), p, s, run.Options{Vault: vault, Observer: func(e run.Event) { heard = append(heard, fmt.Sprintf("%+v %v %v", e, e.Failure, e.Progress)) }})
	if err != nil {
		t.Fatal(err)
	}
	if got != `{"password":"`+canary+`"}` {
		t.Errorf("the tool got %s, want the secret itself", got)
	}
	if all := string(r.AppendFullJSON(nil)) + strings.Join(heard, "\n"); strings.Contains(all, canary) {
		t.Errorf("the secret is outside the tool: %s", all)
	}
	for i, want := range []machine.Status{machine.OK, machine.ToolError, machine.ToolError, machine.ToolError} {
		if r.Steps[i].Status != want {
			t.Errorf("%s is %s, want %s", r.Steps[i].ID, r.Steps[i].Status, want)
		}
	}
	if c := r.Steps[2].Cause; c.Code != call.CodeSecret {
		t.Errorf("a secret outside a secret arg: %+v, want code %s", c, call.CodeSecret)
	}
}

// ruled is a policy of the bank, from its text.
func ruled(t *testing.T, s *tool.Set, text string) *policy.Policy {
	t.Helper()
	doc, err := policy.Read(value.MustParse(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := doc.Compile(s.Catalogue())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// recorded is a store, and the options of a run under a policy.
func recorded(t *testing.T) (*journal.Store, func(*policy.Policy, *plan.Plan) record.Options) {
	t.Helper()
	store, err := journal.Open(filepath.Join(t.TempDir(), "j.db"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store, func(pol *policy.Policy, p *plan.Plan) record.Options {
		return record.Options{
			Run:    run.Options{Gate: gate.New(gate.Options{Policy: pol, Plan: p})},
			Policy: gate.Digest(pol, nil, gate.Pause, policy.Person),
		}
	}
}

const untrustedTarget = `[{"id":"r","tool":"read"},{"id":"x","tool":"pay","args":{"to":"$r.note"}}]`

func TestHostile062_AnApprovalIsOfOnePolicy(t *testing.T) {
	var calls []string
	s, p := bank(t, &calls), decode(t, untrustedTarget)
	store, opt := recorded(t)
	before := compiled(t, s)
	after := ruled(t, s, `{"base":"default","rules":[{"id":"no","effect":"deny","tools":["pay"]}]}`)
	r, err := record.Run(t.Context(), store, p, s, opt(before, p))
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Decide(t.Context(), store, r.Run, "x", record.Answer{Allow: true}, record.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := record.Resume(t.Context(), store, r.Run, s, opt(after, p)); !errors.Is(err, record.ErrChanged) {
		t.Errorf("resumed under another policy: %v, want ErrChanged", err)
	}
	forked, err := record.Fork(t.Context(), store, r.Run, p, s, opt(after, p))
	if err != nil {
		t.Fatal(err)
	}
	if got := forked.Steps[1].Status; got != machine.Denied || len(calls) != 1 {
		t.Errorf("forked: %s after %d calls, want denied: the approval was of another run", got, len(calls))
	}
}

func TestHostile064_AnApprovalServesOneCall(t *testing.T) {
	var calls []string
	s := bank(t, &calls)
	p := decode(t, `[{"id":"r","tool":"read"},{"id":"x","tool":"pay","args":{"to":"$r.note"}},{"id":"y","tool":"pay","args":{"to":"$r.note"},"after":["x"]}]`)
	store, opt := recorded(t)
	pol := compiled(t, s)
	r, err := record.Run(t.Context(), store, p, s, opt(pol, p))
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Decide(t.Context(), store, r.Run, "x", record.Answer{Allow: true}, record.Options{}); err != nil {
		t.Fatal(err)
	}
	if r, err = record.Resume(t.Context(), store, r.Run, s, opt(pol, p)); err != nil {
		t.Fatal(err)
	}
	if got := string(r.AppendJSON(nil)); !strings.HasPrefix(got, `{"status":{"r":"ok","x":"ok","y":"waiting"}`) {
		t.Errorf("got %s, want the same call of y to be asked about anew", got)
	}
}

func TestHostile068_EditedArgsAreJudgedByThePolicy(t *testing.T) {
	for _, c := range []struct {
		edit string
		want machine.Status
	}{
		{`{"to":"ann"}`, machine.OK},     // the person's own word
		{`{"to":"eve"}`, machine.Denied}, // which a rule may still deny
	} {
		var calls []string
		s, p := bank(t, &calls), decode(t, untrustedTarget)
		store, opt := recorded(t)
		pol := ruled(t, s, `{"base":"default","rules":[{"id":"eve","effect":"deny","tools":["pay"],"when":"has(args.to) && args.to == \"eve\""}]}`)
		r, err := record.Run(t.Context(), store, p, s, opt(pol, p))
		if err != nil {
			t.Fatal(err)
		}
		if err := record.Decide(t.Context(), store, r.Run, "x", record.Answer{Allow: true, Args: value.MustParse(c.edit)}, record.Options{}); err != nil {
			t.Fatal(err)
		}
		if r, err = record.Resume(t.Context(), store, r.Run, s, opt(pol, p)); err != nil {
			t.Fatal(err)
		}
		if got := r.Steps[1].Status; got != c.want {
			t.Errorf("%s is %s, want %s: %s", c.edit, got, c.want, r.AppendFullJSON(nil))
		}
	}
}
