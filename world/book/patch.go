package book

import (
	"fmt"
	"slices"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Patch edits artifacts of one exact digest, because of cases that failed.
type Patch struct {
	BaseArtifactDigest string   `json:"base_artifact_digest"`
	Rationale          string   `json:"rationale"`
	FailedCaseIDs      []string `json:"failed_case_ids"`
	Edits              []Edit   `json:"edits"`
}

// An Edit changes one item. The key is its id; of an action its name, of a
// state field its path.
type Edit struct {
	Collection string      `json:"collection"` // rules, invariants, renderers, demonstrations, notes, actions or state_fields
	Key        string      `json:"key"`
	Operation  string      `json:"operation"` // add, replace or remove
	Value      value.Value `json:"value"`     // null when removing
}

// UnmarshalJSONFrom reads a patch; it must name its base, at least one case
// and at least one edit.
func (p *Patch) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Patch
	var q plain
	if err := json.UnmarshalDecode(dec, &q, json.RejectUnknownMembers(true)); err != nil {
		return err
	}
	if err := world.Needs("a patch", world.Field{Name: "base_artifact_digest", There: q.BaseArtifactDigest != ""}, world.Field{Name: "rationale", There: q.Rationale != ""}, world.Field{Name: "failed_case_ids (one or more)", There: len(q.FailedCaseIDs) > 0}, world.Field{Name: "edits (one or more)", There: len(q.Edits) > 0}); err != nil {
		return err
	}
	*p = Patch(q)
	return nil
}

// Apply gives the artifacts with the edits made; a itself is unchanged. A patch
// for another base, two edits of one item, adding what is there and changing
// what is not are faults of type ValueError.
func (p *Patch) Apply(a *Artifacts) (*Artifacts, error) {
	base, err := a.Digest()
	if err != nil {
		return nil, err
	}
	if base != p.BaseArtifactDigest {
		return nil, world.Faultf(world.ValueError, "the patch is for artifacts %s, these are %s; make it anew", p.BaseArtifactDigest, base)
	}
	out := *a
	seen := map[[2]string]bool{}
	for i := range p.Edits {
		e := &p.Edits[i]
		at := [2]string{e.Collection, e.Key}
		if seen[at] {
			return nil, world.Faultf(world.ValueError, "edit %d: %s %q is edited twice", i, e.Collection, e.Key)
		}
		seen[at] = true
		switch e.Collection {
		case "rules":
			out.Rules, err = edit(e, out.Rules, func(x *world.Rule) string { return x.ID })
		case "invariants":
			out.Invariants, err = edit(e, out.Invariants, func(x *world.Invariant) string { return x.ID })
		case "renderers":
			out.Renderers, err = edit(e, out.Renderers, func(x *world.RenderContract) string { return x.ID })
		case "demonstrations":
			out.Demonstrations, err = edit(e, out.Demonstrations, func(x *world.Demonstration) string { return x.ID })
		case "notes":
			out.Notes, err = edit(e, out.Notes, func(x *world.Note) string { return x.ID })
		case "actions":
			out.ActionSchema.Actions, err = edit(e, out.ActionSchema.Actions, func(x *world.ActionSpec) string { return x.Name })
		case "state_fields":
			out.StateSchema.Fields, err = edit(e, out.StateSchema.Fields, func(x *world.StateField) string { return x.Path })
		default:
			err = fmt.Errorf("there is no collection of this name; there are rules, invariants, renderers, demonstrations, notes, actions and state_fields")
		}
		if err != nil {
			return nil, world.Faultf(world.ValueError, "edit %d (%s %q): %v", i, e.Collection, e.Key, err)
		}
	}
	return &out, nil
}

func edit[T any](e *Edit, xs []T, id func(*T) string) ([]T, error) {
	at := -1
	for i := range xs {
		if id(&xs[i]) == e.Key {
			at = i
			break
		}
	}
	none := e.Value.IsZero() || e.Value.IsNull()
	switch {
	case e.Operation == "add" && at >= 0:
		return nil, fmt.Errorf("it is there already")
	case (e.Operation == "replace" || e.Operation == "remove") && at < 0:
		return nil, fmt.Errorf("it is not there")
	case e.Operation == "remove":
		if !none {
			return nil, fmt.Errorf("removing takes no value")
		}
		return slices.Delete(slices.Clone(xs), at, at+1), nil
	case e.Operation != "add" && e.Operation != "replace":
		return nil, fmt.Errorf("operation %q is not add, replace or remove", e.Operation)
	case none:
		return nil, fmt.Errorf("%s needs a value", e.Operation)
	}
	var x T
	if err := world.DecodeValue(e.Value, &x); err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	if id(&x) != e.Key {
		return nil, fmt.Errorf("the value is %q, the key says %q", id(&x), e.Key)
	}
	out := slices.Clone(xs)
	if at >= 0 {
		out[at] = x
		return out, nil
	}
	return append(out, x), nil
}
