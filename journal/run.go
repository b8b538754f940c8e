package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"
)

// StatusRunning is the status of a run that has not said otherwise. A run that
// shows it while nobody holds it has crashed.
const StatusRunning = "running"

const (
	maxID   = 64
	maxName = 1 << 10 // a title, not a document
	// maxRecords bounds a run: at the speed of this journal, a month of writing.
	maxRecords = 1 << 38
)

// A Run is a run that is open for writing, here and nowhere else. Its methods
// may be called by many goroutines; the chain has the order of the appends.
type Run struct {
	store   *Store
	header  Header
	opened  time.Time
	no      int64        // row of runs; the committer sets it for a new run
	durable atomic.Int64 // records that are on the disk
	broken  atomic.Pointer[error]
	folding sync.Mutex // held while the inbox is taken in

	mu       sync.Mutex
	queued   bool // in the store's dirty list; set under queue.mu too
	n        int  // records appended
	head     Hash
	signed   int // records up to and with the last checkpoint
	finished bool
	closed   bool
	next     pending // what the next commit takes
	spare    []byte  // a buffer to go on with
	tools    map[string]bool
}

// pending is what a run has to write.
type pending struct {
	create *createRow
	first  int
	count  int
	lines  []byte
	head   Hash
	blobs  []blob
	status string
	ended  bool
	tools  []string
	folded []folded
	bytes  int
}

type createRow struct {
	header  []byte
	started time.Time
	needs   string
}

// folded is a decision of the inbox that became a record.
type folded struct {
	key string
	n   int
}

// OpenRun opens a stored run to go on with it, and takes in what its inbox
// holds. The id must be whole; see [Store.Find] for prefixes. The error is
// [ErrRunTaken] while somebody else has it open.
func (s *Store) OpenRun(ctx context.Context, id string) (*Run, error) {
	if err := s.acquire(id); err != nil {
		return nil, err
	}
	r, err := s.openRun(ctx, id)
	if err == nil && !r.finished {
		_, err = r.Inbox(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, s.release(id))
	}
	return r, nil
}

func (s *Store) openRun(ctx context.Context, id string) (*Run, error) {
	row, err := s.row(ctx, id)
	if err != nil {
		return nil, err
	}
	r := &Run{store: s, no: row.no, opened: s.opts.Now(), finished: row.finished}
	if r.header, _, err = parseHeader(row.header); err != nil {
		return nil, &BrokenError{id, -1, err.Error()}
	}
	if r.header.Run != id {
		return nil, &BrokenError{id, -1, "it is the header of run " + r.header.Run}
	}
	head, err := s.head(ctx, row)
	if err != nil {
		return nil, err
	}
	r.n, r.head = head.Records, head.Hash
	r.durable.Store(int64(r.n))
	r.signed = r.n
	return r, nil
}

// ID is the run's id.
func (r *Run) ID() string { return r.header.Run }

// Header says what the run is a run of.
func (r *Run) Header() Header { return r.header }

// Head is how far the chain has come, what is not yet on the disk included.
func (r *Run) Head() Head {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Head{r.n, r.head}
}

// Entries reads the run's records from index on that are in the file; see
// [Store.Entries].
func (r *Run) Entries(ctx context.Context, from int) iter.Seq2[Entry, error] {
	return r.store.Entries(ctx, r.header.Run, from)
}

// Append adds a record to the chain and queues it. The order of the chain is
// that of the appends. It waits only when the store has fallen far behind.
// After a failure to write, every ticket of the run fails at once.
func (r *Run) Append(rec Record) Ticket {
	if !validKind(rec.Kind) || rec.Kind == startKind || rec.Kind == checkpointKind {
		return Ticket{err: fmt.Errorf("%w: kind %q", ErrRefused, rec.Kind)}
	}
	body, err := prepare(rec.Body)
	if err != nil {
		return Ticket{err: err}
	}
	defer body.release()
	if err := r.store.queue.room(); err != nil {
		return Ticket{err: err}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(); err != nil {
		return Ticket{err: err}
	}
	r.note(rec)
	return r.append(rec.Kind, body, !rec.Deferred)
}

// AppendWait appends and waits until the record is on the disk.
func (r *Run) AppendWait(ctx context.Context, rec Record) error {
	rec.Deferred = false
	return r.Append(rec).Wait(ctx)
}

// Finish appends the last record and the final checkpoint, waits until both are
// on the disk, and returns the head, which an auditor may keep. The run takes
// no further record.
func (r *Run) Finish(ctx context.Context, rec Record) (Head, error) {
	if !validKind(rec.Kind) || rec.Kind == startKind || rec.Kind == checkpointKind {
		return Head{}, fmt.Errorf("%w: kind %q", ErrRefused, rec.Kind)
	}
	body, err := prepare(rec.Body)
	if err != nil {
		return Head{}, err
	}
	defer body.release()
	if err := r.store.queue.room(); err != nil {
		return Head{}, err
	}
	r.mu.Lock()
	if err := r.open(); err != nil {
		r.mu.Unlock()
		return Head{}, err
	}
	r.note(rec)
	r.append(rec.Kind, body, true)
	r.finished = true
	r.next.ended = true
	t := r.checkpoint(true)
	head := Head{r.n, r.head}
	r.mu.Unlock()
	return head, t.Wait(ctx)
}

// Close ends this opening of the run: it signs what is not signed yet, waits
// until everything is on the disk, and gives the run back.
func (r *Run) Close() error {
	r.mu.Lock()
	if r.closed || r.store.queue.isClosed() {
		r.closed = true
		r.mu.Unlock()
		return fmt.Errorf("run %s: %w", r.header.Run, ErrClosed)
	}
	t := Ticket{run: r, n: int64(r.n) - 1}
	if r.failure() == nil && !r.finished && r.signed < r.n {
		t = r.checkpoint(false)
	}
	r.closed = true
	r.mu.Unlock()
	err := t.Wait(context.Background())
	if errors.Is(err, ErrJournal) && r.failure() != nil {
		err = nil // whoever appended was told
	}
	return errors.Join(err, r.store.release(r.header.Run))
}

// open says why nothing can be appended. The caller holds mu.
func (r *Run) open() error {
	switch {
	case r.failure() != nil:
		return r.failure()
	case r.closed:
		return fmt.Errorf("run %s: %w", r.header.Run, ErrClosed)
	case r.finished:
		return fmt.Errorf("run %s: %w", r.header.Run, ErrFinished)
	}
	return nil
}

// note takes what a record says to the lists of runs. The caller holds mu.
func (r *Run) note(rec Record) {
	if rec.Status != "" {
		r.next.status = rec.Status
	}
	if rec.Tool != "" {
		r.addTool(rec.Tool)
	}
}

func (r *Run) addTool(name string) {
	if r.tools[name] {
		return
	}
	if r.tools == nil {
		r.tools = map[string]bool{}
	}
	r.tools[name] = true
	r.next.tools = append(r.next.tools, name)
}

// append makes the line, links it and queues it; where one is due, a checkpoint
// follows in the same commit. The caller holds mu.
func (r *Run) append(kind string, p *prepared, urgent bool) Ticket {
	t := r.link(kind, p, nil, urgent)
	if r.n%CheckpointEvery == CheckpointEvery-1 {
		r.checkpoint(false)
	}
	return t
}

// checkpoint appends a signed checkpoint. The caller holds mu.
func (r *Run) checkpoint(final bool) Ticket {
	p := preparedPool.Get().(*prepared)
	defer p.release()
	p.body = checkpointBody(p.body, r.n, final, r.store.key)
	t := r.link(checkpointKind, p, r.store.key, final)
	r.signed = r.n
	return t
}

// link puts a line at the end of the chain. The caller holds mu.
func (r *Run) link(kind string, p *prepared, sign *Key, urgent bool) Ticket {
	next := &r.next
	if next.count == 0 {
		next.first = r.n
		if next.lines == nil {
			next.lines, r.spare = r.spare[:0], nil
		}
	}
	now := r.store.opts.Now()
	at := len(next.lines)
	next.lines = appendLine(next.lines, r.n, r.head, now, now.Sub(r.opened), kind, p.refs, p.body)
	if sign != nil {
		line := signLine(next.lines[at:], r.header.Run, sign)
		next.lines = append(next.lines[:at], line...)
	}
	r.head = first(next.lines[at:])
	next.lines = append(next.lines, '\n')
	next.head = r.head
	next.count++
	next.blobs = append(next.blobs, p.blobs...)
	bytes := len(next.lines) - at
	for _, b := range p.blobs {
		bytes += b.part.Size()
	}
	next.bytes += bytes
	n := r.n
	r.n++
	return Ticket{run: r, n: int64(n), gen: r.store.queue.add(r, bytes, urgent)}
}

// take hands what is pending to the committer.
func (r *Run) take() pending {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.next
	r.next = pending{}
	r.queued = false
	return p
}

// giveBack returns a buffer after its commit.
func (r *Run) giveBack(lines []byte) {
	const keep = 64 << 10 // a run that once wrote much does not hold on to it
	if cap(lines) > keep {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spare = lines
}

// failure is why the run can no longer be written, or nil.
func (r *Run) failure() error {
	if e := r.broken.Load(); e != nil {
		return *e
	}
	return nil
}

// fail ends the writing of the run for good: its chain in memory has gone
// further than the one on the disk.
func (r *Run) fail(err error) {
	err = fmt.Errorf("run %s: %w: %w", r.header.Run, ErrJournal, err)
	r.broken.CompareAndSwap(nil, &err)
}

// row is what the table of runs says.
type row struct {
	no       int64
	header   []byte
	finished bool
}

// row looks a run up by its whole id.
func (s *Store) row(ctx context.Context, id string) (row, error) {
	var r row
	err := s.reads.QueryRowContext(ctx, `SELECT no, header, finished FROM runs WHERE id = ?`, id).Scan(&r.no, &r.header, &r.finished)
	if errors.Is(err, sql.ErrNoRows) {
		return r, s.absent(ctx, id)
	}
	return r, s.explain(err)
}

// head reads the end of a run's chain.
func (s *Store) head(ctx context.Context, r row) (Head, error) {
	var from, count int
	var hash []byte
	err := s.reads.QueryRowContext(ctx, `SELECT first, count, head FROM segments WHERE run = ? ORDER BY first DESC LIMIT 1`, r.no).Scan(&from, &count, &hash)
	if errors.Is(err, sql.ErrNoRows) {
		return Head{0, first(r.header)}, nil
	}
	if err == nil && len(hash) != len(Hash{}) {
		err = errors.New("a hash of the wrong length")
	}
	if err != nil {
		return Head{}, s.explain(err)
	}
	return Head{from + count, Hash(hash)}, nil
}
