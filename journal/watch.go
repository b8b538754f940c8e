package journal

import (
	"context"
	"sync"
	"time"
)

// pollEvery is how often the database is asked whether it changed, by one
// goroutine for all who wait: a glance at shared memory, a few microseconds.
const pollEvery = 50 * time.Millisecond

// A watch tells those who wait that somebody, in this process or another,
// committed something. It polls only while somebody waits.
type watch struct {
	mu      sync.Mutex
	waiting int
	signal  chan struct{} // closed at the next change
	cancel  context.CancelFunc
	ended   chan struct{}
}

// join begins to watch. changed returns a channel that is closed at the first
// change after that call; stop must be called.
func (w *watch) join(ctx context.Context, s *Store) (changed func() <-chan struct{}, stop func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting == 0 {
		if err := w.start(ctx, s); err != nil {
			return nil, nil, err
		}
	}
	w.waiting++
	changed = func() <-chan struct{} {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.signal
	}
	return changed, sync.OnceFunc(w.leave), nil
}

func (w *watch) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting--; w.waiting == 0 {
		w.cancel()
	}
}

// stop ends the watch when the store is closed. Those who wait see a change and
// find out for themselves.
func (w *watch) stop() {
	w.mu.Lock()
	cancel, ended := w.cancel, w.ended
	w.mu.Unlock()
	if cancel != nil {
		cancel()
		<-ended
	}
}

// start begins to poll. The version is read before it returns, so that no later
// change is missed. The caller holds mu.
func (w *watch) start(ctx context.Context, s *Store) error {
	conn, err := s.reads.Conn(ctx) // data_version speaks of what other connections do
	if err != nil {
		return s.explain(err)
	}
	poll, cancel := context.WithCancel(context.WithoutCancel(ctx))
	version := func() (v int64, err error) {
		err = conn.QueryRowContext(poll, `PRAGMA data_version`).Scan(&v)
		return v, err
	}
	last, err := version()
	if err != nil {
		cancel()
		conn.Close()
		return s.explain(err)
	}
	w.signal, w.cancel, w.ended = make(chan struct{}), cancel, make(chan struct{})
	go func() {
		defer close(w.ended)
		defer conn.Close()
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-poll.Done():
				w.announce()
				return
			}
			v, err := version()
			if err == nil && v == last {
				continue
			}
			last = v
			w.announce()
		}
	}()
	return nil
}

func (w *watch) announce() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.signal)
	w.signal = make(chan struct{})
}
