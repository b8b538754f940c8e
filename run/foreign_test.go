package run_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// rude is a gate, a recorder and a vault of which the part that is named at
// misbehaves.
type rude struct {
	at  string
	act func()
}

func (r rude) do(at string) {
	if at == r.at {
		r.act()
	}
}

func (r rude) Judge(context.Context, call.Request) (call.Decision, error) {
	r.do("Judge")
	return call.Decision{Verdict: machine.Allow}, nil
}
func (r rude) Allowed(call.Request)             { r.do("Allowed") }
func (r rude) Ended(call.Request, call.Outcome) { r.do("Ended") }
func (r rude) Decided(call.Request, call.Decision) (call.Ticket, error) {
	r.do("Decided")
	return nil, nil
}
func (r rude) Intent(context.Context, call.Request) error { r.do("Intent"); return nil }
func (r rude) Outcome(call.Request, call.Outcome) call.Ticket {
	r.do("Outcome")
	return r
}
func (r rude) Wait(context.Context) error              { r.do("Wait"); return nil }
func (r rude) Late(call.Request, call.Outcome)         { r.do("Late") }
func (r rude) Lost(context.Context, string, int) error { r.do("Lost"); return nil }
func (r rude) Reused(string, *tool.Declaration, value.Value, value.Value) error {
	r.do("Reused")
	return nil
}
func (r rude) reuse(string, *tool.Declaration, value.Value) (v value.Value, ok bool) {
	r.do("Reuse")
	return value.Int(7), r.at == "Reused"
}
func (r rude) Reveal(q call.Request) (value.Value, error) { r.do("Reveal"); return q.Args, nil }
func (r rude) Redact(v value.Value) value.Value           { r.do("Redact"); return v }
func (r rude) RedactText(s string) string                 { return s }

// A part of the harness that panics or goes fails the run: it lets no call
// through, and a sibling that is out keeps its result.
func TestForeignPartsOfTheHarnessFailTheRun(t *testing.T) {
	before := []string{"Judge", "Decided", "Reuse", "Intent", "Reveal", "Reused"} // the call, which is not made then
	after := []string{"Ended", "Outcome", "Wait", "Redact"}
	for _, way := range []string{"panics", "goes"} {
		for _, at := range append(before, after...) {
			t.Run(at+" "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var armed atomic.Bool
					var called atomic.Int32
					r := rude{at: at, act: func() {
						switch {
						case !armed.Load():
						case way == "goes":
							runtime.Goexit()
						default:
							panic("rude")
						}
					}}
					s := set(t, named("slow", writes, func(context.Context, *tool.Call) (value.Value, error) {
						armed.Store(true)
						time.Sleep(time.Second)
						armed.Store(false) // what is recorded of this call is
						return value.Int(1), nil
					}), named("t", writes, func(context.Context, *tool.Call) (value.Value, error) {
						called.Add(1)
						return value.Int(2), nil
					}))
					opt := run.Options{Workers: 2, Gate: r, Recorder: r, Vault: r, Reuse: func(step string, d *tool.Declaration, args value.Value) (value.Value, bool) {
						if step == "a" {
							return value.Value{}, false
						}
						time.Sleep(time.Millisecond) // until slow is out
						return r.reuse(step, d, args)
					}}
					report, err := run.Do(t.Context(), decode(t, `[{"id":"a","tool":"slow"},{"id":"b","tool":"t"},{"id":"c","tool":"t","after":["a"]}]`), s, opt)
					var panicked *call.PanicError
					switch {
					case way == "panics" && (!errors.As(err, &panicked) || !strings.HasSuffix(panicked.Message, "panicked: rude") || panicked.Stack == ""):
						t.Errorf("error %v, want the panic with its stack", err)
					case way == "goes" && !errors.Is(err, call.ErrGone):
						t.Errorf("error %v, want that the goroutine ended", err)
					}
					if got := report.Steps[0].Status; got != machine.OK {
						t.Errorf("the sibling is %s, want ok", got)
					}
					made := int32(1)
					for _, b := range before {
						if at == b {
							made = 0
						}
					}
					if called.Load() != made {
						t.Errorf("%d calls of the tool, want %d", called.Load(), made)
					}
					if got := report.Steps[2].Status; got != machine.Cancelled {
						t.Errorf("the step after is %s, want cancelled", got)
					}
				})
			})
		}
	}
}

// asks is a gate that asks about every call, and a recorder whose promise to keep
// the question is the other's.
type asks struct{ rude }

func (asks) Judge(context.Context, call.Request) (call.Decision, error) {
	return call.Decision{Verdict: machine.Ask}, nil
}
func (a asks) Decided(call.Request, call.Decision) (call.Ticket, error) { return a.rude, nil }

// A question is told of once its record is kept, in the order of the steps; one
// that is not kept fails the run.
func TestAskedWhenRecorded(t *testing.T) {
	for name, act := range map[string]func(){"keeps": nil, "panics": func() { panic("rude") }, "goes": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			at := "Wait"
			if act == nil {
				at = ""
			}
			a := asks{rude{at: at, act: act}}
			var told []string
			report, err := run.Do(t.Context(), decode(t, `[{"id":"a","tool":"t"},{"id":"b","tool":"t"},{"id":"c","tool":"t"}]`), set(t, named("t", writes, ok)), run.Options{
				Gate: a, Recorder: a, Observer: func(e run.Event) { told = append(told, e.Kind.String()+" "+e.Step) },
			})
			if report.Calls != 0 {
				t.Errorf("%d calls, want none", report.Calls)
			}
			if act == nil {
				if want := "started ,asked a,asked b,asked c,ended "; err != nil || strings.Join(told, ",") != want {
					t.Errorf("told %q, error %v; want %q", told, err, want)
				}
				return
			}
			var panicked *call.PanicError
			if !errors.As(err, &panicked) && !errors.Is(err, call.ErrGone) {
				t.Errorf("error %v, want that of the recorder", err)
			}
			for _, e := range told {
				if strings.HasPrefix(e, "asked") {
					t.Errorf("told of a question that is not recorded: %s", e)
				}
			}
		})
	}
}

func TestAnObserverThatPanicsFailsTheRun(t *testing.T) {
	s := set(t, named("t", writes, ok))
	told := 0
	r, err := run.Do(t.Context(), decode(t, `[{"id":"a","tool":"t"},{"id":"b","tool":"t"}]`), s, run.Options{Observer: func(e run.Event) {
		if told++; e.Kind == run.Returned {
			panic("rude")
		}
	}})
	var panicked *call.PanicError
	if !errors.As(err, &panicked) || told != 3 {
		t.Errorf("error %v after %d events, want the panic after three", err, told)
	}
	want(t, r, `{"status":{"a":"ok","b":"cancelled"},"outputs":{"a":"ok"},"waves":[["a","b"]],"calls":1}`)
}

// unprintable is an error that panics with itself when it is asked.
type unprintable struct{}

func (u *unprintable) Error() string { panic(u) }

// leaver is an error that ends the goroutine of whoever asks it.
type leaver struct{}

func (leaver) Error() string { runtime.Goexit(); return "" }

func TestHostile038_ErrorsThatMisbehave(t *testing.T) {
	typed, err := tool.Func("t", "", func(context.Context, struct{}) (int, error) { var none *tool.Failure; return 1, none }, tool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fails := func(err error) tool.Tool {
		return named("t", writes, func(context.Context, *tool.Call) (value.Value, error) { return value.Int(1), err })
	}
	for name, c := range map[string]struct {
		tool tool.Tool
		code string
	}{
		"a nil *Failure":                   {fails((*tool.Failure)(nil)), ""},
		"a nil *Failure of a Func":         {typed, ""},
		"Error panics":                     {fails(&unprintable{}), tool.CodePanic},
		"Error ends the goroutine":         {fails(leaver{}), tool.CodePanic},
		"panics with an error that panics": {named("t", writes, func(context.Context, *tool.Call) (value.Value, error) { panic(&unprintable{}) }), tool.CodePanic},
	} {
		t.Run(name, func(t *testing.T) {
			r := do(t, `[{"id":"a","tool":"t"},{"id":"b","tool":"t"}]`, set(t, c.tool), run.Options{Workers: 2})
			for _, s := range r.Steps {
				if c.code == "" {
					if s.Status != machine.OK || s.Output.String() != "1" {
						t.Errorf("%s is %s with %v, want ok with 1", s.ID, s.Status, s.Output)
					}
				} else if s.Status != machine.ToolError || s.Cause.Code != c.code {
					t.Errorf("%s is %s because of %+v, want tool_error with code %s", s.ID, s.Status, s.Cause, c.code)
				}
			}
		})
	}
}

// Whichever comes first to the machine, the cancellation or the answer of the
// call that heard of it, the step is cancelled; and a deadline of the run is
// not one of the call.
func TestACancelledSafeCallIsCancelled(t *testing.T) {
	waits := func(ctx context.Context, _ *tool.Call) (value.Value, error) {
		<-ctx.Done()
		return value.Value{}, ctx.Err()
	}
	for name, h := range map[string]tool.Handler{
		"says so": waits,
		"has a deadline of the run's for its own": func(ctx context.Context, _ *tool.Call) (value.Value, error) {
			if at, ok := ctx.Deadline(); ok { // as a network connection does
				time.Sleep(time.Until(at))
				return value.Value{}, tool.Lost(context.DeadlineExceeded)
			}
			return waits(ctx, nil)
		},
		"hears nothing": func(context.Context, *tool.Call) (value.Value, error) {
			time.Sleep(time.Minute)
			return value.Int(1), nil
		},
	} {
		for _, by := range []string{"cancel", "deadline"} {
			t.Run(name+", by "+by, func(t *testing.T) {
				for range 50 {
					synctest.Test(t, func(t *testing.T) {
						tl := named("t", reads, h)
						tl.Deadline = time.Hour
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						opt := run.Options{}
						if by == "cancel" {
							time.AfterFunc(time.Second, cancel)
							if strings.HasPrefix(name, "has") {
								return // there is no deadline but its own
							}
						} else {
							opt.Deadline = time.Second
						}
						r, err := run.Do(ctx, decode(t, `[{"id":"a","tool":"t"},{"id":"b","tool":"t"}]`), set(t, tl), opt)
						if err != nil {
							t.Fatal(err)
						}
						want(t, r, `{"status":{"a":"cancelled","b":"cancelled"},"outputs":{},"waves":[["a","b"]],"calls":1}`)
						time.Sleep(time.Minute)
					})
				}
			})
		}
	}
}

// A tool that gives up for a reason of its own, with the error of a context, has
// not been cancelled.
func TestAToolsOwnContextIsNotTheRuns(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		code string
	}{"cancelled": {context.Canceled, tool.CodeConnection}, "deadline": {context.DeadlineExceeded, tool.CodeTimeout}} {
		tl := named("t", reads, func(context.Context, *tool.Call) (value.Value, error) { return value.Value{}, c.err })
		r := do(t, `[{"id":"a","tool":"t"}]`, set(t, tl), run.Options{})
		if s := r.Steps[0]; s.Status != machine.ToolError || s.Cause.Code != c.code || r.Calls != 2 {
			t.Errorf("%s: %s because of %+v after %d calls, want tool_error, %s, 2", name, s.Status, s.Cause, r.Calls, c.code)
		}
	}
}
