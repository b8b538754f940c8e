package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Filter selects runs for a list. The zero Filter is the latest runs.
type Filter struct {
	Status string    // exactly; empty for any
	Kind   string    // exactly; empty for any
	Tool   string    // runs that name this tool; empty for any
	Since  time.Time // started at or after; zero for any time
	Until  time.Time // started before; zero for any time
	Limit  int       // how many at most; 0 for [DefaultListed]
}

// DefaultListed is how many runs a list has unless asked: two screens.
const DefaultListed = 100

// A Summary is a run in a list. It comes from an index that is written in the
// transactions of the records; it is not proof of anything.
type Summary struct {
	ID       string    `json:"run"`
	Kind     string    `json:"kind"`
	Name     string    `json:"name,omitempty"`
	Status   string    `json:"status"`
	Finished bool      `json:"finished"`
	Held     bool      `json:"held"` // somebody has it open now
	Started  time.Time `json:"started"`
	Updated  time.Time `json:"updated"` // of the last change of status
	Tools    []string  `json:"tools"`
	Head     Head      `json:"-"`

	row row
}

// Records is how many records the run has.
func (s Summary) Records() int { return s.Head.Records }

// Runs lists runs, the latest started first. What it costs depends on how many
// it returns, not on how many are stored, unless two of Kind, Tool and Status are
// asked for together, or Kind alone.
func (s *Store) Runs(ctx context.Context, f Filter) ([]Summary, error) {
	var where []string
	var args []any
	add := func(condition string, arg any) {
		where = append(where, condition)
		args = append(args, arg)
	}
	from, started, no := "runs r", "r.started", "r.no"
	if f.Tool != "" {
		from, started, no = "run_tools t JOIN runs r ON r.no = t.run", "t.started", "t.run"
		add("t.tool = ?", f.Tool)
	}
	if f.Status != "" {
		add("r.status = ?", f.Status)
	}
	if f.Kind != "" {
		add("r.kind = ?", f.Kind)
	}
	if !f.Since.IsZero() {
		add(started+" >= ?", f.Since.UnixMicro())
	}
	if !f.Until.IsZero() {
		add(started+" < ?", f.Until.UnixMicro())
	}
	if f.Limit <= 0 {
		f.Limit = DefaultListed
	}
	query := `SELECT r.no, r.id, r.header, r.kind, r.name, r.status, r.finished, r.started, r.updated FROM ` + from
	if len(where) > 0 {
		query += ` WHERE ` + strings.Join(where, ` AND `)
	}
	query += ` ORDER BY ` + started + ` DESC, ` + no + ` DESC LIMIT ?`
	return s.summaries(ctx, query, append(args, f.Limit)...)
}

// Summary is the list entry of one run, by its whole id.
func (s *Store) Summary(ctx context.Context, id string) (Summary, error) {
	found, err := s.summaries(ctx, `SELECT no, id, header, kind, name, status, finished, started, updated FROM runs WHERE id = ?`, id)
	if err == nil && len(found) == 0 {
		err = s.absent(ctx, id)
	}
	if err != nil {
		return Summary{}, err
	}
	return found[0], nil
}

func (s *Store) summaries(ctx context.Context, query string, args ...any) ([]Summary, error) {
	rows, err := s.reads.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, s.explain(err)
	}
	defer rows.Close()
	var list []Summary
	for rows.Next() {
		var r Summary
		var started, updated int64
		if err := rows.Scan(&r.row.no, &r.ID, &r.row.header, &r.Kind, &r.Name, &r.Status, &r.Finished, &started, &updated); err != nil {
			return nil, s.explain(err)
		}
		r.Started, r.Updated = time.UnixMicro(started).UTC(), time.UnixMicro(updated).UTC()
		list = append(list, r)
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return nil, s.explain(err)
	}
	for i := range list {
		if err := s.complete(ctx, &list[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// complete adds what does not stand in the table of runs.
func (s *Store) complete(ctx context.Context, r *Summary) (err error) {
	if r.Head, err = s.head(ctx, r.row); err != nil {
		return err
	}
	if r.Held, err = s.isHeld(r.ID); err != nil {
		return err
	}
	rows, err := s.reads.QueryContext(ctx, `SELECT tool FROM run_tools WHERE run = ? ORDER BY tool`, r.row.no)
	if err != nil {
		return s.explain(err)
	}
	defer rows.Close()
	for rows.Next() {
		var tool string
		if err := rows.Scan(&tool); err != nil {
			return s.explain(err)
		}
		r.Tools = append(r.Tools, tool)
	}
	return s.explain(rows.Err())
}

// Find completes a prefix of a run's id. The error is [ErrNoRun],
// [ErrAmbiguous] or [ErrRemoved].
func (s *Store) Find(ctx context.Context, prefix string) (id string, err error) {
	if !validID(prefix) {
		return "", fmt.Errorf("run id %q: %w: an id has 1 to %d of a-z, A-Z, 0-9, '_' and '-'", prefix, ErrNoRun, maxID)
	}
	rows, err := s.reads.QueryContext(ctx, `SELECT id FROM runs WHERE id >= ? AND id < ? ORDER BY id LIMIT 2`, prefix, prefix+"\x7f")
	if err != nil {
		return "", s.explain(err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		if err := rows.Scan(&id); err != nil {
			return "", s.explain(err)
		}
		found = append(found, id)
	}
	if err := rows.Err(); err != nil {
		return "", s.explain(err)
	}
	switch {
	case len(found) == 0:
		return "", s.absent(ctx, prefix)
	case len(found) > 1 && found[0] != prefix:
		return "", fmt.Errorf("run %s: %w", prefix, ErrAmbiguous)
	}
	return found[0], nil
}

// absent says why there is no run of this id.
func (s *Store) absent(ctx context.Context, id string) error {
	stones, err := s.tombstones(ctx, `WHERE id = ?`, id)
	if err != nil {
		return err
	}
	if len(stones) == 0 {
		return fmt.Errorf("run %s: %w", id, ErrNoRun)
	}
	t := stones[0]
	return fmt.Errorf("run %s: %w on %s (%s); its head was %s", id, ErrRemoved, t.Removed.Format(time.RFC3339), t.Why, t.Head)
}

// A Tombstone is what is left of a run that was removed.
type Tombstone struct {
	ID      string
	Header  []byte // the raw line
	Removed time.Time
	Why     string
	Head    Head
}

// Tombstones lists the runs that were removed, the latest first, at most limit
// of them (0 for [DefaultListed]).
func (s *Store) Tombstones(ctx context.Context, limit int) ([]Tombstone, error) {
	if limit <= 0 {
		limit = DefaultListed
	}
	return s.tombstones(ctx, `ORDER BY removed DESC LIMIT ?`, limit)
}

func (s *Store) tombstones(ctx context.Context, rest string, args ...any) ([]Tombstone, error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT id, header, removed, why, records, head FROM tombstones `+rest, args...)
	if err != nil {
		return nil, s.explain(err)
	}
	defer rows.Close()
	var list []Tombstone
	for rows.Next() {
		var t Tombstone
		var removed int64
		var head []byte
		if err := rows.Scan(&t.ID, &t.Header, &removed, &t.Why, &t.Head.Records, &head); err != nil {
			return nil, s.explain(err)
		}
		t.Removed = time.UnixMicro(removed).UTC()
		copy(t.Head.Hash[:], head)
		list = append(list, t)
	}
	return list, s.explain(rows.Err())
}

// Header is the run's header, with the digests under which it goes on.
func (s Summary) Header() (Header, error) {
	h, _, err := parseHeader(s.row.header)
	return h, err
}
