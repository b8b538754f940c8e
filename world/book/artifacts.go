package book

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/episode"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Artifacts are everything a worldbook is compiled from. They are kept in it
// as construction/artifacts.json, and their digest identifies them.
type Artifacts struct {
	Episodes         []episode.Episode      `json:"episodes"`
	Transitions      []episode.Slice        `json:"transitions"`
	Evidence         []world.Evidence       `json:"evidence"`
	ActionSchema     world.ActionSchema     `json:"action_schema"`
	StateSchema      world.StateSchema      `json:"state_schema"`
	Rules            []world.Rule           `json:"rules"`
	Invariants       []world.Invariant      `json:"invariants"`
	Renderers        []world.RenderContract `json:"renderers"`
	Demonstrations   []world.Demonstration  `json:"demonstrations"`
	Notes            []world.Note           `json:"notes"`
	Unresolved       []string               `json:"unresolved"`
	Rejected         []value.Value          `json:"rejected"`
	SourceSnapshots  map[string]string      `json:"source_snapshots"`
	SplitAssignments map[string]Assignment  `json:"split_assignments"`
}

// An Assignment says to which split and group a source belongs.
type Assignment struct {
	Split           string `json:"split"` // train, validation or test
	TrajectoryGroup string `json:"trajectory_group"`
}

// Config is how a worldbook was built. Most of it concerns building with a
// model; the zero Config is completed by [Config.Defaults].
type Config struct {
	EnvironmentID             string      `json:"environment_id"`
	Name                      string      `json:"name"`
	Description               string      `json:"description"`
	Domains                   []string    `json:"domains"`
	Model                     string      `json:"model"`
	ReasoningEffort           string      `json:"reasoning_effort"`
	MaxHistoryEvents          int64       `json:"max_history_events"`
	ExtractionHistoryChars    int64       `json:"extraction_history_chars"`
	ExtractionEventChars      int64       `json:"extraction_event_chars"`
	InductionValueChars       int64       `json:"induction_value_chars"`
	InductionObservationChars int64       `json:"induction_observation_chars"`
	InductionBatchSize        int64       `json:"induction_batch_size"`
	MinRuleConfidence         world.Real  `json:"min_rule_confidence"`
	TenantScope               *string     `json:"tenant_scope"`
	EnvironmentVersion        *string     `json:"environment_version"`
	Scope                     world.Scope `json:"scope"`
	ConstructionKind          string      `json:"construction_kind"`
	Ablation                  *string     `json:"ablation"`
	MaxPromptBytes            int64       `json:"max_prompt_bytes"`
}

// The kinds of construction.
const (
	Reconstructed = "reconstructed"
	Authored      = "authored"
	Ablated       = "ablated"
)

// Defaults is a configuration with the format's defaults
// (spec/world-reference.md §4).
func Defaults() Config {
	return Config{Model: "gpt-5.6-sol", ReasoningEffort: "medium", MaxHistoryEvents: 20, ExtractionHistoryChars: 2000, ExtractionEventChars: 40000,
		InductionValueChars: 400, InductionObservationChars: 2000, InductionBatchSize: 100, MinRuleConfidence: defaultConfidence,
		ConstructionKind: Reconstructed, MaxPromptBytes: 600000}
}

// UnmarshalJSONFrom reads a configuration over the defaults.
func (c *Config) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Config
	p := plain(Defaults())
	if err := json.UnmarshalDecode(dec, &p, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	*c = Config(p)
	return c.check()
}

func (c *Config) check() error {
	if err := world.Needs("a worldbook", world.Field{Name: "environment_id", There: c.EnvironmentID != ""}, world.Field{Name: "name", There: c.Name != ""}); err != nil {
		return err
	}
	switch c.ConstructionKind {
	case Reconstructed, Authored, Ablated:
	default:
		return fmt.Errorf("construction_kind %q is not reconstructed, authored or ablated", c.ConstructionKind)
	}
	return nil
}

// Context is the scope that rules of the package are compared with.
func (c *Config) Context() (world.Scope, error) {
	var out world.Scope
	set := func(key, val string) error {
		for _, e := range out {
			if e.Key == key {
				if e.Value != val {
					return fmt.Errorf("the scope says both %q and %q for %s", e.Value, val, key)
				}
				return nil
			}
		}
		out = append(out, world.ScopeEntry{Key: key, Value: val})
		return nil
	}
	for _, e := range c.Scope {
		if err := set(scopeKey(e.Key), e.Value); err != nil {
			return nil, err
		}
	}
	if err := set("environment_id", c.EnvironmentID); err != nil {
		return nil, err
	}
	if c.TenantScope != nil {
		if err := set("tenant", *c.TenantScope); err != nil {
			return nil, err
		}
	}
	if c.EnvironmentVersion != nil {
		if err := set("environment_version", *c.EnvironmentVersion); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Digest identifies the artifacts: a SHA-256 of the whole of them, written with
// sorted members.
func (a *Artifacts) Digest() (string, error) { return digest(a, python.DigestStyle) }

// Digest identifies the configuration.
func (c *Config) Digest() (string, error) { return digest(c, python.ConfigStyle) }

func digest(x any, style python.Style) (string, error) {
	text, err := json.Marshal(x)
	if err != nil {
		return "", err
	}
	v, err := value.Parse(text)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(python.Append(nil, v, style))
	return hex.EncodeToString(sum[:]), nil
}
