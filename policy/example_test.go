package policy_test

import (
	"fmt"
	"strings"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// What a plan will get is known before anything runs.
func ExamplePolicy_Check() {
	mail, _ := schema.Compile(value.MustParse(`{"type":"object","properties":{"to":{"type":"string"},"text":{"type":"string"}}}`))
	cat, _ := tool.NewCatalogue(
		&tool.Declaration{Name: "inbox", Effects: tool.Effects{ReadOnly: true}},
		&tool.Declaration{Name: "send", Input: mail, Args: []tool.Arg{{Pattern: "/to", Role: tool.Target}, {Pattern: "/text", Role: tool.Content}}},
	)
	doc := policy.Default()
	doc.Outputs = map[string]policy.Output{"inbox": {Trusted: []string{"/*/sender"}}}
	p, err := doc.Compile(cat)
	if err != nil {
		fmt.Println(err)
		return
	}
	pl, _ := plan.Decode([]byte(`[
		{"id": "read", "tool": "inbox"},
		{"id": "reply", "tool": "send", "args": {"to": "$read.0.sender", "text": "$read.0.body"}},
		{"id": "forward", "tool": "send", "args": {"to": "$read.0.body", "text": "hello"}}
	]`), plan.Limits{})
	flow := p.Check(pl, policy.Author{Kind: policy.Planner, Grants: policy.NewGrants("answer my mail")})
	for i, step := range pl.Steps {
		fmt.Println(strings.TrimSpace(fmt.Sprint(step.ID, " ", flow.Step(i).Effect, " ", flow.Step(i).Message)))
	}
	// Output:
	// read allow
	// reply allow
	// forward ask /to of send is a target and is untrusted, from read (inbox)
}

// A rule is typed from the schema of the tool that it speaks of.
func ExampleDocument_Compile() {
	pay, _ := schema.Compile(value.MustParse(`{"type":"object","required":["amount"],"properties":{"amount":{"type":"number"},"note":{"type":"string"}}}`))
	cat, _ := tool.NewCatalogue(&tool.Declaration{Name: "pay", Input: pay})
	for _, when := range []string{
		`sum("pay", "amount") + args.amount > 500`,
		`args.amuont > 500`,
		`args.note == "urgent"`,
	} {
		doc := &policy.Document{Rules: []policy.Rule{{ID: "limit", Effect: policy.Deny, Tools: []string{"pay"}, When: when}}}
		_, err := doc.Compile(cat)
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// rule limit: for tool "pay": undefined field 'amuont'
	// rule limit: for tool "pay": "note" need not be there; write has(args.note) && … before it
}

// A rule that asks, denies or allows over what a session has seen.
func ExampleSession_Judge() {
	pay, _ := schema.Compile(value.MustParse(`{"type":"object","required":["to","amount"],"properties":{"to":{"type":"string"},"amount":{"type":"number"}}}`))
	d := &tool.Declaration{Name: "pay", Input: pay}
	cat, _ := tool.NewCatalogue(d)
	doc := &policy.Document{Rules: []policy.Rule{{ID: "limit", Effect: policy.Deny, Tools: []string{"pay"},
		When: `sum("pay", "amount") + args.amount > 500`, Message: "at most 500 in one run"}}}
	p, _ := doc.Compile(cat)
	// The tool declares no effects: it may not be destructive, and both args are targets.
	s := p.Session("run-1", policy.Author{})
	for i, amount := range []string{"300", "150.50", "49.51"} {
		c := policy.Call{Step: fmt.Sprint("s", i+1), Tool: d, Args: value.MustParse(`{"to":"ann","amount":` + amount + `}`)}
		dec := s.Judge(c)
		fmt.Println(strings.TrimSpace(fmt.Sprint(amount, " ", dec.Effect, " ", dec.Message)))
		if dec.Effect == policy.Allow {
			s.Begin(c)
			s.End(c, "ok", value.MustText("done"))
		}
	}
	// Output:
	// 300 allow
	// 150.50 allow
	// 49.51 deny at most 500 in one run
}
