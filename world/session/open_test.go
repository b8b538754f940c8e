package session

import (
	"errors"
	"path/filepath"
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
