package call

import (
	"context"
	"errors"

	"github.com/callsheet/callsheet/tool"
)

// A PanicError is the panic of a part of the harness that somebody else wrote: a
// gate, a recorder, a vault. It fails the run, which can trust that part no
// more, and nothing else: the calls that are out still settle.
type PanicError struct {
	Message string // "the gate panicked: …"
	Stack   string
}

func (e *PanicError) Error() string { return e.Message }

// ErrGone is the error of a part of the harness that ended its goroutine instead
// of giving an answer.
var ErrGone = errors.New("the gate or the recorder ended its goroutine")

// Guard calls f, which asks a part of the harness. A panic becomes a
// [*PanicError].
func Guard(part string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			is := tool.Panicked(part, p)
			err = &PanicError{Message: is.Message, Stack: is.Stack}
		}
	}()
	return f()
}

// unkept is the ticket of a record that could not even be begun.
type unkept struct{ err error }

// Wait implements [Ticket].
func (t unkept) Wait(context.Context) error { return t.err }
