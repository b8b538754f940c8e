package gate_test

import (
	"context"
	"fmt"
	"log"

	"github.com/callsheet/callsheet/gate"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
)

// A payment to whom the plan's author names is made; one to whom a tool names
// waits for a person.
func ExampleNew() {
	type payment struct {
		To     string `json:"to"`
		Amount int    `json:"amount"`
	}
	owner, err := tool.Func("owner", "Who owns the last order.", func(context.Context, struct{}) (string, error) {
		return "mallory", nil
	}, tool.Options{Effects: &tool.Effects{ReadOnly: true}})
	if err != nil {
		log.Fatal(err)
	}
	pay, err := tool.Func("pay", "Pays.", func(_ context.Context, p payment) (string, error) {
		return fmt.Sprintf("paid %d to %s", p.Amount, p.To), nil
	}, tool.Options{Effects: &tool.Effects{}, Args: []tool.Arg{
		{Pattern: "/to", Role: tool.Target},
		{Pattern: "/amount", Role: tool.Target},
	}})
	if err != nil {
		log.Fatal(err)
	}
	set, err := tool.NewSet(owner, pay)
	if err != nil {
		log.Fatal(err)
	}
	p, err := plan.Decode([]byte(`[
		{"id": "mine", "tool": "pay", "args": {"to": "ann", "amount": 5}},
		{"id": "who", "tool": "owner"},
		{"id": "theirs", "tool": "pay", "args": {"to": "$who", "amount": 5}}
	]`), plan.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	pol, err := policy.Default().Compile(set.Catalogue())
	if err != nil {
		log.Fatal(err)
	}
	g := gate.New(gate.Options{Policy: pol, Plan: p})
	fmt.Println("before anything runs:", g.Worst())
	report, err := run.Do(context.Background(), p, set, run.Options{Gate: g})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range report.Steps {
		fmt.Println(s.ID, s.Status)
	}
	// Output:
	// before anything runs: ask
	// mine ok
	// who ok
	// theirs waiting
}
