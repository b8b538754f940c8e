package session

import (
	"context"
	"errors"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// Whoever opens a session that is not there yet, and however many do so at once,
// begins it or finds it begun.
func TestManyBeginOneSession(t *testing.T) {
	b := ledger(t)
	for range 10 {
		dir := filepath.Join(t.TempDir(), "new", "session")
		const many = 8
		errs := make([]error, many)
		var wg sync.WaitGroup
		for i := range many {
			wg.Go(func() {
				s, err := Open(t.Context(), dir, b, Options{})
				if err == nil {
					_, err = s.Step(t.Context(), request("balance", `{}`))
					if errors.Is(err, ErrConflict) {
						err = nil
					}
					err = errors.Join(err, s.Close())
				}
				errs[i] = err
			})
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if info, err := Inspect(t.Context(), dir); err != nil || info.Revision < 1 || info.Revision > many || info.Failed != 0 {
			t.Fatalf("%+v, %v", info, err)
		}
	}
}

// Whoever asks the memory and goes away leaves the session as it was.
func TestACancelledSearchLeavesTheSessionWhole(t *testing.T) {
	s := open(t, t.TempDir(), ledger(t), Options{})
	for range 3 {
		if _, err := s.Step(t.Context(), request("deposit", `{"amount":1}`)); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		s.Memory().Search(ctx, "deposited", 3) // whether it answers is not the question
	}
	found, err := s.Memory().Search(t.Context(), "deposited", 10)
	if err != nil || len(found) != 3 {
		t.Errorf("%d turns, %v; want 3", len(found), err)
	}
}

// An agent that takes its goroutine with it leaves an audit row, and the session
// goes on.
func TestAnAgentThatEndsItsGoroutine(t *testing.T) {
	gone := agentFunc(func(context.Context, *Turn) (*Prediction, error) { runtime.Goexit(); return nil, nil })
	s := open(t, t.TempDir(), ledger(t), Options{Agent: gone})
	var wg sync.WaitGroup
	wg.Go(func() { s.Step(t.Context(), request("gamble", `{}`)) })
	wg.Wait()
	if _, err := s.Step(t.Context(), request("balance", `{}`)); err != nil {
		t.Error(err)
	}
	rows, err := s.Audit(t.Context(), 0)
	if err != nil || len(rows) != 2 || rows[0].Error == nil || !strings.Contains(*rows[0].Error, "ended its goroutine") || rows[0].Committed {
		t.Errorf("%+v, %v", rows, err)
	}
}
