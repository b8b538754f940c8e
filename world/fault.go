package world

import (
	"errors"
	"fmt"
)

// A Fault is why a step, a rule or a document was refused. Its type is the name
// under which replay reports and the agent's tools show it
// (spec/world-reference.md §3.11); texts are those of the format, so that
// reports compare.
type Fault struct {
	Type    string
	Message string
}

// The types of faults.
const (
	ValueError         = "ValueError"         // an effect, a path or a document that does not fit
	KeyError           = "KeyError"           // a reference to something that is not there
	RuntimeError       = "RuntimeError"       // a transition that did not verify
	InvalidAction      = "InvalidAction"      // arguments that do not fit the action's declaration
	NoApplicableRule   = "NoApplicableRule"   // nothing can answer the action
	AmbiguousRuleError = "AmbiguousRuleError" // two rules of one priority that disagree
)

// Error is the message.
func (f *Fault) Error() string { return f.Message }

// Faultf makes a fault.
func Faultf(typ, format string, args ...any) *Fault {
	return &Fault{typ, fmt.Sprintf(format, args...)}
}

// Named is err as "Type: message"; an error that is no fault has the type of
// its kind of trouble, RuntimeError.
func Named(err error) string {
	var f *Fault
	if errors.As(err, &f) {
		return f.Type + ": " + err.Error()
	}
	return RuntimeError + ": " + err.Error()
}

// IsFault reports whether err is, or wraps, a fault of one of the types; of any
// type when none is named.
func IsFault(err error, types ...string) bool {
	var f *Fault
	if !errors.As(err, &f) {
		return false
	}
	for _, t := range types {
		if f.Type == t {
			return true
		}
	}
	return len(types) == 0
}
