package journal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/value"
)

func open(t testing.TB, path string, opts journal.Options) *journal.Store {
	t.Helper()
	s, err := journal.Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, journal.ErrClosed) {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func newStore(t testing.TB) *journal.Store {
	return open(t, filepath.Join(t.TempDir(), "state", "journal.db"), journal.Options{})
}

func create(t testing.TB, s *journal.Store, start journal.Start) *journal.Run {
	t.Helper()
	if start.Kind == "" {
		start.Kind = "plan"
	}
	r, err := s.Create(t.Context(), start)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func record(kind, body string) journal.Record {
	return journal.Record{Kind: kind, Body: value.MustParse(body)}
}

func appendWait(t testing.TB, r *journal.Run, recs ...journal.Record) {
	t.Helper()
	for _, rec := range recs {
		if err := r.AppendWait(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
	}
}

// lines renders a run's records as "index kind body", checkpoints without body.
func lines(t testing.TB, s *journal.Store, id string, from int) []string {
	t.Helper()
	var out []string
	for e, err := range s.Entries(t.Context(), id, from) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == "checkpoint" {
			out = append(out, fmt.Sprint(e.Index, " checkpoint"))
			continue
		}
		body, err := e.Body(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprint(e.Index, " ", e.Kind, " ", body))
	}
	return out
}

func equal(t testing.TB, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestRecordsComeBackInTheOrderOfTheirAppends(t *testing.T) {
	s := newStore(t)
	r := create(t, s, journal.Start{Body: value.MustParse(`{"budget":3}`)})
	appendWait(t, r, record("intent", `{"step":"s1"}`), record("outcome", `{"step":"s1","output":9007199254740993}`))
	if _, err := r.Finish(t.Context(), record("end", `{"ok":true}`)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`0 start {"budget":3}`,
		`1 intent {"step":"s1"}`,
		`2 outcome {"step":"s1","output":9007199254740993}`,
		`3 end {"ok":true}`,
		`4 checkpoint`,
	}
	equal(t, lines(t, s, r.ID(), 0), want)
	equal(t, lines(t, s, r.ID(), 3), want[3:])
	equal(t, lines(t, s, r.ID(), 9), nil)
	if err := r.Append(record("late", `1`)).Wait(t.Context()); !errors.Is(err, journal.ErrFinished) {
		t.Errorf("append after the end: %v", err)
	}
}

func TestRunGoesOnAfterReopening(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s := open(t, path, journal.Options{})
	r := create(t, s, journal.Start{Name: "refund", Plan: value.MustParse(`[]`).Digest()})
	appendWait(t, r, record("intent", `1`))
	if err := errors.Join(r.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, journal.Options{})
	again, err := s.OpenRun(t.Context(), r.ID())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := again.Header(), r.Header(); got != want {
		t.Errorf("header: got %v, want %v", got, want)
	}
	appendWait(t, again, record("outcome", `2`))
	equal(t, lines(t, s, r.ID(), 0), []string{`0 start null`, `1 intent 1`, `2 checkpoint`, `3 outcome 2`})
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := open(t, filepath.Join(dir, "journal.db"), journal.Options{})
	appendWait(t, create(t, s, journal.Start{}), record("intent", `1`))
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 6 { // database, -wal, -shm, lock, key, salt
		t.Errorf("%d files", len(files))
	}
	for _, f := range files {
		if info, err := f.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v; want 0600", f.Name(), info.Mode(), err)
		}
	}
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if info, err := os.Stat(d); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: mode %v, %v; want 0700", d, info.Mode(), err)
		}
	}
}

func TestLargePartsAreStoredOnce(t *testing.T) {
	s := newStore(t)
	r := create(t, s, journal.Start{})
	big := value.MustText(strings.Repeat("x", 1<<20))
	small := value.MustText(strings.Repeat("y", journal.InlineMax/2))
	output := value.MustParse(`{"text":"` + strings.Repeat("z", 3*journal.InlineMax) + `"}`)
	args := value.ObjectOf(value.Member{Key: "a/b", Value: big}, value.Member{Key: "c", Value: value.ListOf(small, output)})
	bodies := []value.Value{
		value.ObjectOf(value.Member{Key: "step", Value: value.MustText("s1")}, value.Member{Key: "output", Value: big}),
		value.ObjectOf(value.Member{Key: "step", Value: value.MustText("s2")}, value.Member{Key: "args", Value: args}),
		big,
		output,
		value.MustParse(`{"output":"` + strings.Repeat("0", 64) + `"}`), // text that looks like a reference is text
	}
	for _, b := range bodies {
		appendWait(t, r, journal.Record{Kind: "outcome", Body: b})
	}
	i := -1
	for e, err := range s.Entries(t.Context(), r.ID(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if i >= 0 {
			got, err := e.Body(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != bodies[i].String() {
				t.Errorf("body %d: got %.80s…, want %.80s…", i, got, bodies[i])
			}
			if want := i < 4; e.Large() != want {
				t.Errorf("body %d: large %v, want %v", i, e.Large(), want)
			}
		}
		i++
	}
	if i != len(bodies) {
		t.Errorf("%d bodies, want %d", i, len(bodies))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(s.Path())
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > 3<<19 {
		t.Errorf("the database has %d bytes: the part of %d was stored more than once", info.Size(), big.Size())
	}
}

func TestRunIsOpenOnce(t *testing.T) {
	s := newStore(t)
	r := create(t, s, journal.Start{ID: "r1"})
	other := open(t, s.Path(), journal.Options{})
	for name, s := range map[string]*journal.Store{"same store": s, "other store": other} {
		if _, err := s.OpenRun(t.Context(), "r1"); !errors.Is(err, journal.ErrRunTaken) {
			t.Errorf("%s: open: %v", name, err)
		}
		if _, err := s.Create(t.Context(), journal.Start{ID: "r1", Kind: "plan"}); !errors.Is(err, journal.ErrRunTaken) {
			t.Errorf("%s: create: %v", name, err)
		}
		if err := s.Remove(t.Context(), "r1", "test"); !errors.Is(err, journal.ErrRunTaken) {
			t.Errorf("%s: remove: %v", name, err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Create(t.Context(), journal.Start{ID: "r1", Kind: "plan"}); !errors.Is(err, journal.ErrRunExists) {
		t.Errorf("create with a used id: %v", err)
	}
	again, err := other.OpenRun(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := other.OpenRun(t.Context(), "r2"); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("open of no run: %v", err)
	}
}

func TestManyRunsAtOnce(t *testing.T) {
	s := newStore(t)
	const runs, steps = 100, 20
	ids := make([]string, runs)
	var wg sync.WaitGroup
	for i := range runs {
		r := create(t, s, journal.Start{})
		ids[i] = r.ID()
		wg.Go(func() {
			for j := range steps {
				r.Append(journal.Record{Kind: "intent", Body: value.Int(int64(j)), Deferred: true})
				if err := r.AppendWait(context.Background(), journal.Record{Kind: "outcome", Body: value.Int(int64(j))}); err != nil {
					t.Error(err)
				}
			}
			if _, err := r.Finish(context.Background(), journal.Record{Kind: "end"}); err != nil {
				t.Error(err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if got, want := len(lines(t, s, id, 0)), 2*steps+3; got != want {
			t.Errorf("run %s: %d records, want %d", id, got, want)
		}
	}
}

func TestWaitingForADeferredRecordEndsTheDeferral(t *testing.T) {
	s := newStore(t)
	r := create(t, s, journal.Start{})
	rec := record("intent", `1`)
	rec.Deferred = true
	if err := r.Append(rec).Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, lines(t, s, r.ID(), 1), []string{`1 intent 1`})
}

// TestSyncsOfALoneChain: an effectful step waits for the disk twice, a read-only
// one once, whatever is between its records.
func TestSyncsOfALoneChain(t *testing.T) {
	for _, c := range []struct {
		deferred bool
		perStep  int64
	}{{false, 2}, {true, 1}} {
		s := newStore(t)
		r := create(t, s, journal.Start{})
		const steps = 20
		for range steps {
			ticket := r.Append(journal.Record{Kind: "intent", Deferred: c.deferred})
			if !c.deferred {
				if err := ticket.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			appendWait(t, r, journal.Record{Kind: "outcome"})
		}
		if got := s.Stats().Syncs; got != steps*c.perStep {
			t.Errorf("deferred %v: %d syncs for %d steps, want %d each", c.deferred, got, steps, c.perStep)
		}
	}
}

// TestDeferredRecordIsShown: an intent that nobody waits for can be seen by
// others although no sync was spent on it.
func TestDeferredRecordIsShown(t *testing.T) {
	s := newStore(t)
	r := create(t, s, journal.Start{})
	appendWait(t, r, record("event", `1`))
	syncs := s.Stats().Syncs
	rec := record("intent", `2`)
	rec.Deferred = true
	ticket := r.Append(rec)
	for e, err := range s.Follow(t.Context(), r.ID(), 2) {
		if err != nil || e.Kind != "intent" {
			t.Errorf("followed: %v, %v", e.Kind, err)
		}
		break
	}
	if got := s.Stats().Syncs; got != syncs {
		t.Errorf("%d syncs, want %d", got, syncs)
	}
	if err := ticket.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.Stats().Syncs; got != syncs+1 {
		t.Errorf("after the wait: %d syncs, want %d", got, syncs+1)
	}
}

// TestBacklogIsBounded appends faster than is written; nothing is lost.
func TestBacklogIsBounded(t *testing.T) {
	s := newStore(t)
	r := create(t, s, journal.Start{})
	const parts = 18
	for i := range parts {
		big := value.MustText(strings.Repeat(fmt.Sprint(i%10), 4<<20))
		r.Append(journal.Record{Kind: "outcome", Body: big, Deferred: true})
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := s.Verify(t.Context(), r.ID(), journal.Trust{})
	if err != nil || !report.OK() || report.Head.Records != parts+2 {
		t.Errorf("%+v, %v", report, err)
	}
}
