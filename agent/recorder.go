package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/value"
	"github.com/go-json-experiment/json"
)

// A Recorder keeps the replies of the model. When Reply returns nil the event is
// durable; none of the reply's calls is made before. An error ends the run.
// Calls are recorded by whoever makes them (the [Caller]).
type Recorder interface {
	Reply(ctx context.Context, e ReplyEvent) error
}

// A ReplyEvent is one reply, with what cannot be worked out again from it.
type ReplyEvent struct {
	Round int
	Reply *model.Reply
	// Late says that the deadline had passed when the round began.
	Late bool
	// Cut says that a model call was cut off at the deadline before this one.
	Cut     bool
	Elapsed time.Duration // of the run so far, pauses not counted
}

// Value is the event as JSON.
func (e *ReplyEvent) Value() (value.Value, error) {
	reply, err := e.Reply.Value()
	if err != nil {
		return value.Value{}, err
	}
	ms := []value.Member{
		{Key: "round", Value: value.Int(int64(e.Round))},
		{Key: "elapsed_ns", Value: value.Int(int64(e.Elapsed))},
		{Key: "reply", Value: reply},
	}
	if e.Late {
		ms = append(ms, value.Member{Key: "late", Value: value.BoolValue(true)})
	}
	if e.Cut {
		ms = append(ms, value.Member{Key: "cut", Value: value.BoolValue(true)})
	}
	return value.ObjectOf(ms...), nil
}

// ParseReplyEvent reads what [ReplyEvent.Value] wrote. Unknown members are an
// error.
func ParseReplyEvent(v value.Value) (ReplyEvent, error) {
	var doc struct {
		Round   int         `json:"round"`
		Elapsed int64       `json:"elapsed_ns"`
		Reply   value.Value `json:"reply"`
		Late    bool        `json:"late"`
		Cut     bool        `json:"cut"`
	}
	if err := v.Decode(&doc, json.RejectUnknownMembers(true)); err != nil {
		return ReplyEvent{}, fmt.Errorf("a stored reply: %w", err)
	}
	reply, err := model.ParseReply(doc.Reply)
	return ReplyEvent{Round: doc.Round, Reply: reply, Late: doc.Late, Cut: doc.Cut, Elapsed: time.Duration(doc.Elapsed)}, err
}

// Recorded is what is known of a run that did not end. A resumed run takes the
// same path through it, which gives the same transcript byte for byte, and goes
// on live where it ends: a request without a reply is asked again, and a call
// without an outcome goes to the [Caller] again, which knows what was decided
// meanwhile.
type Recorded struct {
	Replies  []ReplyEvent       // of rounds 1, 2, …
	Outcomes map[string]Outcome // by step; none of them waiting
}

func (r *Recorded) validate() error {
	for i, e := range r.Replies {
		if e.Round != i+1 || e.Reply == nil {
			return fmt.Errorf("recorded reply %d is of round %d, or has no reply", i+1, e.Round)
		}
	}
	for step, o := range r.Outcomes {
		if o.Waiting != NotWaiting || o.Failure == nil && o.Output.IsZero() {
			return fmt.Errorf("the recorded outcome of call %s is not an end", step)
		}
	}
	return nil
}
