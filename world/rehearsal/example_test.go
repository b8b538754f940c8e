package rehearsal_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/build"
	"github.com/callsheet/callsheet/world/episode"
	"github.com/callsheet/callsheet/world/rehearsal"
	"github.com/callsheet/callsheet/world/runs"
)

// A plan is run once, a world is made of the run, and plans are rehearsed on it:
// the tool is not called again, and what was not recorded is a miss.
func ExampleStage_Perform() {
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

	type place struct {
		City string `json:"city"`
	}
	weather, err := tool.Func("weather", "The weather of a city.", func(_ context.Context, p place) (string, error) {
		fmt.Println("weather is called")
		return "rain in " + p.City, nil
	}, tool.Options{Effects: &tool.Effects{ReadOnly: true}})
	if err != nil {
		log.Fatal(err)
	}
	tools, err := tool.NewSet(weather)
	if err != nil {
		log.Fatal(err)
	}
	bergen, err := plan.Decode([]byte(`[{"id": "w", "tool": "weather", "args": {"city": "Bergen"}}]`), plan.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	report, err := record.Run(ctx, store, bergen, tools, record.Options{})
	if err != nil {
		log.Fatal(err)
	}

	rec, err := episode.ReadFrom(ctx, runs.Exporter{Store: store, IDs: []string{report.Run}}, episode.Options{})
	if err != nil {
		log.Fatal(err)
	}
	c := book.Defaults()
	c.EnvironmentID, c.Name = "weather", "Weather"
	artifacts, _, err := build.Build(rec, &c, build.Options{})
	if err != nil {
		log.Fatal(err)
	}
	world := filepath.Join(dir, "world")
	if err := book.Write(world, artifacts, &c, book.WriteOptions{}); err != nil {
		log.Fatal(err)
	}
	b, err := book.Open(world)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()

	stage, err := rehearsal.New(b, rehearsal.Options{Effectful: func(name string) bool { return name != "weather" }})
	if err != nil {
		log.Fatal(err)
	}
	both, err := plan.Decode([]byte(`[
		{"id": "w", "tool": "weather", "args": {"city": "Bergen"}},
		{"id": "x", "tool": "weather", "args": {"city": "Oslo"}}
	]`), plan.Limits{})
	if err != nil {
		log.Fatal(err)
	}
	report, receipt, err := stage.Perform(ctx, both, tools.Catalogue(), rehearsal.PerformOptions{})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range report.Steps {
		fmt.Println(s.ID, s.Status, "by", receipt.Step(s.ID).Way)
	}
	fmt.Println("counts:", receipt.Counts)
	// Output:
	// weather is called
	// w ok by recorded
	// x tool_error by miss
	// counts: false
}
