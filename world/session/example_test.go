package session_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/session"
)

// The ledger demonstration: a worldbook is written, opened, and played.
func Example() {
	dir, err := os.MkdirTemp("", "ledger-")
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
	ctx := context.Background()
	s, err := session.Open(ctx, filepath.Join(dir, "play"), b, session.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	for _, amount := range []int64{25, 1000} {
		args := value.ObjectOf(value.Member{Key: "amount", Value: value.Int(amount)})
		r, err := s.Step(ctx, session.Request{Action: world.Action{Type: "withdraw", Arguments: args}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Observation, "/", r.Outcome, "/", r.Route)
	}
	if err := s.Fork(ctx, filepath.Join(dir, "before"), 1); err != nil {
		log.Fatal(err)
	}
	f, err := session.Open(ctx, filepath.Join(dir, "before"), b, session.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	balance, _ := f.State().Get("world.balance")
	fmt.Println("fork at revision", f.State().Revision, "with", balance)
	// Output:
	// Withdrew 25. Balance: 75.0 / success / rule
	// Insufficient funds. Balance: 75.0 / failure / rule
	// fork at revision 1 with 75.0
}
