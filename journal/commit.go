package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

const (
	// showAfter is how long a deferred record stays out of sight of other
	// processes when nothing else is committed: it is then written without a
	// sync, which costs no disk write and still outlives a crash of the process.
	showAfter = 100 * time.Millisecond
	// maxBatch bounds the runs of one transaction, so that what arrives while it
	// is written does not wait long for the next.
	maxBatch = 4096
	// segmentRows is how many segments one INSERT takes: measured, more gains
	// nothing and fewer cost a call of the driver each.
	segmentRows = 16
)

// commitLoop is the committer: the one goroutine that writes.
func (s *Store) commitLoop() {
	defer close(s.stopped)
	show := time.NewTimer(time.Hour)
	show.Stop()
	waiting := false // show is running
	for {
		shown := false
		select {
		case <-s.queue.wake:
		case <-show.C:
			shown, waiting = true, false
		}
		for {
			w := s.queue.look()
			if w.jobs != nil {
				s.doJobs(w.jobs)
			}
			if w.urgent || w.closed {
				s.commit(true)
				waiting = false
				show.Stop()
			} else if w.dirty && shown {
				s.commit(false)
			} else if w.dirty && !waiting {
				waiting = true
				show.Reset(showAfter)
			}
			shown = false
			if w.closed && s.queue.empty() {
				return
			}
			if !w.urgent && !w.closed {
				break
			}
		}
	}
}

// work is what the committer found in the queue.
type work struct {
	jobs                  []*job
	dirty, urgent, closed bool
}

func (q *queue) look() work {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := work{q.jobs, len(q.dirty) > 0, q.urgent, q.closed}
	q.jobs = nil
	return w
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.dirty) == 0 && len(q.jobs) == 0
}

// takeBatch takes the runs of the next commit, and the generation that it ends.
func (q *queue) takeBatch(into []*Run, full bool) ([]*Run, *generation) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.dirty), maxBatch)
	into = append(into, q.dirty[:n]...)
	rest := copy(q.dirty, q.dirty[n:])
	clear(q.dirty[rest:])
	q.dirty = q.dirty[:rest]
	gen := q.gen
	if full {
		q.gen = &generation{make(chan struct{})}
		q.urgent = rest > 0
	}
	return into, gen
}

func (q *queue) written(bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= bytes
	q.drained.Broadcast()
}

// commit writes everything that is queued in one transaction; full means with a
// sync, after which the records are durable.
func (s *Store) commit(full bool) {
	w := s.writer
	var gen *generation
	w.runs, gen = s.queue.takeBatch(w.runs[:0], full)
	w.batch = w.batch[:0]
	bytes := 0
	live := w.runs[:0]
	for _, r := range w.runs {
		p := r.take()
		bytes += p.bytes
		// What was appended while a commit of the run failed must not follow the
		// gap that is there now.
		if r.failure() == nil {
			live = append(live, r)
			w.batch = append(w.batch, p)
		}
	}
	w.runs = live
	err := s.write(full)
	if err == nil {
		s.count(w.batch, full)
	}
	for i, r := range w.runs {
		p := &w.batch[i]
		switch {
		case err != nil:
			r.fail(err)
		case full:
			r.durable.Store(int64(p.first + p.count))
		default:
			w.shown = append(w.shown, shownRun{r, p.first + p.count})
		}
		r.giveBack(p.lines)
	}
	if full {
		for _, u := range w.shown {
			if err != nil {
				u.run.fail(err)
			} else if n := int64(u.upTo); n > u.run.durable.Load() {
				u.run.durable.Store(n)
			}
		}
		clear(w.shown)
		w.shown = w.shown[:0]
	}
	clear(w.runs)
	clear(w.batch)
	if full {
		close(gen.done)
	}
	s.queue.written(bytes)
	if err != nil {
		s.opts.Logger.Error("journal: commit failed", "path", s.path, "runs", len(w.runs), "error", err)
		return
	}
	s.writer.checkpoint(bytes)
}

func (s *Store) count(batch []pending, full bool) {
	for i := range batch {
		s.stats.records.Add(int64(batch[i].count))
	}
	if len(batch) > 0 || full && len(s.writer.shown) > 0 {
		s.stats.commits.Add(1)
		if full {
			s.stats.syncs.Add(1)
		}
	}
}

// write is the transaction.
func (s *Store) write(full bool) (err error) {
	w := s.writer
	if len(w.batch) == 0 && len(w.shown) == 0 {
		return nil
	}
	return w.transact(context.Background(), full, func(ctx context.Context) error {
		if len(w.batch) == 0 {
			return w.exec(w.touch)
		}
		return w.writeBatch(ctx)
	})
}

func (s *Store) doJobs(jobs []*job) {
	ctx := context.Background()
	for _, j := range jobs {
		j.done <- s.writer.transact(ctx, true, func(ctx context.Context) error { return j.do(ctx, s.writer) })
	}
}

// A writer is the connection that writes, with its statements. Only the
// committer uses it.
type writer struct {
	store *Store
	conn  *sql.Conn

	begin, end, undo, syncOff, syncOn, touch *sql.Stmt

	createRun, need          *sql.Stmt
	setStatus, addTool, fold *sql.Stmt
	hasBlob, addBlob, addRef *sql.Stmt
	addSegment, addSegments  *sql.Stmt

	stmts []*sql.Stmt // all of them
	lax   bool        // commits do not wait for the disk

	runs  []*Run
	batch []pending
	shown []shownRun // written, not yet synced
	args  []any

	grown    int // bytes written since the last checkpoint was asked for
	logged   int // bytes written since the log was last begun anew
	pointing chan struct{}
}

type shownRun struct {
	run  *Run
	upTo int
}

func newWriter(s *Store) (*writer, error) {
	ctx := context.Background()
	conn, err := s.writes.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{store: s, conn: conn, pointing: make(chan struct{}, 1)}
	for _, p := range []struct {
		into **sql.Stmt
		text string
	}{
		{&w.begin, `BEGIN IMMEDIATE`},
		{&w.end, `COMMIT`},
		{&w.undo, `ROLLBACK`},
		{&w.syncOff, `PRAGMA synchronous = NORMAL`},
		{&w.syncOn, `PRAGMA synchronous = FULL`},
		{&w.touch, `UPDATE syncs SET n = n + 1`},
		{&w.createRun, `INSERT INTO runs (id, header, kind, name, status, finished, started, updated) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`},
		{&w.need, `INSERT OR REPLACE INTO needs (run, id) VALUES (?, ?)`},
		{&w.setStatus, `UPDATE runs SET status = ifnull(?, status), finished = finished OR ?, updated = ? WHERE no = ?`},
		{&w.addTool, `INSERT OR IGNORE INTO run_tools (tool, started, run) SELECT ?, started, no FROM runs WHERE no = ?`},
		{&w.fold, `UPDATE inbox SET n = ? WHERE run = ? AND key = ?`},
		{&w.hasBlob, `SELECT EXISTS (SELECT 1 FROM blobs WHERE hash = ?)`},
		{&w.addBlob, `INSERT INTO blobs (hash, text) VALUES (?, ?)`},
		{&w.addRef, `INSERT OR IGNORE INTO blob_refs (run, hash) VALUES (?, ?)`},
		{&w.addSegment, insertSegments(1)},
		{&w.addSegments, insertSegments(segmentRows)},
	} {
		if *p.into, err = conn.PrepareContext(ctx, p.text); err != nil {
			return nil, errors.Join(err, w.close())
		}
		w.stmts = append(w.stmts, *p.into)
	}
	return w, nil
}

func insertSegments(rows int) string {
	return `INSERT INTO segments (run, first, count, head, lines) VALUES ` + strings.Repeat(`(?, ?, ?, ?, ?), `, rows-1) + `(?, ?, ?, ?, ?)`
}

func (w *writer) close() error {
	w.pointing <- struct{}{} // after a checkpoint that is under way
	var errs []error
	for _, stmt := range w.stmts {
		errs = append(errs, stmt.Close())
	}
	return errors.Join(append(errs, w.conn.Close())...)
}

func (w *writer) exec(stmt *sql.Stmt, args ...any) error {
	_, err := stmt.ExecContext(context.Background(), args...)
	return err
}

// setSync says whether the next commit waits for the disk. One that should and
// cannot be made to is not begun.
func (w *writer) setSync(full bool) error {
	if w.lax == !full {
		return nil
	}
	stmt := w.syncOff
	if full {
		stmt = w.syncOn
	}
	if err := w.exec(stmt); err != nil {
		return w.store.explain(err)
	}
	w.lax = !full
	return nil
}

// transact runs do in a transaction, which is on the disk when transact returns
// nil if full is set. Writers of all processes queue at the writer byte.
func (w *writer) transact(ctx context.Context, full bool, do func(context.Context) error) (err error) {
	s := w.store
	if err := lockByte(s.locks, writerByte); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlockByte(s.locks, writerByte)) }()
	if err := w.setSync(full); err != nil {
		return err
	}
	if err := w.exec(w.begin); err != nil {
		return s.explain(err)
	}
	err = guard(func() error {
		if err := do(ctx); err != nil {
			return err
		}
		if s.opts.BeforeCommit != nil {
			if err := s.opts.BeforeCommit(); err != nil {
				return err
			}
		}
		return s.explain(w.exec(w.end))
	})
	if err != nil {
		// SQLite may have rolled back by itself; then this says so, to nobody.
		w.exec(w.undo)
	}
	return err
}

// guard turns a panic into an error: it fails the commit, not the process,
// because the runs in flight must be able to say what became of them.
func guard(do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return do()
}

func (w *writer) writeBatch(ctx context.Context) error {
	w.args = w.args[:0]
	for i, r := range w.runs {
		p := &w.batch[i]
		if err := w.writeRun(ctx, r, p); err != nil {
			return w.store.explain(err)
		}
		if p.count > 0 {
			w.args = append(w.args, r.no, p.first, p.count, p.head[:], p.lines)
		}
	}
	const columns = 5
	args := w.args
	for len(args) >= columns*segmentRows {
		if err := w.exec(w.addSegments, args[:columns*segmentRows]...); err != nil {
			return w.store.explain(err)
		}
		args = args[columns*segmentRows:]
	}
	for len(args) > 0 {
		if err := w.exec(w.addSegment, args[:columns]...); err != nil {
			return w.store.explain(err)
		}
		args = args[columns:]
	}
	clear(w.args)
	return nil
}

// writeRun writes what is not lines.
func (w *writer) writeRun(ctx context.Context, r *Run, p *pending) error {
	if c := p.create; c != nil {
		h, at := r.header, c.started.UnixMicro()
		res, err := w.createRun.ExecContext(ctx, h.Run, c.header, h.Kind, h.Name, p.status, p.ended, at, at)
		if err != nil {
			return err
		}
		if r.no, err = res.LastInsertId(); err != nil {
			return err
		}
		if c.needs != "" {
			if err := w.exec(w.need, r.no, c.needs); err != nil {
				return err
			}
		}
	} else if p.status != "" || p.ended {
		status := sql.NullString{String: p.status, Valid: p.status != ""}
		if err := w.exec(w.setStatus, status, p.ended, w.store.opts.Now().UnixMicro(), r.no); err != nil {
			return err
		}
	}
	for _, tool := range p.tools {
		if err := w.exec(w.addTool, tool, r.no); err != nil {
			return err
		}
	}
	for _, f := range p.folded {
		if err := w.exec(w.fold, f.n, r.no, f.key); err != nil {
			return err
		}
	}
	for _, b := range p.blobs {
		var known bool
		if err := w.hasBlob.QueryRowContext(ctx, b.hash[:]).Scan(&known); err != nil {
			return err
		}
		if !known {
			if err := w.exec(w.addBlob, b.hash[:], b.part.String()); err != nil {
				return err
			}
		}
		if err := w.exec(w.addRef, r.no, b.hash[:]); err != nil {
			return err
		}
	}
	return nil
}
