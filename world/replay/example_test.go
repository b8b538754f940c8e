package replay_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/replay"
)

// A recorded trajectory is played on the ledger, without any model.
func Example() {
	dir, err := os.MkdirTemp("", "replay-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	artifacts, config := book.Demo()
	if err := book.Write(filepath.Join(dir, "ledger.world"), artifacts, config, book.WriteOptions{}); err != nil {
		log.Fatal(err)
	}
	b, err := book.Open(filepath.Join(dir, "ledger.world"))
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	cases, err := replay.ReadCases("cases.jsonl", []byte(`{"id":"c1","trajectory_group":"g1","source_ids":["s1"],"split":"validation",`+
		`"initial_state":{"world":{"balance":100.0}},"steps":[{"action":{"type":"balance"},"expected_observation":"Balance: 99.0"}]}`))
	if err != nil {
		log.Fatal(err)
	}
	report, err := replay.Run(context.Background(), b, cases, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(report.Cases[0].Errors, report.PromotionEligible)
	// Output: [step 1: observation mismatch] false
}
