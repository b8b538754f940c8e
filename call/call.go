// Package call is the one door through which every live call goes, whoever
// makes it, a plan or an agent: gate, intent, the tool under its deadline,
// outcome.
//
//	door := &call.Door{Tools: set}
//	out, err := door.Call(ctx, call.Request{Step: "s1", Attempt: 1, Tool: set.Catalogue().Get("search"), Args: args})
//
// A tool's failure is in the outcome. An error means that the harness could not
// do its work (the journal failed) and that no further call may be made.
package call

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// DefaultGrace is how long a call may still answer after the run was cancelled
// (spec/plan.md §8). A deadline has no grace.
const DefaultGrace = 5 * time.Second

// A Request is one call that is to be judged or made.
type Request struct {
	Run      string // id of the run, "" outside one
	Step     string // id of the step, or ROUND.N of an agent's call
	Attempt  int    // from 1
	Rerun    bool   // the same attempt once more, after a crash
	Tool     *tool.Declaration
	Args     value.Value
	Refs     []plan.Ref  // where the args came from; what is below no Ref is a literal
	Before   value.Value // the args that a person changed into Args; no value when nobody did
	Approved bool        // a person said yes to this very call
	Delay    time.Duration
	// Key makes the idempotency keys of the run; nil: they are empty.
	Key func(step string, args value.Value) string
	// Progress is told of the tool's progress; nil: nobody listens.
	Progress func(tool.Progress)
}

// An Outcome is how a call ended.
type Outcome struct {
	Output     value.Value
	Failure    *tool.Failure // nil: Output is what the tool returned
	Start, End time.Time
	GivenUp    bool   // there was no answer in time; the handler still holds its goroutine
	NotMade    bool   // cancellation came before the call: nothing was called or recorded
	Ticket     Ticket // of the outcome's record; nil without a recorder
}

// A Decision is what a gate answers to a request.
type Decision struct {
	Verdict machine.Verdict
	Code    string      // why, for programs: "rule", "tool_changed", …
	Message string      // why, for people
	By      string      // who: "policy", or the person
	Person  bool        // a person was asked and decided, while the gate waited
	Facts   value.Value // what the decision rests on, for the record; may be no value
	Ticket  Ticket      // of the decision's record, set by the door: nobody is told of an ask before it; nil: nothing is to be waited for
}

// A Gate judges a call before it is made. An error stops the run: a gate that
// cannot judge must not let a call through.
type Gate interface {
	Judge(ctx context.Context, r Request) (Decision, error)
}

// A Follower is a gate that judges by what went before. It is told of the calls
// that were let through without being judged there and then, because a person
// answered or because a record is replayed, and of how every call ended.
type Follower interface {
	Gate
	Allowed(r Request)
	Ended(r Request, o Outcome)
}

// An Asker is a gate that knows what becomes of a question to a person. A gate
// around it that has a question of its own hands it on, so that both are asked in
// the same way.
type Asker interface {
	Gate
	// Ask is the answer where there is one at once: a person's, or a denial where
	// nobody is asked. Otherwise it is d.
	Ask(ctx context.Context, r Request, d Decision) (Decision, error)
}

// A Ticket is the promise of a record that may not be durable yet.
type Ticket interface {
	// Wait returns when the record is durable, or with the reason why it never
	// will be.
	Wait(ctx context.Context) error
}

// A Recorder keeps the record of calls. Its methods may be called by many
// goroutines at once.
type Recorder interface {
	// Decided records a gate's answer. It does not wait; the ticket may be nil.
	Decided(r Request, d Decision) (Ticket, error)
	// Intent records that the call is about to be made. When it returns nil the
	// record is as durable as the tool's effects need: on disk already, when the
	// tool is neither read-only nor idempotent.
	Intent(ctx context.Context, r Request) error
	// Outcome records how the call ended. It does not wait.
	Outcome(r Request, o Outcome) Ticket
	// Late records an answer that came after its call had been given up. It
	// changes nothing.
	Late(r Request, o Outcome)
}

// A Vault holds secrets. The door opens it last of all, so that nothing but the
// tool sees what is in it.
type Vault interface {
	// Reveal puts secrets into args where placeholders name them. The error says
	// what is wrong without the secret; the call is not made then.
	Reveal(r Request) (value.Value, error)
	// Redact takes secrets out of what a tool said.
	Redact(v value.Value) value.Value
	RedactText(s string) string
}

// A Door makes live calls. Its fields must not change while it is used.
type Door struct {
	Tools    *tool.Set
	Gate     Gate          // nil: every call is allowed
	Recorder Recorder      // nil: nothing is recorded
	Grace    time.Duration // 0: DefaultGrace
	Limits   *Limits       // per-tool concurrency and rate; nil: none
	Vault    Vault         // nil: there are no secrets

	abandoned atomic.Int64
}

// Abandoned is the number of handlers that were given up and have not returned:
// each holds a goroutine.
func (d *Door) Abandoned() int { return int(d.abandoned.Load()) }

// Context is the context that the calls of the scope run under.
func (s *Scope) Context() context.Context { return s.ctx }

// Judge asks the gate and records its answer. Of an ask nobody may be told before
// its Ticket says that it is durable.
func (s *Scope) Judge(r Request) (Decision, error) {
	d := s.door
	if d.Gate == nil {
		return Decision{Verdict: machine.Allow}, nil
	}
	var dec Decision
	if err := Guard("the gate", func() (err error) { dec, err = d.Gate.Judge(s.ctx, r); return err }); err != nil {
		return Decision{}, fmt.Errorf("judge step %q: %w", r.Step, err)
	}
	if dec.Verdict == machine.Undecided {
		return dec, fmt.Errorf("judge step %q: %w", r.Step, ErrUndecided)
	}
	if d.Recorder != nil {
		if err := Guard("the recorder", func() (err error) { dec.Ticket, err = d.Recorder.Decided(r, dec); return err }); err != nil {
			return Decision{}, err
		}
	}
	return dec, nil
}

// Call makes one call and waits for its end: the tool's answer, its deadline, or
// the grace after ctx was cancelled. The args must have been judged before.
func (d *Door) Call(ctx context.Context, r Request) (Outcome, error) {
	type end struct {
		o   Outcome
		err error
	}
	s := d.Scope(ctx)
	defer s.Close()
	done := make(chan end, 2) // only the first counts
	go func() {
		defer func() { done <- end{err: ErrGone} }()
		s.Start(r, func(o Outcome, err error) { done <- end{o, err} })
	}()
	e := <-done
	return e.o, e.err
}

// CodeSecret is the failure of a call that names a secret that it cannot have.
const CodeSecret = "secret_misplaced"

// errNotMade is a call that cancellation came before.
// ErrUndecided is the error of a gate that answers without a verdict.
var ErrUndecided = errors.New("the gate gave no verdict")

var errNotMade = errors.New("cancelled before the call")

// Start makes a call on the calling goroutine, and tells deliver how it ended,
// exactly once. An error beside an outcome with a Start means that the call was
// made and that the harness failed afterwards. When the tool gives no answer in time deliver is called from
// another goroutine; Start still returns when the tool does, and says then that
// the call was given up. A handler that ends its goroutine ends the caller's
// too, after it was delivered.
func (s *Scope) Start(r Request, deliver func(Outcome, error)) (givenUp bool) {
	d := s.door
	if err := d.prepare(s.ctx, r); err != nil {
		if err == errNotMade {
			deliver(Outcome{NotMade: true}, nil)
		} else {
			deliver(Outcome{}, err)
		}
		return false
	}
	f := &flight{scope: s, r: r, deliver: deliver}
	handler := d.Tools.Handler(r.Tool.Name)
	if handler == nil {
		now := time.Now()
		f.finish(Outcome{Failure: &tool.Failure{Code: tool.CodeToolError, Message: fmt.Sprintf("tool %q has no handler", r.Tool.Name), NotStarted: true}, Start: now, End: now})
		return false
	}
	f.call = tool.Call{Run: r.Run, Step: r.Step, Attempt: r.Attempt, Args: r.Args, Key: f.key, Progress: r.Progress}
	if f.call.Progress == nil {
		f.call.Progress = noProgress
	}
	if v := d.Vault; v != nil {
		var refused error
		err := Guard("the vault", func() error { f.call.Args, refused = v.Reveal(r); return nil })
		if err == nil && refused != nil {
			fail := tool.AsFailure(refused)
			fail.Code, fail.NotStarted = CodeSecret, true
			now := time.Now()
			f.finish(Outcome{Failure: fail, Start: now, End: now})
			return false
		}
		if err != nil {
			d.release(r)
			deliver(Outcome{}, err)
			return false
		}
		told := f.call.Progress
		f.call.Progress = func(p tool.Progress) {
			p.Message = v.RedactText(p.Message)
			told(p)
		}
	}
	return f.run(handler)
}

func noProgress(tool.Progress) {}

// prepare waits for the delay, for a place among the tool's calls, and for the
// intent to be recorded.
func (d *Door) prepare(ctx context.Context, r Request) error {
	if r.Delay > 0 {
		t := time.NewTimer(r.Delay)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
		}
	}
	if d.Limits != nil {
		if err := d.Limits.acquire(ctx, r.Tool.Name); err != nil {
			return errNotMade
		}
	}
	if over(ctx, time.Now()) {
		d.release(r)
		return errNotMade
	}
	if d.Recorder != nil {
		if err := Guard("the recorder", func() error { return d.Recorder.Intent(ctx, r) }); err != nil {
			d.release(r)
			return err
		}
	}
	return nil
}

// release gives the call's place among the tool's calls back.
func (d *Door) release(r Request) {
	if d.Limits != nil {
		d.Limits.release(r.Tool.Name)
	}
}
