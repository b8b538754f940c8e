// Package episode reads recorded interactions and cuts them into
// action→result slices.
//
//	eps, err := episode.Parse("trace.txt", []byte("Action: {\"type\":\"deposit\"}\nObservation: done\n"))
//	for _, s := range episode.Segment(&eps[0], episode.MaxHistory) {
//		fmt.Println(s.Alignment, len(s.Results)) // sequential 1
//	}
//
// It reads JSON, JSON Lines, role-prefixed text, message lists in the style of
// OpenAI's API and logs of MCP clients; an [Exporter] brings in recordings that
// are not files. What a file says is kept as it is; ids are functions of it.
// Nothing is paired by guessing: what is ambiguous or concurrent is flagged
// (spec/world-reference.md §6).
package episode

import (
	"fmt"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// An Actor is who caused an event.
type Actor string

// The actors.
const (
	User        Actor = "user"
	Agent       Actor = "agent"
	Environment Actor = "environment"
	Tool        Actor = "tool"
	System      Actor = "system"
	NoActor     Actor = "unknown"
)

// A Kind is what an event is.
type Kind string

// The kinds.
const (
	Message     Kind = "message"
	Action      Kind = "action"
	Observation Kind = "observation"
	State       Kind = "state"
	Error       Kind = "error"
	Meta        Kind = "meta"
)

// An Event is one thing that happened.
type Event struct {
	ID         string      `json:"id"`
	Actor      Actor       `json:"actor"`
	Kind       Kind        `json:"kind"`
	Content    value.Value `json:"content"`
	Timestamp  *string     `json:"timestamp"`   // ISO 8601; nil without one
	Metadata   value.Value `json:"metadata"`    // an object
	RawPayload value.Value `json:"raw_payload"` // the item it was read from
}

// UnmarshalJSONFrom reads an event that was written by this format.
func (e *Event) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Event
	p := plain{Actor: NoActor, Kind: Message, Metadata: value.ObjectOf(), RawPayload: value.NullValue()}
	if err := json.UnmarshalDecode(dec, &p, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	if err := world.Needs("an event", world.Field{Name: "id", There: p.ID != ""}, world.Field{Name: "content", There: !p.Content.IsZero()}); err != nil {
		return err
	}
	switch p.Actor {
	case User, Agent, Environment, Tool, System, NoActor:
	default:
		return fmt.Errorf("event %s: unknown actor %q", p.ID, p.Actor)
	}
	if !isKind(string(p.Kind)) {
		return fmt.Errorf("event %s: unknown kind %q", p.ID, p.Kind)
	}
	*e = Event(p)
	return nil
}

func isKind(s string) bool {
	switch Kind(s) {
	case Message, Action, Observation, State, Error, Meta:
		return true
	}
	return false
}

// Meta returns a member of the metadata; ok is false without one.
func (e *Event) Meta(key string) (v value.Value, ok bool) { return e.Metadata.Get(key) }

// IsResult reports whether the event is something that came back.
func (e *Event) IsResult() bool {
	return e.Kind == Observation || e.Kind == Error || e.Kind == State || e.Actor == Environment || e.Actor == Tool
}

// IsMCP reports whether the event was a message of an MCP client's log, whose
// results have the shape of that protocol.
func (e *Event) IsMCP() bool {
	_, ok := rpcItem(e.RawPayload)
	return ok
}

// An Episode is one recorded interaction, its events in order.
type Episode struct {
	ID       string      `json:"id"`
	SourceID string      `json:"source_id"` // "src_" and the SHA-256 of the source's bytes
	Events   []Event     `json:"events"`
	Metadata value.Value `json:"metadata"`
}

// UnmarshalJSONFrom reads an episode that was written by this format.
func (e *Episode) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Episode
	p := plain{Metadata: value.ObjectOf()}
	if err := json.UnmarshalDecode(dec, &p, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	if err := world.Needs("an episode", world.Field{Name: "id", There: p.ID != ""}, world.Field{Name: "source_id", There: p.SourceID != ""}); err != nil {
		return err
	}
	*e = Episode(p)
	return nil
}

// Ref refers to events of the episode.
func (e *Episode) Ref(events ...string) world.SourceRef {
	return world.SourceRef{SourceID: e.SourceID, EpisodeID: &e.ID, EventIDs: events}
}

// An Alignment says how an action was paired with its result.
type Alignment string

// The alignments.
const (
	Correlated Alignment = "correlated" // by call id
	Sequential Alignment = "sequential" // by order
	Ambiguous  Alignment = "ambiguous"  // not at all
)

// A Slice is an action with the results that belong to it.
type Slice struct {
	ID            string    `json:"id"`
	EpisodeID     string    `json:"episode_id"`
	Actions       []string  `json:"action_event_ids"`
	Results       []string  `json:"observation_event_ids"`
	History       []string  `json:"history_event_ids"`
	Delayed       []string  `json:"delayed_observation_event_ids"`
	Concurrent    []string  `json:"concurrent_action_event_ids"`
	Alignment     Alignment `json:"alignment"`
	Ambiguities   []string  `json:"ambiguities"`
	action        int       // index of the action event
	resultIndexes []int
}

// UnmarshalJSONFrom reads a slice that was written by this format.
func (s *Slice) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Slice
	p := plain{Alignment: Sequential}
	if err := json.UnmarshalDecode(dec, &p, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	switch p.Alignment {
	case Correlated, Sequential, Ambiguous:
	default:
		return fmt.Errorf("slice %s: unknown alignment %q", p.ID, p.Alignment)
	}
	*s = Slice(p)
	return nil
}
