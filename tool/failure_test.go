package tool_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/tool"
)

// hostile is an error whose methods panic, with itself: it cannot be printed.
type hostile struct{}

func (h *hostile) Error() string { panic(h) }

// uncomparable is an error that == panics on.
type uncomparable struct{ _ []string }

func (uncomparable) Error() string { return "parts" }

func TestAsFailure(t *testing.T) {
	none := (*tool.Failure)(nil)
	long := strings.Repeat("é", tool.MaxMessage)
	for name, c := range map[string]struct {
		err  error
		want tool.Failure // without the stack
	}{
		"plain":            {errors.New("no"), tool.Failure{Code: "tool_error", Message: "no"}},
		"wrapped":          {fmt.Errorf("at: %w", &tool.Failure{Code: "busy", Message: "no", Retryable: true}), tool.Failure{Code: "busy", Message: "no", Retryable: true}},
		"deadline":         {fmt.Errorf("at: %w", context.DeadlineExceeded), tool.Failure{Code: "timeout", Message: "at: context deadline exceeded", Lost: true}},
		"cancelled":        {context.Canceled, tool.Failure{Code: "cancelled", Message: "context canceled", Lost: true}},
		"wraps a nil":      {fmt.Errorf("at: %w", none), tool.Failure{Code: "tool_error", Message: "at: <nil>"}},
		"joins a nil":      {errors.Join(uncomparable{}, errors.New("b")), tool.Failure{Code: "tool_error", Message: "parts\nb"}},
		"uncomparable":     {uncomparable{}, tool.Failure{Code: "tool_error", Message: "parts"}},
		"panics":           {&hostile{}, tool.Failure{Code: "panic", Message: "the error that the tool returned, a *tool_test.hostile, panicked"}},
		"a nil of its own": {(*nilError)(nil), tool.Failure{Code: "panic", Message: "the error that the tool returned, a *tool_test.nilError, panicked: runtime error: invalid memory address or nil pointer dereference"}},
		"long message":     {errors.New(long), tool.Failure{Code: "tool_error", Message: long[:tool.MaxMessage] + "…"}},
		"long code":        {&tool.Failure{Code: strings.Repeat("c", 1<<20)}, tool.Failure{Code: strings.Repeat("c", tool.MaxCode)}},
		"code is no word":  {&tool.Failure{Code: "a b\x1b\u202e"}, tool.Failure{Code: "a_b__"}},
		"not begun":        {&tool.Failure{Code: "c", NotStarted: true, Lost: true}, tool.Failure{Code: "c", NotStarted: true}},
	} {
		got := *tool.AsFailure(c.err)
		if got.Code == tool.CodePanic && got.Stack == "" {
			t.Errorf("%s: a panic without a stack", name)
		}
		if got.Stack = ""; got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

func TestNoErrorIsNoFailure(t *testing.T) {
	for name, err := range map[string]error{"nil": nil, "a nil *Failure": (*tool.Failure)(nil)} {
		for what, f := range map[string]*tool.Failure{
			"AsFailure": tool.AsFailure(err), "Retryable": tool.Retryable(err), "RetryAfter": tool.RetryAfter(err, 1), "Lost": tool.Lost(err),
		} {
			if f != nil {
				t.Errorf("%s of %s is %+v, want nil", what, name, f)
			}
		}
	}
}
