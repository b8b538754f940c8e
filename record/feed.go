package record

import (
	"context"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
)

// A Feed makes of the records of a run the events that an observer of the run
// got, for whoever watches it from elsewhere.
type Feed struct {
	h      *History
	replay *run.Replay // nil: the record does not hold what a replay needs
	fed    int         // of h.Past
	begun  map[string]int
}

// NewFeed begins a feed of a run's records, from the first.
func NewFeed(ctx context.Context, store *journal.Store, id string) (*Feed, error) {
	sum, err := store.Summary(ctx, id)
	if err != nil {
		return nil, err
	}
	h, err := newHistory(sum)
	if err != nil {
		return nil, err
	}
	f := &Feed{h: h, begun: map[string]int{}}
	for e, err := range store.Entries(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		if _, err := f.Take(ctx, e); err != nil {
			return nil, err
		}
		break
	}
	return f, nil
}

// Plan is the plan of the run.
func (f *Feed) Plan() *plan.Plan { return f.h.Plan }

// Take takes the next record in and returns what it tells. The start record may
// come again.
func (f *Feed) Take(ctx context.Context, e journal.Entry) ([]run.Event, error) {
	if e.Index == 0 && f.h.Plan != nil {
		return []run.Event{{Kind: run.Started, Time: e.Time}}, nil
	}
	body, err := e.Body(ctx)
	if err != nil {
		return nil, err
	}
	if err := f.h.take(e, body); err != nil {
		return nil, err
	}
	if e.Index == 0 {
		if f.h.Contents == Full {
			f.replay, err = f.h.Replay()
		}
		return nil, err
	}
	events := f.events(e, str(body, "step"))
	for ; f.fed < len(f.h.Past); f.fed++ {
		if f.replay == nil {
			continue
		}
		if err := f.replay.Apply(f.fed, f.h.Past[f.fed]); err != nil {
			f.replay = nil // an output was withheld: calls are told of, statuses are not
		}
	}
	if f.replay != nil {
		events = append(events, f.replay.Settled()...)
	}
	if e.Kind == kindEnd || e.Kind == kindStopped {
		events = append(events, run.Event{Kind: run.Ended})
	}
	for i := range events {
		events[i].Time = e.Time
	}
	return events, nil
}

// events are what a record tells by itself.
func (f *Feed) events(e journal.Entry, step string) []run.Event {
	at := f.h.Plan.Index(step)
	if at < 0 {
		return nil
	}
	ev := run.Event{Step: step, Tool: f.h.Plan.Steps[at].Tool, Attempt: f.begun[step]}
	switch e.Kind {
	case kindIntent:
		f.begun[step] = f.h.Past[len(f.h.Past)-1].Event.Attempt
		ev.Kind, ev.Attempt = run.Called, f.begun[step]
	case kindOutcome:
		ev.Kind, ev.Failure = run.Returned, f.failure()
	case kindLost:
		ev.Kind, ev.Failure = run.Returned, &tool.Failure{Code: "crashed", Message: "the process died while the call was out", Lost: true}
	case kindDecision:
		ask := f.h.asks[step]
		if ask == nil {
			return nil
		}
		ev.Kind, ev.Cause = run.Asked, &machine.Cause{Step: step, Code: ask.Code, Message: ask.Message}
	default:
		return nil
	}
	return []run.Event{ev}
}

// failure is that of the outcome that was taken in last.
func (f *Feed) failure() *tool.Failure {
	return f.h.Past[len(f.h.Past)-1].Event.Failure
}
