package journal

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Remove removes a run for good, its records and the stored parts that no other
// run has. A tombstone stays: its id, header, head, the time and the reason. The
// error is [ErrRunTaken] while somebody has the run open.
func (s *Store) Remove(ctx context.Context, id, why string) error {
	if err := s.removeHeld(ctx, id, why); err != nil {
		return err
	}
	return s.emptyLog(ctx)
}

// removeHeld removes a run while it holds it.
func (s *Store) removeHeld(ctx context.Context, id, why string) error {
	if err := s.acquire(id); err != nil {
		return err
	}
	err := s.remove(ctx, id, why)
	return errors.Join(err, s.release(id))
}

// emptyLog takes what was removed out of the write-ahead log too, unless others
// are reading there; then it goes with their reading.
func (s *Store) emptyLog(ctx context.Context) error {
	var busy, pages, copied int
	return s.explain(s.reads.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &copied))
}

func (s *Store) remove(ctx context.Context, id, why string) error {
	r, err := s.row(ctx, id)
	if err != nil {
		return err
	}
	head, err := s.head(ctx, r)
	if err != nil {
		return err
	}
	return s.queue.run(ctx, func(ctx context.Context, w *writer) error {
		_, err := w.conn.ExecContext(ctx, `INSERT INTO tombstones (id, header, removed, why, records, head) VALUES (?, ?, ?, ?, ?, ?)`,
			id, r.header, s.opts.Now().UnixMicro(), why, head.Records, head.Hash[:])
		if err != nil {
			return s.explain(err)
		}
		for _, statement := range []string{
			`DELETE FROM blobs WHERE hash IN (SELECT hash FROM blob_refs AS mine WHERE run = ?1
				AND NOT EXISTS (SELECT 1 FROM blob_refs AS other WHERE other.hash = mine.hash AND other.run <> ?1))`,
			`DELETE FROM blob_refs WHERE run = ?1`,
			`DELETE FROM segments WHERE run = ?1`,
			`DELETE FROM run_tools WHERE run = ?1`,
			`DELETE FROM inbox WHERE run = ?1`,
			`DELETE FROM runs WHERE no = ?1`,
		} {
			if _, err := w.conn.ExecContext(ctx, statement, r.no); err != nil {
				return s.explain(err)
			}
		}
		return nil
	})
}

// pruneRows is how many candidates are looked up at a time.
const pruneRows = 256

// Prune removes the runs whose status last changed before the time: those that
// have ended, and with unfinished also those that wait or have crashed. Runs that
// somebody has open stay. It returns the ids of those that it removed, also
// beside an error.
func (s *Store) Prune(ctx context.Context, before time.Time, unfinished bool) (removed []string, err error) {
	why := fmt.Sprintf("pruned: older than %s", before.UTC().Format(time.RFC3339))
	for after := int64(0); ; {
		var ids []string
		rows, err := s.reads.QueryContext(ctx, `SELECT no, id FROM runs WHERE no > ? AND updated < ? AND (finished OR ?) ORDER BY no LIMIT ?`, after, before.UnixMicro(), unfinished, pruneRows)
		if err != nil {
			return removed, s.explain(err)
		}
		for rows.Next() {
			var id string
			if err = rows.Scan(&after, &id); err != nil {
				break
			}
			ids = append(ids, id)
		}
		if err := errors.Join(err, rows.Err(), rows.Close()); err != nil {
			return removed, s.explain(err)
		}
		if len(ids) == 0 {
			if len(removed) == 0 {
				return nil, nil
			}
			return removed, s.emptyLog(ctx)
		}
		for _, id := range ids {
			switch err := s.removeHeld(ctx, id, why); {
			case err == nil:
				removed = append(removed, id)
			case errors.Is(err, ErrRunTaken), errors.Is(err, ErrRemoved):
			default:
				return removed, err
			}
		}
	}
}
