package check_test

import (
	"fmt"

	"github.com/callsheet/callsheet/check"
)

func ExampleText() {
	_, report := check.Text([]byte(`[
  {"id": "s1", "tool": "search", "args": {"query": "go"}},
  {"id": "s2", "tool": "fetch", "args": {"doc": "$s2.0"}}
]`), check.Options{})
	for _, d := range report.Diagnostics {
		fmt.Println(d)
	}
	// Output:
	// 1:1 info no_tools: no tools were given, so names of tools and their args are not judged
	// 3:3 error never_runs s2: step "s2" will be blocked whatever happens: it waits for itself
	// 3:49 error self_reference s2: step "s2" refers to its own result; did you count from 1? The step before it is "s1"
	// 3:49 error cycle s2: step "s2" waits for itself
}

func ExampleFix() {
	fixed := check.Fix([]byte(`[
  {"id": "s1", "tool": "search", "args": {"query": "go"}},
  {"id": "s2", "tool": "fetch", "args": {"doc": "$s2.0"}},
  {"id": "s3", "tool": "fetch", "args": {"doc": "<node-2>"}}
]`), check.Options{})
	fmt.Printf("%s\n", fixed.Text)
	for _, c := range fixed.Changes {
		fmt.Println(c.Step, c.Old, "→", c.New)
	}
	// Output:
	// [
	//   {"id": "s1", "tool": "search", "args": {"query": "go"}},
	//   {"id": "s2", "tool": "fetch", "args": {"doc": "$s1.0"}},
	//   {"id": "s3", "tool": "fetch", "args": {"doc": "$s2"}}
	// ]
	// s2 $s2.0 → $s1.0
	// s3 <node-2> → $s2
}
