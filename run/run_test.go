package run_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

func TestAGateThatEndsItsGoroutineAllowsNothing(t *testing.T) {
	gate := gateFunc(func(context.Context, call.Request) (call.Decision, error) {
		runtime.Goexit()
		return call.Decision{}, nil
	})
	tl := named("t", writes, func(context.Context, *tool.Call) (value.Value, error) {
		t.Error("the tool was called")
		return value.NullValue(), nil
	})
	r, err := run.Do(t.Context(), decode(t, `[{"id":"a","tool":"t"}]`), set(t, tl), run.Options{Gate: gate})
	if err == nil {
		t.Error("no error from a gate that did not judge")
	}
	want(t, r, `{"status":{"a":"cancelled"},"outputs":{},"waves":[["a"]],"calls":0}`)
}

func TestNothingIsToldAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tl := named("t", writes, func(_ context.Context, c *tool.Call) (value.Value, error) {
			for range 10 { // long after its call was given up
				c.Progress(tool.Progress{Done: 1})
				time.Sleep(time.Second)
			}
			return value.NullValue(), nil
		})
		tl.Deadline = 2500 * time.Millisecond
		var told []run.EventKind
		do(t, `[{"id":"a","tool":"t"}]`, set(t, tl), run.Options{Observer: func(e run.Event) { told = append(told, e.Kind) }})
		time.Sleep(time.Minute)
		noted := 0
		for _, k := range told {
			if k == run.Noted {
				noted++
			}
		}
		if noted != 3 || told[len(told)-1] != run.Ended {
			t.Errorf("told %v, want three notes of progress and the end last", told)
		}
	})
}
