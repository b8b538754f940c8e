package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/callsheet/callsheet/internal/disk"
	"github.com/callsheet/callsheet/world/book"
)

// Newest is the revision that a session is at.
const Newest = -1

// Fork writes a new session into a directory that must not exist: a copy of
// this one as it was at a revision, with its audit and memory up to there. It
// is written beside its place and renamed.
func (s *Session) Fork(ctx context.Context, dir string, revision int64) error {
	return fork(ctx, s.db, s.dir, dir, revision)
}

// Fork forks the session in a directory, which may be played meanwhile, without
// opening its worldbook.
func Fork(ctx context.Context, from, dir string, revision int64) (err error) {
	db, err := readOnly(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := begun(ctx, db, from); err != nil {
		return err
	}
	return fork(ctx, db, from, dir, revision)
}

func fork(ctx context.Context, db *sql.DB, from, dir string, revision int64) (err error) {
	if _, err := os.Lstat(dir); err == nil {
		return fmt.Errorf("%s exists already; fork into a new directory: %w", dir, fs.ErrExist)
	}
	if err := book.Outside(dir); err != nil {
		return err
	}
	parent := filepath.Dir(filepath.Clean(dir))
	if err := os.MkdirAll(parent, 0o777); err != nil {
		return err
	}
	stage, err := os.MkdirTemp(parent, "."+filepath.Base(dir)+".fork-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("fork of session %s: %w", from, err), os.RemoveAll(stage))
		}
	}()
	if err := os.Chmod(stage, 0o755); err != nil {
		return err
	}
	if err := copySession(ctx, db, from, filepath.Join(stage, fileName), revision); err != nil {
		return err
	}
	if err := disk.SyncDir(stage); err != nil {
		return err
	}
	if err := os.Rename(stage, dir); err != nil {
		return err
	}
	return disk.SyncDir(parent)
}

func copySession(ctx context.Context, from *sql.DB, name, file string, revision int64) error {
	// One transaction of the source, so that what is copied is of one moment.
	src, err := from.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer src.Rollback()
	at, _, _, err := stateAt(ctx, src, revision)
	if err != nil {
		return err
	}
	revision = at.Revision
	into, err := dsn(file, true)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", into)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	err = func() error {
		dst, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer dst.Rollback()
		if _, err := dst.ExecContext(ctx, schema); err != nil {
			return err
		}
		for _, t := range []struct{ from, into string }{
			{"SELECT key, value FROM meta WHERE key <> 'indexed'", "INSERT INTO meta VALUES (?, ?)"},
			{"SELECT revision, state FROM snapshots WHERE revision < ?1", "INSERT INTO snapshots VALUES (?, ?)"},
			{"SELECT revision, effects FROM deltas WHERE revision <= ?1", "INSERT INTO deltas VALUES (?, ?)"},
			{"SELECT sequence, revision, record FROM audit WHERE revision <= ?1", "INSERT INTO audit VALUES (?, ?, ?)"},
			{"SELECT id, turn, action_text, observation, entry FROM memory WHERE turn <= ?2", "INSERT INTO memory VALUES (?, ?, ?, ?, ?)"},
		} {
			if err := transfer(ctx, src, dst, t.from, t.into, revision, at.Step); err != nil {
				return err
			}
		}
		if _, err := dst.ExecContext(ctx, "INSERT OR REPLACE INTO snapshots VALUES (?, ?)", at.Revision, string(at.AppendTo(nil))); err != nil {
			return err
		}
		for k, v := range map[string]string{"indexed": "0", "forked_from": name, "forked_at": strconv.FormatInt(revision, 10)} {
			if _, err := dst.ExecContext(ctx, "INSERT OR REPLACE INTO meta VALUES (?, ?)", k, v); err != nil {
				return err
			}
		}
		return dst.Commit()
	}()
	return errors.Join(err, db.Close())
}

func transfer(ctx context.Context, src, dst *sql.Tx, from, into string, revision, step int64) error {
	rows, err := src.QueryContext(ctx, from, revision, step)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	st, err := dst.PrepareContext(ctx, into)
	if err != nil {
		return err
	}
	defer st.Close()
	vals := make([]any, len(columns))
	ptrs := make([]any, len(columns))
	for i := range vals {
		ptrs[i] = &vals[i]
	}
	for rows.Next() {
		if err := rows.Scan(ptrs...); err != nil {
			return err
		}
		if _, err := st.ExecContext(ctx, vals...); err != nil {
			return err
		}
	}
	return rows.Err()
}
