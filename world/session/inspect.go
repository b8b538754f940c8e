package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path/filepath"
	"strconv"
)

// An Info says what a session on disk is.
type Info struct {
	World      string `json:"world"` // the artifact digest of its worldbook
	Revision   int64  `json:"revision"`
	Turns      int    `json:"turns"`
	Failed     int    `json:"failed_steps"`
	ForkedFrom string `json:"forked_from"` // "" when it was not
}

// Inspect looks at a session without opening its worldbook, and without writing
// to it.
func Inspect(ctx context.Context, dir string) (info Info, err error) {
	db, err := readOnly(dir)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err = begun(ctx, db, dir); err != nil {
		return info, err
	}
	err = db.QueryRowContext(ctx, `SELECT (SELECT value FROM meta WHERE key = 'world'),
		(SELECT max(revision) FROM (SELECT max(revision) AS revision FROM deltas UNION SELECT max(revision) FROM snapshots)),
		(SELECT count(*) FROM memory), (SELECT count(*) FROM audit) - (SELECT count(*) FROM deltas),
		ifnull((SELECT value FROM meta WHERE key = 'forked_from'), '')`).Scan(&info.World, &info.Revision, &info.Turns, &info.Failed, &info.ForkedFrom)
	if err != nil {
		return info, fmt.Errorf("session %s: %w", dir, err)
	}
	return info, nil
}

// begun refuses a file in which no session was begun: what a process left that
// died, or found the disk full, before it could.
func begun(ctx context.Context, db *sql.DB, dir string) error {
	var n int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_master WHERE name = 'meta'").Scan(&n); err != nil {
		return fmt.Errorf("session %s: %w", dir, foreign(err))
	}
	if n == 0 {
		return fmt.Errorf("session %s was never begun: %w", dir, fs.ErrNotExist)
	}
	return nil
}

// readOnly opens the file of a session that is there.
func readOnly(dir string) (*sql.DB, error) {
	file, err := filepath.Abs(filepath.Join(dir, fileName))
	if err != nil {
		return nil, err
	}
	there, err := isThere(file)
	if err != nil {
		return nil, err
	}
	if !there {
		return nil, fmt.Errorf("there is no session in %s: %w", dir, fs.ErrNotExist)
	}
	return sql.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?mode=ro&_pragma=busy_timeout("+strconv.FormatInt(openWait.Milliseconds(), 10)+")")
}
