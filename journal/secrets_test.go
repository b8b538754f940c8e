package journal_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// A journal goes on under the key that it was last signed with. One that is lost
// is not made anew unless somebody says so, and then both are on record.
func TestAJournalWithoutItsKeyIsRefused(t *testing.T) {
	dir := t.TempDir()
	path, file := filepath.Join(dir, "j.db"), filepath.Join(dir, journal.DefaultKeyFile)
	s := open(t, path, journal.Options{})
	first := s.Key().Fingerprint()
	id := small(t, s, true)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := open(t, filepath.Join(t.TempDir(), "j.db"), journal.Options{})
	other, err := os.ReadFile(filepath.Join(filepath.Dir(elsewhere.Path()), journal.DefaultKeyFile))
	if err != nil {
		t.Fatal(err)
	}
	put := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what string, says ...string) {
		t.Helper()
		_, err := journal.Open(path, journal.Options{})
		if !errors.Is(err, journal.ErrKey) {
			t.Fatalf("%s: got %v, want %v", what, err, journal.ErrKey)
		}
		for _, s := range append(says, "audit key rotate", file) {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%s: %v does not say %s", what, err, s)
			}
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	refused("missing", "is missing", first)
	if _, err := os.Stat(file); err == nil {
		t.Error("a new key was made")
	}
	put(other)
	refused("another", first, elsewhere.Key().Fingerprint())

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s = open(t, path, journal.Options{NewKey: true})
	second := s.Key().Fingerprint()
	if keys, err := s.Keys(t.Context()); err != nil || !slices.Equal(keys, []string{first, second}) {
		t.Errorf("the journal has the keys %v, %v; want %s and %s", keys, err, first, second)
	}
	if r, err := s.Verify(t.Context(), id, journal.Trust{Keys: []string{first}}); err != nil || !r.OK() {
		t.Errorf("what the lost key signed: %v, %v", r, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	put(key)
	refused("retired", first, second)
}

// A journal of before the keys were on record takes over what it was signed with.
func TestKeysOfLayout1_0(t *testing.T) {
	for name, c := range map[string]struct {
		list []string // beside the key
	}{"one key": {}, "rotated": {[]string{strings.Repeat("a", 64)}}} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "j.db")
			file := filepath.Join(filepath.Dir(path), journal.DefaultKeyFile)
			s := open(t, path, journal.Options{})
			small(t, s, true)
			want := append(c.list, s.Key().Fingerprint())
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			tamper(t, path, `DROP TABLE keys`, `DROP TABLE needs`, `PRAGMA user_version = 65536`)
			if len(c.list) > 0 {
				if err := os.WriteFile(file+".retired", []byte(c.list[0]+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s = open(t, path, journal.Options{})
			if keys, err := s.Keys(t.Context()); err != nil || !slices.Equal(keys, want) {
				t.Errorf("got the keys %v, %v; want %v", keys, err, want)
			}
			small(t, s, true)
			if err := errors.Join(s.Close(), os.Remove(file)); err != nil {
				t.Fatal(err)
			}
			if _, err := journal.Open(path, journal.Options{}); !errors.Is(err, journal.ErrKey) {
				t.Errorf("without its key: got %v, want %v", err, journal.ErrKey)
			}
		})
	}
}
