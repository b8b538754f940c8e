package journal

import (
	"context"
	"fmt"
	"sync"
)

// maxQueued bounds the bytes of lines and blobs that wait for the committer;
// whoever appends more waits until it has caught up.
const maxQueued = 64 << 20

// A generation is the set of records that the same commit will have written.
type generation struct{ done chan struct{} }

// A queue is what waits for the committer.
type queue struct {
	mu      sync.Mutex
	gen     *generation
	dirty   []*Run // runs with something to write, each once
	jobs    []*job
	urgent  bool // somebody needs the next commit
	bytes   int
	closed  bool
	drained sync.Cond     // bytes went down
	wake    chan struct{} // holds one token when there is something to look at
}

// A job is a transaction of its own.
type job struct {
	do   func(context.Context, *writer) error
	done chan error
}

func (q *queue) init() {
	q.gen = &generation{make(chan struct{})}
	q.wake = make(chan struct{}, 1)
	q.drained.L = &q.mu
}

func (q *queue) poke() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// close refuses what comes from now on; false if that was so already.
func (q *queue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.closed
	q.closed = true
	q.poke()
	return !was
}

func (q *queue) isClosed() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// room waits until there is room for more.
func (q *queue) room() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.bytes > maxQueued && !q.closed {
		q.urgent = true
		q.poke()
		q.drained.Wait()
	}
	if q.closed {
		return ErrClosed
	}
	return nil
}

// add notes that a run has more to write. The caller holds r.mu.
func (q *queue) add(r *Run, bytes int, urgent bool) *generation {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !r.queued {
		r.queued = true
		q.dirty = append(q.dirty, r)
	}
	q.bytes += bytes
	if urgent && !q.urgent || len(q.dirty) == 1 {
		q.urgent = q.urgent || urgent
		q.poke()
	}
	return q.gen
}

// hurry asks for the commit that ends gen, or the next one for nil, and returns
// the generation to wait for. One that is being written needs no hurry.
func (q *queue) hurry(gen *generation) *generation {
	q.mu.Lock()
	defer q.mu.Unlock()
	if gen == nil || gen == q.gen {
		q.urgent = true
		q.poke()
		return q.gen
	}
	return gen
}

// run has the committer do something in a transaction of its own.
func (q *queue) run(ctx context.Context, do func(context.Context, *writer) error) error {
	j := &job{do, make(chan error, 1)}
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	q.jobs = append(q.jobs, j)
	q.poke()
	q.mu.Unlock()
	select {
	case err := <-j.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// A Ticket is the promise of a commit.
type Ticket struct {
	run *Run
	n   int64 // the record that must be durable
	gen *generation
	err error
}

// Err is why the record can never be written, as far as that was known when it
// was appended; nil says nothing yet.
func (t Ticket) Err() error { return t.err }

// Wait returns nil once the record, and every one before it in its run, is on
// the disk. Otherwise it wraps [ErrJournal] when it never will be, or is the
// cause of ctx, after which it may be yet.
func (t Ticket) Wait(ctx context.Context) error {
	if t.err != nil {
		return t.err
	}
	for gen := t.gen; ; gen = nil {
		if t.run.durable.Load() > t.n {
			return nil
		}
		if err := t.run.failure(); err != nil {
			return err
		}
		gen = t.run.store.queue.hurry(gen)
		select {
		case <-gen.done:
		case <-t.run.store.stopped:
			if t.run.durable.Load() > t.n {
				return nil
			}
			return fmt.Errorf("run %s: %w: %w", t.run.header.Run, ErrJournal, ErrClosed)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
