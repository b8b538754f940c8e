package model_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/callsheet/callsheet/model"
	"pgregory.net/rapid"
)

// What a journal or a cassette keeps of a reply is all of it.
func TestReplyRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		number := rapid.Ptr(rapid.Int(), true)
		r := &model.Reply{
			Text: text.Draw(t, "text"), Dialect: text.Draw(t, "dialect"), Reason: text.Draw(t, "reason"),
			Finish: model.Finish(rapid.IntRange(0, int(model.FinishRefusal)).Draw(t, "finish")),
			Usage:  model.Usage{Prompt: number.Draw(t, "prompt"), Completion: number.Draw(t, "completion")},
		}
		if raw := text.Draw(t, "raw"); raw != "" {
			r.Raw = []byte(raw)
		}
		for range rapid.IntRange(0, 3).Draw(t, "calls") {
			r.Calls = append(r.Calls, model.Call{ID: text.Draw(t, "id"), ProviderID: text.Draw(t, "provider"), Name: text.Draw(t, "name"), Arguments: text.Draw(t, "arguments")})
		}
		for range rapid.IntRange(0, 2).Draw(t, "edits") {
			r.Edits = append(r.Edits, text.Draw(t, "edit"))
		}
		v, err := r.Value()
		if err != nil {
			t.Fatal(err)
		}
		back, err := model.ParseReply(v)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, r) {
			t.Errorf("got  %+v\nwant %+v", back, r)
		}
	})
}

func TestReplyThatIsNotUTF8(t *testing.T) {
	for name, r := range map[string]*model.Reply{
		"text": {Text: "\xff"}, "raw": {Raw: []byte("\xff")}, "arguments": {Calls: []model.Call{{Arguments: "\xff"}}}, "edits": {Edits: []string{"\xff"}},
	} {
		if v, err := r.Value(); err == nil {
			t.Errorf("%s: got %s, want an error", name, v)
		}
	}
}

func TestFreshIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom([]string{"", "a", "b", "call_3_1", "call_3_2", "call_3_2x"})
		calls := make([]model.Call, rapid.IntRange(0, 6).Draw(t, "calls"))
		was := make([]string, len(calls))
		for i := range calls {
			was[i] = id.Draw(t, "id")
			calls[i].ID = was[i]
		}
		edits, changed := model.FreshIDs(calls, 3), 0
		seen := map[string]bool{}
		for i, c := range calls {
			if c.ID == "" || seen[c.ID] {
				t.Fatalf("call %d of %q has the id %q", i, was, c.ID)
			}
			seen[c.ID] = true
			if c.ID != was[i] {
				changed++
				if c.ProviderID != was[i] {
					t.Errorf("the provider's id of call %d is %q, want %q", i, c.ProviderID, was[i])
				}
			}
		}
		if len(edits) != changed {
			t.Errorf("%d ids changed, edits are %q", changed, edits)
		}
	})
}

func TestRetryStopsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone home")
	r := model.Retry{Sleep: func(ctx context.Context, _ time.Duration) error { cancel(gone); return context.Cause(ctx) }}
	tries := 0
	err := r.Do(ctx, func(int) error { tries++; return &model.Error{Kind: model.Transient} })
	if !errors.Is(err, gone) || tries != 1 {
		t.Errorf("got %v after %d tries", err, tries)
	}
}

func TestRetryDoublesUpToItsBound(t *testing.T) {
	var waits []time.Duration
	r := model.Retry{
		Attempts: 6, Delay: time.Second, MaxDelay: 5 * time.Second, Jitter: func() float64 { return 1 },
		Sleep: func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil },
	}
	err := r.Do(t.Context(), func(int) error { return &model.Error{Kind: model.Transient, Message: "busy"} })
	if err == nil || !strings.Contains(err.Error(), "6 attempts") {
		t.Errorf("got %v", err)
	}
	s := time.Second
	if want := []time.Duration{s, 2 * s, 4 * s, 5 * s, 5 * s}; !reflect.DeepEqual(waits, want) {
		t.Errorf("waits: got %v, want %v", waits, want)
	}
}
