package journal

import (
	"context"
	"database/sql"
)

const (
	// checkpointBytes is how much is written before the log is copied into the
	// database: SQLite's own default, 1000 pages.
	checkpointBytes = 4 << 20
	// restartBytes is when the committer makes the log begin anew. Copying runs
	// beside the commits and never quite catches up with a steady stream of
	// them; at this size one commit waits for the rest of it.
	restartBytes = 16 * checkpointBytes
)

// checkpoint sees to the size of the log after a commit of that many bytes.
// The copying is done by a goroutine of its own, because a commit must start
// within 5 ms of its records' arrival.
func (w *writer) checkpoint(bytes int) {
	w.grown += bytes
	w.logged += bytes
	if w.grown < checkpointBytes {
		return
	}
	select {
	case w.pointing <- struct{}{}:
	default:
		return // one is under way
	}
	w.grown = 0
	if w.logged >= restartBytes {
		w.logged = 0
		w.copyLog(`PRAGMA wal_checkpoint(RESTART)`, w.conn.QueryRowContext)
		<-w.pointing
		return
	}
	go func() {
		w.copyLog(`PRAGMA wal_checkpoint(PASSIVE)`, w.store.reads.QueryRowContext)
		<-w.pointing
	}()
}

func (w *writer) copyLog(pragma string, query func(context.Context, string, ...any) *sql.Row) {
	var busy, pages, copied int
	err := query(context.Background(), pragma).Scan(&busy, &pages, &copied)
	if err != nil {
		w.store.opts.Logger.Warn("journal: the log could not be copied into the database; it goes on growing", "path", w.store.path, "error", err)
	}
}
