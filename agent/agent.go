// Package agent is the bounded loop of a function-calling agent: a model gets a
// task and a catalogue of tools, calls tools, sees their results, and ends by
// calling a submission tool whose arguments are a typed value.
//
//	type Answer struct {
//		City  string   `json:"city"`
//		Trips []string `json:"trips"`
//	}
//	a, err := agent.New(agent.Config[Answer]{
//		Model:  m,                   // package model
//		Tools:  set.Catalogue(),     // package tool
//		Caller: agent.Direct(set),
//	})
//	if err != nil {
//		log.Fatal(err)
//	}
//	res, err := a.Run(ctx, agent.Task{System: "You plan trips.", User: "Where to, from Oslo?"})
//	if err != nil {
//		log.Fatal(err) // res still holds the transcript, the trace and the usage
//	}
//	fmt.Println(res.Submission.City)
//
// The loop is bounded in every direction ([Settings]), forces the submission
// when the budget is spent, and keeps a trace of every call. Every call is
// answered exactly once, whatever became of it, and that is checked before every
// model call. The rules are those of spec/agent.md §1–§5.
//
// A run that was recorded ([Recorder]) can be resumed after a crash or a
// person's decision: it takes the same path through the recorded replies and
// outcomes and goes on live where they end ([Agent.Resume]).
package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// Config is what an agent is made of. Model is required; Caller is, if there
// are Tools.
type Config[T any] struct {
	Model  model.Model
	Tools  *tool.Catalogue // nil: none
	Caller Caller

	Submission Submission     // the tool that ends a run
	Schema     *schema.Schema // of the submission; nil: inferred from T
	// Validate is the check after the schema's. What it returns counts as an
	// invalid submission and goes to the model; an [*Invalid] says more than
	// one thing.
	Validate func(ctx context.Context, submission T) error

	Settings Settings
	Role     string      // of the requests ([model.Request])
	Recorder Recorder    // nil: the run cannot be resumed
	Watch    func(Event) // nil: nobody watches. It is called while the run waits for it
	Stream   bool        // asks the model for its text as it arrives, for Watch
	// Redactor takes secrets out of the task, and out of every reply before
	// anybody keeps it; nil: there are none.
	Redactor Redactor
}

// An Agent runs tasks. It is immutable and safe for concurrent use if its parts
// are.
type Agent[T any] struct {
	config Config[T]
	specs  []*model.Tool
}

// New checks the configuration and infers the submission's schema.
func New[T any](c Config[T]) (*Agent[T], error) {
	if err := c.Settings.Validate(); err != nil {
		return nil, fmt.Errorf("agent: %w", err)
	}
	var err error
	switch {
	case c.Model == nil:
		return nil, errors.New("agent: Model is nil")
	case c.Tools == nil:
		if c.Tools, err = tool.NewCatalogue(); err != nil {
			return nil, err
		}
	case c.Caller == nil && len(c.Tools.All()) > 0:
		return nil, errors.New("agent: there are Tools and Caller is nil")
	}
	if c.Caller == nil {
		c.Caller = noTools{}
	}
	if c.Schema == nil {
		if c.Schema, err = schema.For[T](); err != nil {
			return nil, fmt.Errorf("agent: %w", err)
		}
	}
	if k := kindsOf(&doubles{root: c.Schema.Value()}, c.Schema.Value(), 0); k != 0 && !k.has(value.Object) {
		return nil, errors.New("agent: the submission is no object, and the arguments of a call are one")
	}
	c.Submission = c.Submission.withDefaults()
	if c.Submission.Shown.IsZero() {
		c.Submission.Shown = c.Schema.Value()
	}
	if slices.Contains(c.Submission.Aliases, "") || normal(c.Submission.Name) == "" {
		return nil, errors.New("agent: the submission has an empty name")
	}
	a := &Agent[T]{config: c}
	for _, d := range c.Tools.All() {
		if normal(d.Name) == normal(c.Submission.Name) {
			return nil, fmt.Errorf("agent: the tool %q of %s has the name of the submission", d.Name, d.Source)
		}
		a.specs = append(a.specs, &model.Tool{Name: d.Name, Description: d.Description, Input: d.Input.Value()})
	}
	a.specs = append(a.specs, &model.Tool{Name: c.Submission.Name, Description: c.Submission.Description, Input: c.Submission.Shown})
	return a, nil
}

// noTools is the caller of an agent without tools, which makes no call outside
// the profile of [Source], where tools answer unknown names.
type noTools struct{}

func (noTools) Call(_ context.Context, r Request) (Outcome, error) {
	return Outcome{Failure: &tool.Failure{Code: CodeUnknownTool, Message: "there is no tool " + quote(r.Name)}}, nil
}

// A Task is the beginning of a conversation.
type Task struct {
	System string // "": no system message
	User   string
}

// A Result is how far a run came. It is never nil, whatever the error.
type Result[T any] struct {
	Run        string      // id of the recorded run, "" without a record
	Submission T           // the zero T without an accepted one
	Submitted  value.Value // the same as it came, no value without one
	Transcript []*model.Message
	Trace      []Record
	Usage      Usage
	Rounds     int // model calls that were answered
	Calls      int // tool budget spent
	Degraded   []Degradation
	// LastInvalid is the last submission that was not accepted.
	LastInvalid *InvalidSubmission
	// LastText is the text of the last reply without any call.
	LastText string
}

// An InvalidSubmission is one that was not accepted, and why.
type InvalidSubmission struct {
	Round     int
	Arguments value.Value // as far as they could be read; text where they were no JSON
	Reason    string
}

// Run runs a task to its submission. The error is a [*ProtocolError] when the
// model did not come to one, a [*WaitingError] when a person has to decide, the
// cause of ctx when it was cancelled, and otherwise what failed: the model
// ([*model.Error]), the Caller or the Recorder.
func (a *Agent[T]) Run(ctx context.Context, t Task) (*Result[T], error) {
	return a.Resume(ctx, t, Recorded{})
}

// Resume goes on with a run of the same task, settings and tools of which r was
// recorded.
func (a *Agent[T]) Resume(ctx context.Context, t Task, r Recorded) (*Result[T], error) {
	res := &Result[T]{}
	if !utf8.ValidString(t.System) || !utf8.ValidString(t.User) {
		return res, errors.New("agent: the task is not UTF-8")
	}
	if err := r.validate(); err != nil {
		return res, fmt.Errorf("agent: %w", err)
	}
	c := &a.config
	if c.Redactor != nil {
		t.System, t.User = c.Redactor.RedactText(t.System), c.Redactor.RedactText(t.User)
	}
	l := &loop{
		s: c.Settings, model: c.Model, caller: c.Caller, recorder: c.Recorder, tools: c.Tools, specs: a.specs,
		submit: c.Submission, schema: c.Schema, role: c.Role, watch: c.Watch, stream: c.Stream, redactor: c.Redactor,
		recorded: r, begin: time.Now(), usage: Usage{Complete: true},
	}
	l.accept = func(ctx context.Context, v value.Value) error {
		var submission T
		if err := v.Decode(&submission); err != nil {
			return err
		}
		if c.Validate != nil {
			if err := c.Validate(ctx, submission); err != nil {
				return err
			}
		}
		res.Submission = submission
		return nil
	}
	if t.System != "" {
		l.transcript.append(model.System(t.System))
	}
	l.transcript.append(model.User(t.User))
	err := l.run(ctx)
	if l.invalid > 0 {
		l.degraded.count(CodeFailedSubmissions, l.lastInvalid.Round, l.invalid, "submissions that were not accepted")
	}
	res.Submitted, res.Transcript, res.Trace, res.Usage = l.submission, l.transcript.messages, l.trace, l.usage
	res.Rounds, res.Calls, res.Degraded = l.rounds, l.used, l.degraded
	res.LastInvalid, res.LastText = l.lastInvalid, l.lastText
	return res, err
}
