// Package model asks a language model for one reply. A program that works with
// any model depends on the one method of [Model]; the adapters are packages of
// their own.
//
//	m, err := openai.New(openai.Config{Model: "gpt-5", KeyEnv: "OPENAI_API_KEY"})
//	if err != nil {
//		log.Fatal(err)
//	}
//	reply, err := m.Ask(ctx, &model.Request{
//		Messages: []*model.Message{model.User("What is the time in Oslo?")},
//		Tools:    []*model.Tool{{Name: "clock", Input: schema}},
//	})
//	if err != nil {
//		log.Fatal(err) // a *model.Error
//	}
//	transcript = append(transcript, reply.Message())
//
// What a provider sent as the assistant's message is kept as raw bytes in
// [Reply.Raw] and goes back byte for byte: thinking blocks, signatures and
// fields that this package has never heard of survive (spec/agent.md §3).
// Messages are immutable and appended; an adapter writes each of them once, so
// that a round costs what it adds and not what came before.
package model

import (
	"context"

	"github.com/callsheet/callsheet/value"
)

// A Model answers one request at a time. Implementations are safe for
// concurrent use and keep no state of a conversation: everything is in the
// request.
//
// The error is a [*Error], or the context's. An adapter has already made every
// retry that its bounds allow when it returns one. In a reply the calls have
// ids that are not empty and differ from one another, and Finish is
// [FinishLength] also where only the usage tells that the reply was cut; the
// suite in modeltest holds an adapter to this.
type Model interface {
	Ask(ctx context.Context, req *Request) (*Reply, error)
}

// A Request is one round: the whole conversation and what may be called.
type Request struct {
	Messages []*Message
	Tools    []*Tool
	// Role says what the reply is for ("planner", "runtime_agent_turn"). It is
	// never sent to a provider; it tells requests apart in a cassette and in
	// logs, and a router of several models can choose by it.
	Role   string
	Choice Choice
	// Round numbers the requests of one run from 1; 0: not said. It is never
	// sent to a provider.
	Round int
	// MaxTokens bounds the tokens of the reply. 0 means the adapter's default.
	MaxTokens int
	// Progress is given the text of the reply as it arrives. An adapter streams
	// only when it is set; it may be called again from the start after a
	// dropped connection.
	Progress func(text string)
}

// A Tool is what the model is told of one tool.
type Tool struct {
	Name        string
	Description string
	Input       value.Value // JSON Schema of an object; the zero Value: any object

	cache cache
}

// Schema is the input schema, that of any object where none was given.
func (t *Tool) Schema() value.Value {
	if t.Input.IsZero() {
		return anyObject
	}
	return t.Input
}

var anyObject = value.MustParse(`{"type":"object","properties":{}}`)

// Encoded is what encode returned when it was first called for this dialect.
func (t *Tool) Encoded(dialect string, encode func() ([]byte, error)) ([]byte, error) {
	return t.cache.get(dialect, encode)
}

// A Mode is what a [Choice] asks for.
type Mode uint8

// The modes. The zero Mode leaves the choice to the model.
const (
	ModeAuto Mode = iota
	ModeNone      // no call
	ModeAny       // some call
	ModeTool      // a call of the tool that the choice names
)

// String is the mode as logs and cassettes write it.
func (m Mode) String() string {
	switch m {
	case ModeNone:
		return "none"
	case ModeAny:
		return "any"
	case ModeTool:
		return "tool"
	}
	return "auto"
}

// A Choice says which calls the model may make in this round, and only in this
// one.
type Choice struct {
	Mode Mode
	Name string // of the tool, with ModeTool only
}

// Force is the choice of exactly one tool.
func Force(name string) Choice { return Choice{Mode: ModeTool, Name: name} }

// Forcing is what a provider can be made to do. It is a capability that the
// configuration of an adapter states.
type Forcing uint8

// The capabilities. The zero Forcing is what the big providers offer.
const (
	ForcesByName  Forcing = iota // a call of one tool, of any, and of none
	ForcesAny                    // some call, and none, but not a named one
	ForcesNothing                // the field is refused or ignored
)

// Apply works out what to send for a choice: the tools to offer, the mode that
// the provider honours, and an instruction to add as the last user text where
// the mode alone does not do it. Fallback is not empty when the provider cannot
// do what was asked; the adapter reports it in [Reply.Fallbacks]. A forced tool
// that cannot be forced by name is the only one offered, so that tools stay
// defined while the history holds calls.
func (f Forcing) Apply(tools []*Tool, c Choice) (offer []*Tool, mode Mode, instruction, fallback string) {
	switch {
	case f == ForcesByName || c.Mode == ModeAuto, f == ForcesAny && c.Mode != ModeTool:
		return tools, c.Mode, "", ""
	case c.Mode == ModeTool:
		for _, t := range tools {
			if t.Name == c.Name {
				offer = []*Tool{t}
			}
		}
		if f == ForcesAny {
			return offer, ModeAny, "", ""
		}
		return offer, ModeAuto, "Call the tool " + c.Name + " now. No other tool is offered, and text alone is not an answer.",
			"the provider cannot force a choice: only " + c.Name + " was offered, with an instruction"
	case c.Mode == ModeAny:
		return tools, ModeAuto, "Call one of the tools now. Text alone is not an answer.",
			"the provider cannot force a choice: an instruction asked for a call"
	default:
		return tools, ModeAuto, "Answer with text now and call no tool.",
			"the provider cannot forbid calls: an instruction asked for text"
	}
}
