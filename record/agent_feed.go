package record

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// An AgentFeed makes of the records of an agent's run the events that whoever
// watched the run got, for whoever watches it from elsewhere. It knows what is
// recorded: why a round was forced, the text as it arrives and calls that reached
// neither gate nor tool are not told.
type AgentFeed struct {
	h         *AgentHistory
	catalogue *tool.Catalogue
}

// NewAgentFeed begins a feed of an agent's run, from its first record.
func NewAgentFeed(ctx context.Context, store *journal.Store, id string) (*AgentFeed, error) {
	sum, err := store.Summary(ctx, id)
	if err != nil {
		return nil, err
	}
	h, err := newAgentHistory(sum)
	return &AgentFeed{h: h}, err
}

// Take takes the next record in and returns what it tells.
func (f *AgentFeed) Take(ctx context.Context, e journal.Entry) ([]agent.Event, error) {
	body, err := e.Body(ctx)
	if err == nil {
		err = f.h.take(e, body)
	}
	if err == nil && e.Index == 0 {
		f.catalogue, err = f.h.Catalogue()
	}
	if err != nil {
		return nil, fmt.Errorf("run %s: record %d (%s): %w", f.h.Summary.ID, e.Index, e.Kind, err)
	}
	if e.Kind == kindReply {
		n := num(body, "round")
		return []agent.Event{{Kind: agent.RoundBegins, Round: n}, {Kind: agent.ModelReplied, Round: n}}, nil
	}
	c := f.h.byStep[str(body, "step")]
	if c == nil {
		return nil, nil
	}
	return f.call(e, body, c), nil
}

// call is what a record tells of a call.
func (f *AgentFeed) call(e journal.Entry, body value.Value, c *AgentCall) []agent.Event {
	round, _, _ := strings.Cut(c.Step, ".")
	n, _ := strconv.Atoi(round)
	ev := agent.Event{Round: n, Step: c.Step, Tool: c.Tool}
	d := f.catalogue.Get(c.Tool)
	ends := func(o agent.Outcome) []agent.Event {
		ev.Kind, ev.Record = agent.CallEnds, &agent.Record{Round: n, Step: c.Step, Tool: c.Tool, Error: o.Why(), Start: o.Start, Duration: o.End.Sub(o.Start)}
		return []agent.Event{ev}
	}
	waits := func(why string) []agent.Event {
		ev.Kind, ev.Text = agent.CallWaits, why
		return []agent.Event{ev}
	}
	switch e.Kind {
	case kindDecision, kindAnswer:
		switch {
		case c.Denied:
			return ends(agent.Outcome{Denied: true, Failure: c.Failure})
		case c.ask != nil && e.Kind == kindDecision:
			return waits(c.ask.Message)
		}
	case kindIntent:
		ev.Kind, ev.Args = agent.CallBegins, c.Args
		return []agent.Event{ev}
	case kindOutcome:
		out := call.Outcome{Output: c.Output, Failure: c.Failure, Start: c.Start, End: c.End}
		if f.h.Contents != Full || d == nil { // there is no output to judge
			return ends(agent.Outcome{Failure: c.Failure, Start: c.Start, End: c.End})
		}
		o := agent.Ended(d, out)
		if o.Waiting != agent.NotWaiting {
			return waits(o.Reason)
		}
		return ends(o)
	case kindLost:
		if d != nil && !d.Effects.Repeatable() {
			return waits(lostCallWaits)
		}
	}
	return nil
}
