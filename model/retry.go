package model

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Retry bounds what an adapter does about overload and dropped connections. The
// zero value is the defaults.
type Retry struct {
	Attempts int           // requests at most, the first included; 0: DefaultAttempts
	Delay    time.Duration // before the first retry, doubled each time; 0: DefaultDelay
	MaxDelay time.Duration // of the doubling; 0: DefaultMaxDelay
	MaxAfter time.Duration // a longer Retry-After is not waited for; 0: DefaultMaxAfter

	// Sleep waits, or returns the context's error. nil: a timer.
	Sleep func(ctx context.Context, d time.Duration) error
	// Jitter is in [0, 1): the part of half a delay that is added to the other
	// half, so that clients that failed together do not return together. nil:
	// random.
	Jitter func() float64
}

// The default bounds: four requests within about ten seconds ride out a blip; a
// longer outage is for the caller to see.
const (
	DefaultAttempts = 4
	DefaultDelay    = time.Second
	DefaultMaxDelay = 30 * time.Second
	DefaultMaxAfter = 2 * time.Minute
)

// Validate names the field that makes no sense.
func (r *Retry) Validate() error {
	switch {
	case r.Attempts < 0:
		return errors.New("Retry.Attempts is negative")
	case r.Delay < 0 || r.MaxDelay < 0 || r.MaxAfter < 0:
		return errors.New("a delay of Retry is negative")
	}
	return nil
}

// Do calls try until it succeeds, fails for good, or the bounds are reached.
// Only an [*Error] of kind [Transient] is tried again.
func (r *Retry) Do(ctx context.Context, try func(attempt int) error) error {
	attempts, delay := or(r.Attempts, DefaultAttempts), or(r.Delay, DefaultDelay)
	for attempt := 1; ; attempt++ {
		err := try(attempt)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var e *Error
		if !errors.As(err, &e) {
			return err
		}
		e.Attempts = attempt
		if e.Kind != Transient || attempt >= attempts || e.After > or(r.MaxAfter, DefaultMaxAfter) {
			return err
		}
		wait := min(delay, or(r.MaxDelay, DefaultMaxDelay))
		wait = max(e.After, wait/2+time.Duration(r.jitter()*float64(wait/2)))
		if err := r.sleep(ctx, wait); err != nil {
			return err
		}
		if delay < time.Hour { // doubling further could overflow and is beyond any MaxDelay in use
			delay *= 2
		}
	}
}

func (r *Retry) jitter() float64 {
	if r.Jitter != nil {
		return r.Jitter()
	}
	return rand.Float64()
}

func (r *Retry) sleep(ctx context.Context, d time.Duration) error {
	if r.Sleep != nil {
		return r.Sleep(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func or[T int | time.Duration](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}
