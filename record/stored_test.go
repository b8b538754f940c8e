package record_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

func TestAHundredRunsAtOnce(t *testing.T) {
	w := newWorld(t)
	p := decode(t, three)
	var wait sync.WaitGroup
	for i := range 100 {
		wait.Go(func() {
			opt := record.Options{Run: run.Options{Workers: 1 + i%3, Eager: i%2 == 0}}
			r, err := record.Run(t.Context(), w.store, p, w.tools, opt)
			if err != nil {
				t.Error(err)
				return
			}
			h, err := record.Load(t.Context(), w.store, r.Run)
			if err != nil {
				t.Error(err)
				return
			}
			again, err := h.Report()
			if err != nil {
				t.Error(err)
				return
			}
			if got, live := string(again.AppendFullJSON(nil)), string(r.AppendFullJSON(nil)); got != live {
				t.Errorf("the record gives %s, the run gave %s", got, live)
			}
		})
	}
	wait.Wait()
	if len(w.calls) != 400 {
		t.Errorf("%d calls were made, want 400", len(w.calls))
	}
}

// What a person is asked about is the resolved args, not the reference.
func TestHostile063_TheAskShowsWhatWillBeSent(t *testing.T) {
	w := newWorld(t)
	var told []record.Ask
	opt := record.Options{Run: run.Options{Gate: asksSend{}}, OnAsk: func(a record.Ask) { told = append(told, a) }}
	r, err := record.Run(t.Context(), w.store, decode(t, three), w.tools, opt)
	if err != nil {
		t.Fatal(err)
	}
	h, err := record.Load(t.Context(), w.store, r.Run)
	if err != nil {
		t.Fatal(err)
	}
	for _, asks := range [][]record.Ask{told, h.Asks()} {
		if len(asks) != 1 || asks[0].Step != "b" || asks[0].Args.String() != `{"to":"out of a"}` {
			t.Errorf("asked %+v, want b with its resolved args", asks)
		}
	}
}

// A feed of the records tells a watcher what the observer of the run was told.
func TestAFeedTellsWhatTheRunTold(t *testing.T) {
	w := newWorld(t)
	say := func(e run.Event) string { return fmt.Sprint(e.Kind, e.Step, e.Tool, e.Attempt, e.Status) }
	var live []string
	opt := record.Options{Run: run.Options{Gate: asksSend{}, Observer: func(e run.Event) {
		if e.Kind == run.Settled { // the record has no attempt for it
			e.Attempt = 0
		}
		if e.Kind == run.Asked {
			e.Attempt = 0
		}
		live = append(live, say(e))
	}}}
	r, err := record.Run(t.Context(), w.store, decode(t, three), w.tools, opt)
	if err != nil {
		t.Fatal(err)
	}
	feed, err := record.NewFeed(t.Context(), w.store, r.Run)
	if err != nil {
		t.Fatal(err)
	}
	var fed []string
	for e, err := range w.store.Entries(t.Context(), r.Run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		events, err := feed.Take(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		for _, ev := range events {
			fed = append(fed, say(ev))
		}
	}
	if got, want := strings.Join(fed, "\n"), strings.Join(live, "\n"); got != want {
		t.Errorf("the feed told\n%s\nthe run told\n%s", got, want)
	}
}

// vault is a world with a tool that makes a secret, one that takes it, and send,
// which a person is asked about.
func vault(t *testing.T, effects tool.Effects, secret func() (string, error)) (*tool.Set, map[string]int) {
	t.Helper()
	calls := map[string]int{}
	count := func(name string, out func() (string, error)) tool.Handler {
		return func(context.Context, *tool.Call) (value.Value, error) {
			calls[name]++
			s, err := out()
			if err != nil {
				return value.Value{}, err
			}
			return value.MustText(s), nil
		}
	}
	done := func() (string, error) { return "done", nil }
	set, err := tool.NewSet(
		tool.Tool{Declaration: tool.Declaration{Name: "vault", Effects: effects}, Handler: count("vault", secret)},
		tool.Tool{Declaration: tool.Declaration{Name: "login", Args: []tool.Arg{{Pattern: "/password", Role: tool.Secret}}}, Handler: count("login", done)},
		tool.Tool{Declaration: tool.Declaration{Name: "send"}, Handler: count("send", done)},
	)
	if err != nil {
		t.Fatal(err)
	}
	return set, calls
}

const (
	usedBefore = `[{"id":"v","tool":"vault"},{"id":"l","tool":"login","args":{"password":"$v"}},{"id":"x","tool":"send","after":["l"]}]`
	usedAfter  = `[{"id":"v","tool":"vault"},{"id":"x","tool":"send","after":["v"]},{"id":"l","tool":"login","args":{"password":"$v"},"after":["x"]}]`
)

// A run goes on although the output that fed a secret is not in its record: its
// tool is called again, charged and listed.
func TestAWithheldOutputIsMadeAgain(t *testing.T) {
	for _, c := range []struct{ name, plan string }{{"used before the pause", usedBefore}, {"used after it", usedAfter}} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			var broken error
			set, calls := vault(t, tool.Effects{ReadOnly: true}, func() (string, error) { return "hunter2", broken })
			opt := record.Options{Run: run.Options{Gate: asksSend{}}}
			r, err := record.Run(t.Context(), w.store, decode(t, c.plan), set, opt)
			if err != nil {
				t.Fatal(err)
			}
			// Resumed unanswered, then while the vault is broken, then for good.
			if _, err := record.Resume(t.Context(), w.store, r.Run, set, opt); err != nil {
				t.Fatal(err)
			}
			broken = errors.New("sealed")
			if _, err := record.Resume(t.Context(), w.store, r.Run, set, opt); !errors.Is(err, run.ErrWithheld) {
				t.Errorf("with a broken vault: got %v, want %v", err, run.ErrWithheld)
			}
			broken = nil
			if err := record.Decide(t.Context(), w.store, r.Run, "x", record.Answer{Allow: true}, opt); err != nil {
				t.Fatal(err)
			}
			if r, err = record.Resume(t.Context(), w.store, r.Run, set, opt); err != nil {
				t.Fatal(err)
			}
			if !r.OK() || r.Calls != 6 || calls["vault"] != 4 || calls["login"] != 1 || calls["send"] != 1 {
				t.Errorf("got %s after the calls %v, want all ok, the vault called 4 times and charged for each", r.AppendJSON(nil), calls)
			}
			if n := len(r.Steps[0].Attempts); n != 4 || !r.Steps[0].Attempts[3].Rerun {
				t.Errorf("the calls of the vault are listed as %+v", r.Steps[0].Attempts)
			}
			h, err := record.Load(t.Context(), w.store, r.Run)
			if err != nil {
				t.Fatal(err)
			}
			shown, err := h.Report()
			if err != nil || strings.Contains(string(shown.AppendFullJSON(nil)), "hunter2") {
				t.Errorf("shown as %v, %v: want no secret", shown, err)
			}
		})
	}
}

// Where the call that made the secret may not be doubled, it is not: a step that
// still needs it waits, and what was done with it stays done.
func TestAWithheldOutputOfAnEffect(t *testing.T) {
	opt := record.Options{Run: run.Options{Gate: asksSend{}}}
	t.Run("used before the pause", func(t *testing.T) {
		w := newWorld(t)
		set, calls := vault(t, tool.Effects{}, func() (string, error) { return "hunter2", nil })
		r, err := record.Run(t.Context(), w.store, decode(t, usedBefore), set, opt)
		if err == nil {
			err = record.Decide(t.Context(), w.store, r.Run, "x", record.Answer{Allow: true}, opt)
		}
		if err == nil {
			r, err = record.Resume(t.Context(), w.store, r.Run, set, opt)
		}
		if err != nil || !r.OK() || calls["vault"] != 1 {
			t.Fatalf("got %v, calls %v; want ok and one call of the vault", err, calls)
		}
	})
	t.Run("needed after it", func(t *testing.T) {
		w := newWorld(t)
		set, calls := vault(t, tool.Effects{}, func() (string, error) { return "hunter2", nil })
		// x does not depend on v, so the record of both fits whatever became of v.
		p := decode(t, `[{"id":"v","tool":"vault"},{"id":"x","tool":"send"},{"id":"l","tool":"login","args":{"password":"$v"},"after":["x"]}]`)
		r, err := record.Run(t.Context(), w.store, p, set, opt)
		if err == nil {
			err = record.Decide(t.Context(), w.store, r.Run, "x", record.Answer{Allow: true}, opt)
		}
		if err == nil {
			r, err = record.Resume(t.Context(), w.store, r.Run, set, opt)
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.Steps[0].Status != machine.Waiting || calls["vault"] != 1 {
			t.Fatalf("got %s, want v waiting", r.AppendJSON(nil))
		}
		happened := record.Resolution{What: machine.Happened, Output: value.MustText("hunter2")}
		if err := record.Resolve(t.Context(), w.store, r.Run, "v", happened); !errors.Is(err, record.ErrSecretOutput) {
			t.Errorf("telling the secret got %v, want %v", err, record.ErrSecretOutput)
		}
		if err := record.Resolve(t.Context(), w.store, r.Run, "v", record.Resolution{What: machine.DidNotHappen}); err != nil {
			t.Fatal(err)
		}
		if r, err = record.Resume(t.Context(), w.store, r.Run, set, opt); err != nil || !r.OK() || calls["vault"] != 2 {
			t.Errorf("got %v, %s, calls %v", err, r.AppendJSON(nil), calls)
		}
	})
}

// Nobody can write a secret into the record by editing a call.
func TestAnEditMustFitAndHoldNoSecret(t *testing.T) {
	w := newWorld(t)
	set, _ := vault(t, tool.Effects{ReadOnly: true}, func() (string, error) { return "hunter2", nil })
	opt := record.Options{Run: run.Options{Gate: gateFunc(func(call.Request) machine.Verdict { return machine.Ask })}}
	r, err := record.Run(t.Context(), w.store, decode(t, `[{"id":"l","tool":"login","args":{"user":"u"}}]`), set, opt)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{`{"password":"hunter2"}`, `[]`} {
		if err := record.Decide(t.Context(), w.store, r.Run, "l", record.Answer{Allow: true, Args: value.MustParse(args)}, opt); !errors.Is(err, record.ErrBadEdit) {
			t.Errorf("edited to %s: got %v, want %v", args, err, record.ErrBadEdit)
		}
	}
	if err := record.Decide(t.Context(), w.store, r.Run, "l", record.Answer{Allow: true, Args: value.MustParse(`{"password":{"$secret":"pw"}}`)}, opt); err != nil {
		t.Errorf("the name of a secret: %v", err)
	}
}
