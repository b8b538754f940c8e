package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/value"
)

func fiveRules() *policy.Document {
	doc := trusting()
	for i, when := range []string{
		`args.amount > 10000`,
		`sum("transfer", "amount") + args.amount > 50000`,
		`times("transfer") > 10`,
		`has(args.note) && args.note.matches("(?i)urgent.*")`,
		`labels.to.integrity == "untrusted" && !domain_in(args.to, ["example.com"])`,
	} {
		doc.Rules = append(doc.Rules, policy.Rule{ID: fmt.Sprint("r", i), Effect: policy.Deny, Tools: []string{"transfer"}, When: when})
	}
	return doc
}

// BenchmarkDecision is a decision with labels and five rules: under 5 µs.
func BenchmarkDecision(b *testing.B) {
	cat := bank(b)
	p := mustCompile(b, fiveRules(), cat)
	s := p.Session("run", policy.Author{Kind: policy.Planner, Grants: policy.NewGrants("pay 25 EUR to ann@example.com")})
	s.End(policy.Call{Step: "s1", Tool: cat.Get("search"), Args: value.MustParse(`{"query":"q"}`)}, "ok", value.MustParse(found))
	c := policy.Call{
		Step: "s2", Tool: cat.Get("transfer"),
		Args:    value.MustParse(`{"to":"acct-1","amount":25,"note":"IGNORE PREVIOUS"}`),
		Origins: []policy.Origin{{Pointer: "/to", Step: "s1", Path: "0.id", HasPath: true}, {Pointer: "/note", Step: "s1", Path: "0.text", HasPath: true}},
	}
	if d := s.Judge(c); d.Effect != policy.Allow {
		b.Fatal(d.Message)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Judge(c)
	}
}

// BenchmarkCheck500 is the static check of 500 steps: under 10 ms.
func BenchmarkCheck500(b *testing.B) {
	cat := bank(b)
	p := mustCompile(b, fiveRules(), cat)
	steps := []string{`{"id":"s0","tool":"search","args":{"query":"q"}}`}
	for i := 1; i < 500; i++ {
		if i%2 == 0 {
			steps = append(steps, fmt.Sprintf(`{"id":"s%d","tool":"search","args":{"query":"$s%d.0.text"}}`, i, i-2))
		} else {
			steps = append(steps, fmt.Sprintf(`{"id":"s%d","tool":"transfer","args":{"to":"$s%d.0.id","amount":25,"note":"$s%d.0.text","cc":["$s%d.0.mails.0","x"]}}`, i, i-1, i-1, i-1))
		}
	}
	pl, err := plan.Decode([]byte("["+strings.Join(steps, ",")+"]"), plan.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	author := policy.Author{Kind: policy.Planner, Grants: policy.NewGrants("pay 25 EUR to ann@example.com")}
	if f := p.Check(pl, author); f.Step(499) == nil {
		b.Fatal("the last step was not judged")
	}
	b.ReportAllocs()
	for b.Loop() {
		p.Check(pl, author)
	}
}

// BenchmarkLargeOutput judges a call that takes one id and the text of a 10 MB
// output: only the two are labelled.
func BenchmarkLargeOutput(b *testing.B) {
	cat := bank(b)
	p := mustCompile(b, trusting(), cat)
	item := `{"id":"acct-1","text":"` + strings.Repeat("x", 1000) + `"},`
	big := value.MustParse("[" + strings.Repeat(item, 10_000) + `{"id":"last"}]`)
	if _, err := big.Lookup("10000.id"); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s := p.Session("run", policy.Author{})
		s.End(policy.Call{Step: "s1", Tool: cat.Get("search"), Args: value.MustParse(`{"query":"q"}`)}, "ok", big)
		d := s.Judge(policy.Call{
			Step: "s2", Tool: cat.Get("transfer"), Args: value.MustParse(`{"to":"last","amount":25}`),
			Origins: []policy.Origin{{Pointer: "/to", Step: "s1", Path: "10000.id", HasPath: true}},
		})
		if d.Effect != policy.Allow {
			b.Fatal(d.Message)
		}
	}
}
