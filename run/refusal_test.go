package run_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

func TestNothingToRun(t *testing.T) {
	p, err := plan.Decode([]byte(`[{"id": "a", "tool": "bare"}]`), plan.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet(tool.Tool{Declaration: tool.Declaration{Name: "bare"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		plan *plan.Plan
		set  *tool.Set
		want string
	}{
		{nil, set, "the plan is nil"}, {p, nil, "the set of tools is nil"},
		{p, set, `the tool "bare" of step "a" is declared without a handler`},
	} {
		report, err := run.Do(t.Context(), c.plan, c.set, run.Options{})
		if report != nil || !errors.Is(err, run.ErrNothing) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, %v; want %q", report, err, c.want)
		}
	}
}

// The end of ctx and a deadline give the same: a report, and no error.
func TestEndsEarly(t *testing.T) {
	slow := tool.Tool{
		Declaration: tool.Declaration{Name: "slow", Effects: tool.Effects{ReadOnly: true}},
		Handler: func(ctx context.Context, _ *tool.Call) (value.Value, error) {
			<-ctx.Done()
			return value.Value{}, ctx.Err()
		},
	}
	p, err := plan.Decode([]byte(`[{"id": "a", "tool": "slow"}, {"id": "b", "tool": "slow"}]`), plan.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for name, opt := range map[string]run.Options{"deadline": {Deadline: time.Second}, "ctx": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set, err := tool.NewSet(slow)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				report, err := run.Do(ctx, p, set, opt)
				if err != nil || report.OK() || report.Steps[1].Status != machine.Cancelled {
					t.Errorf("got %+v, %v; want cancelled and no error", report, err)
				}
			})
		})
	}
}

func TestEventKindString(t *testing.T) {
	if got := run.Called.String() + " " + run.Ended.String() + " " + run.EventKind(99).String(); got != "called ended kind 99" {
		t.Errorf("got %q", got)
	}
}

func TestNegativeOptionsAreNamed(t *testing.T) {
	p, err := plan.Decode([]byte(`[]`), plan.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := tool.NewSet()
	if err != nil {
		t.Fatal(err)
	}
	budget := -1
	for want, opt := range map[string]run.Options{
		"Budget is -1": {Budget: &budget}, "Workers is -2": {Workers: -2}, "MaxArgs is -3": {MaxArgs: -3},
		"Deadline is -1s": {Deadline: -time.Second}, "Grace is -1s": {Grace: -time.Second},
	} {
		if r, err := run.Do(t.Context(), p, set, opt); r != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, %v; want %q", r, err, want)
		}
	}
}
