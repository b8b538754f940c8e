package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callsheet/callsheet/internal/disk"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

// Options say how to open a store. The zero value is right for most.
type Options struct {
	// KeyFile holds the signing key. Default: "audit.key" in the directory of
	// the database.
	KeyFile string
	// NewKey begins a new signing key in the place of the one that KeyFile holds, or
	// held and has lost. What was signed before stays signed by the keys of before
	// ([Store.Keys]); stores that are open keep theirs.
	NewKey bool
	// SaltFile holds the secret of [Store.HMAC]. Default: "journal.salt" in the
	// directory of the database.
	SaltFile string
	// Now is the clock of the records. Default: time.Now.
	Now func() time.Time
	// Logger is told what happens to the store as a whole. Default: nobody.
	Logger *slog.Logger
	// BeforeCommit, if set, is called before each commit; its error fails the
	// commit as one of the disk would. For tests of what is above.
	BeforeCommit func() error
}

// The names that stand in the directory of the database unless told otherwise.
const (
	DefaultKeyFile  = "audit.key"
	DefaultSaltFile = "journal.salt"
)

const (
	// busyWait is how long a lock of SQLite's own may be waited for. Writers of
	// this package queue at the writer byte; what is left is recovery after a
	// crash, and strangers with a database browser.
	busyWait = time.Minute
	// readers bounds the connections that read at once.
	readers = 8
)

// A Store is the journal: one file for any number of runs, goroutines and
// processes.
type Store struct {
	path   string
	opts   Options
	key    *Key
	salt   []byte
	locks  *os.File
	reads  *sql.DB
	writes *sql.DB
	writer *writer
	watch  watch

	queue queue
	stats stats

	heldMu sync.Mutex
	held   map[int64]bool // bytes of the runs open in this store

	stopped chan struct{} // closed when the committer has ended
}

// Open opens the journal at path, making it, and the directories above it
// (0700), if it is not there. The file, and those beside it, are readable by
// their owner only (0600). The error is [ErrDamaged], [ErrForeign] or [ErrKey]
// where that is the matter.
func Open(path string, opts Options) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	if opts.KeyFile == "" {
		opts.KeyFile = filepath.Join(dir, DefaultKeyFile)
	}
	if opts.SaltFile == "" {
		opts.SaltFile = filepath.Join(dir, DefaultSaltFile)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{path: path, opts: opts, held: map[int64]bool{}, stopped: make(chan struct{})}
	s.queue.init()
	if err := s.open(dir); err != nil {
		return nil, errors.Join(err, s.closeFiles())
	}
	go s.commitLoop()
	return s, nil
}

func (s *Store) open(dir string) (err error) {
	if err = os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// SQLite gives its other files the mode of this one.
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = errors.Join(f.Close(), disk.SyncDir(filepath.Dir(s.path)))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if s.locks, err = openLockFile(s.path + lockSuffix); err != nil {
		return err
	}
	if s.writes, err = sql.Open("sqlite", s.dsn()); err != nil {
		return err
	}
	s.writes.SetMaxOpenConns(1)
	if s.reads, err = sql.Open("sqlite", s.dsn("query_only(1)")); err != nil {
		return err
	}
	s.reads.SetMaxOpenConns(readers)
	s.reads.SetMaxIdleConns(readers)

	if err := lockByte(s.locks, writerByte); err != nil {
		return err
	}
	err = s.explain(s.migrate(context.Background()))
	if err == nil {
		err = s.loadSecrets(context.Background())
	}
	if err = errors.Join(err, unlockByte(s.locks, writerByte)); err != nil {
		return err
	}
	s.writer, err = newWriter(s)
	return s.explain(err)
}

// loadSecrets reads the signing key and the salt, and makes them for a journal
// that is new. A salt is not made for one that has runs: under another, a call
// that is made again would have another idempotency key, and be done twice. The
// caller holds the writer byte.
func (s *Store) loadSecrets(ctx context.Context) (err error) {
	if _, err := os.Stat(s.opts.SaltFile); errors.Is(err, fs.ErrNotExist) {
		var used bool
		if err := s.reads.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM runs)`).Scan(&used); err != nil {
			return s.explain(err)
		}
		if used {
			return fmt.Errorf("%s: %w: %s is missing, which keeps calls from being made twice; copy it from where the journal came from", s.path, ErrDamaged, s.opts.SaltFile)
		}
	}
	if err := s.openKey(ctx); err != nil {
		return err
	}
	if s.salt, err = loadSalt(s.opts.SaltFile); err != nil {
		return fmt.Errorf("salt: %w", err)
	}
	return nil
}

// dsn names the file to the driver. Checkpoints are the committer's business:
// a commit never waits for one.
func (s *Store) dsn(pragmas ...string) string {
	q := url.Values{}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", busyWait.Milliseconds()))
	q.Add("_pragma", "synchronous(FULL)")
	q.Add("_pragma", "fullfsync(1)") // where fsync does not reach the disk
	q.Add("_pragma", "wal_autocheckpoint(0)")
	q.Add("_pragma", "cell_size_check(1)")
	q.Add("_pragma", "trusted_schema(0)")
	q.Add("_pragma", "secure_delete(1)") // what rm removes is gone from the file
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	q.Set("_dqs", "0")
	return (&url.URL{Scheme: "file", Path: s.path, RawQuery: q.Encode()}).String()
}

// Stats count what a store has done since it was opened.
type Stats struct {
	Records int64 // written, checkpoints included
	Commits int64 // transactions of records
	Syncs   int64 // those of them that waited for the disk
}

type stats struct{ records, commits, syncs atomic.Int64 }

// Stats returns the counts so far.
func (s *Store) Stats() Stats {
	return Stats{s.stats.records.Load(), s.stats.commits.Load(), s.stats.syncs.Load()}
}

// Path is the absolute path of the database.
func (s *Store) Path() string { return s.path }

// Key is the key with which this store signs.
func (s *Store) Key() *Key { return s.key }

// Close writes what is queued and closes the files. Runs that are still open
// are given back as they are; they can be opened again.
func (s *Store) Close() error {
	if !s.queue.close() {
		return ErrClosed
	}
	<-s.stopped
	s.watch.stop()
	return s.closeFiles()
}

func (s *Store) closeFiles() error {
	var errs []error
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	for _, c := range []io.Closer{s.reads, s.writes, s.locks} {
		switch c := c.(type) {
		case *sql.DB:
			if c != nil {
				errs = append(errs, c.Close())
			}
		case *os.File:
			if c != nil {
				errs = append(errs, c.Close())
			}
		}
	}
	return errors.Join(errs...)
}

// acquire takes a run's byte for this store.
func (s *Store) acquire(id string) error {
	at := runByte(id)
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	if s.held[at] {
		return fmt.Errorf("run %s: %w (in this process)", id, ErrRunTaken)
	}
	ok, err := tryLockByte(s.locks, at)
	if err != nil {
		return fmt.Errorf("%s: %w", s.path+lockSuffix, err)
	}
	if !ok {
		return fmt.Errorf("run %s: %w", id, ErrRunTaken)
	}
	s.held[at] = true
	return nil
}

func (s *Store) release(id string) error {
	at := runByte(id)
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	delete(s.held, at)
	return unlockByte(s.locks, at)
}

// isHeld reports whether anybody has the run open.
func (s *Store) isHeld(id string) (bool, error) {
	at := runByte(id)
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	if s.held[at] {
		return true, nil
	}
	return byteHeld(s.locks, at)
}
