package journal_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/value"
)

var errDisk = errors.New("no space left on device")

// failing opens a store whose commits fail while the switch is on.
func failing(t *testing.T) (*journal.Store, *atomic.Bool) {
	var fail atomic.Bool
	s := open(t, filepath.Join(t.TempDir(), "journal.db"), journal.Options{BeforeCommit: func() error {
		if fail.Load() {
			return errDisk
		}
		return nil
	}})
	return s, &fail
}

func TestHostile056_FailedIntent(t *testing.T) {
	s, fail := failing(t)
	r := create(t, s, journal.Start{})
	appendWait(t, r, record("intent", `1`))
	fail.Store(true)
	err := r.AppendWait(t.Context(), record("intent", `2`))
	if !errors.Is(err, journal.ErrJournal) || !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "journal.failed") {
		t.Errorf("the intent: %v", err)
	}
	fail.Store(false) // space is back, but the chain in memory has gone its own way
	if err := r.Append(record("intent", `3`)).Wait(t.Context()); !errors.Is(err, journal.ErrJournal) {
		t.Errorf("the one after: %v", err)
	}
	if _, err := r.Finish(t.Context(), record("end", `1`)); !errors.Is(err, journal.ErrJournal) {
		t.Errorf("the end: %v", err)
	}
	other := create(t, s, journal.Start{})
	appendWait(t, other, record("intent", `1`))
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	again, err := s.OpenRun(t.Context(), r.ID())
	if err != nil {
		t.Fatal(err)
	}
	appendWait(t, again, record("intent", `4`))
	equal(t, lines(t, s, r.ID(), 0), []string{`0 start null`, `1 intent 1`, `2 intent 4`})
}

// TestHostile057_FailedOutcome: what was deferred and what was waited for fail
// together, and the caller learns of both.
func TestHostile057_FailedOutcome(t *testing.T) {
	s, fail := failing(t)
	r := create(t, s, journal.Start{})
	appendWait(t, r, record("event", `1`))
	fail.Store(true)
	intent := r.Append(journal.Record{Kind: "intent", Deferred: true})
	outcome := r.Append(record("outcome", `2`))
	for name, ticket := range map[string]journal.Ticket{"intent": intent, "outcome": outcome} {
		if err := ticket.Wait(t.Context()); !errors.Is(err, journal.ErrJournal) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFailedCreate(t *testing.T) {
	s, fail := failing(t)
	fail.Store(true)
	r := create(t, s, journal.Start{ID: "r1"})
	if err := r.AppendWait(t.Context(), record("intent", `1`)); !errors.Is(err, journal.ErrJournal) {
		t.Errorf("append: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	fail.Store(false)
	if _, err := s.OpenRun(t.Context(), "r1"); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("open: %v", err)
	}
	create(t, s, journal.Start{ID: "r1"})
}

func TestFailedDecision(t *testing.T) {
	s, fail := failing(t)
	r := create(t, s, journal.Start{ID: "r1"})
	appendWait(t, r, record("ask", `1`))
	fail.Store(true)
	if err := s.Decide(t.Context(), "r1", journal.Decision{Key: "k", Kind: "decision"}); !errors.Is(err, errDisk) {
		t.Errorf("decide: %v", err)
	}
	fail.Store(false)
	if err := s.Decide(t.Context(), "r1", journal.Decision{Key: "k", Kind: "decision"}); err != nil {
		t.Errorf("decide again: %v", err)
	}
	entries, err := r.Inbox(t.Context())
	if err != nil || len(entries) != 1 {
		t.Errorf("inbox: %v, %v", entries, err)
	}
	if entries, err = r.Inbox(t.Context()); err != nil || len(entries) != 0 {
		t.Errorf("inbox once more: %v, %v", entries, err)
	}
}

func TestRefusedRecords(t *testing.T) {
	s := newStore(t)
	r := create(t, s, journal.Start{})
	huge := value.MustText(strings.Repeat("x", journal.MaxValue/4))
	for name, rec := range map[string]journal.Record{
		"no kind":    {},
		"bad kind":   {Kind: "In tent"},
		"start":      {Kind: "start"},
		"checkpoint": {Kind: "checkpoint"},
		"huge":       {Kind: "outcome", Body: value.ListOf(huge, huge, huge, huge)},
	} {
		if err := r.Append(rec).Wait(t.Context()); !errors.Is(err, journal.ErrRefused) || errors.Is(err, journal.ErrJournal) {
			t.Errorf("%s: %v", name, err)
		}
	}
	appendWait(t, r, record("event", `1`)) // the run is none the worse for it
}

func TestWaitEndsWithItsContext(t *testing.T) {
	release := make(chan struct{})
	s := open(t, filepath.Join(t.TempDir(), "journal.db"), journal.Options{BeforeCommit: func() error { <-release; return nil }})
	r := create(t, s, journal.Start{})
	ticket := r.Append(record("event", `1`))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("interrupted")
	cancel(why)
	if err := ticket.Wait(ctx); !errors.Is(err, why) {
		t.Errorf("wait: %v", err)
	}
	close(release)
	if err := ticket.Wait(t.Context()); err != nil {
		t.Errorf("wait again: %v", err)
	}
}

func TestClosedStore(t *testing.T) {
	s := newStore(t)
	r := create(t, s, journal.Start{ID: "r1"})
	ticket := r.Append(journal.Record{Kind: "event", Deferred: true})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := ticket.Wait(t.Context()); err != nil {
		t.Errorf("what was queued before: %v", err)
	}
	if err := r.Append(record("event", `1`)).Wait(t.Context()); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("append: %v", err)
	}
	if _, err := s.Create(t.Context(), journal.Start{Kind: "plan"}); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("create: %v", err)
	}
	if err := s.Decide(t.Context(), "r1", journal.Decision{Key: "k", Kind: "d"}); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("decide: %v", err)
	}
	if _, err := s.Runs(t.Context(), journal.Filter{}); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("runs: %v", err)
	}
	if err := s.Close(); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("close: %v", err)
	}
	s = open(t, s.Path(), journal.Options{})
	equal(t, lines(t, s, "r1", 0), []string{`0 start null`, `1 event null`})
}

// TestNoGapAfterAFailure appends to a run while a commit of it is failing: what
// came later must not be written behind the gap.
func TestNoGapAfterAFailure(t *testing.T) {
	entered, release := make(chan struct{}), make(chan error)
	var armed atomic.Bool
	s := open(t, filepath.Join(t.TempDir(), "journal.db"), journal.Options{BeforeCommit: func() error {
		if armed.CompareAndSwap(true, false) {
			close(entered)
			return <-release
		}
		return nil
	}})
	r := create(t, s, journal.Start{})
	appendWait(t, r, record("event", `1`))
	armed.Store(true)
	lost := r.Append(record("event", `2`))
	<-entered
	behind := r.Append(record("event", `3`))
	release <- errDisk
	for name, ticket := range map[string]journal.Ticket{"lost": lost, "behind": behind} {
		if err := ticket.Wait(t.Context()); !errors.Is(err, errDisk) {
			t.Errorf("%s: %v", name, err)
		}
	}
	appendWait(t, create(t, s, journal.Start{}), record("event", `1`))
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	equal(t, lines(t, s, r.ID(), 0), []string{`0 start null`, `1 event 1`})
}

func TestPanicFailsTheCommitOnly(t *testing.T) {
	var armed atomic.Bool
	s := open(t, filepath.Join(t.TempDir(), "journal.db"), journal.Options{BeforeCommit: func() error {
		if armed.CompareAndSwap(true, false) {
			panic("no such luck")
		}
		return nil
	}})
	r := create(t, s, journal.Start{})
	armed.Store(true)
	if err := r.AppendWait(t.Context(), record("event", `1`)); !errors.Is(err, journal.ErrJournal) || !strings.Contains(err.Error(), "no such luck") {
		t.Errorf("append: %v", err)
	}
	appendWait(t, create(t, s, journal.Start{}), record("event", `1`))
}
