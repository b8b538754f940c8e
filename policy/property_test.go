package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/value"
)

// Conditions are bounded: a loop in a loop in a loop over what a tool may return
// is cut off, which refuses, and the next rule is judged all the same.
func TestCostIsBounded(t *testing.T) {
	cat := bank(t)
	doc := &policy.Document{Base: "allow", Rules: []policy.Rule{
		{ID: "slow", Effect: policy.Ask, Tools: []string{"transfer"}, When: `has(args.parts) && args.parts.all(a, args.parts.all(b, args.parts.all(c, a.sum + b.sum + c.sum >= 0)))`},
		{ID: "loop", Effect: policy.Ask, Tools: []string{"transfer"}, When: `has(args.parts) && args.parts.exists(a, a.sum > 5)`},
		{ID: "plain", Effect: policy.Ask, Tools: []string{"transfer"}, When: `args.amount > 0`},
	}}
	p := mustCompile(t, doc, cat)
	parts := "[" + strings.Repeat(`{"sum":1},`, 200) + `{"sum":2}]`
	d := p.Session("", policy.Author{}).Judge(policy.Call{Tool: cat.Get("transfer"), Args: value.MustParse(`{"to":"a","amount":1,"parts":` + parts + `}`)})
	if d.Code != "rule_failed" || d.Effect != policy.Deny || !strings.Contains(d.Message, "cost") || fmt.Sprint(d.Rules) != "[slow plain]" {
		t.Errorf("got %s %s by %v: %s, want the slow rule to be cut off and only plain to fire", d.Effect, d.Code, d.Rules, d.Message)
	}
}

// anyOutput draws an output of search with the members that the tests' policy
// speaks of, some of them missing, and keys that hold dots.
func anyOutput(t *rapid.T, label string) string {
	leaf := rapid.SampledFrom([]string{`"acct-1"`, `"x"`, `7`, `null`, `["ann@example.com"]`, `{"a":1}`, `[]`, `{"note":"x","a":2}`})
	members := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"id", "text", "mails", "all", "token", "0", "0.id", "id.x"}), 1, 5, rapid.ID[string]).Draw(t, label)
	var b strings.Builder
	for i, m := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", m, leaf.Draw(t, label+m))
	}
	if rapid.Bool().Draw(t, label+" list") {
		return "[{" + b.String() + "}]"
	}
	return "{" + b.String() + "}"
}

// For every plan and every output: where the check allowed a step for certain,
// the run allows it or asks because it is worse; it never allows what the check
// knew to be worse.
func TestTheRunIsNoWorseThanTheCheck(t *testing.T) {
	cat := bank(t)
	p := mustCompile(t, trusting(), cat)
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.SampledFrom([]string{"", ".0.id", ".0.text", ".0.all", ".0.mails", ".0", ".id.x", ".0.all.a"})
		arg := func(name string, step int) string {
			return fmt.Sprintf("%q", fmt.Sprintf("$s%d%s", step, path.Draw(t, name)))
		}
		text := `[{"id":"s0","tool":"search","args":{"query":"q"}},{"id":"s1","tool":"search","args":{"query":` + arg("query", 0) + `}},` +
			`{"id":"s2","tool":"transfer","args":{"to":` + arg("to", 1) + `,"amount":5,"cc":[` + arg("cc", 0) + `],"note":` + arg("note", 1) + `}}]`
		pl, err := plan.Decode([]byte(text), plan.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		author := policy.Author{Kind: rapid.SampledFrom([]policy.AuthorKind{policy.Person, policy.Planner}).Draw(t, "author"), Grants: policy.NewGrants("pay 5 EUR")}
		flow := p.Check(pl, author)
		s := p.Session("run", author)
		outputs := []value.Value{value.MustParse(anyOutput(t, "a")), value.MustParse(anyOutput(t, "b"))}
		for i := range pl.Steps {
			step := &pl.Steps[i]
			fill := make([]value.Value, len(step.Refs))
			for h, r := range step.Refs {
				fill[h] = outputs[r.Step]
				if r.HasPath {
					if fill[h], err = fill[h].Lookup(r.Path); err != nil {
						return // bad_reference: there is no call to judge
					}
				}
			}
			c := policy.Call{Step: step.ID, Tool: cat.Get(step.Tool), Args: step.Template.Fill(fill), Origins: policy.Origins(pl, i), Promise: flow.Step(i)}
			d := s.Judge(c)
			if again := s.Judge(c); fmt.Sprint(again) != fmt.Sprint(d) {
				t.Fatalf("the same call got %v and then %v", d, again)
			}
			if d.Effect > flow.Step(i).Effect && d.Effect == policy.Allow {
				t.Fatalf("%s: run %s after check %s", step.ID, d.Effect, flow.Step(i).Effect)
			}
			if d.Effect != policy.Allow && flow.Step(i).Effect == policy.Allow && d.Code != "worse_than_checked" && flow.Step(i).Certain {
				// Only where a real value is worse than its declaration.
				worse := false
				for _, f := range d.Facts {
					worse = worse || f.Label.Integrity == policy.Untrusted || f.Label.Secret
				}
				if !worse {
					t.Fatalf("%s: check %s, run %s %s: %s", step.ID, flow.Step(i).Effect, d.Effect, d.Code, d.Message)
				}
			}
			// The label of a reference is that of the leaf that it names.
			for _, o := range c.Origins {
				if got, want := c.Args, s.Label(o.Step, o.Path, o.HasPath); want.Integrity == policy.Untrusted && d.Effect == policy.Allow && (o.Pointer == "/to") {
					v, _ := got.AtPointer(o.Pointer)
					if !v.IsNull() && v.Len()+len(v.String()) > 2 {
						t.Fatalf("%s: %s is %s and was allowed: %s", step.ID, o.Pointer, want, v)
					}
				}
			}
			if i < len(outputs) {
				s.Begin(c)
				s.End(c, "ok", outputs[i])
			}
		}
	})
}

func TestJoin(t *testing.T) {
	label := rapid.Custom(func(t *rapid.T) policy.Label {
		l := policy.Label{Integrity: policy.Integrity(rapid.IntRange(0, 2).Draw(t, "i")), Secret: rapid.Bool().Draw(t, "s")}
		for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(0, 30), 0, policy.MaxSources, rapid.ID[int]).Draw(t, "from") {
			l.Sources = append(l.Sources, policy.Source{Step: fmt.Sprint("s", n)})
		}
		return l
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := label.Draw(t, "a"), label.Draw(t, "b")
		before := fmt.Sprint(a, b)
		j := a.Join(b)
		if a.Worse(j) || b.Worse(j) {
			t.Fatalf("%v joined with %v is better: %v", a, b, j)
		}
		if len(j.Sources) > policy.MaxSources || len(j.Sources) < max(len(a.Sources), len(b.Sources)) {
			t.Fatalf("%d sources of %d and %d", len(j.Sources), len(a.Sources), len(b.Sources))
		}
		if fmt.Sprint(a, b) != before || fmt.Sprint(j.Join(a)) != fmt.Sprint(j) {
			t.Fatalf("joining changed its operands, or joining again changed %v", j)
		}
	})
}

// FuzzCondition: no text makes the compiler of rules panic.
func FuzzCondition(f *testing.F) {
	for _, s := range []string{`args.amount > 5`, `has(args.note) && args.note.matches("a.*")`, `history.exists(h, h.tool == "search")`, `args.parts.map(p, p.sum)[0] > 1`, `"x" in args.meta`, `[1,2].exists(x, x > args.amount)`, `{"a": args.to}.a == "x"`} {
		f.Add(s)
	}
	cat := bank(f)
	f.Fuzz(func(t *testing.T, when string) {
		p, err := rule(when).Compile(cat)
		if err != nil {
			if _, ok := policy.AsError(err); !ok {
				t.Fatalf("%q: %v is no *policy.Error", when, err)
			}
			return
		}
		d := p.Session("", policy.Author{}).Judge(policy.Call{Tool: cat.Get("transfer"), Args: value.MustParse(`{"to":"a","amount":1}`)})
		if d.Effect > policy.Deny {
			t.Fatalf("%q: %v", when, d)
		}
	})
}
