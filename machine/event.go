package machine

import (
	"time"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// An ActionKind is what the driver is to do.
type ActionKind uint8

// The actions.
const (
	Judge ActionKind = iota // ask the gate; answer with a Judged event
	Call                    // call the tool; answer with an Answered event
)

// An Action is what the machine wants done for one step.
type Action struct {
	Kind    ActionKind
	Step    int // index in the plan
	Attempt int // from 1
	Rerun   bool
	Tool    *tool.Declaration
	Args    value.Value
	// Refs say where the args came from: at the pointer of a Ref stands that
	// step's output or a part of it, everything else is a literal of the plan.
	Refs []plan.Ref
	// Before are the args that a person changed into Args; no value when nobody
	// did. What differs is the person's.
	Before   value.Value
	Approved bool // a person said yes to this very call
	// Guessed says that an output which is not in the record went into Args: the
	// action is only there for what was recorded, and must not be done.
	Guessed bool
	Delay   time.Duration // to wait before the call
}

// An EventKind is what happened.
type EventKind uint8

// The events. The zero value is none of them, and [Machine.Apply] refuses it.
const (
	_        EventKind = iota
	Judged             // the gate or a person decided: Verdict, Code, Message
	Answered           // a call ended: Output, or Failure
	NotMade            // the call that was offered was not made, because the run was cancelled
	Lost               // resume only: the call was begun and no outcome is recorded, or it was cancelled with this Failure
	Resolved           // a person settled a lost call: Resolution, Output
	Reopened           // a waiting step is to be judged again, with Args when they were edited
	Reused             // the step's Output is known from another run: no call is made
	Cancel             // the run is cancelled, Message says why; no new call is offered
)

// A Verdict is what a gate answers. What was never decided allows nothing:
// [Machine.Apply] refuses the zero value.
type Verdict uint8

// The verdicts.
const (
	Undecided Verdict = iota // no answer
	Allow
	Deny
	Ask
)

// String is the verdict as records and policies spell it.
func (v Verdict) String() string { return [...]string{"undecided", "allow", "deny", "ask"}[v] }

// A Resolution is what a person knows of a call whose outcome was lost.
type Resolution uint8

// The resolutions. The zero value is none of them, and [Machine.Apply] refuses
// it.
const (
	_            Resolution = iota
	Happened                // with this Output
	DidNotHappen            // it is called again, and charged
	GiveUp                  // the step ends uncertain
)

// An Event tells the machine what happened. Times are data to it: they only go
// into the report.
type Event struct {
	Kind       EventKind
	Step       int
	Attempt    int
	Verdict    Verdict
	Person     bool // the verdict is a person's
	Code       string
	Message    string
	Output     value.Value
	Failure    *tool.Failure
	Resolution Resolution
	Args       value.Value
	Start, End time.Time
	Unrecorded bool // the journal could not keep this outcome
	Withheld   bool // the call was answered by an output that the record must not hold; Output stands for it
}

// A State is what the run is doing.
type State uint8

// The states.
const (
	Running  State = iota // calls are out, or Next has more
	Paused                // nothing can go on until a person decides
	Finished              // every step has its status
)

// State says whether the run goes on, waits for a person, or is over.
func (m *Machine) State() State {
	switch {
	case m.unsettled == 0:
		return Finished
	case m.running > 0 || len(m.again) > 0:
		return Running
	case m.cancelled:
		return Finished
	case m.ready.first() >= 0:
		return Running
	case m.waiting > 0:
		return Paused
	}
	return Finished
}
