package call

import (
	"context"
	"sync"
	"time"
)

// Limits bound how many calls of one tool are out at once and how often one may
// begin. A call that was given up is out no more, although its handler may still
// run: one that never returns must not hold up all calls that follow.
type Limits struct {
	tools map[string]*limit
}

type limit struct {
	slots    chan struct{} // nil: no bound
	interval time.Duration // between two beginnings; 0: no bound
	mu       sync.Mutex
	next     time.Time // holding mu
}

// A Limit is the bound of one tool. Zero fields do not bind.
type Limit struct {
	Concurrency int           // calls out at once
	Interval    time.Duration // at least this long between the beginnings of two calls
}

// NewLimits makes limits by the tools' names.
func NewLimits(by map[string]Limit) *Limits {
	l := &Limits{tools: make(map[string]*limit, len(by))}
	for name, b := range by {
		t := &limit{interval: b.Interval}
		if b.Concurrency > 0 {
			t.slots = make(chan struct{}, b.Concurrency)
		}
		l.tools[name] = t
	}
	return l
}

func (l *Limits) acquire(ctx context.Context, name string) error {
	t := l.tools[name]
	if t == nil {
		return nil
	}
	if t.slots != nil {
		select {
		case t.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if t.interval > 0 {
		t.mu.Lock()
		now := time.Now()
		at := t.next
		if at.Before(now) {
			at = now
		}
		t.next = at.Add(t.interval)
		t.mu.Unlock()
		timer := time.NewTimer(time.Until(at))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			l.release(name)
			return ctx.Err()
		}
	}
	return nil
}

func (l *Limits) release(name string) {
	if t := l.tools[name]; t != nil && t.slots != nil {
		<-t.slots
	}
}
