package record

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// Questions are what a run has asked a person and not been told: approvals, and
// what became of lost calls, with what an answer is judged by. A plan's run and
// an agent's have the same.
type Questions struct {
	run string
	// Tools are the digests of the definitions that the run may call, by name, as
	// they were when it began.
	Tools    map[string]string
	Contents Contents
	Setup    value.Value // see [Options]; no value when there was none

	plan     string              // its text; "" of an agent
	declared []value.Value       // the tools that the run may call
	asks     map[string]*openAsk // by step: the last ask, while it is open
	lost     map[string]*lostCall
	calls    map[string]string // by step: the tool of its latest call
	order    []string          // steps, as they were first asked about or lost
}

// openAsk is an ask that nobody has answered for good.
type openAsk struct {
	Ask
	decided bool
}

// lostCall is a call that waits for a resolution.
type lostCall struct {
	attempt int
	index   int // of its record
	tool    string
}

// said is what a record says to an open question; nil fields are nothing.
type said struct {
	answer     *Answer
	resolution *Resolution
}

func newQuestions(run string) Questions {
	return Questions{run: run, Tools: map[string]string{}, asks: map[string]*openAsk{}, lost: map[string]*lostCall{}, calls: map[string]string{}}
}

// LoadQuestions reads what a run of any kind has open. It takes no lock, so the
// run may be going on.
func LoadQuestions(ctx context.Context, store *journal.Store, id string) (*Questions, error) {
	q := newQuestions(id)
	err := each(ctx, id, store.Entries(ctx, id, 0), func(e journal.Entry, body value.Value) error {
		_, err := q.take(e, body)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &q, nil
}

// each hands take the records of a run with their bodies. Its errors name the run.
func each(ctx context.Context, run string, entries iter.Seq2[journal.Entry, error], take func(journal.Entry, value.Value) error) error {
	for e, err := range entries {
		if err != nil {
			return err
		}
		body, err := e.Body(ctx)
		if err == nil {
			err = take(e, body)
		}
		if err != nil {
			return fmt.Errorf("run %s: record %d (%s): %w", run, e.Index, e.Kind, err)
		}
	}
	return nil
}

// take adds one record. An answer to another ask than the open one, one that
// came too late, and a resolution of another call say nothing.
func (q *Questions) take(e journal.Entry, body value.Value) (s said, err error) {
	step := str(body, "step")
	switch e.Kind {
	case "start":
		tools, _ := body.Get("tools")
		for name, d := range tools.Members() {
			q.Tools[name], _ = d.Text()
		}
		declared, _ := body.Get("declared")
		for _, d := range declared.Elements() {
			q.declared = append(q.declared, d)
		}
		q.Contents, q.plan = Contents(str(body, "contents")), str(body, "plan")
		q.Setup, _ = body.Get("setup")
	case kindDecision:
		return s, q.decision(step, body)
	case kindReopened:
		delete(q.asks, step)
	case kindAnswer:
		s.answer, err = q.answer(e, step, body)
	case kindIntent:
		q.calls[step] = str(body, "tool")
	case kindLost:
		q.note(step)
		q.lost[step] = &lostCall{attempt: num(body, "attempt"), index: e.Index, tool: q.calls[step]}
	case kindResolution:
		if l := q.lost[step]; l != nil && l.index == num(body, "of") {
			out, _ := body.Get("output")
			s.resolution = &Resolution{What: resolution(str(body, "resolution")), Output: out, By: str(body, "by")}
			delete(q.lost, step)
		}
	}
	return s, err
}

func (q *Questions) note(step string) {
	if !slices.Contains(q.order, step) {
		q.order = append(q.order, step)
	}
}

func (q *Questions) decision(step string, body value.Value) error {
	v, err := verdict(str(body, "verdict"))
	if err != nil {
		return err
	}
	delete(q.asks, step)
	ask, ok := body.Get("ask")
	if !ok || v != machine.Ask {
		return nil
	}
	args, _ := ask.Get("args")
	d, err := value.ParseDigest(str(ask, "digest"))
	if err != nil {
		return err
	}
	q.note(step)
	q.asks[step] = &openAsk{Ask: Ask{
		Run: q.run, Step: step, Tool: str(ask, "tool"), Args: args, Code: str(body, "code"), Message: str(body, "message"),
		Expires: when(ask, "expires"), Digest: d,
	}}
	return nil
}

func (q *Questions) answer(e journal.Entry, step string, body value.Value) (*Answer, error) {
	ask := q.asks[step]
	if ask == nil || ask.decided || str(body, "approves") != ask.Digest.String() || e.Time.After(ask.Expires) {
		return nil, nil
	}
	ask.decided = true
	a := &Answer{By: str(body, "by"), Why: str(body, "why")}
	a.Args, _ = body.Get("args")
	v, err := verdict(str(body, "verdict"))
	if err != nil || v == machine.Ask {
		return nil, err
	}
	a.Allow = v == machine.Allow
	return a, nil
}

// message is the answer in words, for a report.
func (a *Answer) message() string {
	message := "a person said no"
	if a.Allow {
		message = "a person said yes"
	}
	if a.By != "" {
		message += " (" + a.By + ")"
	}
	if a.Why != "" {
		message += ": " + a.Why
	}
	return message
}

// Asks are the open asks, in the order in which the steps first asked.
func (q *Questions) Asks() []Ask {
	var as []Ask
	for _, step := range q.order {
		if a := q.asks[step]; a != nil && !a.decided {
			as = append(as, a.Ask)
		}
	}
	return as
}

// Lost are the steps whose last call was begun before a crash, or cut off, was
// found to have no outcome, and was not resolved, in the order in which they were
// found. Those whose tool is safe to repeat are called again by resume.
func (q *Questions) Lost() []string {
	var steps []string
	for _, step := range q.order {
		if q.lost[step] != nil {
			steps = append(steps, step)
		}
	}
	return steps
}

// ToolOf is the tool of the latest call of a step, "" when there was none.
func (q *Questions) ToolOf(step string) string { return q.calls[step] }

// Catalogue is that of the run as far as it can call it, from the record. Its
// digest is not that of the whole catalogue.
func (q *Questions) Catalogue() (*tool.Catalogue, error) {
	decls := make([]*tool.Declaration, len(q.declared))
	for i, v := range q.declared {
		definition, _ := v.Get("definition")
		d, err := tool.ParseDefinition(definition)
		if err != nil {
			return nil, fmt.Errorf("run %s: a tool as it was recorded: %w", q.run, err)
		}
		d.Attempts = num(v, "attempts")
		decls[i] = d
	}
	return tool.NewCatalogue(decls...)
}

// declaration is a tool as the start record keeps it.
func declaration(d *tool.Declaration) value.Value {
	return value.ObjectOf(
		value.Member{Key: "definition", Value: d.Definition()},
		value.Member{Key: "attempts", Value: value.Int(int64(d.MaxAttempts()))},
	)
}

// feedsSecret reports whether the output of a step must not be in the record.
func (q *Questions) feedsSecret(store *journal.Store, c *tool.Catalogue, step string) (bool, error) {
	if q.plan == "" {
		return false, nil
	}
	p, err := plan.Decode([]byte(q.plan), unlimited)
	if err != nil {
		return false, err
	}
	seal, err := newSealer(store, p, c)
	return seal.feedsSecret(step), err
}

func verdict(s string) (machine.Verdict, error) {
	for _, v := range []machine.Verdict{machine.Allow, machine.Deny, machine.Ask} {
		if v.String() == s {
			return v, nil
		}
	}
	return machine.Deny, fmt.Errorf("verdict %q is none", s)
}

func resolution(s string) machine.Resolution {
	switch s {
	case "happened":
		return machine.Happened
	case "did_not_happen":
		return machine.DidNotHappen
	}
	return machine.GiveUp
}
