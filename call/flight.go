package call

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// A Scope is what the calls of one run have in common: the context that cancels
// them all, and the grace that they get then.
type Scope struct {
	door *Door
	ctx  context.Context
	stop func() bool

	mu        sync.Mutex
	live      *flight // a ring; holding mu
	cancelled bool    // holding mu
}

// Scope begins a scope. Close it when no call is out.
func (d *Door) Scope(ctx context.Context) *Scope {
	s := &Scope{door: d, ctx: ctx}
	s.stop = context.AfterFunc(ctx, s.cancel)
	return s
}

// Close ends the scope.
func (s *Scope) Close() { s.stop() }

// cancel ends the contexts of the calls that are out, and gives those up that
// have not answered when the grace has passed.
func (s *Scope) cancel() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancelled = true
	if s.live == nil {
		return
	}
	for f := s.live; ; f = f.next {
		f.cancel()
		if f.next == s.live {
			return
		}
	}
}

// flight is a call that is out. It is the context that the handler gets, so
// that a call costs one allocation and one timer and no goroutine: nothing but
// the timer and the scope watches it. Exactly one of the handler's return and
// giveUp delivers it.
type flight struct {
	scope    *Scope
	r        Request
	call     tool.Call
	start    time.Time
	deadline time.Time
	settled  atomic.Bool
	deliver  func(Outcome, error)

	next, prev *flight // the scope's ring; holding scope.mu

	mu    sync.Mutex
	done  chan struct{} // made when first asked for; closed when err is set; holding mu
	err   error         // holding mu
	after []*afterFunc  // holding mu
}

type afterFunc struct{ f func() }

// Deadline implements [context.Context].
func (f *flight) Deadline() (time.Time, bool) {
	if d, ok := f.scope.ctx.Deadline(); ok && d.Before(f.deadline) {
		return d, true
	}
	return f.deadline, true
}

// Done implements [context.Context].
func (f *flight) Done() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.done == nil {
		f.done = make(chan struct{})
		if f.err != nil {
			close(f.done)
		}
	}
	return f.done
}

// Err implements [context.Context].
func (f *flight) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Value implements [context.Context].
func (f *flight) Value(key any) any { return f.scope.ctx.Value(key) }

// AfterFunc lets contexts that handlers derive hear of the end without a
// goroutine of their own; package context looks for it.
func (f *flight) AfterFunc(fn func()) (stop func() bool) {
	a := &afterFunc{fn}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		go fn()
		return func() bool { return false }
	}
	f.after = append(f.after, a)
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		for i := range f.after {
			if f.after[i] == a {
				f.after = append(f.after[:i], f.after[i+1:]...)
				return true
			}
		}
		return false
	}
}

// end ends the context.
func (f *flight) end(err error) {
	f.mu.Lock()
	if f.err != nil {
		f.mu.Unlock()
		return
	}
	f.err = err
	if f.done != nil {
		close(f.done)
	}
	after := f.after
	f.after = nil
	f.mu.Unlock()
	for _, a := range after {
		go a.f()
	}
}

// enter puts the call among those that are out.
func (f *flight) enter() {
	s := f.scope
	s.mu.Lock()
	if s.live == nil {
		f.next, f.prev = f, f
		s.live = f
	} else {
		f.next, f.prev = s.live, s.live.prev
		f.prev.next, f.next.prev = f, f
	}
	late := s.cancelled
	s.mu.Unlock()
	if late { // cancelled between the last look and now
		f.cancel()
	}
}

func (f *flight) leave() {
	s := f.scope
	s.mu.Lock()
	f.prev.next, f.next.prev = f.next, f.prev
	switch {
	case f.next == f:
		s.live = nil
	case s.live == f:
		s.live = f.next
	}
	s.mu.Unlock()
}

// key is the call's idempotency key, computed for those tools that ask.
func (f *flight) key() string {
	if f.r.Key == nil {
		return ""
	}
	return f.r.Key(f.r.Step, f.r.Args)
}

// expire gives the call up at its deadline: there is no grace.
func (f *flight) expire() {
	f.end(context.DeadlineExceeded)
	f.giveUp(&tool.Failure{Code: tool.CodeTimeout, Lost: true, Message: fmt.Sprintf("no answer within %v", f.deadline.Sub(f.start))})
}

// cancel ends the context, and gives the call up when it has not answered within
// the grace. To the call it is a cancellation, even where the run's deadline is
// the reason: [context.Cause] tells which.
func (f *flight) cancel() {
	f.end(context.Canceled)
	grace := f.scope.door.Grace
	if grace <= 0 {
		grace = DefaultGrace
	}
	time.AfterFunc(grace, func() {
		f.giveUp(&tool.Failure{Code: tool.CodeCancelled, Lost: true, Message: fmt.Sprintf("no answer within %v after the run was cancelled", grace)})
	})
}

func (f *flight) giveUp(fail *tool.Failure) {
	if f.settled.CompareAndSwap(false, true) {
		f.scope.door.abandoned.Add(1)
		f.finish(Outcome{Failure: fail, Start: f.start, End: time.Now(), GivenUp: true})
	}
}

// finish records an outcome and delivers it; the call counts as out no more.
func (f *flight) finish(o Outcome) {
	d := f.scope.door
	d.release(f.r)
	gone := ErrGone // until everybody has been told
	var failed error
	defer func() { f.deliver(o, errors.Join(gone, failed)) }()
	if d.Vault != nil {
		raw := o
		// Until it is clean nothing that the tool said is told to anyone.
		o.Output, o.Failure = value.Value{}, &tool.Failure{Code: tool.CodePanic, Lost: true, Message: "what the tool said is withheld: its secrets could not be taken out"}
		failed = Guard("the vault", func() error { o = f.clean(raw); return nil })
	}
	if g, ok := d.Gate.(Follower); ok {
		failed = errors.Join(failed, Guard("the gate", func() error { g.Ended(f.r, o); return nil }))
	}
	if d.Recorder != nil {
		told := o
		o.Ticket = unkept{ErrGone}
		if err := Guard("the recorder", func() error { o.Ticket = d.Recorder.Outcome(f.r, told); return nil }); err != nil {
			o.Ticket = unkept{err}
		}
	}
	gone = nil
}

// clean takes the secrets that the tool was given out of what it said.
func (f *flight) clean(o Outcome) Outcome {
	v := f.scope.door.Vault
	if v == nil {
		return o
	}
	if o.Failure != nil {
		c := *o.Failure
		c.Message, c.Stack = v.RedactText(c.Message), v.RedactText(c.Stack)
		o.Failure = &c
	}
	if !o.Output.IsZero() {
		o.Output = v.Redact(o.Output)
	}
	return o
}

// run calls the handler and delivers what it answers, unless the call was given
// up before.
func (f *flight) run(handler tool.Handler) (givenUp bool) {
	limit := f.r.Tool.Deadline
	if limit <= 0 {
		limit = tool.DefaultDeadline
	}
	f.start = time.Now()
	f.deadline = f.start.Add(limit)
	f.enter()
	timer := time.AfterFunc(limit, f.expire)
	var out value.Value
	var fail *tool.Failure
	returned := false
	defer func() {
		timer.Stop()
		if !returned && fail == nil {
			fail = &tool.Failure{Code: tool.CodePanic, Message: "the tool ended its goroutine", Stack: string(debug.Stack())}
		}
		givenUp = f.land(out, fail)
	}()
	defer func() {
		if !returned {
			if p := recover(); p != nil {
				fail = tool.Panicked("the tool", p)
			}
		}
	}()
	out, err := handler(f, &f.call)
	fail = tool.AsFailure(err) // here, because it asks the tool's own error
	returned = true
	return false
}

// land delivers what the handler answered.
func (f *flight) land(out value.Value, fail *tool.Failure) (givenUp bool) {
	o := Outcome{Start: f.start, End: time.Now(), Output: out, Failure: fail}
	switch {
	case fail != nil:
		o.Output = value.Value{}
		if fail.Lost {
			fail.Code = f.why(fail.Code, o.End)
		}
	case out.IsZero():
		o.Output = value.NullValue()
	}
	f.end(context.Canceled)
	f.leave()
	if f.settled.CompareAndSwap(false, true) {
		f.finish(o)
		return false
	}
	f.scope.door.abandoned.Add(-1)
	if rec := f.scope.door.Recorder; rec != nil {
		// The call is settled and told; nobody is left to hear of a failure here.
		_ = Guard("the recorder", func() error { rec.Late(f.r, f.clean(o)); return nil })
	}
	return true
}

// over reports whether ctx has ended, or its deadline is past and its timer has
// yet to run.
func over(ctx context.Context, now time.Time) bool {
	d, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !now.Before(d)
}

// why is the code of a call that ended without an answer: its own deadline, the
// end of the run (a deadline of the run is one too, and not the call's), or what
// the tool says when neither had come.
func (f *flight) why(code string, now time.Time) string {
	switch err := f.Err(); {
	case err == context.DeadlineExceeded:
		return tool.CodeTimeout
	case err != nil:
		return tool.CodeCancelled
	case !now.Before(f.deadline):
		return tool.CodeTimeout
	case over(f.scope.ctx, now): // and the context will say so in a moment
		return tool.CodeCancelled
	case code == tool.CodeCancelled: // of a context of the tool's own
		return tool.CodeConnection
	}
	return code
}
