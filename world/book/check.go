package book

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/engine"
	"github.com/callsheet/callsheet/world/episode"
	"github.com/callsheet/callsheet/world/internal/python"
)

// Check verifies that artifacts hang together: unique ids, known references,
// well-formed rules, and, for a package that was rebuilt from traces, that
// every executable claim is anchored in events that were observed. The error
// names the first thing at fault.
func (a *Artifacts) Check(c *Config, extended bool) error {
	if !extended {
		if what := usesExtension(a); what != "" {
			return fmt.Errorf("%s uses any, all, not or $state_path, which the plain format does not have; write with the extension", what)
		}
	}
	k := &checker{a: a, anchored: c.ConstructionKind == Reconstructed, episodes: map[string]*episode.Episode{}, bySource: map[string][]*episode.Episode{},
		events: map[string]string{}, slices: map[string]*episode.Slice{}}
	eng, err := engine.New(knowledge(a, a.Rules, nil, 0, extended))
	if err != nil {
		return err
	}
	k.e = eng
	for _, check := range []func() error{k.unique, k.recordings, k.sources, k.evidence, k.schemas, k.rules, k.rest} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func knowledge(a *Artifacts, rules []world.Rule, scope map[string]string, min float64, extended bool) engine.Knowledge {
	return engine.Knowledge{Actions: a.ActionSchema.Actions, Fields: a.StateSchema.Fields, Rules: rules, Invariants: a.Invariants,
		Renderers: a.Renderers, Notes: a.Notes, Demonstrations: a.Demonstrations, Scope: scope, MinConfidence: min, Extended: extended}
}

type checker struct {
	a        *Artifacts
	e        *engine.Engine
	anchored bool
	episodes map[string]*episode.Episode
	bySource map[string][]*episode.Episode
	events   map[string]string // id → episode
	slices   map[string]*episode.Slice
}

func unique[T any](what string, xs []T, id func(*T) string) error {
	seen := make(map[string]bool, len(xs))
	for i := range xs {
		k := id(&xs[i])
		if seen[k] {
			return fmt.Errorf("two %s are called %q", what, k)
		}
		seen[k] = true
	}
	return nil
}

func (k *checker) unique() error {
	a := k.a
	for _, err := range []error{
		unique("episodes", a.Episodes, func(x *episode.Episode) string { return x.ID }),
		unique("transitions", a.Transitions, func(x *episode.Slice) string { return x.ID }),
		unique("pieces of evidence", a.Evidence, func(x *world.Evidence) string { return x.ID }),
		unique("rules", a.Rules, func(x *world.Rule) string { return x.ID }),
		unique("renderers", a.Renderers, func(x *world.RenderContract) string { return x.ID }),
		unique("invariants", a.Invariants, func(x *world.Invariant) string { return x.ID }),
		unique("demonstrations", a.Demonstrations, func(x *world.Demonstration) string { return x.ID }),
		unique("notes", a.Notes, func(x *world.Note) string { return x.ID }),
		unique("actions", a.ActionSchema.Actions, func(x *world.ActionSpec) string { return x.Name }),
		unique("state fields", a.StateSchema.Fields, func(x *world.StateField) string { return x.Path }),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (k *checker) recordings() error {
	for i := range k.a.Episodes {
		e := &k.a.Episodes[i]
		k.episodes[e.ID] = e
		k.bySource[e.SourceID] = append(k.bySource[e.SourceID], e)
		for j := range e.Events {
			if _, twice := k.events[e.Events[j].ID]; twice {
				return fmt.Errorf("two events are called %q", e.Events[j].ID)
			}
			k.events[e.Events[j].ID] = e.ID
		}
		if len(k.a.SplitAssignments) > 0 {
			as, ok := k.a.SplitAssignments[e.SourceID]
			group, _ := e.Metadata.Get("trajectory_group")
			if !ok || as.Split != "train" || python.Str(group) != as.TrajectoryGroup {
				return fmt.Errorf("episode %s is not in the train split of its manifest", e.ID)
			}
		}
	}
	for i := range k.a.Transitions {
		t := &k.a.Transitions[i]
		k.slices[t.ID] = t
		if k.episodes[t.EpisodeID] == nil {
			return fmt.Errorf("transition %s is of the unknown episode %q", t.ID, t.EpisodeID)
		}
		for _, ids := range [][]string{t.History, t.Actions, t.Results, t.Delayed, t.Concurrent} {
			for _, id := range ids {
				if k.events[id] != t.EpisodeID {
					return fmt.Errorf("transition %s refers to the unknown event %q", t.ID, id)
				}
			}
		}
	}
	return nil
}

func (k *checker) sources() error {
	for id, text := range k.a.SourceSnapshots {
		sum := sha256.Sum256([]byte(text))
		if id != "src_"+hex.EncodeToString(sum[:]) {
			return fmt.Errorf("the snapshot of source %s is not what its id says", id)
		}
	}
	if !k.anchored {
		return nil
	}
	if len(k.a.Evidence) == 0 || len(k.a.Episodes) == 0 {
		return fmt.Errorf("a reconstructed package needs episodes and evidence")
	}
	for src := range k.bySource {
		if _, ok := k.a.SourceSnapshots[src]; !ok {
			return fmt.Errorf("the text of source %s is missing", src)
		}
	}
	return nil
}

// refs checks that references lead to events that were recorded.
func (k *checker) refs(owner string, refs []world.SourceRef, required bool) error {
	if required && len(refs) == 0 {
		return fmt.Errorf("%s has no provenance", owner)
	}
	for _, r := range refs {
		eps := k.bySource[r.SourceID]
		if len(eps) == 0 {
			return fmt.Errorf("%s refers to the unknown source %q", owner, r.SourceID)
		}
		if required && (r.EpisodeID == nil || len(r.EventIDs) == 0) {
			return fmt.Errorf("%s needs references to an episode and events", owner)
		}
		in := ""
		if r.EpisodeID != nil {
			in = *r.EpisodeID
			if e := k.episodes[in]; e == nil || e.SourceID != r.SourceID {
				return fmt.Errorf("%s refers to the unknown episode %q", owner, in)
			}
		}
		for _, id := range r.EventIDs {
			have := k.events[id]
			if in == "" {
				in = have
			}
			if have == "" || have != in || k.episodes[have].SourceID != r.SourceID {
				return fmt.Errorf("%s refers to event %q, which is not in its episode", owner, id)
			}
		}
	}
	return nil
}

func (k *checker) evidence() error {
	for i := range k.a.Evidence {
		ev := &k.a.Evidence[i]
		owner := "evidence " + ev.ID
		t := k.slices[ev.TransitionID]
		if t == nil || t.EpisodeID != ev.EpisodeID {
			return fmt.Errorf("%s is of an unknown transition", owner)
		}
		if spec := k.e.Action(ev.Action.Type); spec == nil || spec.Name != ev.Action.Type {
			return fmt.Errorf("%s is of the undeclared action %q", owner, ev.Action.Type)
		}
		if err := k.refs(owner, ev.Provenance, k.anchored); err != nil {
			return err
		}
		for _, facts := range [][]world.Fact{ev.Preconditions, ev.ObservationFacts} {
			for _, f := range facts {
				if err := k.refs(owner, f.Provenance, false); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (k *checker) schemas() error {
	for _, f := range k.a.StateSchema.Fields {
		if !f.Default.IsNull() && !f.Type.Fits(f.Default) {
			return fmt.Errorf("the default of %s is no %s", f.Path, f.Type)
		}
		if err := k.refs("state field "+f.Path, f.Provenance, false); err != nil {
			return err
		}
	}
	for _, a := range k.a.ActionSchema.Actions {
		if err := k.refs("action "+a.Name, a.Provenance, false); err != nil {
			return err
		}
	}
	return nil
}

func (k *checker) rules() error {
	observed := map[string]map[string]bool{} // action → results of unambiguous transitions, with their episode
	if k.anchored {
		for i := range k.a.Evidence {
			ev := &k.a.Evidence[i]
			t := k.slices[ev.TransitionID]
			if t.Alignment == episode.Ambiguous || len(t.Concurrent) > 0 {
				continue
			}
			if observed[ev.Action.Type] == nil {
				observed[ev.Action.Type] = map[string]bool{}
			}
			for _, id := range t.Results {
				observed[ev.Action.Type][id] = true
			}
		}
	}
	for i := range k.a.Rules {
		r := &k.a.Rules[i]
		owner := "rule " + r.ID
		required := k.anchored && r.Status == world.Supported
		if err := k.refs(owner, r.Provenance, required); err != nil {
			return err
		}
		if err := k.refs(owner, r.Counterexamples, false); err != nil {
			return err
		}
		if required {
			supported := false
			for _, ref := range r.Provenance {
				for _, id := range ref.EventIDs {
					supported = supported || observed[r.ActionType][id]
				}
			}
			if !supported {
				return fmt.Errorf("%s cites no unambiguous observed transition of its action", owner)
			}
		}
		if issues := k.e.CheckRule(r); len(issues) > 0 {
			return fmt.Errorf("%s: %s", owner, strings.Join(issues, "; "))
		}
	}
	return nil
}

func (k *checker) rest() error {
	for i := range k.a.Invariants {
		inv := &k.a.Invariants[i]
		if err := k.refs("invariant "+inv.ID, inv.Provenance, k.anchored); err != nil {
			return err
		}
		if err := k.e.CheckCondition(&inv.Condition, nil); err != nil {
			return fmt.Errorf("invariant %s: %w", inv.ID, err)
		}
	}
	for i := range k.a.Renderers {
		r := &k.a.Renderers[i]
		if err := k.refs("renderer "+r.ID, r.Provenance, false); err != nil {
			return err
		}
		if issues := k.e.CheckRenderer(r); len(issues) > 0 {
			return fmt.Errorf("renderer %s: %s", r.ID, strings.Join(issues, "; "))
		}
	}
	for _, d := range k.a.Demonstrations {
		if err := k.refs("demonstration "+d.ID, d.Provenance, false); err != nil {
			return err
		}
		if spec := k.e.Action(d.Action.Type); spec == nil || spec.Name != d.Action.Type {
			return fmt.Errorf("demonstration %s is of the unknown action %q", d.ID, d.Action.Type)
		}
		for _, id := range d.RuleIDs {
			if k.e.Rule(id) == nil {
				return fmt.Errorf("demonstration %s refers to the unknown rule %q", d.ID, id)
			}
		}
	}
	for _, n := range k.a.Notes {
		if err := k.refs("note "+n.ID, n.Provenance, k.anchored && n.Status == world.Supported); err != nil {
			return err
		}
		for _, name := range n.ActionTypes {
			if spec := k.e.Action(name); spec == nil || spec.Name != name {
				return fmt.Errorf("note %s references an unknown action %q", n.ID, name)
			}
		}
	}
	return nil
}
