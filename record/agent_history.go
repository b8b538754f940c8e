package record

import (
	"context"
	"fmt"
	"time"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// An AgentHistory is what the journal says of one run of an agent.
type AgentHistory struct {
	Summary    journal.Summary
	Task       agent.Task
	Role       string
	Settings   agent.Settings
	Schema     value.Value // of the submission
	Submission agent.Submission
	Parent     string // the run whose tool started it
	Replies    []agent.ReplyEvent
	Calls      []*AgentCall // that reached the gate or the tool, in the order of their first record
	End        value.Value  // body of the last record; no value before the end

	Questions
	byStep map[string]*AgentCall
}

// An AgentCall is one call of an agent's run: as it stands in the record, and
// so with the secrets taken out.
type AgentCall struct {
	Step       string // ROUND.N
	Tool       string
	Args       value.Value // of the last attempt, or of the ask
	Edited     value.Value // the args that a person put in place of the model's
	Attempt    int         // the last one; 0: it was not made
	Made       int         // how often it was begun, reruns counted
	Output     value.Value
	Failure    *tool.Failure // also of a denial
	Denied     bool
	Waiting    agent.Waiting // what it waits for; a lost call waits only once resume has found it
	Start, End time.Time     // of the last attempt

	asked    string // digest of the args that the model asked for
	ask      *openAsk
	allowed  bool
	approved bool        // by a person
	before   value.Value // the args that a person changed
	open     bool        // begun, and no outcome of it is known
	lost     bool        // open, and a record says so
	didNot   bool        // a person said that it did not happen
}

// Status is how the call stands, in a word: ok, failed, denied, waiting,
// uncertain, or begun.
func (c *AgentCall) Status() string {
	switch {
	case c.Waiting == agent.ForDecision:
		return "waiting"
	case c.Waiting == agent.ForResolution:
		return "uncertain"
	case c.Denied:
		return "denied"
	case c.open, c.didNot, c.Failure == nil && c.Output.IsZero():
		return "begun"
	case c.Failure != nil:
		return "failed"
	}
	return "ok"
}

// LoadAgent reads the record of an agent's run. It takes no lock, so the run may
// be going on.
func LoadAgent(ctx context.Context, store *journal.Store, id string) (*AgentHistory, error) {
	sum, err := store.Summary(ctx, id)
	if err != nil {
		return nil, err
	}
	h, err := newAgentHistory(sum)
	if err != nil {
		return nil, err
	}
	if err := each(ctx, id, store.Entries(ctx, id, 0), h.take); err != nil {
		return nil, err
	}
	if h.Schema.IsZero() {
		return nil, fmt.Errorf("run %s has no start record", id)
	}
	return h, nil
}

func newAgentHistory(sum journal.Summary) (*AgentHistory, error) {
	if sum.Kind != KindAgent {
		return nil, fmt.Errorf("run %s is of kind %q, not an agent's", sum.ID, sum.Kind)
	}
	return &AgentHistory{Summary: sum, Questions: newQuestions(sum.ID), byStep: map[string]*AgentCall{}}, nil
}

// take adds one record to the history.
func (h *AgentHistory) take(e journal.Entry, body value.Value) error {
	said, err := h.Questions.take(e, body)
	if err != nil {
		return err
	}
	switch e.Kind {
	case "start":
		return h.begin(body)
	case kindEnd:
		h.End = body
		return nil
	case kindReply:
		if h.Contents != Full {
			return nil
		}
		r, err := agent.ParseReplyEvent(body)
		h.Replies = append(h.Replies, r)
		return err
	}
	if step := str(body, "step"); step != "" {
		h.call(step).take(e, body, h.asks[step], said)
	}
	return nil
}

func (h *AgentHistory) begin(body value.Value) error {
	var doc struct {
		Task struct {
			System string `json:"system"`
			User   string `json:"user"`
		} `json:"task"`
		Role       string      `json:"role"`
		Settings   value.Value `json:"settings"`
		Schema     value.Value `json:"schema"`
		Submission struct {
			Name        string      `json:"name"`
			Aliases     []string    `json:"aliases"`
			Description string      `json:"description"`
			Shown       value.Value `json:"shown"`
		} `json:"submission"`
		Parent string `json:"parent"`
	}
	if err := body.Decode(&doc); err != nil {
		return err
	}
	h.Task = agent.Task(doc.Task)
	h.Role, h.Schema, h.Parent = doc.Role, doc.Schema, doc.Parent
	s := doc.Submission
	h.Submission = agent.Submission{Name: s.Name, Aliases: s.Aliases, Description: s.Description, Shown: s.Shown}
	var err error
	h.Settings, err = agent.ParseSettings(doc.Settings)
	return err
}

func (h *AgentHistory) call(step string) *AgentCall {
	c := h.byStep[step]
	if c == nil {
		c = &AgentCall{Step: step}
		h.byStep[step] = c
		h.Calls = append(h.Calls, c)
	}
	return c
}

// take adds one record to a call.
func (c *AgentCall) take(e journal.Entry, body value.Value, ask *openAsk, said said) {
	switch e.Kind {
	case kindDecision:
		if c.Edited.IsZero() {
			c.asked = str(body, "args_digest")
		}
		c.Tool = str(body, "tool")
		switch v, _ := verdict(str(body, "verdict")); v {
		case machine.Allow:
			c.allowed, c.approved = true, flag(body, "person")
		case machine.Ask:
			c.ask, c.Waiting = ask, agent.ForDecision
			if ask != nil {
				c.Args = ask.Args
			}
		default:
			c.deny(str(body, "code"), str(body, "message"))
		}
	case kindReopened:
		c.ask, c.Waiting = nil, agent.NotWaiting
	case kindIntent:
		c.Tool, c.Attempt, c.Start = str(body, "tool"), num(body, "attempt"), e.Time
		digest := str(body, "args_digest")
		if args, ok := body.Get("args"); ok {
			c.Args, digest = args, args.Digest().String()
		}
		if c.asked == "" {
			c.asked = digest
		}
		c.Made++
		c.open, c.lost, c.didNot, c.Failure, c.Waiting = true, false, false, nil, agent.NotWaiting
	case kindOutcome:
		c.Start, c.End, c.open = when(body, "start"), when(body, "end"), false
		c.Output, _ = body.Get("output")
		if f, ok := body.Get("failure"); ok {
			c.Failure = parseFailure(f)
			// Whoever cancelled the run gets no answer that could be known: the
			// call is as open as after a crash.
			cut := c.Failure.Code == tool.CodeCancelled
			c.open, c.didNot = cut && c.Failure.Lost, cut && c.Failure.NotStarted
		}
	case kindLost:
		c.open, c.lost, c.Waiting = true, true, agent.ForResolution
	}
	if a := said.answer; a != nil {
		c.ask, c.Waiting = nil, agent.NotWaiting
		switch {
		case !a.Args.IsZero():
			c.before, c.Edited, c.Args = c.Args, a.Args, a.Args
		case a.Allow:
			c.allowed, c.approved = true, true
		default:
			c.deny(codePerson, a.message())
		}
	}
	if r := said.resolution; r != nil {
		c.open, c.lost, c.Waiting, c.Failure = false, false, agent.NotWaiting, nil
		switch r.What {
		case machine.Happened:
			c.Output = r.Output
		case machine.DidNotHappen:
			c.didNot = true
		default:
			c.Failure = &tool.Failure{Code: string(machine.Uncertain), Message: "whether the call happened is not known; do not repeat it"}
		}
	}
}

func (c *AgentCall) attempt(n int, rerun bool) agent.Attempt {
	return agent.Attempt{N: n, Rerun: rerun, Before: c.before, Approved: c.approved}
}

func (c *AgentCall) deny(code, message string) {
	if code == "" {
		code = agent.CodeDenied
	}
	c.Denied, c.Failure = true, &tool.Failure{Code: code, Message: message}
}

// ended is the outcome of a call that is over: the same that the loop was given
// when it happened.
func (c *AgentCall) ended(d *tool.Declaration) (o agent.Outcome, ok bool) {
	switch {
	case c.open, c.didNot, c.Waiting != agent.NotWaiting:
		return o, false
	case c.Denied:
		return agent.Outcome{Denied: true, Failure: c.Failure, Edited: c.Edited}, true
	case c.Failure == nil && c.Output.IsZero():
		return o, false
	}
	o = agent.Ended(d, call.Outcome{Output: c.Output, Failure: c.Failure, Start: c.Start, End: c.End})
	o.Edited, o.Again = c.Edited, max(0, c.Made-1)
	// One that waits and has no record of it was cut off before: the caller finds
	// it lost.
	c.open = o.Waiting == agent.ForResolution
	return o, !c.open
}
