package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"time"
)

// Remove removes a run for good, its records and the stored parts that no other
// run has. A tombstone stays: its id, header, head, the time and the reason. The
// error is [ErrRunTaken] while somebody has the run open, [ErrNeeded] while one
// that needs it is stored.
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
		var by string
		err := w.conn.QueryRowContext(ctx, `SELECT r.id FROM needs n JOIN runs r ON r.no = n.run WHERE n.id = ? ORDER BY r.no DESC LIMIT 1`, id).Scan(&by)
		if err == nil {
			return fmt.Errorf("run %s: %w: run %s; remove that one first", id, ErrNeeded, by)
		}
		if !errors.Is(err, sql.ErrNoRows) {
			return s.explain(err)
		}
		_, err = w.conn.ExecContext(ctx, `INSERT INTO tombstones (id, header, removed, why, records, head) VALUES (?, ?, ?, ?, ?, ?)`,
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
			`DELETE FROM needs WHERE run = ?1`,
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
// somebody has open stay, and so do those that a run which stays needs. It returns
// the ids of those that it removed, the latest first, also beside an error.
func (s *Store) Prune(ctx context.Context, before time.Time, unfinished bool) (removed []string, err error) {
	why := fmt.Sprintf("pruned: older than %s", before.UTC().Format(time.RFC3339))
	for last := int64(math.MaxInt64); ; { // the latest first: a run is needed by later ones
		var ids []string
		rows, err := s.reads.QueryContext(ctx, `SELECT no, id FROM runs WHERE no < ? AND updated < ? AND (finished OR ?) ORDER BY no DESC LIMIT ?`, last, before.UnixMicro(), unfinished, pruneRows)
		if err != nil {
			return removed, s.explain(err)
		}
		for rows.Next() {
			var id string
			if err = rows.Scan(&last, &id); err != nil {
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
			case errors.Is(err, ErrRunTaken), errors.Is(err, ErrNeeded), errors.Is(err, ErrRemoved):
			default:
				return removed, err
			}
		}
	}
}
