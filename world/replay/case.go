package replay

import (
	"fmt"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/state"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Case is a recorded trajectory: where it began, what was done, and what the
// environment said.
type Case struct {
	ID                   string      `json:"id"`
	TrajectoryGroup      string      `json:"trajectory_group"`
	SourceIDs            []string    `json:"source_ids"`
	Split                string      `json:"split"` // train, validation or test
	InitialState         state.State `json:"initial_state"`
	InitialStateComplete bool        `json:"initial_state_complete"`
	KnownAbsentPaths     []string    `json:"known_absent_paths"`
	Steps                []Step      `json:"steps"`
}

// UnmarshalJSONFrom reads a case; it must have a source, a step, and a split.
func (c *Case) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Case
	var p plain
	p.InitialState.Revision = -1 // stays when it is missing
	if err := json.UnmarshalDecode(dec, &p, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	if err := world.Needs("a case", world.Field{Name: "id", There: p.ID != ""}, world.Field{Name: "trajectory_group", There: p.TrajectoryGroup != ""},
		world.Field{Name: "source_ids (one or more)", There: len(p.SourceIDs) > 0}, world.Field{Name: "split", There: p.Split != ""},
		world.Field{Name: "initial_state", There: p.InitialState.Revision >= 0}, world.Field{Name: "steps (one or more)", There: len(p.Steps) > 0}); err != nil {
		return err
	}
	if p.Split != "train" && p.Split != "validation" && p.Split != "test" {
		return fmt.Errorf("case %q: split %q is not train, validation or test", p.ID, p.Split)
	}
	*c = Case(p)
	return nil
}

// A Step is an action and what is expected of it.
type Step struct {
	Action              world.Action   `json:"action"`
	ExpectedObservation string         `json:"expected_observation"`
	ObservationMatch    string         `json:"observation_match"` // exact or json
	ExpectedOutcome     *world.Outcome `json:"expected_outcome"`
	ExpectedState       value.Value    `json:"expected_state"` // path → value
}

// UnmarshalJSONFrom reads a step; its observation is compared exactly unless it
// says otherwise.
func (s *Step) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Step
	p := plain{ObservationMatch: "exact", ExpectedState: value.ObjectOf(), ExpectedObservation: "\x00"}
	if err := json.UnmarshalDecode(dec, &p, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	if err := world.Needs("a step", world.Field{Name: "action", There: p.Action.Type != ""}, world.Field{Name: "expected_observation", There: p.ExpectedObservation != "\x00"}); err != nil {
		return err
	}
	switch {
	case p.ObservationMatch != "exact" && p.ObservationMatch != "json":
		return fmt.Errorf("observation_match %q is not exact or json", p.ObservationMatch)
	case p.ExpectedState.Kind() != value.Object:
		return fmt.Errorf("expected_state must be an object")
	}
	*s = Step(p)
	return nil
}

// A Report says how cases went, and whether the worldbook may be promoted.
type Report struct {
	ArtifactDigest      string       `json:"artifact_digest"`
	ConfigDigest        string       `json:"config_digest"`
	Cases               []CaseResult `json:"cases"`
	TotalCases          int          `json:"total_cases"`
	PassedCases         int          `json:"passed_cases"`
	TotalSteps          int          `json:"total_steps"`
	AttemptedSteps      int          `json:"attempted_steps"`
	BaselinePassedCases *int         `json:"baseline_passed_cases"` // nil without a baseline
	Regressions         []string     `json:"regressions"`
	PromotionEligible   bool         `json:"promotion_eligible"`
	Reasons             []string     `json:"reasons"` // against promotion
	UncoveredRuleIDs    []string     `json:"uncovered_rule_ids"`
}

// A CaseResult says how one case went.
type CaseResult struct {
	CaseID          string   `json:"case_id"`
	TrajectoryGroup string   `json:"trajectory_group"`
	Passed          bool     `json:"passed"`
	AttemptedSteps  int      `json:"attempted_steps"`
	ExpectedSteps   int      `json:"expected_steps"`
	Errors          []string `json:"errors"`
	RuleIDs         []string `json:"rule_ids"`

	// Details say of each mismatch and of what was never observed what the report,
	// whose texts are those of the format, does not: what was expected and what
	// came, or which path is unknown.
	Details []string `json:"-"`
}

// Passed reports whether there were cases and all of them passed.
func (r *Report) Passed() bool { return r.TotalCases > 0 && r.PassedCases == r.TotalCases }
