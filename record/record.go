// Package record keeps the runs of plans in a journal and goes on with them
// after a crash, a pause or an interruption.
//
//	store, err := journal.Open(path, journal.Options{})
//	report, err := record.Run(ctx, store, p, tools, record.Options{})
//	…
//	report, err = record.Resume(ctx, store, id, tools, record.Options{})
//
// What happened is recorded before anything can be seen of it: a decision before
// the call, the intent of an effect on the disk before its tool hears of it, an
// outcome before the next step begins. A resumed run feeds the same events to
// the same machine, so it stands where it stood. docs/journal.md lists the
// records.
package record

import (
	"context"
	"errors"
	"time"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/value"
)

// The kinds of runs.
const (
	KindPlan      = "plan"
	KindAgent     = "agent"
	KindRehearsal = "rehearsal" // of a plan, on a stage: it called nothing, cannot go on, and is no recording of the world
)

// The kinds of records of a run, beside the journal's own.
const (
	kindReply      = "reply"      // a model's, before any of its calls
	kindDecision   = "decision"   // a gate's answer; an ask has its question in it
	kindIntent     = "intent"     // a call is about to be made
	kindOutcome    = "outcome"    // how it ended
	kindLost       = "lost"       // it was begun before a crash and has no outcome
	kindLate       = "late"       // an answer after the call was given up
	kindReused     = "reused"     // an outcome taken from the run that was forked
	kindAnswer     = "answer"     // a person's answer to an ask
	kindReopened   = "reopened"   // an ask that is void: it is asked anew
	kindResolution = "resolution" // what a person knows of a lost call
	kindResumed    = "resumed"    // the run goes on in another process
	kindStopped    = "stopped"    // it stopped without an end: interrupted, or a failure of the harness
	kindEnd        = "end"        // every step has its status
)

// codePerson is the code of a verdict that a person gave.
const codePerson = "person"

// Statuses of a run in lists.
const (
	StatusRunning     = "running"     // or crashed, when nobody holds it
	StatusWaiting     = "waiting"     // for a person
	StatusInterrupted = "interrupted" // Ctrl-C, a deadline, or a failure of the harness
	StatusAborted     = "aborted"     // Ctrl-C twice: it did not wait for its calls
	StatusOK          = "ok"          // every step is ok
	StatusFailed      = "failed"      // some step is not ok
)

// DefaultApproval is how long an ask may be answered (spec/plan.md §8).
const DefaultApproval = 24 * time.Hour

// Contents says how much of args and outputs a journal keeps.
type Contents string

// The contents. Only a full journal can be resumed.
const (
	Full    Contents = "full"
	Digests Contents = "digests"
)

// Options of a recorded run.
type Options struct {
	// Run are the options of the run itself; of an agent's the Gate, the Grace
	// and the Limits count. Its ID, Key, Recorder, Past and
	// Reuse are set here. On Resume the budget, the workers and whether it is
	// eager come from the record.
	Run run.Options
	// Name is shown in lists; empty: the plan's own.
	Name string
	// Policy is the digest of what the gate decides by: a run goes on only
	// under the same.
	Policy value.Digest
	// Contents of the journal; "": Full.
	Contents Contents
	// Approval is how long an ask may be answered; 0: DefaultApproval.
	Approval time.Duration
	// Setup is kept with the run for whoever resumes it: where its tools come
	// from, and which model an agent asks. No secret may be in it. Its meaning is the caller's; no value: none.
	Setup value.Value
	// AskRepeats, of a fork, asks a person about every call with effects of the
	// same tool on the same targets as one that ended ok or uncertain in the run
	// that it is forked from, or in those before: a plan that was written anew
	// must not do anew what was done. Whatever Run.Gate says, and also when the
	// fork is resumed.
	AskRepeats bool
	// Asker is asked about calls that a fork may be repeating, where Run.Gate asks
	// nobody; nil: the run pauses for them.
	Asker call.Asker
	// OnStart is told when the run is there and before anything is called; nil:
	// nobody.
	OnStart func(Live)
	// OnAsk is told of every new ask, after it was recorded; nil: nobody.
	OnAsk func(Ask)
	// Receipt makes the run one of kind [KindRehearsal]. It is called when the
	// run is over, and what it returns is kept in the last record, where
	// [Receipts] finds it. nil: the run is a plan's.
	Receipt func(*machine.Report) value.Value
	// Parent is the run whose tool started this one; "" at the top.
	Parent string
	// Now is the clock of expiries; nil: time.Now.
	Now func() time.Time
}

func (o *Options) defaults() {
	if o.Contents == "" {
		o.Contents = Full
	}
	if o.Approval <= 0 {
		o.Approval = DefaultApproval
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

// What can be wrong with a run that is to go on.
var (
	// ErrChanged is a plan, catalogue or policy that is not the one that the
	// run was started with. A fork goes on under the new one.
	ErrChanged = errors.New("changed since the run began")
	// ErrNotAPlan is a run of another kind than a plan's.
	ErrNotAPlan = errors.New("not the run of a plan")
	// ErrRehearsal is a rehearsal where the run of a plan is needed: what it did
	// was on a stage.
	ErrRehearsal = errors.New("a rehearsal, which did nothing")
	// ErrOver is a run that has nothing left to do.
	ErrOver = errors.New("the run is over")
	// ErrDigestsOnly is a run whose journal keeps digests in place of values.
	ErrDigestsOnly = errors.New("the journal of this run keeps digests only, so it cannot go on")
	// ErrNoAsk is a step that does not wait for an approval.
	ErrNoAsk = errors.New("no open ask")
	// ErrExpired is an ask that was not answered in time; resume asks anew.
	ErrExpired = errors.New("the ask has expired")
	// ErrNotLost is a step that does not wait for a resolution.
	ErrNotLost = errors.New("no call of unknown outcome")
	// ErrBadEdit is a call whose edited args its tool does not take.
	ErrBadEdit = errors.New("the edited args are not acceptable")
	// ErrUnfit is an output that the tool of a lost call cannot have given.
	ErrUnfit = errors.New("the output does not fit the tool")
	// ErrSecretOutput is an output that a journal must not hold.
	ErrSecretOutput = errors.New("a journal must not hold this output")
	// ErrSecretLiteral is a plan with a secret written into it.
	ErrSecretLiteral = errors.New("a secret stands in the plan; a journaled plan must not hold one")
)

// An Ask is a question to a person: may this call be made? What is approved is
// its Digest, over everything else in it; the answer is looked up in the
// journal, so there is nothing to forge.
type Ask struct {
	Run     string
	Step    string
	Tool    string
	Args    value.Value // resolved; secrets excepted
	Code    string      // why it is asked
	Message string
	Expires time.Time
	Digest  value.Digest

	request call.Request
}

// A Live run is one that this process drives.
type Live struct{ run *journal.Run }

// ID is the run's id.
func (l Live) ID() string { return l.run.ID() }

// Abort records that the process leaves without waiting for the calls that are
// out. The run can be resumed like one that crashed.
func (l Live) Abort(ctx context.Context) error {
	return l.run.AppendWait(ctx, journal.Record{Kind: kindStopped, Status: StatusAborted, Body: value.ObjectOf(value.Member{Key: "why", Value: text("aborted")})})
}
