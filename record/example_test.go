package record_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/callsheet/callsheet/gate"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
)

// A run waits for a person, is approved from elsewhere, and goes on without
// repeating the call that it had made.
func ExampleRun() {
	dir, err := os.MkdirTemp("", "callsheet-example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := journal.Open(filepath.Join(dir, "journal.db"), journal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()

	type file struct {
		Name string `json:"name"`
	}
	find, err := tool.Func("find", "Finds a file.", func(context.Context, struct{}) (string, error) {
		fmt.Println("find is called")
		return "old.log", nil
	}, tool.Options{Effects: &tool.Effects{ReadOnly: true}})
	if err != nil {
		log.Fatal(err)
	}
	remove, err := tool.Func("remove", "Removes a file.", func(_ context.Context, f file) (string, error) {
		fmt.Println("remove is called")
		return f.Name + " is gone", nil
	}, tool.Options{Effects: &tool.Effects{Destructive: true}})
	if err != nil {
		log.Fatal(err)
	}
	tools, err := tool.NewSet(find, remove)
	if err != nil {
		log.Fatal(err)
	}
	p, err := plan.Decode([]byte(`[{"id": "f", "tool": "find"}, {"id": "r", "tool": "remove", "args": {"name": "$f"}}]`), plan.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	// A gate belongs to one run, so that going on needs another.
	options := func() record.Options {
		return record.Options{Run: run.Options{Gate: gate.New(gate.Options{Plan: p, Approve: map[string]bool{"remove": true}})}}
	}

	ctx := context.Background()
	report, err := record.Run(ctx, store, p, tools, options())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("r is", report.Steps[1].Status)
	if err := record.Decide(ctx, store, report.Run, "r", record.Answer{Allow: true, By: "ann"}, record.Options{}); err != nil {
		log.Fatal(err)
	}
	report, err = record.Resume(ctx, store, report.Run, tools, options())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("r is", report.Steps[1].Status)
	// Output:
	// find is called
	// r is waiting
	// remove is called
	// r is ok
}
