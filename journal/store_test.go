package journal_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/callsheet/callsheet/journal"
)

// tamper changes the database behind the store's back.
func tamper(t testing.TB, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, stmt := range statements {
		res, err := db.Exec(stmt)
		if err != nil {
			t.Fatalf("%s: %v", stmt, err)
		}
		if n, _ := res.RowsAffected(); n == 0 && strings.HasPrefix(stmt, "UPDATE") {
			t.Fatalf("%s: changed nothing", stmt)
		}
	}
}

func TestVerifyOfAChangedStore(t *testing.T) {
	for name, c := range map[string]struct {
		change string
		index  int
	}{
		"nothing":       {"", 0},
		"edited":        {`UPDATE segments SET lines = CAST(replace(lines, '"s1"', '"s9"') AS BLOB) WHERE first = 0`, 1},
		"last edited":   {`UPDATE segments SET lines = CAST(replace(lines, '"s2"', '"s9"') AS BLOB) WHERE first = 3`, 3},
		"dropped":       {`DELETE FROM segments WHERE first = 2`, 2},
		"first dropped": {`DELETE FROM segments WHERE first = 0`, 0},
		"moved":         {`UPDATE segments SET first = 7 WHERE first = 2`, 2},
		"count":         {`UPDATE segments SET count = 2 WHERE first = 2`, 3},
		"hash":          {`UPDATE segments SET head = zeroblob(32) WHERE first = 2`, 2},
		"header":        {`UPDATE runs SET header = CAST(replace(header, 'small', 'large') AS BLOB)`, -1},
		"part edited":   {`UPDATE blobs SET text = replace(text, 'é', 'è')`, 2},
		"part dropped":  {`DELETE FROM blobs`, 2},
		"marked ended":  {`UPDATE runs SET finished = 1`, 4},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			id := small(t, s, false)
			if c.change != "" {
				tamper(t, s.Path(), c.change)
			}
			r, err := s.Verify(t.Context(), id, journal.Trust{})
			if err != nil {
				t.Fatal(err)
			}
			if c.change == "" {
				if !r.OK() || r.Head.Records != 4 {
					t.Errorf("unchanged: %+v", r)
				}
				return
			}
			if r.OK() || r.Faults[0].Index != c.index {
				t.Errorf("got %v, want the first fault at %d", r.Faults, c.index)
			}
			// An export says what the audit says.
			exported, err := s.Export(t.Context(), id, io.Discard)
			if err != nil || !slices.Equal(exported.Faults, r.Faults) {
				t.Errorf("the export reports %v, %v; want %v", exported, err, r.Faults)
			}
			// What cannot be believed is not read as if it could.
			if name == "marked ended" {
				return
			}
			var broken error
			for e, err := range s.Entries(t.Context(), id, 0) {
				if err == nil {
					_, err = e.Body(t.Context())
				}
				if err != nil {
					broken = err
					break
				}
			}
			if broken == nil {
				t.Error("the records were read without an error")
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		make func(t *testing.T, path string)
		want error
		says string
	}{
		"another application's database": {func(t *testing.T, path string) {
			tamper(t, path, `PRAGMA application_id = 7`)
		}, journal.ErrForeign, "something else"},
		"a newer major version": {func(t *testing.T, path string) {
			open(t, path, journal.Options{}).Close()
			tamper(t, path, `PRAGMA user_version = 131073`)
		}, journal.ErrForeign, "version 2.1"},
		"text": {func(t *testing.T, path string) {
			if err := os.WriteFile(path, bytes.Repeat([]byte("not a database\n"), 1000), 0o600); err != nil {
				t.Fatal(err)
			}
		}, journal.ErrDamaged, "journal.db"},
		"a damaged schema": {func(t *testing.T, path string) {
			open(t, path, journal.Options{}).Close()
			overwrite(t, path, 100, 3000)
		}, journal.ErrDamaged, "journal.db"},
		"a cut file": {func(t *testing.T, path string) {
			open(t, path, journal.Options{}).Close()
			if err := os.Truncate(path, 5000); err != nil {
				t.Fatal(err)
			}
		}, journal.ErrDamaged, "journal.db"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			c.make(t, path)
			s, err := journal.Open(path, journal.Options{})
			if err == nil {
				s.Close()
			}
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %v with %q", err, c.want, c.says)
			}
		})
	}
}

func overwrite(t *testing.T, path string, at, n int) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xa5}, n), int64(at)); err != nil {
		t.Fatal(err)
	}
}

func TestNewerMinorVersionOpens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	open(t, path, journal.Options{}).Close()
	tamper(t, path, `PRAGMA user_version = 65543`, `CREATE TABLE later (x)`, `INSERT INTO later VALUES (1)`)
	s := open(t, path, journal.Options{})
	appendWait(t, create(t, s, journal.Start{}), record("intent", `1`))
}

// TestDamagedPages overwrites each page of a database in turn: whatever is read
// then is right, or refused.
func TestDamagedPages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	s := open(t, path, journal.Options{})
	id := small(t, s, true)
	whole := export(t, s, id)
	s.Close()
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	for at := 0; at < len(sound); at += page {
		if err := os.WriteFile(path, sound, 0o600); err != nil {
			t.Fatal(err)
		}
		overwrite(t, path, at, page)
		s, err := journal.Open(path, journal.Options{})
		if err != nil {
			if !errors.Is(err, journal.ErrDamaged) {
				t.Errorf("page %d: %v", at/page, err)
			}
			continue
		}
		r, err := s.Verify(t.Context(), id, journal.Trust{})
		if err == nil && r.OK() && export(t, s, id) != whole {
			t.Errorf("page %d: verified, but not what was written", at/page)
		}
		if err != nil && !errors.Is(err, journal.ErrDamaged) && !errors.Is(err, journal.ErrNoRun) {
			t.Errorf("page %d: %v", at/page, err)
		}
		s.Close()
	}
}

// TestHostile055_EveryPrefixOfTheLogOpens cuts the write-ahead log beside its database at
// every byte, as a crash of the machine may.
func TestHostile055_EveryPrefixOfTheLogOpens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	tamper(t, path, `PRAGMA page_size = 512`, `VACUUM`) // small pages, for a log of few bytes
	s := open(t, path, journal.Options{})
	if err := s.Close(); err != nil { // the tables are in the database from here on
		t.Fatal(err)
	}
	s = open(t, path, journal.Options{})
	r := create(t, s, journal.Start{ID: "r1"})
	appendWait(t, r, record("event", `1`), record("event", `2`))
	full := lines(t, s, "r1", 0)
	db, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	wal, err := os.ReadFile(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	step := 1
	if testing.Short() {
		step = 67 // coprime to the 536 bytes of a frame
	}
	copied := filepath.Join(t.TempDir(), "journal.db")
	seen := 0
	for n := len(wal) % step; n <= len(wal); n += step {
		for _, f := range []struct {
			name string
			data []byte
		}{{copied, db}, {copied + "-wal", wal[:n]}} {
			if err := os.WriteFile(f.name, f.data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		os.Remove(copied + "-shm")
		s, err := journal.Open(copied, journal.Options{KeyFile: filepath.Join(filepath.Dir(path), journal.DefaultKeyFile)})
		if err != nil {
			t.Fatalf("prefix of %d bytes: %v", n, err)
		}
		var got []string
		if _, err := s.Find(t.Context(), "r1"); err == nil {
			got = lines(t, s, "r1", 0)
			if r, err := s.Verify(t.Context(), "r1", journal.Trust{}); err != nil || !r.OK() {
				t.Errorf("prefix of %d bytes: %v %v", n, r, err)
			}
		} else if !errors.Is(err, journal.ErrNoRun) {
			t.Errorf("prefix of %d bytes: %v", n, err)
		}
		if len(got) < seen {
			t.Errorf("prefix of %d bytes: %d records, fewer than a shorter one had", n, len(got))
		}
		seen = len(got)
		equal(t, got, full[:seen])
		if err := s.Close(); err != nil {
			t.Errorf("prefix of %d bytes: close: %v", n, err)
		}
	}
	if seen != len(full) {
		t.Errorf("the whole log has %d records, want %d", seen, len(full))
	}
}

func TestLists(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	s := open(t, filepath.Join(t.TempDir(), "journal.db"), journal.Options{Now: func() time.Time { now = now.Add(time.Minute); return now }})
	var ids []string
	for i := range 6 {
		r := create(t, s, journal.Start{ID: fmt.Sprintf("%c%d", 'a'+i/3, i), Tools: []string{"search"}})
		ids = append(ids, r.ID())
		rec := record("event", `1`)
		if i%2 == 0 {
			rec.Tool = "pay"
		}
		if i == 3 {
			rec.Status = "waiting"
		}
		appendWait(t, r, rec)
		if i < 2 {
			if _, err := r.Finish(t.Context(), journal.Record{Kind: "end", Status: "ok"}); err != nil {
				t.Fatal(err)
			}
		}
		if i < 5 {
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	first, err := s.Summary(t.Context(), ids[0])
	if err != nil {
		t.Fatal(err)
	}
	third, err := s.Summary(t.Context(), ids[2])
	if err != nil {
		t.Fatal(err)
	}
	if first.Held || !first.Finished || first.Records() != 4 || strings.Join(first.Tools, " ") != "pay search" || !first.Updated.After(first.Started) {
		t.Errorf("summary: %+v", first)
	}
	for name, c := range map[string]struct {
		filter journal.Filter
		want   string
	}{
		"all":             {journal.Filter{}, "b5 b4 b3 a2 a1 a0"},
		"two":             {journal.Filter{Limit: 2}, "b5 b4"},
		"ok":              {journal.Filter{Status: "ok"}, "a1 a0"},
		"running":         {journal.Filter{Status: "running"}, "b5 b4 a2"},
		"tool":            {journal.Filter{Tool: "pay"}, "b4 a2 a0"},
		"tool and status": {journal.Filter{Tool: "pay", Status: "running"}, "b4 a2"},
		"since":           {journal.Filter{Since: third.Started}, "b5 b4 b3 a2"},
		"until":           {journal.Filter{Until: third.Started, Tool: "search"}, "a1 a0"},
		"none":            {journal.Filter{Status: "lost"}, ""},
	} {
		list, err := s.Runs(t.Context(), c.filter)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range list {
			got = append(got, r.ID)
			if held := r.ID == "b5"; r.Held != held {
				t.Errorf("%s: held %v", r.ID, r.Held)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: got %v, want %s", name, got, c.want)
		}
	}
	for prefix, want := range map[string]error{"a": journal.ErrAmbiguous, "b5": nil, "b": journal.ErrAmbiguous, "c": journal.ErrNoRun} {
		if _, err := s.Find(t.Context(), prefix); !errors.Is(err, want) {
			t.Errorf("find %s: got %v, want %v", prefix, err, want)
		}
	}
}

func TestRemovedRunsLeaveTombstones(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	s := open(t, filepath.Join(t.TempDir(), "journal.db"), journal.Options{Now: func() time.Time { return now }})
	old, kept := small(t, s, true), ""
	now = now.Add(48 * time.Hour)
	kept = small(t, s, true) // has the same stored part
	whole := export(t, s, kept)
	summary, err := s.Summary(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	removed, err := s.Prune(t.Context(), now.Add(-time.Hour), false)
	if err != nil || len(removed) != 1 || removed[0] != old {
		t.Fatalf("pruned %v, %v; want %s", removed, err, old)
	}
	for name, err := range map[string]error{
		"open":    second(s.OpenRun(t.Context(), old)),
		"create":  second(s.Create(t.Context(), journal.Start{ID: old, Kind: "plan"})),
		"verify":  second(s.Verify(t.Context(), old, journal.Trust{})),
		"export":  second(s.Export(t.Context(), old, io.Discard)),
		"decide":  s.Decide(t.Context(), old, journal.Decision{Key: "k", Kind: "approval"}),
		"remove":  s.Remove(t.Context(), old, "again"),
		"find":    second(s.Find(t.Context(), old)),
		"summary": second(s.Summary(t.Context(), old)),
	} {
		want := journal.ErrRemoved
		if name == "create" {
			want = journal.ErrRunExists
		}
		if !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	stones, err := s.Tombstones(t.Context(), 0)
	if err != nil || len(stones) != 1 || stones[0].ID != old || stones[0].Head != summary.Head || !stones[0].Removed.Equal(now) {
		t.Errorf("tombstones: %+v, %v", stones, err)
	}
	if export(t, s, kept) != whole {
		t.Error("the other run lost its stored part")
	}
	if err := s.Remove(t.Context(), kept, "by hand"); err != nil {
		t.Fatal(err)
	}
	path := s.Path()
	for _, name := range []string{path, path + "-wal"} {
		if data, err := os.ReadFile(name); err == nil && bytes.Contains(data, []byte(strings.Repeat("é", 20))) {
			t.Errorf("%s still holds what was removed", filepath.Base(name))
		}
	}
}

// A run that another needs stays as long as that does.
func TestNeededRunsStay(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := open(t, filepath.Join(t.TempDir(), "journal.db"), journal.Options{Now: func() time.Time { return now }})
	run := func(id, needs string) {
		t.Helper()
		r := create(t, s, journal.Start{ID: id, Needs: needs})
		if _, err := r.Finish(t.Context(), record("end", `{}`)); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	run("origin", "")
	run("fork", "origin")
	if _, err := s.Create(t.Context(), journal.Start{Kind: "plan", Needs: "nothing"}); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("a run that needs one that is not there: %v", err)
	}
	held := create(t, s, journal.Start{ID: "held"})
	if _, err := s.Create(t.Context(), journal.Start{Kind: "plan", Needs: "held"}); !errors.Is(err, journal.ErrRunTaken) {
		t.Errorf("a run that needs one that goes on: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(t.Context(), "origin", "by hand"); !errors.Is(err, journal.ErrNeeded) || !strings.Contains(err.Error(), "run fork") {
		t.Errorf("removing what is needed: got %v, want %v by fork", err, journal.ErrNeeded)
	}
	now = now.Add(time.Hour)
	run("fork2", "fork") // young: what it needs stays, and what that needs
	if removed, err := s.Prune(t.Context(), now, false); err != nil || len(removed) > 0 {
		t.Errorf("pruned %v, %v; want nothing", removed, err)
	}
	now = now.Add(time.Hour)
	if removed, err := s.Prune(t.Context(), now, false); err != nil || !slices.Equal(removed, []string{"fork2", "fork", "origin"}) {
		t.Errorf("pruned %v, %v; want all three, whoever needs first", removed, err)
	}
	run("alone", "")
	if err := s.Remove(t.Context(), "alone", "by hand"); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }
