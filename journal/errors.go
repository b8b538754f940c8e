package journal

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
)

// What can go wrong, apart from an input/output error as the system reports it.
var (
	// ErrJournal wraps every failure to write. A run that met it takes no
	// further record: the packages above stop it with code journal.failed.
	ErrJournal = errors.New("journal.failed: the record was not written")
	// ErrDamaged is a file that SQLite cannot read as the database it should be.
	ErrDamaged = errors.New("the journal is damaged")
	// ErrForeign is a file that is not a journal, or one of a newer major version.
	ErrForeign = errors.New("not a journal that this version can open")
	// ErrKey is a journal whose signing key is missing, or another than the one that
	// it was last signed with.
	ErrKey = errors.New("the signing key is not the journal's")
	// ErrClosed is a store or run that was used after Close.
	ErrClosed = errors.New("the journal was closed")

	// ErrRunTaken is a run that another opener holds (code run.conflict).
	ErrRunTaken = errors.New("run.conflict: the run is open elsewhere")
	// ErrRunExists is a new run with the id of a stored or removed one.
	ErrRunExists = errors.New("run.conflict: a run of this id exists")
	// ErrNoRun is an id or prefix that no stored run has.
	ErrNoRun = errors.New("no such run")
	// ErrAmbiguous is a prefix that several runs have.
	ErrAmbiguous = errors.New("the prefix fits several runs; give more of the id")
	// ErrNeeded is a run that must stay while another is stored.
	ErrNeeded = errors.New("another run relies on it")
	// ErrRemoved is a run of which only the tombstone is left.
	ErrRemoved = errors.New("the run was removed")
	// ErrFinished is an append to, or a decision for, a run that has ended.
	ErrFinished = errors.New("the run has ended")
	// ErrDecided is a decision for which another was recorded before.
	ErrDecided = errors.New("already decided")
	// ErrRefused is a record that can never be written: a kind that is not a
	// plain word, or more bytes than [MaxValue].
	ErrRefused = errors.New("the record is not acceptable")
)

// A BrokenError is a stored run whose chain does not hold: it must not be read
// as if it were the record of what happened.
type BrokenError struct {
	Run    string
	Index  int // the first bad record; -1 is the header
	Reason string
}

// Error names the run, the record and what is wrong with it.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("run %s: %s: %s", e.Run, recordName(e.Index), e.Reason)
}

func recordName(i int) string {
	if i < 0 {
		return "header"
	}
	return fmt.Sprintf("record %d", i)
}

// SQLite's primary result codes for a file that is no sound database.
const (
	sqliteCorrupt = 11
	sqliteNotADB  = 26
)

// explain gives an error of the database the file's name, and [ErrDamaged]
// where that is what it means.
func (s *Store) explain(err error) error {
	if err == nil {
		return nil
	}
	var e *sqlite.Error
	if errors.As(err, &e) {
		switch e.Code() & 0xff {
		case sqliteCorrupt, sqliteNotADB:
			return fmt.Errorf("%s: %w: %w; restore it from a copy, or move it away to begin a new one", s.path, ErrDamaged, err)
		}
	}
	if s.queue.isClosed() {
		err = errors.Join(ErrClosed, err)
	}
	return fmt.Errorf("%s: %w", s.path, err)
}
