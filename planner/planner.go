// Package planner lets a model write a plan: an agent whose submission is a
// plan. What it submits is checked; errors go back with their advice as data.
//
//	s, err := planner.New(planner.Config{Catalogue: tools.Catalogue(), Task: "Find three papers and sum their word counts."})
//	if err != nil {
//		return err
//	}
//	draft, res, err := s.Write(ctx, m) // package model
//	if draft == nil {
//		return err // the model never submitted anything like a plan
//	}
//	fmt.Printf("%s\n%d errors\n", draft.Text, draft.Errors())
//
// What comes out is a plan without errors, or the best one that was submitted
// (fewest errors, then latest) with its findings: never a silent half. A plan
// with errors is not for running.
//
// The tools of the catalogue are told of, not offered: the model plans calls and
// makes none. A catalogue that is too long to tell is searched, by tools of the
// planner's own.
package planner

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// Role is the role of a planner's requests.
const Role = "planner"

// Config says what is to be planned, and with what.
type Config struct {
	Task      string          // in words
	Catalogue *tool.Catalogue // what steps may call
	// Check is what plans are judged by, beside the Catalogue.
	Check check.Options
	// Settings of the agent. Searching for tools spends tool calls, plans that
	// have errors spend invalid submissions.
	Settings agent.Settings
	// AllowEmpty takes a plan without steps too. It is a sound plan that does
	// nothing, and what a model submits for a task that way is a stand-in for a
	// plan, unless whoever asks knows that there may be nothing to do.
	AllowEmpty bool
	// Earlier is a run that did not end well, for a plan that does better; nil:
	// there was none.
	Earlier *Earlier
	// Watch sees what goes on; nil: nobody.
	Watch func(agent.Event)
}

// A Session writes one plan. It keeps what was submitted, so one session serves
// one run of an agent (and its resumption).
type Session struct {
	config Config
	tools  *tool.Set
	schema *schema.Schema
	best   *Draft
}

// New prepares a session.
func New(c Config) (*Session, error) {
	switch {
	case c.Task == "":
		return nil, errors.New("planner: the task is empty")
	case c.Catalogue == nil || len(c.Catalogue.All()) == 0:
		return nil, errors.New("planner: there are no tools to plan with")
	}
	c.Check.Catalogue = c.Catalogue
	s := &Session{config: c}
	var lookups []tool.Tool
	var err error
	if tooLong(c.Catalogue) {
		if lookups, err = newLookup(c.Catalogue).tools(); err != nil {
			return nil, err
		}
	}
	if s.tools, err = tool.NewSet(lookups...); err != nil {
		return nil, err
	}
	s.schema, err = schema.Compile(c.asked(heldTo))
	return s, err
}

// asked is a schema of submissions, with what it says of the number of steps.
func (c *Config) asked(schema string) value.Value {
	least := 1
	if c.AllowEmpty {
		least = 0
	}
	return value.MustParse(fmt.Sprintf(schema, least))
}

// heldTo is the schema that submissions must fit: whatever may be a plan goes on
// to the checker, which says more than a schema can.
const heldTo = `{"type": "object", "properties": {"steps": {"type": "array", "minItems": %d}}, "required": ["steps"]}`

// shown is the schema that the model is shown.
const shown = `{
	"type": "object",
	"properties": {
		"name": {"type": "string", "description": "What the plan does, in a few words."},
		"steps": {
			"type": "array",
			"minItems": %d,
			"items": {
				"type": "object",
				"properties": {
					"id": {"type": "string", "description": "Unique in the plan: letters, digits, _ and -."},
					"tool": {"type": "string", "description": "The exact name of a tool."},
					"args": {"type": "object", "description": "What the tool is called with. A whole string value that starts with $ refers to an earlier step."},
					"after": {"type": "array", "items": {"type": "string"}, "description": "Ids of steps that must be ok before this one, beside those that args refer to."}
				},
				"required": ["id", "tool", "args"]
			}
		}
	},
	"required": ["steps"]
}`

// Agent is the agent that writes the plan, without a model. Whoever runs it with
// a record passes it to record.RunAgent, with Tools and Task.
func (s *Session) Agent() agent.Config[value.Value] {
	submission := agent.SubmitPlan()
	submission.Shown = s.config.asked(shown)
	return agent.Config[value.Value]{
		Submission: submission, Schema: s.schema, Validate: s.validate,
		Settings: s.config.Settings, Role: Role, Watch: s.config.Watch,
	}
}

// Tools are what the agent itself may call: a search, where the catalogue is too
// long to be told.
func (s *Session) Tools() *tool.Set { return s.tools }

// Task is what the model is told.
func (s *Session) Task() agent.Task {
	return agent.Task{System: system, User: s.user()}
}

// Write lets m write the plan, without a record. The draft is nil when nothing
// like a plan was submitted. The error is that of [agent.Agent.Run]: a protocol
// error comes with the best draft.
func (s *Session) Write(ctx context.Context, m model.Model) (*Draft, *agent.Result[value.Value], error) {
	c := s.Agent()
	c.Model, c.Tools, c.Caller = m, s.tools.Catalogue(), agent.Direct(s.tools)
	a, err := agent.New(c)
	if err != nil {
		return nil, &agent.Result[value.Value]{}, err
	}
	res, err := a.Run(ctx, s.Task())
	return s.best, res, err
}

// Best is the best plan that was submitted so far: the one without errors when
// there is one, otherwise the one with the fewest, of those the latest; nil when
// none was.
func (s *Session) Best() *Draft { return s.best }

// A Draft is a plan that was submitted.
type Draft struct {
	Text   []byte     // the document, indented; the report's places are in it
	Plan   *plan.Plan // nil when the document is refused whole
	Report *check.Report
}

// Errors is how many errors it has.
func (d *Draft) Errors() int { return d.Report.Count(check.Error) }

// OK reports whether it may run.
func (d *Draft) OK() bool { return d.Plan != nil && d.Report.OK }

// validate judges a submission that fits heldTo.
func (s *Session) validate(_ context.Context, submitted value.Value) error {
	d, err := s.draft(submitted)
	if err != nil {
		return err
	}
	if s.best == nil || d.Errors() <= s.best.Errors() {
		s.best = d
	}
	if d.OK() {
		return nil
	}
	return invalid(d.Report)
}

func (s *Session) draft(submitted value.Value) (*Draft, error) {
	text := jsontext.Value(submitted.String())
	if err := text.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, fmt.Errorf("the plan cannot be written: %w", err)
	}
	d := &Draft{Text: append(bytes.TrimSpace(text), '\n')}
	d.Plan, d.Report = check.Text(d.Text, s.config.Check)
	return d, nil
}

// maxAdvice is how many errors go back to the model, each with its advice
// (spec/agent.md §2.4).
const maxAdvice = 20

// invalid is the errors of a report, for the model. Warnings are not for it: they
// are for a person to weigh.
func invalid(r *check.Report) *agent.Invalid {
	e := &agent.Invalid{}
	var data []value.Value
	for _, d := range r.Diagnostics {
		if d.Severity != check.Error {
			continue
		}
		where := d.Pointer
		if d.Step != "" {
			where = "step " + d.Step + " (" + d.Pointer + ")"
		}
		e.Errors = append(e.Errors, fmt.Sprintf("%s at %s: %s", d.Code, where, d.Message))
		if len(d.Advice) == 0 || len(data) == maxAdvice {
			continue
		}
		patch, err := value.Of(d.Advice)
		if err != nil {
			continue // a fault without its advice is better than none
		}
		data = append(data, value.ObjectOf(
			value.Member{Key: "code", Value: value.MustText(d.Code)},
			value.Member{Key: "pointer", Value: value.MustText(d.Pointer)},
			value.Member{Key: "advice", Value: patch},
		))
	}
	if len(data) > 0 {
		e.Data = value.ListOf(data...)
	}
	return e
}
