package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/value"
)

// tempStore opens a journal in a directory that remove deletes.
func tempStore() (s *journal.Store, remove func()) {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		log.Fatal(err)
	}
	s, err = journal.Open(filepath.Join(dir, "journal.db"), journal.Options{})
	if err != nil {
		log.Fatal(err)
	}
	return s, func() {
		if err := errors.Join(s.Close(), os.RemoveAll(dir)); err != nil {
			log.Fatal(err)
		}
	}
}

// A call with effects: its intent is on the disk before it is made.
func Example() {
	ctx := context.Background()
	store, remove := tempStore()
	defer remove()

	run, err := store.Create(ctx, journal.Start{Kind: "plan", Name: "refund"})
	if err != nil {
		log.Fatal(err)
	}
	if err := run.AppendWait(ctx, journal.Record{Kind: "intent", Body: value.MustParse(`{"step":"pay"}`)}); err != nil {
		log.Fatal(err) // and the call is not made
	}
	// … the call …
	run.Append(journal.Record{Kind: "outcome", Body: value.MustParse(`{"step":"pay","output":{"id":9007199254740993}}`)})
	head, err := run.Finish(ctx, journal.Record{Kind: "end", Status: "ok"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(head.Records, "records")
	for e, err := range run.Entries(ctx, 1) {
		if err != nil {
			log.Fatal(err)
		}
		if e.Kind == "checkpoint" {
			continue
		}
		body, err := e.Body(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Index, e.Kind, body)
	}
	// Output:
	// 5 records
	// 1 intent {"step":"pay"}
	// 2 outcome {"step":"pay","output":{"id":9007199254740993}}
	// 3 end null
}

// Two people answer the same question; the first one counts.
func ExampleStore_Decide() {
	ctx := context.Background()
	store, remove := tempStore()
	defer remove()

	run, err := store.Create(ctx, journal.Start{ID: "r1", Kind: "plan"})
	if err != nil {
		log.Fatal(err)
	}
	if err := run.AppendWait(ctx, journal.Record{Kind: "ask", Body: value.MustParse(`{"step":"pay","nonce":"n1"}`), Status: "waiting"}); err != nil {
		log.Fatal(err)
	}
	for _, answer := range []string{"approved", "denied"} {
		err := store.Decide(ctx, "r1", journal.Decision{Key: "pay/n1", Kind: "answer", Body: value.MustText(answer)})
		fmt.Println(answer, errors.Is(err, journal.ErrDecided))
	}
	entries, err := run.AwaitInbox(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range entries {
		fmt.Println(e.Index, e.Kind, e.Slim())
	}
	// Output:
	// approved false
	// denied true
	// 2 answer "approved"
}

// An export is verified anywhere, with the fingerprint that the auditor has.
func ExampleVerify() {
	ctx := context.Background()
	store, remove := tempStore()
	defer remove()

	run, err := store.Create(ctx, journal.Start{ID: "r1", Kind: "plan"})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := run.Finish(ctx, journal.Record{Kind: "end", Body: value.MustParse(`{"paid":10}`)}); err != nil {
		log.Fatal(err)
	}
	var text bytes.Buffer
	if _, err := store.Export(ctx, "r1", &text); err != nil {
		log.Fatal(err)
	}
	trust := journal.Trust{Keys: []string{store.Key().Fingerprint()}}
	changed := bytes.Replace(text.Bytes(), []byte(`{"paid":10}`), []byte(`{"paid":90}`), 1)
	for _, t := range [][]byte{text.Bytes(), changed} {
		report, err := journal.Verify(bytes.NewReader(t), trust)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(report.OK(), report.Err())
	}
	// Output:
	// true <nil>
	// false run r1: record 1: changed: record 2 names another hash for it
}
