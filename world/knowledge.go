package world

import (
	"fmt"

	"github.com/callsheet/callsheet/value"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

func marshal(enc *jsontext.Encoder, x any) error { return json.MarshalEncode(enc, x) }

// A RenderContract says how observations of some actions are written.
type RenderContract struct {
	ID             string      `json:"id"`
	ActionTypes    []string    `json:"action_types"`
	ContentType    string      `json:"content_type"`
	Template       *string     `json:"template"`
	RequiredFields []string    `json:"required_fields"`
	Instructions   string      `json:"instructions"`
	Examples       []string    `json:"examples"`
	Provenance     []SourceRef `json:"provenance"`
}

// UnmarshalJSONFrom reads a contract; text/plain unless it says otherwise.
func (c *RenderContract) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain RenderContract
	p := plain{ContentType: "text/plain"}
	if err := strict(dec, &p); err != nil {
		return err
	}
	if p.ID == "" {
		return fmt.Errorf("a renderer needs an id")
	}
	*c = RenderContract(p)
	return nil
}

// A Note is a statement about the environment that no rule executes.
type Note struct {
	ID          string      `json:"id"`
	Kind        string      `json:"kind"` // convention, format, constraint, fact or concept
	Statement   string      `json:"statement"`
	ActionTypes []string    `json:"action_types"` // none: all actions
	Confidence  Real        `json:"confidence"`
	Status      string      `json:"status"`
	Provenance  []SourceRef `json:"provenance"`
}

// UnmarshalJSONFrom reads a note; a supported fact unless it says otherwise.
func (n *Note) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Note
	p := plain{Kind: "fact", Confidence: 1, Status: Supported}
	if err := strict(dec, &p); err != nil {
		return err
	}
	if err := Needs("a note", Field{Name: "id", There: p.ID != ""}, Field{Name: "statement", There: p.Statement != ""}); err != nil {
		return err
	}
	if err := oneOf("kind", p.Kind, "convention", "format", "constraint", "fact", "concept"); err != nil {
		return fmt.Errorf("note %q: %w", p.ID, err)
	}
	if err := checkStatus(p.Status, p.Confidence); err != nil {
		return fmt.Errorf("note %q: %w", p.ID, err)
	}
	*n = Note(p)
	return nil
}

// A Demonstration is one recorded step, shown as an example.
type Demonstration struct {
	ID          string      `json:"id"`
	Action      Action      `json:"action"`
	Observation string      `json:"observation"`
	StateBefore value.Value `json:"state_before"`
	StateAfter  value.Value `json:"state_after"`
	RuleIDs     []string    `json:"rule_ids"`
	Provenance  []SourceRef `json:"provenance"`
	Outcome     Outcome     `json:"outcome"`
}

// UnmarshalJSONFrom reads a demonstration.
func (d *Demonstration) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Demonstration
	p := plain{StateBefore: value.ObjectOf(), StateAfter: value.ObjectOf(), Outcome: Unknown}
	if err := strict(dec, &p); err != nil {
		return err
	}
	if err := Needs("a demonstration", Field{Name: "id", There: p.ID != ""}, Field{Name: "action", There: p.Action.Type != ""}); err != nil {
		return err
	}
	*d = Demonstration(p)
	return d.Outcome.check()
}

// A Fact is a claim read from an observation.
type Fact struct {
	Subject    string      `json:"subject"`
	Predicate  string      `json:"predicate"`
	Value      value.Value `json:"value"`
	Status     string      `json:"status"` // observed, inferred, hypothesized or conflicted
	Confidence Real        `json:"confidence"`
	Provenance []SourceRef `json:"provenance"`
}

// UnmarshalJSONFrom reads a fact; observed unless it says otherwise.
func (f *Fact) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Fact
	p := plain{Status: "observed", Confidence: 1}
	if err := strict(dec, &p); err != nil {
		return err
	}
	*f = Fact(p)
	return oneOf("status", f.Status, "observed", "inferred", "hypothesized", "conflicted")
}

// A Judgement is a confidence and why.
type Judgement struct {
	Value     Real   `json:"value"`
	Rationale string `json:"rationale"`
}

// Evidence is what one recorded step says: the local action, its result, and
// what follows from them.
type Evidence struct {
	ID               string      `json:"id"`
	EpisodeID        string      `json:"episode_id"`
	TransitionID     string      `json:"transition_id"`
	Action           Action      `json:"action"`
	Confidence       Judgement   `json:"confidence"`
	Preconditions    []Fact      `json:"preconditions"`
	Outcome          Outcome     `json:"outcome"`
	Mutations        []Mutation  `json:"mutations"`
	ObservationFacts []Fact      `json:"observation_facts"`
	ObservationText  string      `json:"observation_text"`
	LatentVariables  []string    `json:"latent_variables"`
	Ambiguities      []string    `json:"ambiguities"`
	Provenance       []SourceRef `json:"provenance"`
}

// UnmarshalJSONFrom reads evidence.
func (e *Evidence) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Evidence
	p := plain{Outcome: Unknown}
	if err := strict(dec, &p); err != nil {
		return err
	}
	if err := Needs("evidence", Field{Name: "id", There: p.ID != ""}, Field{Name: "episode_id", There: p.EpisodeID != ""}, Field{Name: "transition_id", There: p.TransitionID != ""}, Field{Name: "action", There: p.Action.Type != ""}); err != nil {
		return err
	}
	*e = Evidence(p)
	return e.Outcome.check()
}
