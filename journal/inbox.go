package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/callsheet/callsheet/value"
)

// A Decision is a record that somebody who does not hold the run wants in its
// chain: an approval from another terminal, a resolution.
type Decision struct {
	// Key names what is decided. Of several decisions of one key the first
	// recorded holds, for as long as the run is stored; a question that is asked
	// anew needs a new key, for instance with a nonce in it. 1 to 256 bytes.
	Key  string
	Kind string // of the record
	Body value.Value
}

// maxKey bounds the key of a decision.
const maxKey = 256

// maxDecision bounds the body of a decision in bytes: edited args may be as
// large as args (spec/plan.md §8), with room for what stands beside them.
const maxDecision = 17 << 20

// Decide records a decision. It is on the disk when Decide returns nil, and
// becomes a record of the chain when the holder of the run next looks into its
// inbox; if nobody holds the run, at once. The error is [ErrDecided] when a
// decision of this key was recorded before (compare-and-swap: of any number at
// once, exactly one gets nil), [ErrFinished] when the run has ended.
func (s *Store) Decide(ctx context.Context, id string, d Decision) error {
	if !validKind(d.Kind) || d.Kind == startKind || d.Kind == checkpointKind {
		return fmt.Errorf("%w: kind %q", ErrRefused, d.Kind)
	}
	if d.Key == "" || len(d.Key) > maxKey || d.Body.Size() > maxDecision {
		return fmt.Errorf("%w: a decision has a key of 1 to %d bytes and a body of at most %d", ErrRefused, maxKey, maxDecision)
	}
	if d.Body.IsZero() {
		d.Body = value.NullValue()
	}
	body := d.Body.String()
	err := s.queue.run(ctx, func(ctx context.Context, w *writer) error {
		var no int64
		var finished bool
		err := w.conn.QueryRowContext(ctx, `SELECT no, finished FROM runs WHERE id = ?`, id).Scan(&no, &finished)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return s.absent(ctx, id)
		case err != nil:
			return s.explain(err)
		case finished:
			return fmt.Errorf("run %s: %w", id, ErrFinished)
		}
		res, err := w.conn.ExecContext(ctx, `INSERT INTO inbox (run, key, kind, body) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING`, no, d.Key, d.Kind, body)
		if err != nil {
			return s.explain(err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 1 {
			return err
		}
		return fmt.Errorf("run %s: %s: %w", id, d.Key, ErrDecided)
	})
	if err != nil {
		return err
	}
	// OpenRun takes in what the inbox holds.
	run, err := s.OpenRun(ctx, id)
	if errors.Is(err, ErrRunTaken) {
		return nil // its holder will see it
	}
	if err != nil {
		return err
	}
	return run.Close()
}

// inboxRows is how many decisions are taken in at a time.
const inboxRows = 100

// Inbox makes records of the decisions that have come in and returns once they
// are on the disk: their entries, oldest first, none if nothing came.
// Whether a decision still fits what was asked is for the caller to judge.
func (r *Run) Inbox(ctx context.Context) ([]Entry, error) {
	r.folding.Lock()
	defer r.folding.Unlock()
	rows, err := r.store.reads.QueryContext(ctx, `SELECT key, kind, body FROM inbox WHERE run = (SELECT no FROM runs WHERE id = ?) AND n IS NULL ORDER BY rowid LIMIT ?`, r.header.Run, inboxRows)
	if err != nil {
		return nil, r.store.explain(err)
	}
	defer rows.Close()
	var found []Decision
	for rows.Next() {
		var d Decision
		var body []byte
		if err := rows.Scan(&d.Key, &d.Kind, &body); err != nil {
			return nil, r.store.explain(err)
		}
		if d.Body, err = value.Parse(body); err != nil {
			return nil, fmt.Errorf("run %s: decision %s: %w", r.header.Run, d.Key, err)
		}
		found = append(found, d)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, r.store.explain(err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	return r.fold(ctx, found)
}

func (r *Run) fold(ctx context.Context, found []Decision) ([]Entry, error) {
	var entries []Entry
	var last Ticket
	for _, d := range found {
		p, err := prepare(d.Body)
		if err != nil {
			return nil, err
		}
		r.mu.Lock()
		if err = r.open(); err == nil {
			r.next.folded = append(r.next.folded, folded{d.Key, r.n})
			last = r.append(d.Kind, p, true)
			entries = append(entries, Entry{Index: int(last.n)})
		}
		r.mu.Unlock()
		p.release()
		if err != nil {
			return nil, err
		}
	}
	if err := last.Wait(ctx); err != nil {
		return nil, err
	}
	for i := range entries {
		for e, err := range r.Entries(ctx, entries[i].Index) {
			if err != nil {
				return nil, err
			}
			entries[i] = e
			break
		}
	}
	return entries, nil
}

// AwaitInbox is [Run.Inbox] that waits until something has come in.
func (r *Run) AwaitInbox(ctx context.Context) ([]Entry, error) {
	changed, stop, err := r.store.watch.join(ctx, r.store)
	if err != nil {
		return nil, err
	}
	defer stop()
	for {
		signal := changed()
		entries, err := r.Inbox(ctx)
		if err != nil || len(entries) > 0 {
			return entries, err
		}
		select {
		case <-signal:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}
