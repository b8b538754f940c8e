package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/value"
)

// A Submission names the tool that ends a run. The zero value is submit with
// its usual aliases.
type Submission struct {
	Name        string   // "": submit
	Aliases     []string // other names that models give it; nil: the usual ones
	Description string   // for the model; "": one is written
	// Shown is the JSON Schema that the model is shown, where Validate says more
	// precisely than a schema can what is wrong; no value: the one that
	// submissions are held to.
	Shown value.Value
	// Short is what the trace keeps of an accepted submission; nil: all of it,
	// clipped.
	Short func(value.Value) value.Value
}

// usual are the other names under which models submit.
func usual() []string { return []string{"final", "submit", "submit_final", "final_submission"} }

// SubmitPlan is the submission of a plan.
func SubmitPlan() Submission {
	return Submission{Name: "submit_plan", Aliases: usual(), Description: "Submit the complete plan. This ends the run."}
}

// SubmitTransition is the submission of a transition of a world model.
func SubmitTransition() Submission {
	return Submission{
		Name: "submit_transition", Aliases: append(usual(), "transition_submission"),
		Description: "Submit the complete transition. This ends the run.", Short: shortTransition,
	}
}

// shortTransition keeps the rules and citations of a transition, and how many
// effects it has.
func shortTransition(v value.Value) value.Value {
	ms := make([]value.Member, 0, 3)
	for _, key := range []string{"rule_ids", "citations"} {
		list, ok := v.Get(key)
		if !ok {
			list = value.ListOf()
		}
		ms = append(ms, value.Member{Key: key, Value: Clip(list, clipped)})
	}
	effects, _ := v.Get("effects")
	return value.ObjectOf(append(ms, value.Member{Key: "effects", Value: value.Int(int64(effects.Len()))})...)
}

func (s Submission) withDefaults() Submission {
	if s.Name == "" {
		s.Name = "submit"
	}
	if s.Aliases == nil {
		s.Aliases = usual()
	}
	aliases := make([]string, len(s.Aliases))
	for i, name := range s.Aliases {
		aliases[i] = normal(name)
	}
	s.Aliases = aliases
	if s.Description == "" {
		s.Description = "Submit the complete answer. This ends the run."
	}
	if s.Short == nil {
		s.Short = func(v value.Value) value.Value { return Clip(v, clipped) }
	}
	return s
}

// noun is what is submitted: "plan" for submit_plan.
func (s Submission) noun() string {
	if _, noun, ok := strings.Cut(s.Name, "submit_"); ok && noun != "" {
		return noun
	}
	return "submission"
}

func normal(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// Invalid is what a Validate returns that has more to say than one sentence.
type Invalid struct {
	Errors []string    // at most 20 are told
	Data   value.Value // more for the model, as JSON: advice, for one; may be no value
}

func (e *Invalid) Error() string { return strings.Join(e.Errors, "; ") }

const (
	maxErrors      = 3  // of one answer: a model repairs what it can keep in mind
	maxDiagnostics = 20 // of a check that has advice with each
	maxError       = 500
)

// A rejection says why a submission was not accepted.
type rejection struct {
	trace  string // what the trace's error says
	errors []string
	data   value.Value
	most   int // errors that are told
}

func reject(errs ...string) *rejection {
	return &rejection{trace: "invalid submission", errors: errs, most: maxErrors}
}

// text is the errors as one sentence, each clipped.
func (r *rejection) text() string {
	said := make([]string, 0, r.most)
	for _, e := range r.errors[:min(len(r.errors), r.most)] {
		said = append(said, clipText(strings.ToValidUTF8(e, "\uFFFD"), maxError))
	}
	text := strings.Join(said, "; ")
	if more := len(r.errors) - r.most; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// judge decides about a submission that may be accepted.
func (l *loop) judge(ctx context.Context, c model.Call) (v value.Value, coerced []string, r *rejection) {
	if l.s.source {
		v = sourceArguments(c.Arguments)
	} else {
		var err error
		if v, coerced, err = decode(c.Arguments, l.schema.Value(), l.s.Coerce); err != nil {
			return shown(c.Arguments), nil, reject(err.Error())
		}
	}
	if l.used < l.s.MinToolCalls {
		return v, coerced, reject(fmt.Sprintf("it came too early: call at least %s first; %d so far", count.Of(l.s.MinToolCalls, "tool"), l.used))
	}
	if faults := l.schema.Validate(v); len(faults) > 0 {
		return v, coerced, rejectFaults(faults)
	}
	if l.s.RequireObservation {
		if why := lacksObservation(v); why != "" {
			r := reject("observation: it must be the exact text that the environment returns, an empty string if it prints nothing")
			r.trace += ": observation " + why
			return v, coerced, r
		}
	}
	if l.s.Placeholders != nil {
		if faults := l.s.Placeholders.Find(l.schema.Value(), v); len(faults) > 0 {
			return v, coerced, rejectFaults(faults)
		}
	}
	if err := l.accept(ctx, v); err != nil {
		r := reject(err.Error())
		var many *Invalid
		if errors.As(err, &many) {
			r.errors, r.data, r.most = many.Errors, many.Data, maxDiagnostics
		}
		return v, coerced, r
	}
	return v, coerced, nil
}

func rejectFaults(faults []schema.Fault) *rejection {
	errs := make([]string, len(faults))
	for i, f := range faults {
		errs[i] = f.String()
	}
	return reject(errs...)
}

// lacksObservation says what is wrong with the observation of a transition that
// applies no rule: a rule brings its own.
func lacksObservation(v value.Value) string {
	if rules, _ := v.Get("rule_ids"); rules.Len() > 0 {
		return ""
	}
	observation, _ := v.Get("observation")
	text, ok := observation.Text()
	switch {
	case !ok:
		return "missing"
	case isStandIn(text):
		return "is a placeholder"
	}
	return ""
}
