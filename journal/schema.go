package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// The version of the file's layout. A newer minor version only adds; any
// version of a major opens the files of all its minors, adding what is missing.
// A file of a newer major version is refused.
const (
	schemaMajor = 1
	schemaMinor = 1
)

// applicationID marks the file as ours in SQLite's header ("CALL").
const applicationID = 0x43414c4c

// schema makes version 1.0. Rows that grow with every step are appended in the
// order of time, all runs together, so that a commit of many runs touches few
// pages, however many runs are stored.
const schema = `
CREATE TABLE runs (
	no       INTEGER PRIMARY KEY,
	id       TEXT NOT NULL UNIQUE,
	header   BLOB NOT NULL,           -- the raw line
	kind     TEXT NOT NULL,
	name     TEXT NOT NULL,
	status   TEXT NOT NULL,
	finished INTEGER NOT NULL DEFAULT 0,
	started  INTEGER NOT NULL,        -- microseconds since 1970
	updated  INTEGER NOT NULL         -- of the last change of status
) STRICT;
CREATE INDEX runs_by_start ON runs (started);
CREATE INDEX runs_by_status ON runs (status, started);

CREATE TABLE run_tools (
	tool    TEXT NOT NULL,
	started INTEGER NOT NULL,
	run     INTEGER NOT NULL,
	PRIMARY KEY (tool, started, run)
) STRICT, WITHOUT ROWID;
CREATE INDEX run_tools_by_run ON run_tools (run);

-- A segment is the lines that one commit holds of one run.
CREATE TABLE segments (
	run   INTEGER NOT NULL,
	first INTEGER NOT NULL,           -- index of its first record
	count INTEGER NOT NULL,
	head  BLOB NOT NULL,              -- hash of its last line
	lines BLOB NOT NULL               -- each ended by a newline
) STRICT;
CREATE UNIQUE INDEX segments_by_run ON segments (run, first);

CREATE TABLE blobs (
	hash BLOB NOT NULL UNIQUE,
	text TEXT NOT NULL
) STRICT;
CREATE TABLE blob_refs (
	run  INTEGER NOT NULL,
	hash BLOB NOT NULL,
	PRIMARY KEY (run, hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_refs_by_hash ON blob_refs (hash);

CREATE TABLE inbox (
	run  INTEGER NOT NULL,
	key  TEXT NOT NULL,
	kind TEXT NOT NULL,
	body TEXT NOT NULL,
	n    INTEGER,                     -- the record that it became; null until then
	PRIMARY KEY (run, key)
) STRICT;

CREATE TABLE tombstones (
	id      TEXT PRIMARY KEY,
	header  BLOB NOT NULL,
	removed INTEGER NOT NULL,         -- microseconds since 1970
	why     TEXT NOT NULL,
	records INTEGER NOT NULL,
	head    BLOB NOT NULL
) STRICT;

-- One row to write when a commit must reach the disk and has nothing else to say.
CREATE TABLE syncs (n INTEGER NOT NULL) STRICT;
INSERT INTO syncs VALUES (0);
`

// schema1 is what version 1.1 added.
const schema1 = `
CREATE TABLE keys (
	fingerprint TEXT NOT NULL UNIQUE,
	since       INTEGER NOT NULL      -- microseconds since 1970; 0: before version 1.1
) STRICT;

-- The run of that id must stay while the run of that number is stored.
CREATE TABLE needs (
	run INTEGER PRIMARY KEY,
	id  TEXT NOT NULL
) STRICT;
CREATE INDEX needs_by_id ON needs (id);
`

// migrate makes the tables of a new file and brings an older one up to date.
// The caller holds the writer byte.
func (s *Store) migrate(ctx context.Context) error {
	c, err := s.writes.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	number := func(pragma string) (n int64, err error) {
		err = c.QueryRowContext(ctx, "PRAGMA "+pragma).Scan(&n)
		return n, err
	}
	app, err := number("application_id")
	if err != nil {
		return err
	}
	version, err := number("user_version")
	if err != nil {
		return err
	}
	var tables int
	if err := c.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil {
		return err
	}
	major, minor := version>>16, version&0xffff
	switch {
	case app == applicationID && major > schemaMajor:
		return fmt.Errorf("%w: it was written by version %d.%d of the layout, this program knows up to %d; use a newer program", ErrForeign, major, minor, schemaMajor)
	case app == applicationID && major == schemaMajor && minor >= schemaMinor:
		return nil
	case app == applicationID && major == schemaMajor:
		return s.lay(ctx, c, schema1, s.adoptKeys)
	case app != 0 || tables > 0 || version != 0:
		return fmt.Errorf("%w: it is a database of something else (application id %#x)", ErrForeign, app)
	}
	var mode string
	if err := c.QueryRowContext(ctx, "PRAGMA journal_mode=WAL").Scan(&mode); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("the file system does not support a write-ahead log (journal mode %q)", mode)
	}
	return s.lay(ctx, c, schema+schema1, nil)
}

// lay makes tables, and what fill puts in them, or nothing.
func (s *Store) lay(ctx context.Context, c *sql.Conn, tables string, fill func(context.Context, *sql.Conn) error) error {
	_, err := c.ExecContext(ctx, "BEGIN IMMEDIATE; "+tables)
	if err == nil && fill != nil {
		err = fill(ctx, c)
	}
	if err == nil {
		_, err = c.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d; COMMIT", applicationID, schemaMajor<<16|schemaMinor))
	}
	if err != nil {
		_, undo := c.ExecContext(ctx, "ROLLBACK")
		return errors.Join(err, undo)
	}
	return nil
}
