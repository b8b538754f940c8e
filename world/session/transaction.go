package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world/engine"
	"github.com/callsheet/callsheet/world/state"
	"github.com/go-json-experiment/json"
	"modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"
)

// A snapshot is due when reading the deltas since the last one would take about
// as long as reading it: writing them then costs each step a constant, and
// opening a session never reads much more than twice its state.
const (
	rowCost      = 256      // bytes that a delta costs besides its text
	snapshotBase = 64 << 10 // bytes of deltas that the smallest state may have
)

func cost(n int) int64 { return int64(n) + rowCost }

// A transaction is one step in the making: it holds the write lock of the file,
// so that a second writer fails at once and a killed process leaves nothing.
type transaction struct{ s *Session }

func (s *Session) begin(ctx context.Context) (*transaction, error) {
	if !s.mu.TryLock() {
		return nil, ErrConflict
	}
	if s.conn == nil {
		s.mu.Unlock()
		return nil, errors.New("the session is closed")
	}
	ctx = context.WithoutCancel(ctx)
	if _, err := s.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		s.mu.Unlock()
		return nil, conflict(err)
	}
	t := &transaction{s}
	var head int64
	if err := s.st.revision.QueryRowContext(ctx).Scan(&head); err != nil {
		return nil, errors.Join(err, t.rollback())
	}
	if head > s.state.Load().Revision {
		err := s.load(ctx)
		return nil, errors.Join(ErrConflict, err, t.rollback())
	}
	return t, nil
}

func busy(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Code()&0xff == lib.SQLITE_BUSY || e.Code()&0xff == lib.SQLITE_LOCKED)
}

// foreign is ErrNoSession for an error that says that the file is no database.
func foreign(err error) error {
	if e := (*sqlite.Error)(nil); errors.As(err, &e) && e.Code()&0xff == lib.SQLITE_NOTADB {
		return fmt.Errorf("%w: %w", ErrNoSession, err)
	}
	return err
}

// conflict is ErrConflict for an error that says that another writer has the lock.
func conflict(err error) error {
	if busy(err) {
		return ErrConflict
	}
	return err
}

func (t *transaction) rollback() error {
	_, err := t.s.conn.ExecContext(context.Background(), "ROLLBACK")
	t.s.mu.Unlock()
	return err
}

// end commits; after is the state that is in force then, nil for the old one.
func (t *transaction) end(after *state.State) error {
	if _, err := t.s.conn.ExecContext(context.Background(), "COMMIT"); err != nil {
		return errors.Join(err, t.rollback())
	}
	if after != nil {
		t.s.state.Store(after)
	}
	t.s.mu.Unlock()
	return nil
}

// fail commits the audit row of a step that failed, and nothing else.
func (t *transaction) fail(a *Audit, cause error) error {
	record, err := json.Marshal(a)
	if err == nil {
		_, err = t.s.st.audit.Exec(a.PriorRevision, string(record))
	}
	if err != nil {
		return errors.Join(cause, err, t.rollback())
	}
	if err := t.end(nil); err != nil {
		return errors.Join(cause, err)
	}
	return cause
}

// commit writes state, audit and memory of a step together.
func (t *transaction) commit(a *Audit, r *Result, after state.State) error {
	return t.write(a, &r.Plan, r.Observation, "predicted", after)
}

func (t *transaction) write(a *Audit, p *engine.Plan, observation, kind string, after state.State) error {
	s := t.s
	since, whole := s.since, s.whole
	err := func() error {
		effects, err := json.Marshal(p.Effects)
		if err != nil {
			return err
		}
		after.Revision++
		a.NewRevision, a.Committed = &after.Revision, true
		record, err := json.Marshal(a)
		if err != nil {
			return err
		}
		if _, err := s.st.delta.Exec(after.Revision, string(effects)); err != nil {
			return err
		}
		if _, err := s.st.audit.Exec(after.Revision, string(record)); err != nil {
			return err
		}
		if err := s.remember(&Entry{Turn: after.Step, Kind: kind, Action: p.Action, Observation: observation,
			Effects: p.Effects, Citations: p.Citations, Metadata: value.ObjectOf()}); err != nil {
			return err
		}
		since += cost(len(effects))
		if since > whole+snapshotBase {
			text := after.AppendTo(nil)
			if _, err := s.st.snapshot.Exec(after.Revision, string(text)); err != nil {
				return err
			}
			whole, since = int64(len(text)), 0
		}
		return nil
	}()
	if err != nil {
		return errors.Join(err, t.rollback())
	}
	s.since, s.whole = since, whole
	return t.end(&after)
}
