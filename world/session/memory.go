package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/world/book"
	"github.com/go-json-experiment/json"
)

// A Memory is what an episode remembers: its turns in order. The one of a
// [Turn] is part of its step and must not be used after it.
type Memory struct {
	s    *Session
	held bool // the step that holds the writer's lock uses it
}

// remember writes a turn; the transaction of the step is open.
func (s *Session) remember(e *Entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = s.st.memory.Exec(e.Turn, e.Action.Text(), e.Observation, string(text))
	return err
}

// reader is the connection to read with: during a step the writer's, which sees
// what the step sees.
func (m *Memory) reader() queryer {
	if m.held {
		return m.s.conn
	}
	return m.s.db
}

func (m *Memory) entries(ctx context.Context, query string, args ...any) ([]Entry, error) {
	rows, err := m.reader().QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []Entry{}
	for rows.Next() {
		var id int64
		var text string
		if err := rows.Scan(&id, &text); err != nil {
			return nil, err
		}
		var e Entry
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			return nil, fmt.Errorf("memory %d: %w", id, err)
		}
		e.ID = id
		out = append(out, e)
	}
	return out, rows.Err()
}

// Recent returns the last n turns, oldest first.
func (m *Memory) Recent(ctx context.Context, n int) ([]Entry, error) {
	return m.entries(ctx, "SELECT id, entry FROM (SELECT id, entry FROM memory ORDER BY id DESC LIMIT ?) ORDER BY id", max(n, 0))
}

// ByTurn returns what was recorded of one turn.
func (m *Memory) ByTurn(ctx context.Context, turn int64) ([]Entry, error) {
	return m.entries(ctx, "SELECT id, entry FROM memory WHERE turn = ? ORDER BY id", turn)
}

// Count is how many turns are remembered.
func (m *Memory) Count(ctx context.Context) (n int, err error) {
	err = m.reader().QueryRowContext(ctx, "SELECT count(*) FROM memory").Scan(&n)
	return n, err
}

// Search finds turns by the words of their action or observation, best first. A
// blank query finds nothing. The full-text index is brought up to date here and
// not by each step, which therefore costs the same however much is remembered.
func (m *Memory) Search(ctx context.Context, query string, n int) ([]Entry, error) {
	query = strings.TrimSpace(query)
	if query == "" || n <= 0 {
		return []Entry{}, nil
	}
	upTo, err := m.index(ctx)
	if err != nil {
		return nil, err
	}
	var found []Entry
	if terms := book.Terms(query); len(terms) > 0 {
		found, err = m.entries(ctx, `SELECT memory.id, memory.entry FROM memory_fts JOIN memory ON memory.id = memory_fts.rowid
			WHERE memory_fts MATCH ? ORDER BY rank, memory.id DESC LIMIT ?`, book.Match(terms), n)
		if err != nil {
			return nil, fmt.Errorf("recall %q: %w", query, err)
		}
	}
	// Turns that another writer's step kept out of the index, and words inside a
	// run of a script without spaces, are found as they stand.
	if len(found) == 0 || book.Unspaced(query) {
		upTo = 0
	}
	more, err := m.entries(ctx, `SELECT id, entry FROM memory WHERE id > ? AND (action_text LIKE ? ESCAPE '\' OR observation LIKE ? ESCAPE '\')
		ORDER BY id DESC LIMIT ?`, upTo, book.Like(query), book.Like(query), n)
	if err != nil {
		return nil, fmt.Errorf("recall %q: %w", query, err)
	}
next:
	for _, e := range more {
		for _, have := range found {
			if have.ID == e.ID {
				continue next
			}
		}
		if len(found) < n {
			found = append(found, e)
		}
	}
	return found, nil
}

// index brings the full-text index up to date, and returns the last turn that
// is in it. During a step it is part of the step's transaction.
func (m *Memory) index(ctx context.Context) (upTo int64, err error) {
	s := m.s
	// Whoever asked may go away in the middle; the index must not be left so.
	ctx = context.WithoutCancel(ctx)
	if m.held {
		return m.within(ctx, "SAVEPOINT search", "RELEASE search", "ROLLBACK TO search; RELEASE search")
	}
	if s.mu.TryLock() {
		defer s.mu.Unlock()
		if s.conn == nil {
			return 0, errors.New("the session is closed")
		}
		if upTo, err = m.within(ctx, "BEGIN IMMEDIATE", "COMMIT", "ROLLBACK"); !busy(err) {
			return upTo, err
		}
	}
	return m.indexed(ctx, s.db)
}

// within extends the index in a transaction of its own, whole or not at all.
func (m *Memory) within(ctx context.Context, begin, end, undo string) (upTo int64, err error) {
	c := m.s.conn
	if _, err := c.ExecContext(ctx, begin); err != nil {
		return 0, err
	}
	if upTo, err = m.extend(ctx); err == nil {
		_, err = c.ExecContext(ctx, end)
	}
	if err != nil {
		_, rerr := c.ExecContext(ctx, undo)
		return 0, errors.Join(err, rerr)
	}
	return upTo, nil
}

func (m *Memory) indexed(ctx context.Context, q queryer) (int64, error) {
	var text string
	if err := q.QueryRowContext(ctx, "SELECT value FROM meta WHERE key = 'indexed'").Scan(&text); err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

func (m *Memory) extend(ctx context.Context) (int64, error) {
	c := m.s.conn
	from, err := m.indexed(ctx, c)
	if err != nil {
		return 0, err
	}
	var last sql.NullInt64
	if err := c.QueryRowContext(ctx, "SELECT max(id) FROM memory").Scan(&last); err != nil || last.Int64 <= from {
		return from, err
	}
	if _, err := c.ExecContext(ctx, "INSERT INTO memory_fts(rowid, action_text, observation) SELECT id, action_text, observation FROM memory WHERE id > ?", from); err != nil {
		return 0, err
	}
	_, err = c.ExecContext(ctx, "UPDATE meta SET value = ? WHERE key = 'indexed'", strconv.FormatInt(last.Int64, 10))
	return last.Int64, err
}
