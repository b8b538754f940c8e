package tool

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
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
	CodeCancelled      = "cancelled"        // no answer before the run was cancelled, or within the grace after
	CodeNoStub         = "no_stub"          // --stub has no answer for the step
	CodeToolChanged    = "tool_changed"     // the tool is not defined as when the run began, so it was not called: the step is denied
)

// A Failure is a tool's failure as data. It implements error so that a handler
// can return it; the runner never treats it as an error of its own.
type Failure struct {
	Code      string // one plain word; at most MaxCode bytes are kept
	Message   string // for people and models; at most 4 KiB is kept
	Retryable bool   // the tool asserts that nothing happened and that another try may work
	Lost      bool   // there was no answer: whether it happened is not known
	// NotStarted: the call was refused before the tool began anything, so that
	// nothing can have happened, and another try would be refused alike.
	NotStarted bool
	After      time.Duration // wait at least this long before a retry
	Stack      string        // of a panic; for the record only
}

// MaxMessage is how many bytes of a failure's message are kept: enough for a
// server's explanation, too little to fill a log or a model's context.
const MaxMessage = 4 << 10

// MaxCode is how many bytes of a failure's code are kept: twice the longest that
// Callsheet gives itself, since programs compare it and people read it in a row
// of a table.
const MaxCode = 64

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
// try may work. The code is kept when err is already a failure. No error gives
// no failure.
func Retryable(err error) *Failure {
	f := AsFailure(err)
	if f != nil {
		f.Retryable = true
	}
	return f
}

// RetryAfter is [Retryable] with the least time to wait before the retry.
func RetryAfter(err error, d time.Duration) *Failure {
	f := Retryable(err)
	if f != nil {
		f.After = d
	}
	return f
}

// Lost marks err as a call without an answer: the connection broke, or the
// server died while it worked. No error gives no failure.
func Lost(err error) *Failure {
	f := AsFailure(err)
	if f == nil {
		return nil
	}
	f.Lost, f.Retryable, f.NotStarted = true, false, false
	if f.Code == CodeToolError {
		f.Code = CodeConnection
	}
	return f
}

// AsFailure is the failure that err is or wraps, or a new one for good; it is
// the caller's own. An error of a context is a call without an answer. The
// message is clipped to [MaxMessage] bytes, the code to a plain word of
// [MaxCode]. It is nil for no error, and a nil *Failure is none, whatever
// interface it comes in. An error whose methods panic is a failure with code
// "panic".
func AsFailure(err error) (f *Failure) {
	defer func() {
		if p := recover(); p != nil {
			f = Panicked(fmt.Sprintf("the error that the tool returned, a %T,", err), p)
		}
	}()
	if err == nil {
		return nil
	}
	var known *Failure
	switch {
	case !errors.As(err, &known):
		f = &Failure{Code: CodeToolError}
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			f.Code, f.Lost = CodeTimeout, true
		case errors.Is(err, context.Canceled):
			f.Code, f.Lost = CodeCancelled, true
		}
		f.Message = err.Error()
	case known != nil:
		c := *known
		f = &c
	case err == error(known):
		return nil
	default: // something else that wraps a nil failure
		f = &Failure{Code: CodeToolError, Message: err.Error()}
	}
	f.Lost = f.Lost && !f.NotStarted
	f.Code = plainCode(f.Code)
	f.Message = clip(f.Message, MaxMessage)
	return f
}

// Panicked is the failure of what panicked with the value p, for whoever
// recovers it: who begins a sentence. The stack is that of the caller.
func Panicked(who string, p any) (f *Failure) {
	f = &Failure{Code: CodePanic, Message: who + " panicked", Stack: string(debug.Stack())}
	defer func() { recover() }() // of a value that panics when it is printed
	f.Message = clip(fmt.Sprintf("%s: %v", f.Message, p), MaxMessage)
	return f
}

// plainCode is a code as programs can compare and tables can show it: printable
// ASCII without spaces. What does not fit is cut or replaced.
func plainCode(code string) string {
	if code == "" {
		return CodeToolError
	}
	code = code[:min(len(code), MaxCode)]
	plain := func(r rune) rune {
		if r <= ' ' || r >= 0x7f {
			return '_'
		}
		return r
	}
	return strings.Map(plain, code)
}

// clip keeps the first most bytes of s, and says with an ellipsis that there was
// more.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xC0 == 0x80 {
		most--
	}
	return s[:most] + "…"
}
