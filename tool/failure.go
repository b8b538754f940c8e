package tool

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Codes of failures that Callsheet itself gives. A tool may use its own.
const (
	CodeToolError      = "tool_error"       // the tool said so, without a code
	CodeInvalidArgs    = "invalid_args"     // args that do not fit the input schema
	CodeInvalidOutput  = "invalid_output"   // an output that does not fit the output schema
	CodeOutputTooLarge = "output_too_large" // cut at the cap; what was cut never flows on
	CodePanic          = "panic"            // the handler panicked or ended its goroutine
	CodeTimeout        = "timeout"          // no answer by the deadline
	CodeConnection     = "connection_lost"  // the server of the tool went away during the call
	CodeCancelled      = "cancelled"        // no answer within the grace after cancellation
	CodeToolChanged    = "tool_changed"     // the definition is another than in the frozen catalogue; nothing was called
	CodeNoStub         = "no_stub"          // --stub has no answer for the step
)

// A Failure is a tool's failure as data. It implements error so that a handler
// can return it; the runner never treats it as an error of its own.
type Failure struct {
	Code      string
	Message   string        // for people and models; at most 4 KiB is kept
	Retryable bool          // the tool asserts that nothing happened and that another try may work
	Lost      bool          // there was no answer: whether it happened is not known
	After     time.Duration // wait at least this long before a retry
	Stack     string        // of a panic; for the record only
}

// MaxMessage is how many bytes of a failure's message are kept: enough for a
// server's explanation, too little to fill a log or a model's context.
const MaxMessage = 4 << 10

func (f *Failure) Error() string {
	if f.Code == "" || f.Code == CodeToolError {
		return f.Message
	}
	return f.Code + ": " + f.Message
}

// Errorf is a failure for good with code "tool_error".
func Errorf(format string, args ...any) *Failure {
	return &Failure{Code: CodeToolError, Message: fmt.Sprintf(format, args...)}
}

// Retryable marks err as a failure after which nothing has happened and another
// try may work. The code is kept when err is already a failure.
func Retryable(err error) *Failure {
	f := *AsFailure(err)
	f.Retryable = true
	return &f
}

// RetryAfter is [Retryable] with the least time to wait before the retry.
func RetryAfter(err error, d time.Duration) *Failure {
	f := Retryable(err)
	f.After = d
	return f
}

// Lost marks err as a call without an answer: the connection broke, or the
// server died while it worked.
func Lost(err error) *Failure {
	f := *AsFailure(err)
	f.Lost, f.Retryable = true, false
	if f.Code == CodeToolError {
		f.Code = CodeConnection
	}
	return &f
}

// AsFailure is the failure that err is or wraps, or a new one for good. An
// error of a context is a call without an answer. The message is clipped to
// [MaxMessage] bytes.
func AsFailure(err error) *Failure {
	var f *Failure
	switch {
	case errors.As(err, &f):
		c := *f
		f = &c
	case errors.Is(err, context.DeadlineExceeded):
		f = &Failure{Code: CodeTimeout, Message: err.Error(), Lost: true}
	case errors.Is(err, context.Canceled):
		f = &Failure{Code: CodeCancelled, Message: err.Error(), Lost: true}
	default:
		f = &Failure{Code: CodeToolError, Message: err.Error()}
	}
	if f.Code == "" {
		f.Code = CodeToolError
	}
	if len(f.Message) > MaxMessage {
		n := MaxMessage
		for n > 0 && f.Message[n]&0xC0 == 0x80 {
			n--
		}
		f.Message = f.Message[:n] + "…"
	}
	return f
}
