package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/callsheet/callsheet/journal"
)

// The salt makes the idempotency keys: a journal that lost it must not go on
// under another, and be the reason why an effect happens twice.
func TestAJournalWithoutItsSaltIsRefused(t *testing.T) {
	dir := t.TempDir()
	path, salt := filepath.Join(dir, "j.db"), filepath.Join(dir, journal.DefaultSaltFile)
	reopen := func() error {
		s, err := journal.Open(path, journal.Options{})
		if err != nil {
			return err
		}
		return s.Close()
	}
	remove := func() {
		t.Helper()
		if err := os.Remove(salt); err != nil {
			t.Fatal(err)
		}
	}
	if err := reopen(); err != nil {
		t.Fatal(err)
	}
	remove() // of a journal without runs nothing hangs on it
	if err := reopen(); err != nil {
		t.Fatalf("an empty journal: %v", err)
	}
	s, err := journal.Open(path, journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Create(t.Context(), journal.Start{Kind: "plan"})
	if err := errors.Join(err, r.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	remove()
	if err := reopen(); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("got %v, want %v", err, journal.ErrDamaged)
	}
	if _, err := os.Stat(salt); err == nil {
		t.Error("a new salt was made")
	}
}

// A file that is something else is left alone, and so is its directory.
func TestAForeignFileGetsNoKeys(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "notes.txt")
	if err := os.WriteFile(path, []byte("no database"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := journal.Open(path, journal.Options{}); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("got %v, want %v", err, journal.ErrDamaged)
	}
	for _, name := range []string{journal.DefaultKeyFile, journal.DefaultSaltFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was made beside it", name)
		}
	}
}
