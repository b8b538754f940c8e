package world

import (
	"fmt"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/go-json-experiment/json/jsontext"
)

// An Action is what was done to the environment: a typed name and an object of
// arguments. Raw is what it was read from, null when there was nothing else.
type Action struct {
	Type      string      `json:"type"`
	Arguments value.Value `json:"arguments"`
	Raw       value.Value `json:"raw"`
}

// NoArguments is the empty object that an action without arguments has.
func NoArguments() value.Value { return value.ObjectOf() }

// UnmarshalJSONFrom reads an action; the type is required.
func (a *Action) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Action
	p := plain{Arguments: NoArguments()}
	if err := strict(dec, &p); err != nil {
		return err
	}
	if p.Type == "" {
		return fmt.Errorf("an action needs a type")
	}
	if p.Arguments.Kind() != value.Object {
		return fmt.Errorf("action %q: arguments must be an object, not %s", p.Type, p.Arguments.Kind())
	}
	*a = Action(p)
	return nil
}

// Text is the action as it is indexed and searched: the type, and the
// arguments as JSON.
func (a Action) Text() string { return a.Type + " " + python.Dumps(a.Arguments, python.LineStyle) }

// Argument looks up a dotted path in the arguments. ok is false when there is
// nothing; a null is something.
func (a Action) Argument(path string) (v value.Value, ok bool) {
	v, err := a.Arguments.Lookup(path)
	return v, err == nil
}

// An Outcome says how a step ended for the environment.
type Outcome string

// The outcomes.
const (
	Success Outcome = "success"
	Failed  Outcome = "failure"
	Partial Outcome = "partial"
	Unknown Outcome = "unknown"
)

func (o Outcome) check() error {
	return oneOf("outcome", string(o), string(Success), string(Failed), string(Partial), string(Unknown))
}

// A SourceRef says where in the recordings a claim comes from.
type SourceRef struct {
	SourceID  string   `json:"source_id"`
	EpisodeID *string  `json:"episode_id"`
	EventIDs  []string `json:"event_ids"`
	Locator   *string  `json:"locator"`
	Excerpt   *string  `json:"excerpt"`
}

// UnmarshalJSONFrom reads a reference; the source is required.
func (r *SourceRef) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain SourceRef
	var p plain
	if err := strict(dec, &p); err != nil {
		return err
	}
	if p.SourceID == "" {
		return fmt.Errorf("a source reference needs a source_id")
	}
	*r = SourceRef(p)
	return nil
}
