package call_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// door has one tool, t.
func door(t *testing.T, deadline time.Duration, h tool.Handler) (*call.Door, call.Request) {
	t.Helper()
	set, err := tool.NewSet(tool.Tool{Declaration: tool.Declaration{Name: "t", Deadline: deadline}, Handler: h})
	if err != nil {
		t.Fatal(err)
	}
	return &call.Door{Tools: set}, call.Request{Step: "s1", Attempt: 1, Tool: set.Catalogue().Get("t"), Args: value.ObjectOf()}
}

// recorder is told of nothing but intents.
type recorder struct {
	intent func(context.Context, call.Request) error
	late   chan call.Outcome
}

func (recorder) Decided(call.Request, call.Decision) (call.Ticket, error) { return nil, nil }
func (r recorder) Intent(ctx context.Context, q call.Request) error       { return r.intent(ctx, q) }
func (recorder) Outcome(call.Request, call.Outcome) call.Ticket           { return nil }
func (r recorder) Late(_ call.Request, o call.Outcome)                    { r.late <- o }

func TestAGivenUpCallFreesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, r := door(t, time.Second, func(_ context.Context, c *tool.Call) (value.Value, error) {
			if c.Attempt == 1 {
				time.Sleep(time.Hour) // hears nothing
			}
			return value.Int(1), nil
		})
		d.Limits = call.NewLimits(map[string]call.Limit{"t": {Concurrency: 1}})
		o, err := d.Call(t.Context(), r)
		if err != nil || o.Failure == nil || o.Failure.Code != tool.CodeTimeout || !o.GivenUp || d.Abandoned() != 1 {
			t.Fatalf("first call: %+v, %v with %d abandoned, want a timeout that was given up", o, err, d.Abandoned())
		}
		r.Attempt = 2
		if o, err = d.Call(t.Context(), r); err != nil || o.Failure != nil || !o.End.Equal(o.Start) {
			t.Errorf("second call: %+v, %v, want an output at once", o, err)
		}
		time.Sleep(time.Hour)
		if n := d.Abandoned(); n != 0 {
			t.Errorf("%d abandoned after the handler returned", n)
		}
	})
}

func TestCancellationWhileTheIntentIsRecordedHasAGraceToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		d, r := door(t, time.Hour, func(context.Context, *tool.Call) (value.Value, error) {
			time.Sleep(2 * time.Hour) // hears nothing
			return value.Int(1), nil
		})
		rec := recorder{late: make(chan call.Outcome, 1), intent: func(context.Context, call.Request) error {
			cancel()
			synctest.Wait() // the scope has seen it, when no call was out
			return nil
		}}
		d.Recorder = rec
		o, err := d.Call(ctx, r)
		if err != nil || o.Failure == nil || o.Failure.Code != tool.CodeCancelled || !o.Failure.Lost {
			t.Fatalf("got %+v, %v, want a call without an answer", o, err)
		}
		if took := o.End.Sub(o.Start); took != call.DefaultGrace {
			t.Errorf("given up after %v, want the grace of %v", took, call.DefaultGrace)
		}
		if late := <-rec.late; late.Failure != nil || !value.Equal(late.Output, value.Int(1)) {
			t.Errorf("late outcome %+v, want the output", late)
		}
	})
}

func TestNothingIsCalledAfterCancellation(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d, r := door(t, 0, func(context.Context, *tool.Call) (value.Value, error) {
		t.Error("the tool was called")
		return value.Value{}, nil
	})
	d.Recorder = recorder{intent: func(context.Context, call.Request) error {
		t.Error("an intent was recorded")
		return nil
	}}
	if o, err := d.Call(ctx, r); err != nil || !o.NotMade {
		t.Errorf("got %+v, %v, want a call that was not made", o, err)
	}
}

func TestWithoutAGateEveryCallIsAllowed(t *testing.T) {
	d, r := door(t, 0, nil)
	s := d.Scope(t.Context())
	defer s.Close()
	if dec, err := s.Judge(r); err != nil || dec.Verdict != machine.Allow {
		t.Errorf("got %+v, %v, want allow", dec, err)
	}
	if o, err := d.Call(t.Context(), r); err != nil || o.Failure == nil {
		t.Errorf("a tool without a handler: %+v, %v, want a failure", o, err)
	}
}
