package policy

import (
	"strings"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/value"
)

// A Promise is what the check says of one step before anything runs. The run may
// be as bad as that, or better; a call that turns out worse asks.
type Promise struct {
	Decision
	// Certain is false when a rule that only the run can evaluate, or a closed
	// list, could change the effect.
	Certain bool
	labels  map[string]Label // of what each reference puts in, by pointer
}

// label is what was promised of the part at the pointer.
func (p *Promise) label(pointer string) Label {
	for {
		if l, ok := p.labels[pointer]; ok {
			return l
		}
		i := strings.LastIndexByte(pointer, '/')
		if i < 0 {
			return Label{Integrity: Untrusted, Secret: true} // nothing was promised
		}
		pointer = pointer[:i]
	}
}

// A Flow is what a policy says of a whole plan before anything runs.
type Flow struct{ steps []*Promise }

// Step is the promise of the step with that index; nil when its tool is unknown
// or it can never run.
func (f *Flow) Step(i int) *Promise {
	if f == nil || i >= len(f.steps) {
		return nil
	}
	return f.steps[i]
}

// Worst is the worst effect of any step, with labels as the declarations have
// them: with --on-ask refuse a run starts only if it is [Allow].
func (f *Flow) Worst() Effect {
	worst := Allow
	for _, p := range f.steps {
		if p != nil {
			worst = max(worst, p.Effect)
		}
	}
	return worst
}

// Check infers from declarations alone what every step of the plan will get. A
// value that a reference puts in has the label that the tool's output declares
// at that path; the worst is assumed where parts differ.
func (p *Policy) Check(pl *plan.Plan, author Author) *Flow {
	f := &Flow{steps: make([]*Promise, len(pl.Steps))}
	if p.none {
		for i := range f.steps {
			f.steps[i] = &Promise{Certain: true}
		}
		return f
	}
	s := p.Session("", author)
	for _, i := range order(pl) {
		step := &pl.Steps[i]
		d := p.cat.Get(step.Tool)
		if d == nil || step.Wave < 0 {
			continue
		}
		holes := make([]value.Value, step.Template.Holes())
		for h := range holes {
			holes[h] = value.NullValue()
		}
		c := &Call{Step: step.ID, Tool: d, Args: step.Template.Fill(holes), Origins: Origins(pl, i)}
		j := s.judge(c, true)
		f.steps[i] = &Promise{Decision: j.verdict.Decision, Certain: j.certain, labels: j.promised}
		s.sources[step.ID] = &source{
			Source: Source{Step: step.ID, Tool: d.Name},
			labels: p.outputs[d.Name],
			args:   j.labels,
			static: true,
		}
	}
	return f
}

// order lists the steps so that each comes after those it depends on.
func order(pl *plan.Plan) []int {
	waves := 0
	for i := range pl.Steps {
		waves = max(waves, pl.Steps[i].Wave+1)
	}
	by := make([][]int, waves)
	for i := range pl.Steps {
		if w := pl.Steps[i].Wave; w >= 0 {
			by[w] = append(by[w], i)
		}
	}
	out := make([]int, 0, len(pl.Steps))
	for _, w := range by {
		out = append(out, w...)
	}
	return out
}
