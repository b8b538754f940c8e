// Package session plays one episode of a worldbook. State, audit and memory
// are rows of one SQLite file and are committed together, once for each step,
// so that a process that is killed at any instant leaves a session that opens
// and continues.
//
//	b, err := book.Open("ledger.world")
//	s, err := session.Open(ctx, "play", b, session.Options{})
//	defer s.Close()
//	r, err := s.Step(ctx, session.Request{Action: world.Action{Type: "balance"}})
//	fmt.Println(r.Observation) // Balance: 100.0
//
// The file holds deltas and now and then a snapshot; the whole state is built
// when somebody asks for it. The cost of a step does not depend on how many
// there were (spec/world.md §3.2).
package session

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/engine"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/callsheet/callsheet/world/state"
	"github.com/go-json-experiment/json"
)

// ErrConflict is what a writer gets when another one is at work on the session
// or was faster. Nothing has happened; the session has taken in what the other
// did, and the step may be made again.
var ErrConflict = errors.New("the session has another writer")

// ErrNoSession is a file that is in the place of a session and is none.
var ErrNoSession = errors.New("not the file of a session")

// ErrOtherWorld is what a session answers that was played on another worldbook.
var ErrOtherWorld = errors.New("the session belongs to another worldbook")

// fileName is the session's file in its directory.
const fileName = "session.sqlite"

// A FastPath says when a rule decides without the agent.
type FastPath string

// The policies. Confident takes rules that have a template and enough
// confidence. Without an agent every rule that applies decides.
const (
	Confident FastPath = "confident"
	Always    FastPath = "always"
	Never     FastPath = "never"
)

// Options say how a session is played. The zero value plays rules only.
type Options struct {
	// Initial is the state of a new session; nil: the schema's defaults, which
	// a package rebuilt from traces does not have as evidence, so that there it
	// is required. A session that is there must have begun with it.
	Initial *state.State
	// AllowUnvalidated plays a candidate, which has passed no replay.
	AllowUnvalidated bool
	// Agent decides what no confident rule does; nil: nobody.
	Agent Agent
	// Trust is engine.RulesOnly unless it says otherwise.
	Trust engine.Trust
	// FastPath is Confident unless it says otherwise, at a confidence of
	// FastPathConfidence, 0.9.
	FastPath           FastPath
	FastPathConfidence float64
	// MemoryRecent is how many turns an agent is shown to begin with; 0: 4.
	MemoryRecent int
	// KeepObservation commits an agent's step whose effects are rejected
	// without them, with a warning.
	KeepObservation bool
	// Wait leaves rules that can produce nothing out of the selection.
	Wait bool
	// NoSync leaves it to the system when a commit reaches the disk. A process
	// that dies loses nothing, a machine may lose the last steps.
	NoSync bool
	// Now is the clock of the audit; nil: time.Now.
	Now func() time.Time
}

func (o *Options) defaults() error {
	o.Trust = cmp.Or(o.Trust, engine.RulesOnly)
	o.FastPath = cmp.Or(o.FastPath, Confident)
	o.FastPathConfidence = cmp.Or(o.FastPathConfidence, 0.9)
	o.MemoryRecent = cmp.Or(o.MemoryRecent, 4)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Trust != engine.RulesOnly && o.Trust != engine.SchemaChecked {
		return fmt.Errorf("trust policy %q is not rules_only or schema_checked", o.Trust)
	}
	if o.FastPath != Confident && o.FastPath != Always && o.FastPath != Never {
		return fmt.Errorf("fast path %q is not confident, always or never", o.FastPath)
	}
	return nil
}

// A Session is one episode being played. One step is made at a time; the other
// methods may be called at any time.
type Session struct {
	book *book.Book
	o    Options
	dir  string

	state atomic.Pointer[state.State] // as committed; set holding mu

	db *sql.DB // never nil once the session is open; closed by Close

	mu    sync.Mutex // held for a step
	conn  *sql.Conn  // holding mu: the writer's; nil when closed
	st    statements // holding mu
	since int64      // holding mu: bytes of deltas since the last snapshot
	whole int64      // holding mu: bytes of the last snapshot
}

type statements struct{ revision, delta, audit, memory, snapshot *sql.Stmt }

const schema = `
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE snapshots (revision INTEGER PRIMARY KEY, state TEXT NOT NULL);
CREATE TABLE deltas (revision INTEGER PRIMARY KEY, effects TEXT NOT NULL);
CREATE TABLE audit (sequence INTEGER PRIMARY KEY, revision INTEGER NOT NULL, record TEXT NOT NULL);
CREATE TABLE memory (id INTEGER PRIMARY KEY, turn INTEGER NOT NULL, action_text TEXT NOT NULL, observation TEXT NOT NULL, entry TEXT NOT NULL);
CREATE INDEX memory_turn ON memory(turn);
CREATE VIRTUAL TABLE memory_fts USING fts5(action_text, observation, content='memory', content_rowid='id');
`

// formatVersion is that of the schema; another one is refused.
const formatVersion = "callsheet.session.1"

// Open opens the session in a directory, or begins one there. What may not be
// played is refused before anything is created.
func Open(ctx context.Context, dir string, b *book.Book, o Options) (*Session, error) {
	if err := o.defaults(); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, fileName)
	exists, err := isThere(file)
	if err != nil {
		return nil, err
	}
	if b.Manifest.Status() == book.Candidate && !o.AllowUnvalidated {
		return nil, world.Faultf(world.ValueError, "worldbook %s is a candidate: replay it and promote it, or allow unvalidated worldbooks (--allow-unvalidated)", b.Dir())
	}
	if k := b.Manifest.Kind(); !exists && o.Initial == nil && (k == book.Reconstructed || k == book.Ablated) {
		return nil, world.Faultf(world.ValueError, "worldbook %s is rebuilt from traces: a new session needs an initial state (--initial-state), for the schema's defaults are no evidence", b.Dir())
	}
	initial := state.State{}
	if o.Initial != nil {
		initial = *o.Initial
	} else if initial, err = b.Engine.Initial(); err != nil {
		return nil, err
	}
	if !exists {
		if err := book.Outside(dir); err != nil {
			return nil, err
		}
		if err := b.Engine.CheckTypes(initial); err != nil {
			return nil, fmt.Errorf("initial state: %w", err)
		}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return nil, err
		}
	}
	s := &Session{book: b, o: o, dir: dir}
	if err := s.open(ctx, file, initial); err != nil {
		return nil, errors.Join(fmt.Errorf("session %s: %w", dir, foreign(err)), s.Close())
	}
	return s, nil
}

// isThere reports whether the file of a session is there. It and those beside it
// are files of their own: a link would have SQLite write wherever it leads.
func isThere(file string) (there bool, err error) {
	for _, suffix := range []string{"-journal", "-shm", "-wal", ""} {
		st, err := os.Lstat(file + suffix)
		there = err == nil
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if there && !st.Mode().IsRegular() {
			return false, fmt.Errorf("%s: %w: it is a link, a directory or a device", file+suffix, ErrNoSession)
		}
	}
	return there, nil
}

func dsn(file string, sync bool) (string, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	mode := "full"
	if !sync {
		mode = "off"
	}
	return "file:" + (&url.URL{Path: abs}).EscapedPath() + "?_pragma=busy_timeout(" + strconv.FormatInt(openWait.Milliseconds(), 10) + ")&_pragma=synchronous(" + mode + ")", nil
}

// openWait is how long opening waits for another writer: a step by rules takes a
// thousandth of it. A step of an agent may take longer; then it is a conflict.
const openWait = 5 * time.Second

// useWAL makes the file one with a write-ahead log. Of several that begin one
// session at once SQLite lets one do that, and does not let the others wait.
func useWAL(ctx context.Context, c *sql.Conn) error {
	for end := time.Now().Add(openWait); ; {
		_, err := c.ExecContext(ctx, "PRAGMA journal_mode=wal")
		if !busy(err) || time.Now().After(end) {
			return err
		}
		select {
		case <-time.After(openWait / 500):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *Session) open(ctx context.Context, file string, initial state.State) error {
	name, err := dsn(file, !s.o.NoSync)
	if err != nil {
		return err
	}
	if s.db, err = sql.Open("sqlite", name); err != nil {
		return err
	}
	s.db.SetMaxOpenConns(4) // the writer, and a few who read
	// Opening waits for another writer's step; stepping does not.
	if s.conn, err = s.db.Conn(ctx); err != nil {
		return err
	}
	if err := useWAL(ctx, s.conn); err != nil {
		return conflict(err)
	}
	if _, err := s.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return conflict(err)
	}
	if err := s.prepare(ctx, initial); err != nil {
		_, rerr := s.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return errors.Join(err, rerr)
	}
	for _, pragma := range []string{"COMMIT", "PRAGMA busy_timeout=0"} {
		if _, err := s.conn.ExecContext(ctx, pragma); err != nil {
			return err
		}
	}
	for _, p := range []struct {
		into **sql.Stmt
		text string
	}{
		{&s.st.revision, "SELECT ifnull(max(revision), 0) FROM deltas"},
		{&s.st.delta, "INSERT INTO deltas VALUES (?, ?)"},
		{&s.st.audit, "INSERT INTO audit(revision, record) VALUES (?, ?)"},
		{&s.st.memory, "INSERT INTO memory(turn, action_text, observation, entry) VALUES (?, ?, ?, ?)"},
		{&s.st.snapshot, "INSERT INTO snapshots VALUES (?, ?)"},
	} {
		if *p.into, err = s.conn.PrepareContext(ctx, p.text); err != nil {
			return err
		}
	}
	return s.load(ctx)
}

// prepare creates the tables of a new session, or checks those of an old one.
func (s *Session) prepare(ctx context.Context, initial state.State) error {
	var n int
	if err := s.conn.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE name = 'meta'").Scan(&n); err != nil {
		return err
	}
	id := worldID(s.book)
	if n > 0 {
		version, err := s.meta(ctx, "format")
		if err != nil {
			return err
		}
		if version != formatVersion {
			return world.Faultf(world.ValueError, "its format is %q, this version reads %q", version, formatVersion)
		}
		have, err := s.meta(ctx, "world")
		if err != nil {
			return err
		}
		if have != id {
			return fmt.Errorf("%w: it was played on %s, this is %s", ErrOtherWorld, have, id)
		}
		if s.o.Initial == nil {
			return nil
		}
		return s.beganWith(ctx, *s.o.Initial)
	}
	if _, err := s.conn.ExecContext(ctx, schema); err != nil {
		return err
	}
	first := initial.AppendTo(nil)
	for _, row := range [][2]string{{"format", formatVersion}, {"world", id}, {"base", strconv.FormatInt(initial.Revision, 10)}, {"indexed", "0"}} {
		if _, err := s.conn.ExecContext(ctx, "INSERT INTO meta VALUES (?, ?)", row[0], row[1]); err != nil {
			return err
		}
	}
	_, err := s.conn.ExecContext(ctx, "INSERT INTO snapshots VALUES (?, ?)", initial.Revision, string(first))
	return err
}

// beganWith refuses an initial state that is not the one that the session has.
func (s *Session) beganWith(ctx context.Context, initial state.State) error {
	base, err := s.meta(ctx, "base")
	if err != nil {
		return err
	}
	revision, err := strconv.ParseInt(base, 10, 64)
	if err != nil {
		return fmt.Errorf("its base is %q, no revision", base)
	}
	began, _, _, err := stateAt(ctx, s.conn, revision)
	if err != nil {
		return err
	}
	if !python.Equal(began.Value(), initial.Value()) {
		return world.Faultf(world.ValueError, "it is there already and began with another state; leave the initial state out to go on with it, or begin a session elsewhere")
	}
	return nil
}

// worldID names what a session is played on: promotion writes a new package
// with the same artifacts, on which it may go on.
func worldID(b *book.Book) string { return cmp.Or(b.Manifest.ArtifactDigest(), b.Digest()) }

func (s *Session) meta(ctx context.Context, key string) (v string, err error) {
	err = s.conn.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = ?", key).Scan(&v)
	return v, err
}

// load builds the committed state: the last snapshot, and the deltas since.
func (s *Session) load(ctx context.Context) error {
	at, whole, since, err := stateAt(ctx, s.conn, -1)
	if err != nil {
		return err
	}
	s.whole, s.since = whole, since
	s.state.Store(&at)
	return nil
}

type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// stateAt builds the state at a revision; -1 is the newest.
func stateAt(ctx context.Context, q queryer, revision int64) (st state.State, whole, since int64, err error) {
	limit := revision
	if limit < 0 {
		limit = 1<<63 - 1
	}
	var text string
	err = q.QueryRowContext(ctx, "SELECT state FROM snapshots WHERE revision <= ? ORDER BY revision DESC LIMIT 1", limit).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		return st, 0, 0, world.Faultf(world.ValueError, "it has no revision %d", revision)
	}
	if err != nil {
		return st, 0, 0, err
	}
	doc, err := value.Parse(text)
	if err != nil {
		return st, 0, 0, fmt.Errorf("snapshot: %w", err)
	}
	if st, err = state.Parse(doc); err != nil {
		return st, 0, 0, fmt.Errorf("snapshot: %w", err)
	}
	whole = int64(len(text))
	rows, err := q.QueryContext(ctx, "SELECT revision, effects FROM deltas WHERE revision > ? AND revision <= ? ORDER BY revision", st.Revision, limit)
	if err != nil {
		return st, 0, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		var text sql.RawBytes
		if err := rows.Scan(&n, &text); err != nil {
			return st, 0, 0, err
		}
		if n != st.Revision+1 {
			return st, 0, 0, fmt.Errorf("revision %d follows %d", n, st.Revision)
		}
		since += cost(len(text))
		if st, err = replay(st, text); err != nil {
			return st, 0, 0, fmt.Errorf("revision %d: %w", n, err)
		}
	}
	if err := rows.Err(); err != nil {
		return st, 0, 0, err
	}
	if revision >= 0 && st.Revision != revision {
		return st, 0, 0, world.Faultf(world.ValueError, "it has no revision %d, the newest is %d", revision, st.Revision)
	}
	return st, whole, since, nil
}

// replay makes the step of a delta again: what was due, then the effects.
func replay(st state.State, effects []byte) (state.State, error) {
	var ms []world.Mutation
	if string(effects) != "[]" {
		if err := json.Unmarshal(effects, &ms); err != nil {
			return st, err
		}
	}
	st, _, err := st.Advance()
	if err != nil {
		return st, err
	}
	if st, err = st.Apply(ms); err != nil {
		return st, err
	}
	st.Revision++
	return st, nil
}

// State is the committed state.
func (s *Session) State() state.State { return *s.state.Load() }

// Book is the worldbook that is played.
func (s *Session) Book() *book.Book { return s.book }

// Options are those the session was opened with, with their defaults.
func (s *Session) Options() Options { return s.o }

// Memory is what the episode remembers.
func (s *Session) Memory() *Memory { return &Memory{s: s} }

// StateAt builds the state at an earlier revision.
func (s *Session) StateAt(ctx context.Context, revision int64) (state.State, error) {
	st, _, _, err := stateAt(ctx, s.db, revision)
	if err != nil {
		return st, fmt.Errorf("session %s: %w", s.dir, err)
	}
	return st, nil
}

// Audit returns audit rows in order, from the first on; limit 0 is all.
func (s *Session) Audit(ctx context.Context, limit int) ([]Audit, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT record FROM audit ORDER BY sequence LIMIT ?", cmp.Or(limit, -1))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []Audit
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			return nil, err
		}
		var a Audit
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		out = append(out, a)
	}
	return out, rows.Err()
}

// Close ends the session; what was committed stays.
func (s *Session) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	if s.conn != nil {
		errs = append(errs, s.conn.Close())
		s.conn = nil
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	return errors.Join(errs...)
}
