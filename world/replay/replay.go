// Package replay plays recorded cases on a worldbook without any model, and
// decides from how they went whether it may be promoted.
//
//	cases, err := replay.ReadCases("cases.jsonl", text)
//	report, err := replay.Run(ctx, b, cases, nil)
//	if report.PromotionEligible {
//		err = replay.Promote(b, report, "ledger-validated.world")
//	}
//
// The report's texts and rules are those of spec/world-reference.md §4.
package replay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/engine"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/callsheet/callsheet/world/session"
	"github.com/callsheet/callsheet/world/state"
	"github.com/go-json-experiment/json"
)

// ReadCases reads cases from JSON Lines. The error names the file and line.
func ReadCases(name string, text []byte) ([]Case, error) {
	cases, err := world.ReadLines[Case](text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return cases, nil
}

// Run plays the cases on b, and on the baseline if there is one. Cases that
// contradict each other or the worldbook's split manifest are an error before
// anything is played, a fault of type ValueError.
func Run(ctx context.Context, b *book.Book, cases []Case, baseline *book.Book) (*Report, error) {
	artifacts, _, err := b.Artifacts()
	if err != nil {
		return nil, err
	}
	if err := consistent(cases, artifacts); err != nil {
		return nil, err
	}
	results, err := play(ctx, b, cases)
	if err != nil {
		return nil, err
	}
	r := &Report{ArtifactDigest: b.Manifest.ArtifactDigest(), ConfigDigest: b.Manifest.ConfigDigest(), Cases: results, TotalCases: len(results)}
	if baseline != nil {
		old, err := play(ctx, baseline, cases)
		if err != nil {
			return nil, err
		}
		n := 0
		for i := range old {
			if old[i].Passed {
				n++
				if !results[i].Passed {
					r.Regressions = append(r.Regressions, results[i].CaseID)
				}
			}
		}
		r.BaselinePassedCases = &n
	}
	covered := map[string]bool{}
	for _, c := range results {
		r.TotalSteps += c.ExpectedSteps
		r.AttemptedSteps += c.AttemptedSteps
		if c.Passed {
			r.PassedCases++
			for _, id := range c.RuleIDs {
				covered[id] = true
			}
		}
	}
	for _, rule := range b.Engine.Knowledge().Rules {
		if !covered[rule.ID] {
			r.UncoveredRuleIDs = append(r.UncoveredRuleIDs, rule.ID)
		}
	}
	slices.Sort(r.UncoveredRuleIDs)
	r.judge(cases, artifacts)
	return r, nil
}

// judge lists what speaks against promotion.
func (r *Report) judge(cases []Case, a *book.Artifacts) {
	sources, groups := map[string]bool{}, map[string]bool{}
	for i := range a.Episodes {
		e := &a.Episodes[i]
		sources[e.SourceID] = true
		group, ok := e.Metadata.Get("trajectory_group")
		if !ok {
			if group, ok = e.Metadata.Get("original_episode_id"); !ok || !truthy(group) {
				group = value.MustText(e.ID)
			}
		}
		groups[python.Str(group)] = true
	}
	overlaps := func(c *Case) bool {
		return groups[c.TrajectoryGroup] || slices.ContainsFunc(c.SourceIDs, func(s string) bool { return sources[s] })
	}
	independent, overlap, test := false, false, false
	for i := range cases {
		c := &cases[i]
		test = test || c.Split == "test"
		if c.Split == "validation" {
			independent = independent || !overlaps(c)
			overlap = overlap || overlaps(c)
		}
	}
	for _, reason := range []struct {
		against bool
		text    string
	}{
		{len(r.UncoveredRuleIDs) > 0, "Executable rules remain untested by passing replay cases"},
		{len(cases) == 0, "No replay cases supplied"},
		{test, "Test cases are reporting-only and cannot be used for promotion"},
		{!independent, "No independent validation trajectory supplied"},
		{overlap, "Validation data overlaps construction evidence"},
		{r.PassedCases < r.TotalCases, "Candidate failed one or more replay cases"},
		{len(r.Regressions) > 0, "Candidate regressed against the baseline"},
	} {
		if reason.against {
			r.Reasons = append(r.Reasons, reason.text)
		}
	}
	r.PromotionEligible = len(r.Reasons) == 0
}

func truthy(v value.Value) bool {
	switch v.Kind() {
	case value.Null, value.Invalid:
		return false
	case value.Bool, value.Number:
		return !python.Equal(v, value.Int(0))
	case value.String:
		return v.String() != `""`
	}
	return v.Len() > 0
}

func consistent(cases []Case, a *book.Artifacts) error {
	ids, groups, sources := map[string]bool{}, map[string]string{}, map[string]string{}
	for i := range cases {
		c := &cases[i]
		if ids[c.ID] {
			return world.Faultf(world.ValueError, "two replay cases are called %q", c.ID)
		}
		ids[c.ID] = true
		if s, ok := groups[c.TrajectoryGroup]; ok && s != c.Split {
			return world.Faultf(world.ValueError, "trajectory group %q is in the splits %s and %s", c.TrajectoryGroup, s, c.Split)
		}
		groups[c.TrajectoryGroup] = c.Split
		for _, src := range c.SourceIDs {
			if s, ok := sources[src]; ok && s != c.Split {
				return world.Faultf(world.ValueError, "source %s is in the splits %s and %s", src, s, c.Split)
			}
			sources[src] = c.Split
			if as, ok := a.SplitAssignments[src]; len(a.SplitAssignments) > 0 && (!ok || as.Split != c.Split || as.TrajectoryGroup != c.TrajectoryGroup) {
				return world.Faultf(world.ValueError, "case %q violates the split manifest of the worldbook", c.ID)
			}
		}
	}
	return nil
}

// play plays each case in a session of its own, with no state but the case's.
func play(ctx context.Context, b *book.Book, cases []Case) (out []CaseResult, err error) {
	for i := range cases {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		r, err := playCase(ctx, b, &cases[i])
		if err != nil {
			return nil, fmt.Errorf("case %s: %w", cases[i].ID, err)
		}
		out = append(out, r)
	}
	return out, nil
}

func playCase(ctx context.Context, b *book.Book, c *Case) (r CaseResult, err error) {
	r = CaseResult{CaseID: c.ID, TrajectoryGroup: c.TrajectoryGroup, ExpectedSteps: len(c.Steps)}
	dir, err := os.MkdirTemp("", "callsheet-replay-")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fault := func(err error) { r.Errors = append(r.Errors, world.Named(err)) }
	s, err := session.Open(ctx, dir, b, session.Options{Initial: &c.InitialState, AllowUnvalidated: true, NoSync: true})
	if err != nil {
		if !world.IsFault(err) {
			return r, err
		}
		fault(err)
		return r, nil
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	absent := map[string]bool{}
	for _, p := range c.KnownAbsentPaths {
		absent[state.ParsePath(p).String()] = true
	}
	rules := map[string]bool{}
	for i := range c.Steps {
		step := &c.Steps[i]
		r.AttemptedSteps++
		if !c.InitialStateComplete {
			path, err := observed(b.Engine, s.State(), step.Action, absent)
			if err != nil {
				fault(err)
				if path == "" {
					break
				}
				r.Details = append(r.Details, fmt.Sprintf("step %d: nothing says what is at %s; put it into initial_state, or into known_absent_paths if there is nothing", i+1, path))
				break
			}
		}
		res, err := s.Step(ctx, session.Request{Action: step.Action})
		if err != nil {
			if !world.IsFault(err) {
				return r, err
			}
			fault(err)
			break
		}
		for _, id := range res.Plan.RuleIDs {
			rules[id] = true
		}
		for _, m := range res.Plan.Effects {
			switch m.Op {
			case world.Delete:
				absent[m.Path] = true
			case world.Schedule:
			default:
				delete(absent, m.Path)
			}
		}
		if err := r.compare(i+1, step, res); err != nil {
			fault(err)
			break
		}
	}
	for id := range rules {
		r.RuleIDs = append(r.RuleIDs, id)
	}
	slices.Sort(r.RuleIDs)
	r.Passed = len(r.Errors) == 0
	return r, nil
}

func (r *CaseResult) compare(n int, want *Step, got *session.Result) error {
	mismatch := func(what, wanted, had string) {
		r.Errors = append(r.Errors, fmt.Sprintf("step %d: %s", n, what))
		r.Details = append(r.Details, fmt.Sprintf("step %d: %s: expected %s, got %s", n, what, wanted, had))
	}
	same := got.Observation == want.ExpectedObservation
	if want.ObservationMatch == "json" {
		a, err := value.Parse(got.Observation)
		if err != nil {
			return world.Faultf("JSONDecodeError", "observation: %v", err)
		}
		b, err := value.Parse(want.ExpectedObservation)
		if err != nil {
			return world.Faultf("JSONDecodeError", "expected_observation: %v", err)
		}
		same = python.Equal(a, b)
	}
	if !same {
		mismatch("observation mismatch", strconv.Quote(want.ExpectedObservation), strconv.Quote(got.Observation))
	}
	if want.ExpectedOutcome != nil && got.Outcome != *want.ExpectedOutcome {
		mismatch("outcome mismatch", string(*want.ExpectedOutcome), string(got.Outcome))
	}
	for path, v := range want.ExpectedState.Members() {
		have, ok := got.State.Get(path)
		if ok && python.Equal(have, v) {
			continue
		}
		text := "nothing"
		if ok {
			text = have.String()
		}
		mismatch("state mismatch at "+path, v.String(), text)
	}
	return nil
}

// observed refuses a step that would depend on what was never observed, at path: a
// missing path is unknown unless the case says that it is absent.
func observed(e *engine.Engine, s state.State, a world.Action, absent map[string]bool) (path string, err error) {
	working, _, err := s.Advance()
	if err != nil {
		return "", err
	}
	working.Step = s.Step
	if spec := e.Action(a.Type); spec != nil {
		a.Type = spec.Name
	}
	unknown := func(path string) bool { return !working.Has(state.ParsePath(path)) && !absent[path] }
	for _, r := range e.RulesOf(a.Type) {
		if !e.Eligible(r, working, false) {
			continue
		}
		if path := engine.Undecided(r.Conditions, working, a, unknown); path != "" {
			return path, world.Faultf(world.ValueError, "Rule %s requires unobserved state; replay cannot establish applicability", r.ID)
		}
		if !working.HoldAll(r.Conditions, a) {
			continue
		}
		effects, err := working.Resolve(r.Effects, a)
		if err != nil {
			return "", err // an argument is missing: the format's reports stop here
		}
		for _, m := range effects {
			adds := m.Op == world.Increment || m.Op == world.Decrement || m.Op == world.Append
			if adds && unknown(state.ParsePath(m.Path).String()) {
				return m.Path, world.Faultf(world.ValueError, "Rule %s updates unobserved state at %s", r.ID, m.Path)
			}
		}
	}
	return "", nil
}

// Promote writes a validated copy of the worldbook, with the report in it, to a
// directory that must not exist. The report must be of these very artifacts and
// eligible; it is checked again here.
func Promote(b *book.Book, r *Report, dir string) error {
	a, c, err := b.Artifacts()
	if err != nil {
		return err
	}
	if err := b.IsOf(a, c); err != nil {
		return err // the cases were played on something else
	}
	return Write(dir, a, c, r, b.Extended())
}

// Write compiles artifacts with a report that validates them, as [Promote]
// does.
func Write(dir string, a *book.Artifacts, c *book.Config, r *Report, extended bool) error {
	artifacts, err := a.Digest()
	if err != nil {
		return err
	}
	config, err := c.Digest()
	if err != nil {
		return err
	}
	if !r.PromotionEligible {
		return world.Faultf(world.ValueError, "Promotion rejected: %s", strings.Join(r.Reasons, "; "))
	}
	if r.ArtifactDigest != artifacts || r.ConfigDigest != config || !r.Passed() || len(r.Regressions) > 0 || len(r.UncoveredRuleIDs) > 0 {
		return world.Faultf(world.ValueError, "Package promotion requires a passing report for these exact artifacts")
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	report, err := value.Parse(text)
	if err != nil {
		return err
	}
	return book.Write(dir, a, c, book.WriteOptions{Extended: extended, Report: report})
}

// Patch applies a patch to a worldbook, writes the candidate to a directory
// that must not exist, and replays the cases on it with the old one as the
// baseline. The candidate is written whatever the report says.
func Patch(ctx context.Context, base *book.Book, p *book.Patch, cases []Case, dir string) (*Report, error) {
	a, c, err := base.Artifacts()
	if err != nil {
		return nil, err
	}
	edited, err := p.Apply(a)
	if err != nil {
		return nil, err
	}
	if err := consistent(cases, edited); err != nil { // before anything is written
		return nil, err
	}
	if err := book.Write(dir, edited, c, book.WriteOptions{Extended: base.Extended()}); err != nil {
		return nil, err
	}
	candidate, err := book.Open(dir)
	if err != nil {
		return nil, err
	}
	defer candidate.Close()
	return Run(ctx, candidate, cases, base)
}
