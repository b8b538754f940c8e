package mcp

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/callsheet/callsheet/internal/count"
)

// A pool keeps the sessions of a source and starts them when calls need them.
type pool struct {
	src      *Source
	mu       sync.Mutex
	closed   bool
	slots    []*slot
	restarts restartLimit
	last     error // of the last start that failed
}

// A slot is the place of one session and of those that follow it.
type slot struct{ start *start } // nil: never started

// A start is a session to be: done is closed when sess or err is set.
type start struct {
	inFlight int // calls that use the session or wait for it; holding pool.mu
	done     chan struct{}
	sess     *session
	err      error
}

// live reports whether the start goes on or gave a session that lives.
func (st *start) live() bool {
	if st == nil {
		return false
	}
	select {
	case <-st.done:
		return st.err == nil && !st.sess.dead()
	default:
		return true
	}
}

func (p *pool) init(src *Source) {
	p.src = src
	p.slots = make([]*slot, orDefault(src.cfg.Pool, 1))
	for i := range p.slots {
		p.slots[i] = &slot{}
	}
	p.restarts.max = max(orDefault(src.cfg.RestartsPerMinute, DefaultRestartsPerMinute), 0)
}

// seed puts the session of Open into the first slot.
func (p *pool) seed(sess *session) {
	st := &start{done: make(chan struct{}), sess: sess}
	close(st.done)
	p.slots[0].start = st
}

// A restartError says that the server died too often.
type restartError struct {
	max  int
	wait time.Duration
	last error
}

func (e *restartError) Error() string {
	s := fmt.Sprintf("the server went away and was started again %s within a minute; the next start is in %s", count.Of(e.max, "time"), e.wait.Round(time.Second))
	if e.max == 0 {
		s = "the server went away, and restarts are off"
	}
	if e.last != nil {
		s += "; last: " + e.last.Error()
	}
	return s
}

// acquire returns the live session with the fewest calls, starting one where
// none lives or where all are busy and there is room. The caller must release.
func (p *pool) acquire(ctx context.Context) (*session, func(), error) {
	st, err := p.pick(time.Now())
	if err != nil {
		return nil, nil, err
	}
	release := func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		st.inFlight--
		p.src.running.Done()
	}
	select {
	case <-st.done:
		err = st.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return st.sess, release, nil
}

// pick chooses a start and counts one call on it, and on the source's
// goroutines, so that Close waits for it.
func (p *pool) pick(now time.Time) (*start, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errClosed
	}
	var idle, free *slot // the live one with the fewest calls; one to start
	for _, sl := range p.slots {
		if sl.start.live() {
			if idle == nil || sl.start.inFlight < idle.start.inFlight {
				idle = sl
			}
		} else if free == nil || free.start != nil && sl.start == nil {
			free = sl
		}
	}
	if free != nil && (idle == nil || idle.start.inFlight > 0) {
		switch err := p.begin(free, now); {
		case err == nil:
			idle = free
		case idle == nil:
			return nil, err
		}
	}
	idle.start.inFlight++
	p.src.running.Add(1)
	return idle.start, nil
}

// begin starts a session in a slot, in the background: the caller that needs it
// first may be cancelled, the next one waits for the same start.
func (p *pool) begin(sl *slot, now time.Time) error {
	again := sl.start != nil
	if again {
		if wait := p.restarts.take(now); wait > 0 || p.restarts.max == 0 {
			return &restartError{max: p.restarts.max, wait: wait, last: p.last}
		}
		p.src.restarts.Add(1)
		p.src.log.Warn("the server went away and is started again")
	}
	st := &start{done: make(chan struct{})}
	sl.start = st
	p.src.running.Go(func() {
		ctx, cancel := context.WithTimeout(p.src.ctx, p.src.cfg.startTimeout())
		defer cancel()
		sess, _, err := p.src.open(ctx)
		p.mu.Lock()
		late := p.closed
		st.sess, st.err = sess, err
		if err != nil {
			p.last = err
		} else if late {
			st.err = errClosed
		}
		close(st.done)
		p.mu.Unlock()
		if err != nil {
			p.src.log.Warn("the server did not start", "error", err)
		} else if late {
			sess.close()
		}
	})
	return nil
}

// live are the sessions that live. Holding mu.
func (p *pool) live() []*session {
	var out []*session
	for _, sl := range p.slots {
		if sl.start.live() {
			select {
			case <-sl.start.done:
				out = append(out, sl.start.sess)
			default:
			}
		}
	}
	return out
}

// close returns the sessions to close; no other is begun.
func (p *pool) close() []*session {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	return p.live()
}

// A restartLimit allows max starts in any minute.
type restartLimit struct {
	max   int
	taken []time.Time // the last max of them, oldest first
}

// take counts a start at now, or returns how long to wait for one.
func (l *restartLimit) take(now time.Time) (wait time.Duration) {
	if l.max == 0 {
		return 0
	}
	if len(l.taken) == l.max {
		if wait = time.Minute - now.Sub(l.taken[0]); wait > 0 {
			return wait
		}
		l.taken = l.taken[1:]
	}
	l.taken = append(l.taken, now)
	return 0
}
