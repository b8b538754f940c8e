package book

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Status says how far a worldbook may be trusted.
type Status string

// The statuses. A candidate has passed no replay yet.
const (
	Candidate Status = "candidate"
	Validated Status = "validated"
	ByHand    Status = "authored"
)

// A Manifest is what manifest.json says: what the package is, and the SHA-256
// of every other file in it.
type Manifest struct {
	SchemaVersion   string      `json:"schema_version"`
	EnvironmentID   string      `json:"environment_id"`
	Name            string      `json:"name"`
	Description     string      `json:"description"`
	Version         string      `json:"version"`
	CreatedAt       string      `json:"created_at"`
	Domains         []string    `json:"domains"`
	SourceCount     int64       `json:"source_count"`
	TransitionCount int64       `json:"transition_count"`
	Files           Hashes      `json:"files"`
	Metadata        value.Value `json:"metadata"`
}

// Hashes are hex SHA-256 sums by slash-separated path.
type Hashes map[string]string

// MarshalJSONTo writes the sums in the order of their paths.
func (h Hashes) MarshalJSONTo(enc *jsontext.Encoder) error {
	return json.MarshalEncode(enc, map[string]string(h), json.Deterministic(true))
}

// UnmarshalJSONFrom reads a manifest.
func (m *Manifest) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Manifest
	p := plain{SchemaVersion: "1.0", Version: "0.1.0", Metadata: value.ObjectOf()}
	if err := json.UnmarshalDecode(dec, &p, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	if err := world.Needs("a manifest", world.Field{Name: "environment_id", There: p.EnvironmentID != ""}, world.Field{Name: "name", There: p.Name != ""}); err != nil {
		return err
	}
	*m = Manifest(p)
	return nil
}

// check refuses a manifest that this version does not read.
func (m *Manifest) check() error {
	switch m.SchemaVersion {
	case "1.0", "1.1":
	default:
		return fmt.Errorf("the schema version is %q, and this version reads 1.0 and 1.1", m.SchemaVersion)
	}
	switch m.Kind() {
	case Reconstructed, Authored, Ablated:
	default:
		return fmt.Errorf("the construction_kind %q is not %s, %s or %s", m.Kind(), Reconstructed, Authored, Ablated)
	}
	switch m.Status() {
	case Candidate, Validated, ByHand:
	default:
		return fmt.Errorf("the validation_status %q is not %s, %s or %s", m.Status(), Candidate, Validated, ByHand)
	}
	return nil
}

// agrees checks what no hash covers, the manifest itself, against the files that
// say the same: how the package was built, and the replay that validated it.
func (m *Manifest) agrees(c *Config, report value.Value) error {
	digest, err := c.Digest()
	if err != nil {
		return err
	}
	for _, f := range []struct{ what, is, want string }{
		{"environment_id", m.EnvironmentID, c.EnvironmentID},
		{"name", m.Name, c.Name},
		{"description", m.Description, c.Description},
		{"domains", strings.Join(m.Domains, ", "), strings.Join(c.Domains, ", ")},
		{"config_digest", m.ConfigDigest(), digest},
		{"construction_kind", m.Kind(), c.ConstructionKind},
		{"min_rule_confidence", fmt.Sprint(m.MinRuleConfidence()), fmt.Sprint(float64(c.MinRuleConfidence))},
	} {
		if f.is != f.want {
			return fmt.Errorf("%w: the manifest's %s is %q, and construction/config.json says %q", ErrIntegrity, f.what, f.is, f.want)
		}
	}
	tenant := ""
	if c.TenantScope != nil {
		tenant = *c.TenantScope
	}
	if is := m.text("tenant_scope"); is != tenant {
		return fmt.Errorf("%w: the manifest's tenant_scope is %q, and construction/config.json says %q", ErrIntegrity, is, tenant)
	}
	context, err := c.Context()
	if err != nil {
		return err
	}
	scope := map[string]string{}
	for _, e := range context {
		scope[e.Key] = e.Value
	}
	if is := m.Scope(); !maps.Equal(is, scope) {
		return fmt.Errorf("%w: the manifest's scope_context is %v, and construction/config.json says %v", ErrIntegrity, is, scope)
	}
	want := Candidate
	if c.ConstructionKind == Authored {
		want = ByHand
	}
	if !report.IsZero() {
		want = Validated
		of, _ := report.Get("artifact_digest")
		eligible, _ := report.Get("promotion_eligible")
		if s, _ := of.Text(); s != m.ArtifactDigest() || !python.Equal(eligible, value.BoolValue(true)) {
			return fmt.Errorf("%w: the report in validation/replay.json does not allow these artifacts to be validated", ErrIntegrity)
		}
	}
	if m.Status() != want {
		return fmt.Errorf("%w: the manifest's validation_status is %s, and what is in the package makes it %s", ErrIntegrity, m.Status(), want)
	}
	return nil
}

func (m *Manifest) text(key string) string {
	v, _ := m.Metadata.Get(key)
	s, _ := v.Text()
	return s
}

// Status is how far the package may be trusted; one that does not say is a
// candidate.
func (m *Manifest) Status() Status {
	return cmp.Or(Status(m.text("validation_status")), Candidate)
}

// Kind is how the package was made: reconstructed, authored or ablated; one that
// does not say is reconstructed.
func (m *Manifest) Kind() string { return cmp.Or(m.text("construction_kind"), Reconstructed) }

// ArtifactDigest identifies what the package was compiled from.
func (m *Manifest) ArtifactDigest() string { return m.text("artifact_digest") }

// ConfigDigest identifies how it was built.
func (m *Manifest) ConfigDigest() string { return m.text("config_digest") }

// defaultConfidence is the confidence that a package means which does not say one.
const defaultConfidence = 0.55

// MinRuleConfidence is the confidence below which its rules are not used.
func (m *Manifest) MinRuleConfidence() float64 {
	v, _ := m.Metadata.Get("min_rule_confidence")
	lit, _ := v.Number()
	f, err := strconv.ParseFloat(lit, 64)
	if err != nil {
		return defaultConfidence
	}
	return f
}

// Scope is what rules of the package are compared with.
func (m *Manifest) Scope() map[string]string {
	out := map[string]string{}
	ctx, _ := m.Metadata.Get("scope_context")
	for k, v := range ctx.Members() {
		out[k] = python.Str(v)
	}
	if _, ok := out["environment_id"]; !ok {
		out["environment_id"] = m.EnvironmentID
	}
	if t := m.text("tenant_scope"); t != "" && out["tenant"] == "" {
		out["tenant"] = t
	}
	return out
}

// Extension is the mark of a package whose rules read state in effects or have
// any, all and not in conditions (spec/world.md §3.6). The format that other
// programs read has neither.
const Extension = "callsheet.rules.1"

// extended reports whether the package carries the mark; another one is not
// understood and refused.
func (m *Manifest) extended() (bool, error) {
	v, ok := m.Metadata.Get("extensions")
	if !ok || v.Len() == 0 {
		return false, nil
	}
	for _, e := range v.Elements() {
		if s, _ := e.Text(); s != Extension {
			return false, fmt.Errorf("the package needs the extension %s, which this version does not know", e)
		}
	}
	return true, nil
}

// usesExtension names a rule or invariant that the plain format cannot hold, ""
// if there is none.
func usesExtension(a *Artifacts) string {
	for i := range a.Rules {
		r := &a.Rules[i]
		if slices.ContainsFunc(r.Conditions, world.Condition.IsGroup) || slices.ContainsFunc(r.Effects, func(m world.Mutation) bool { return readsState(m.Value) }) {
			return "rule " + r.ID
		}
	}
	for i := range a.Invariants {
		if a.Invariants[i].Condition.IsGroup() {
			return "invariant " + a.Invariants[i].ID
		}
	}
	return ""
}

func readsState(v value.Value) bool {
	if _, ok := v.Get("$state_path"); ok {
		return true
	}
	for _, m := range v.Members() {
		if readsState(m) {
			return true
		}
	}
	for _, e := range v.Elements() {
		if readsState(e) {
			return true
		}
	}
	return false
}
