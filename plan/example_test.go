package plan_test

import (
	"errors"
	"fmt"

	"github.com/callsheet/callsheet/plan"
)

func ExampleDecode() {
	p, err := plan.Decode([]byte(`[
		{"id": "s1", "tool": "search", "args": {"query": "go"}},
		{"id": "s2", "tool": "fetch", "args": {"doc": "$s1.0"}}
	]`), plan.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range p.Steps {
		fmt.Println(s.ID, "wave", s.Wave, "waits for", s.Deps)
	}
	// Output:
	// s1 wave 0 waits for []
	// s2 wave 1 waits for [0]
}

func ExampleError() {
	_, err := plan.Decode([]byte(`[
  {"id": "s1", "Tool": "search", "after": "s0"}
]`), plan.Limits{})
	var refused *plan.Error
	if errors.As(err, &refused) {
		for _, f := range refused.Faults {
			fmt.Printf("%d:%d %s: %s\n", f.Line, f.Column, f.Code, f.Message)
		}
	}
	// Output:
	// 2:3 bad_document: step "s1" has no "tool"
	// 2:24 bad_document: the field is written "tool", not "Tool"
	// 2:43 bad_document: after of step "s1" must be a list of ids; write ["s0"]
}
