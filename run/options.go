package run

import (
	"context"
	"fmt"
	"time"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// Options of a run. The zero value runs sequentially, within the plan's own
// budget or its worst case, without a gate, a journal or an observer.
type Options struct {
	Budget   *int          // calls; nil: the plan's own, else its worst case
	Workers  int           // calls at once; 0: 1, or 8 with Eager
	Eager    bool          // do not wait for the end of a wave
	MaxArgs  int           // bytes of resolved args; 0: 16 MiB
	Deadline time.Duration // of the whole run; 0: none
	Grace    time.Duration // for calls that are out when the run is cancelled; 0: 5 s
	Gate     call.Gate     // nil: every call is allowed
	Vault    call.Vault    // nil: there are no secrets
	Limits   *call.Limits  // per tool; nil: none

	// ID is the run's id, which tools are told; "": a new one of this run alone.
	ID string
	// Key makes idempotency keys that stay the same over resumes; nil: keys that
	// are good for this run alone.
	Key func(step string, args value.Value) string
	// Recorder keeps the record of every decision and call; nil: nobody does.
	// What it records is what Past takes.
	Recorder Recorder
	// Reuse looks up an outcome that another run had of the same call. When ok,
	// the step has that output and no call is made; nil: nothing is reused.
	Reuse func(step string, t *tool.Declaration, args value.Value) (output value.Value, ok bool)
	// Past is what was recorded of this run before, in the order of the record:
	// the run goes on from there, and no call with a recorded outcome is made
	// again.
	Past []Past
	// Seal takes secrets out of args before they are compared with a record; nil:
	// there are none.
	Seal func(t *tool.Declaration, args value.Value) value.Value

	// Observer is told what happens, in order, from one goroutine at a time. It
	// must not block: the run waits for it. nil: nobody is told.
	Observer func(Event)
}

// Validate names the field that makes no sense.
func (o *Options) Validate() error {
	switch {
	case o.Deadline < 0:
		return fmt.Errorf("run: Deadline is %v; it must not be negative, and 0 is none", o.Deadline)
	case o.Grace < 0:
		return fmt.Errorf("run: Grace is %v; it must not be negative, and 0 is the default", o.Grace)
	}
	return o.machine().Validate()
}

// machine are the options that are the machine's.
func (o *Options) machine() *machine.Options {
	return &machine.Options{Budget: o.Budget, Workers: o.Workers, Eager: o.Eager, Gate: o.Gate != nil, MaxArgs: o.MaxArgs}
}

// A Recorder keeps what happens in a run.
type Recorder interface {
	call.Recorder
	// Lost records that a call which was begun before a crash has no outcome:
	// it will be made again, or a person must say what became of it.
	Lost(ctx context.Context, step string, attempt int) error
	// Reused records that a step took the outcome of another run.
	Reused(step string, t *tool.Declaration, args, output value.Value) error
}
