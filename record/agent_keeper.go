package record

import (
	"context"
	"fmt"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// keeper makes the calls of an agent through the one door, and keeps their
// record and that of the model's replies. It is used by one run at a time.
type keeper struct {
	through agent.Through
	writer  *writer
	past    map[string]*AgentCall // what is recorded of calls, by step
}

var (
	_ agent.Caller   = (*keeper)(nil)
	_ agent.Recorder = (*keeper)(nil)
)

func (k *keeper) open(store *journal.Store, jr *journal.Run, opt *Options) {
	k.writer = &writer{run: jr, opt: opt, seal: sealer{store: store}}
	k.through.Door.Recorder = k.writer
	k.through.Run, k.through.Key = jr.ID(), keys(store, jr.ID())
}

// recall takes in a record, and returns of it what the loop takes its path by.
func (k *keeper) recall(h *AgentHistory) agent.Recorded {
	r := agent.Recorded{Replies: h.Replies, Outcomes: map[string]agent.Outcome{}}
	k.past = map[string]*AgentCall{}
	for _, c := range h.Calls {
		k.past[c.Step] = c
		d := k.through.Door.Tools.Catalogue().Get(c.Tool)
		if d == nil {
			continue
		}
		o, ended := c.ended(d)
		if ended {
			r.Outcomes[c.Step] = o
		}
		if c.Made > 0 {
			var out *call.Outcome
			if ended {
				out = &call.Outcome{Output: o.Output, Failure: o.Failure, Start: o.Start, End: o.End}
			}
			k.through.Replay(agent.Request{Step: c.Step, Name: c.Tool, Tool: d, Args: c.Args}, c.attempt(c.Attempt, false), out)
		}
	}
	return r
}

// Reply implements [agent.Recorder].
func (k *keeper) Reply(ctx context.Context, e agent.ReplyEvent) error {
	body, err := e.Value()
	if err != nil {
		return err
	}
	if k.writer.opt.Contents == Digests {
		body = value.ObjectOf(
			value.Member{Key: "round", Value: value.Int(int64(e.Round))},
			value.Member{Key: "reply_digest", Value: text(body.Digest().String())},
		)
	}
	// The calls of a reply that is paid for are made also when the run is being
	// cancelled: the record must have it.
	return k.writer.run.AppendWait(context.WithoutCancel(ctx), journal.Record{Kind: kindReply, Body: body})
}

// Call implements [agent.Caller]. It begins where the record of the call ends.
func (k *keeper) Call(ctx context.Context, r agent.Request) (agent.Outcome, error) {
	past := k.past[r.Step]
	if past == nil || r.Tool == nil {
		past = &AgentCall{}
	}
	if past.asked != "" && k.writer.seal.args(r.Tool, r.Args).Digest().String() != past.asked {
		return agent.Outcome{}, fmt.Errorf("the record of call %s does not fit: its args were others", r.Step)
	}
	if !past.Edited.IsZero() {
		r.Args = past.Edited
	}
	o, err := k.call(ctx, r, past)
	o.Edited = past.Edited
	return o, err
}

// lostCallWaits is what a person is asked about a call that was lost.
const lostCallWaits = "the call was begun, and its outcome is not known"

func (k *keeper) call(ctx context.Context, r agent.Request, past *AgentCall) (agent.Outcome, error) {
	switch {
	case past.open:
		if !past.lost {
			if err := k.writer.Lost(context.WithoutCancel(ctx), r.Step, past.Attempt); err != nil {
				return agent.Outcome{}, err
			}
		}
		if !r.Tool.Effects.Repeatable() {
			return agent.Outcome{Waiting: agent.ForResolution, Reason: lostCallWaits}, nil
		}
		return k.again(ctx, r, past, past.Attempt, true)
	case past.didNot:
		return k.again(ctx, r, past, past.Attempt+1, false)
	case past.allowed:
		return k.make(ctx, r, past.attempt(1, false))
	case past.ask != nil:
		if !k.writer.opt.Now().After(past.ask.Expires) {
			return agent.Outcome{Waiting: agent.ForDecision, Reason: past.ask.Message}, nil
		}
		if err := expire(context.WithoutCancel(ctx), k.writer.run, r.Step); err != nil {
			return agent.Outcome{}, err
		}
	}
	o, err := k.through.Judge(ctx, r, past.attempt(1, false))
	switch {
	case err != nil:
		return agent.Outcome{}, err
	case o != nil:
		return *o, nil
	}
	return k.make(ctx, r, past.attempt(1, false))
}

// again makes a call once more, which spends one more of the budget.
func (k *keeper) again(ctx context.Context, r agent.Request, past *AgentCall, attempt int, rerun bool) (agent.Outcome, error) {
	if past.Made > r.Left {
		return agent.Outcome{Again: past.Made - 1, Failure: exhausted()}, nil
	}
	o, err := k.make(ctx, r, past.attempt(attempt, rerun))
	o.Again = past.Made
	return o, err
}

// exhausted is the failure of a call that may not be made again.
func exhausted() *tool.Failure {
	return &tool.Failure{Code: agent.CodeExhausted, Message: "the outcome of the call was lost in a crash, and no call is left to make it again"}
}

// make makes a call. One whose answer was lost is a question to a person.
func (k *keeper) make(ctx context.Context, r agent.Request, a agent.Attempt) (agent.Outcome, error) {
	o, err := k.through.Make(ctx, r, a)
	if err == nil && o.Waiting == agent.ForResolution {
		err = k.writer.Lost(context.WithoutCancel(ctx), r.Step, a.N)
	}
	return o, err
}
