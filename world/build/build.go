// Package build makes a worldbook from recorded episodes without a model: what
// it says is only what the recordings determine.
//
//	rec, err := episode.Read(ctx, files, episode.Options{})
//	a, report, err := build.Build(rec, config, build.Options{})
//	err = book.Write("shop.world", a, config, book.WriteOptions{})
//	fmt.Println(report.Rules, "rules,", report.Rejected, "ideas that did not hold")
//
// Actions are declared as they were seen. Every paired turn becomes evidence,
// and a few become demonstrations. Rules are induced where contrasts determine
// them, and count as supported only if turns that were held out agree.
package build

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/episode"
	"github.com/callsheet/callsheet/world/internal/python"
)

// Options say how a worldbook is built. The zero value is the default.
type Options struct {
	// NoRules leaves rules out.
	NoRules bool
	// Demonstrations is how many turns of an action are shown as examples; 0: 3.
	Demonstrations int
	// Holdout: every so many episodes one is kept from the induction, to falsify
	// what it finds; 0: 4. With fewer than two episodes nothing can be held out,
	// and no rule is more than tentative.
	Holdout int
}

// A Report says what was made.
type Report struct {
	Episodes, Turns int
	Unreadable      int // actions that name no action type
	Ambiguous       int // turns that could not be paired
	Actions         int
	Rules           int // supported
	Tentative       int // that no held-out turn could test
	Rejected        int // that a held-out turn contradicted
}

// A turn is one paired action of the recording.
type turn struct {
	ep       *episode.Episode
	epIndex  int
	slice    *episode.Slice
	action   world.Action
	text     string
	outcome  world.Outcome
	clear    bool // paired without doubt, and alone
	evidence *world.Evidence
}

// Build makes the artifacts of a worldbook. The configuration must say that it
// is reconstructed, which is the default. The same recording gives the same
// artifacts.
func Build(rec *episode.Recording, c *book.Config, o Options) (*book.Artifacts, *Report, error) {
	o.Demonstrations = cmp.Or(o.Demonstrations, 3)
	o.Holdout = cmp.Or(o.Holdout, 4)
	a := &book.Artifacts{Episodes: rec.Episodes, Transitions: rec.Slices, SourceSnapshots: map[string]string{}}
	r := &Report{Episodes: len(rec.Episodes)}
	for _, s := range rec.Sources {
		a.SourceSnapshots[s.ID] = s.Text
	}
	turns := collect(rec, a, r)
	if len(turns) == 0 {
		return nil, r, fmt.Errorf("there is no turn with a readable action in %s; an action is an object with type, name or tool, or the name alone", count.Of(len(rec.Episodes), "episode"))
	}
	a.ActionSchema.Actions = declare(turns)
	r.Actions = len(a.ActionSchema.Actions)
	a.Renderers = []world.RenderContract{{ID: "default", ContentType: "text/plain",
		Instructions: "Return exactly the text that the environment would return."}}
	if !o.NoRules {
		induce(turns, a, o, r)
	}
	for _, t := range turns {
		a.Evidence = append(a.Evidence, *t.evidence)
	}
	a.Demonstrations = demonstrate(turns, o.Demonstrations)
	if err := a.Check(c, false); err != nil {
		return nil, r, err
	}
	return a, r, nil
}

func collect(rec *episode.Recording, a *book.Artifacts, r *Report) []*turn {
	byID := map[string]int{}
	for i := range rec.Episodes {
		byID[rec.Episodes[i].ID] = i
	}
	var turns []*turn
	for i := range rec.Slices {
		s := &rec.Slices[i]
		e := &rec.Episodes[byID[s.EpisodeID]]
		r.Turns++
		act, ok := episode.ReadAction(s.ActionOf(e))
		if !ok {
			r.Unreadable++
			a.Unresolved = append(a.Unresolved, "event "+s.Actions[0]+": no action type can be read from it")
			continue
		}
		act.Raw = value.NullValue() // the event has it
		t := &turn{ep: e, epIndex: byID[s.EpisodeID], slice: s, action: act, outcome: world.Unknown,
			clear: s.Alignment != episode.Ambiguous && len(s.Concurrent) == 0}
		var texts []string
		for i, res := range s.ResultsOf(e) {
			texts = append(texts, episode.ResultText(res))
			switch o := res.Outcome(); {
			case i == 0 || o == world.Failed:
				t.outcome = o
			case t.outcome != world.Failed && o != t.outcome:
				t.outcome = world.Unknown
			}
		}
		t.text = strings.Join(texts, "\n")
		confidence := world.Judgement{Value: 1, Rationale: "paired by " + string(s.Alignment) + " alignment"}
		switch {
		case s.Alignment == episode.Ambiguous:
			r.Ambiguous++
			confidence = world.Judgement{Value: 0, Rationale: "no unambiguous result"}
		case len(s.Concurrent) > 0:
			confidence = world.Judgement{Value: 0.5, Rationale: "concurrent with other calls"}
		}
		t.evidence = &world.Evidence{ID: "evidence_" + s.ID, EpisodeID: e.ID, TransitionID: s.ID, Action: act, Confidence: confidence,
			Outcome: t.outcome, ObservationText: t.text, Ambiguities: s.Ambiguities,
			Provenance: []world.SourceRef{e.Ref(append(slices.Clone(s.Actions), s.Results...)...)}}
		turns = append(turns, t)
	}
	return turns
}

// maxProvenance is how many turns an action is declared by.
const maxProvenance = 3

// declare makes a declaration of each action type: the arguments that were
// seen, the narrowest type that fits all of their values, and whether they were
// always there.
func declare(turns []*turn) []world.ActionSpec {
	var specs []world.ActionSpec
	index := map[string]int{}
	seen := map[string]int{}
	count := map[string]map[string]int{}
	for _, t := range turns {
		name := t.action.Type
		i, ok := index[name]
		if !ok {
			i = len(specs)
			index[name] = i
			specs = append(specs, world.ActionSpec{Name: name})
			count[name] = map[string]int{}
		}
		s := &specs[i]
		seen[name]++
		if len(s.Provenance) < maxProvenance {
			s.Provenance = append(s.Provenance, t.ep.Ref(t.slice.Actions...))
		}
		for k, v := range t.action.Arguments.Members() {
			count[name][k]++
			typ := world.TypeOf(v)
			if v.IsNull() {
				typ = world.AnyType
			}
			if have := s.Arguments.Get(k); have == nil {
				s.Arguments = append(s.Arguments, world.NamedArgument{Name: k, Argument: world.Argument{Type: typ, Enum: value.NullValue()}})
			} else {
				have.Type = join(have.Type, typ)
			}
		}
	}
	for i := range specs {
		for j := range specs[i].Arguments {
			arg := &specs[i].Arguments[j]
			arg.Required = count[specs[i].Name][arg.Name] == seen[specs[i].Name]
		}
	}
	slices.SortFunc(specs, func(a, b world.ActionSpec) int { return strings.Compare(a.Name, b.Name) })
	return specs
}

// join is the narrowest type that takes both.
func join(a, b world.Type) world.Type {
	number := func(t world.Type) bool { return t == world.IntegerType || t == world.NumberType }
	switch {
	case a == b:
		return a
	case number(a) && number(b):
		return world.NumberType
	}
	return world.AnyType
}

// demonstrate chooses the turns that are shown as examples: of each action one
// of every outcome and kind of text first, then those of other episodes.
func demonstrate(turns []*turn, n int) []world.Demonstration {
	byAction := map[string][]*turn{}
	var names []string
	for _, t := range turns {
		if !t.clear {
			continue
		}
		if byAction[t.action.Type] == nil {
			names = append(names, t.action.Type)
		}
		byAction[t.action.Type] = append(byAction[t.action.Type], t)
	}
	slices.Sort(names)
	out := []world.Demonstration{}
	for _, name := range names {
		branches, episodes := map[string]bool{}, map[string]bool{}
		taken := map[*turn]bool{}
		take := func(want func(t *turn) bool) {
			for _, t := range byAction[name] {
				if len(taken) == n || taken[t] || !want(t) {
					continue
				}
				taken[t] = true
				branches[branch(t)], episodes[t.ep.ID] = true, true
				out = append(out, world.Demonstration{ID: "demo_" + t.evidence.ID, Action: t.action, Observation: t.text,
					StateBefore: value.ObjectOf(), StateAfter: value.ObjectOf(), Outcome: t.outcome, Provenance: t.evidence.Provenance})
			}
		}
		take(func(t *turn) bool { return !branches[branch(t)] })
		take(func(t *turn) bool { return !episodes[t.ep.ID] })
		take(func(*turn) bool { return true })
	}
	return out
}

// branch is the kind of what came back: the outcome, and the text without its
// numbers and arguments.
func branch(t *turn) string {
	var b strings.Builder
	b.WriteString(string(t.outcome))
	for _, p := range scan(t.text, t.action) {
		if p.slot {
			b.WriteString("\x00")
		} else {
			b.WriteString(p.text)
		}
	}
	return python.Slice(b.String(), 0, 120)
}
