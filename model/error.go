package model

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
)

// strict is how files of our own are read.
var strict = json.RejectUnknownMembers(true)

// A Kind of error says whether another try can help.
type Kind uint8

// The kinds.
const (
	Permanent Kind = iota // the same request fails again
	Transient             // overload, a rate limit, a dropped connection: retried within the adapter's bounds
	Refusal               // the provider will not answer this content; never retried
)

// String is the kind in one word.
func (k Kind) String() string {
	return [...]string{"permanent", "transient", "refusal"}[k]
}

// An Error is a request that got no reply. Its text holds no key.
type Error struct {
	Kind     Kind
	Status   int           // of HTTP; 0 where there was none
	Code     string        // the provider's own code; "" where there was none
	Message  string        // at most [MaxMessage] bytes
	After    time.Duration // how long the provider asked to wait, if it did
	Attempts int           // requests that were made; 0 when none could be
	Err      error         // what lies below, if anything
}

// MaxMessage is how many bytes of a provider's explanation are kept.
const MaxMessage = 4 << 10

func (e *Error) Error() string {
	s := "model: " + e.Message
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Attempts > 1 {
		s += fmt.Sprintf(", %d attempts", e.Attempts)
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf is an error for good.
func Errorf(format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	e := &Error{Message: err.Error()}
	if u, ok := err.(interface{ Unwrap() error }); ok {
		e.Err = u.Unwrap()
	}
	return e
}
