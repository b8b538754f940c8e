package model

import "sync/atomic"

// A Sender is who a message is from.
type Sender uint8

// The senders.
const (
	FromSystem Sender = iota
	FromUser
	FromAssistant
	FromTool // the answer to one call
)

// String is the sender as chat APIs name it.
func (s Sender) String() string {
	switch s {
	case FromSystem:
		return "system"
	case FromUser:
		return "user"
	case FromAssistant:
		return "assistant"
	}
	return "tool"
}

// A Message is one entry of a conversation. It must not be changed once it was
// in a request: adapters keep what they made of it.
type Message struct {
	From Sender
	Text string

	// Of an assistant.
	Calls   []Call
	Raw     []byte // as the provider sent it, in Dialect; nil: written from Text and Calls
	Dialect string

	// Of a tool.
	CallID string // the ID of the call that this answers
	Tool   string // the name that was called
	Failed bool   // the text says why there is no result

	cache cache
}

// System is the message that sets the rules of a conversation.
func System(text string) *Message { return &Message{From: FromSystem, Text: text} }

// User is a message of the user.
func User(text string) *Message { return &Message{From: FromUser, Text: text} }

// Answer is the answer to a call.
func Answer(c Call, text string, failed bool) *Message {
	return &Message{From: FromTool, Text: text, CallID: c.ID, Tool: c.Name, Failed: failed}
}

// Encoded is what encode returned when it was first called for this dialect.
// An adapter that writes messages through it writes each of them once, however
// many rounds send it.
func (m *Message) Encoded(dialect string, encode func() ([]byte, error)) ([]byte, error) {
	return m.cache.get(dialect, encode)
}

// Size is the number of bytes that the message adds to a transcript: its raw
// bytes, or else its text and the names and arguments of its calls.
func (m *Message) Size() int {
	if m.Raw != nil {
		return len(m.Raw)
	}
	n := len(m.Text)
	for _, c := range m.Calls {
		n += len(c.Name) + len(c.Arguments)
	}
	return n
}

// cache holds an immutable thing in each form in which it was written: one per
// dialect, and there is seldom more than one.
type cache struct{ first atomic.Pointer[encoded] }

type encoded struct {
	dialect string
	text    []byte
	next    *encoded
}

func (c *cache) get(dialect string, encode func() ([]byte, error)) ([]byte, error) {
	first := c.first.Load()
	for e := first; e != nil; e = e.next {
		if e.dialect == dialect {
			return e.text, nil
		}
	}
	text, err := encode()
	if err != nil {
		return nil, err
	}
	// Losing the race costs one more encoding later and nothing else.
	c.first.CompareAndSwap(first, &encoded{dialect, text, first})
	return text, nil
}
