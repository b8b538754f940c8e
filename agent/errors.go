package agent

import (
	"fmt"
	"strings"

	"github.com/callsheet/callsheet/value"
)

// Codes of protocol errors.
const (
	CodeMaxRounds = "max_rounds"          // MaxRounds model calls without a valid submission
	CodeNoCall    = "no_call"             // replies without any call, more than MaxNudges
	CodeInvalid   = "invalid_submissions" // more than MaxInvalidSubmissions
	CodeRefused   = "refused_calls"       // calls of other tools while the submission was forced, twice
	CodeOvershot  = "budget_overshot"     // two or more calls over the tool budget in one reply
	CodeMaxBytes  = "max_bytes"           // the transcript is too large
	CodeMaxTokens = "max_tokens"          // no submission in the last round that MaxTokens left
	CodeDeadline  = "deadline"            // no submission in the last round that Deadline left
)

// A ProtocolError is a model that did not come to a submission within the
// bounds. The result that comes with it holds everything up to there.
type ProtocolError struct {
	Code    string
	Message string
	Tool    string // that was refused, with CodeRefused
	Round   int
}

func (e *ProtocolError) Error() string { return e.Message }

// A WaitingError is a run that cannot go on before a person decided. Resume it
// with what was recorded; the calls named here are then asked for again.
type WaitingError struct {
	Calls []Pending // never empty
}

// A Pending call waits for a person.
type Pending struct {
	Step    string // ROUND.N
	Tool    string
	Args    value.Value
	Waiting Waiting
	Reason  string
}

func (e *WaitingError) Error() string {
	names := make([]string, len(e.Calls))
	for i, c := range e.Calls {
		names[i] = c.Step + " " + c.Tool
	}
	return "waiting for a person: " + strings.Join(names, ", ")
}

// A TranscriptError is a transcript in which not every call is answered exactly
// once, in order, right after its message. No model is sent one.
type TranscriptError struct {
	Message int // index into the transcript
	Reason  string
}

func (e *TranscriptError) Error() string {
	return fmt.Sprintf("message %d of the transcript: %s", e.Message, e.Reason)
}
