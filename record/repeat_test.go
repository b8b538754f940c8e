package record_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	guard "github.com/callsheet/callsheet/gate"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// A fork of a plan that was written anew takes over what is the same, asks about
// effects on the same targets, also after a resume, and does the rest.
func TestAForkAsksAboutRepeatedEffects(t *testing.T) {
	w := newWorld(t, func(x *tool.Tool) {
		if x.Name == "send" {
			x.Args = []tool.Arg{{Pattern: "/body", Role: tool.Content}}
		}
		if x.Name == "put" {
			x.Handler = func(context.Context, *tool.Call) (value.Value, error) { return value.Value{}, tool.Errorf("full") }
		}
	})
	first := decode(t, `[
		{"id":"look","tool":"read","args":{"q":1}},
		{"id":"mail","tool":"send","args":{"to":"ann","body":"one"}},
		{"id":"keep","tool":"put","after":["mail"]}]`)
	r, err := record.Run(t.Context(), w.store, first, w.tools, record.Options{})
	if err != nil || r.OK() {
		t.Fatal(err, r.OK())
	}
	second := decode(t, `[
		{"id":"look","tool":"read","args":{"q":1}},
		{"id":"same","tool":"send","args":{"to":"ann","body":"one"}},
		{"id":"again","tool":"send","args":{"body":"another","to":"ann"}},
		{"id":"other","tool":"send","args":{"to":"bob","body":"one"}},
		{"id":"later","tool":"send","args":{"to":"ann","body":"third"},"after":["again"]}]`)
	var asked []record.Ask
	opt := record.Options{AskRepeats: true, OnAsk: func(a record.Ask) { asked = append(asked, a) }}
	r, err = record.Fork(t.Context(), w.store, r.Run, second, w.tools, opt)
	if err != nil {
		t.Fatal(err)
	}
	want(t, r, `{"status":{"look":"ok","same":"ok","again":"waiting","other":"ok","later":"waiting"},"outputs":{"look":"out of look","same":"out of mail","other":"out of other"},"waves":[["look","same","again","other"]],"calls":1}`)
	if len(asked) != 1 || asked[0].Step != "again" || asked[0].Code != record.CodeRepeatedEffect {
		t.Fatalf("asked %+v", asked)
	}
	opt.AskRepeats = false // the record knows
	if err := record.Decide(t.Context(), w.store, r.Run, "again", record.Answer{Allow: true}, opt); err != nil {
		t.Fatal(err)
	}
	if r, err = record.Resume(t.Context(), w.store, r.Run, w.tools, opt); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 2 || asked[1].Step != "later" || r.Steps[4].Status != machine.Waiting || r.Steps[2].Status != machine.OK {
		t.Errorf("after the resume: asked %+v, %s", asked, r.AppendJSON(nil))
	}
	// The next fork knows the first run too.
	third := decode(t, `[{"id":"x","tool":"send","args":{"to":"ann","body":"x"}},{"id":"y","tool":"send","args":{"to":"carl","body":"x"}}]`)
	if r, err = record.Fork(t.Context(), w.store, r.Run, third, w.tools, record.Options{AskRepeats: true}); err != nil {
		t.Fatal(err)
	}
	want(t, r, `{"status":{"x":"waiting","y":"ok"},"outputs":{"y":"out of y"},"waves":[["x","y"]],"calls":1}`)
}

// A repeated effect is asked about in the way of the gate: where nobody is asked,
// it is denied.
func TestARepeatedEffectIsDeniedWhereNobodyIsAsked(t *testing.T) {
	w := newWorld(t, func(x *tool.Tool) {
		if x.Name == "send" {
			x.Args = []tool.Arg{{Pattern: "/body", Role: tool.Content}}
		}
	})
	first := decode(t, `[{"id":"mail","tool":"send","args":{"to":"ann","body":"one"}}]`)
	r, err := record.Run(t.Context(), w.store, first, w.tools, record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	second := decode(t, `[{"id":"again","tool":"send","args":{"to":"ann","body":"two"}},{"id":"other","tool":"send","args":{"to":"bob","body":"two"}}]`)
	g := guard.New(guard.Options{Plan: second, OnAsk: guard.Refuse})
	for name, opt := range map[string]record.Options{
		"a gate":            {AskRepeats: true, Run: run.Options{Gate: g}},
		"no gate, an asker": {AskRepeats: true, Asker: g},
	} {
		forked, err := record.Fork(t.Context(), w.store, r.Run, second, w.tools, opt)
		if err != nil {
			t.Fatal(name, err)
		}
		want(t, forked, `{"status":{"again":"denied","other":"ok"},"outputs":{"other":"out of other"},"waves":[["again","other"]],"calls":1}`)
	}
}

// What a fork may not do anew by itself: a call that cannot safely be made twice
// and of which nobody knows what became.
func TestAForkAsksAboutCallsOfUnknownOutcome(t *testing.T) {
	p := decode(t, `[{"id":"a","tool":"send","args":{"to":"ann"}},{"id":"b","tool":"send","args":{"to":"bob"},"after":["a"]}]`)
	for _, c := range []struct {
		name   string
		lost   bool // the call of a ends without an answer
		full   bool // the disk is full at the outcome of a
		giveUp bool
	}{
		{name: "crash", full: true},
		{name: "lost connection", lost: true},
		{name: "given up", full: true, giveUp: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var full, lost atomic.Bool
			lost.Store(c.lost)
			made := 0
			w := newWorld(t, func(x *tool.Tool) {
				x.Handler = func(context.Context, *tool.Call) (value.Value, error) {
					made++
					full.Store(c.full && made == 1)
					if lost.Swap(false) {
						return value.Value{}, &tool.Failure{Code: "gone", Message: "the connection was lost", Lost: true}
					}
					return value.NullValue(), nil
				}
			})
			store, err := journal.Open(filepath.Join(t.TempDir(), "j.db"), journal.Options{BeforeCommit: func() error {
				if full.Load() {
					return errors.New("no space left on device")
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			r, err := record.Run(t.Context(), store, p, w.tools, record.Options{})
			if c.full != errors.Is(err, journal.ErrJournal) {
				t.Fatal(err)
			}
			full.Store(false)
			origin := r.Run
			if c.giveUp {
				if _, err := record.Resume(t.Context(), store, origin, w.tools, record.Options{}); err != nil {
					t.Fatal(err)
				}
				if err := record.Resolve(t.Context(), store, origin, "a", record.Resolution{What: machine.GiveUp}); err != nil {
					t.Fatal(err)
				}
			}
			var asked []record.Ask
			opt := record.Options{OnAsk: func(a record.Ask) { asked = append(asked, a) }}
			if r, err = record.Fork(t.Context(), store, origin, p, w.tools, opt); err != nil {
				t.Fatal(err)
			}
			want(t, r, `{"status":{"a":"waiting","b":"waiting"},"outputs":{},"waves":[["a"]],"calls":0}`)
			if len(asked) != 1 || asked[0].Step != "a" || asked[0].Code != record.CodeRepeatedEffect || !strings.Contains(asked[0].Message, origin) {
				t.Errorf("asked %+v, want once about a, naming run %s", asked, origin)
			}
			// The fork of the fork is no way around it, nor is removing what they came from.
			if err := store.Remove(t.Context(), origin, "out of the way"); !errors.Is(err, journal.ErrNeeded) {
				t.Errorf("removing the origin: %v, want %v", err, journal.ErrNeeded)
			}
			again, err := record.Fork(t.Context(), store, r.Run, p, w.tools, opt)
			if err != nil || again.Calls != 0 {
				t.Errorf("the fork of the fork: %v, %d calls", err, again.Calls)
			}
			// A person who says yes has the call made, once.
			if err := record.Decide(t.Context(), store, r.Run, "a", record.Answer{Allow: true}, opt); err != nil {
				t.Fatal(err)
			}
			if r, err = record.Resume(t.Context(), store, r.Run, w.tools, opt); err != nil {
				t.Fatal(err)
			}
			want(t, r, `{"status":{"a":"ok","b":"ok"},"outputs":{"a":null,"b":null},"waves":[["a"],["b"]],"calls":2}`)
			if made != 3 {
				t.Errorf("%d calls in all, want that of the origin and two of the fork", made)
			}
		})
	}
}

// A fork tells of the calls that it makes, not of those that it takes over.
func TestAForkTellsOfNoCallThatItTakesOver(t *testing.T) {
	w := newWorld(t)
	r, err := record.Run(t.Context(), w.store, decode(t, `[{"id":"a","tool":"send"}]`), w.tools, record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	opt := record.Options{Run: run.Options{Observer: func(e run.Event) {
		if e.Kind == run.Called || e.Kind == run.Returned {
			told = append(told, e.Step+" "+e.Kind.String())
		}
	}}}
	longer := decode(t, `[{"id":"a","tool":"send"},{"id":"b","tool":"send","args":{"x":"$a"}}]`)
	if _, err := record.Fork(t.Context(), w.store, r.Run, longer, w.tools, opt); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(told, ", "), "b called, b returned"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}

// Two runs must not do the same work side by side.
func TestARunThatGoesOnIsNotForked(t *testing.T) {
	w := newWorld(t)
	p := decode(t, three)
	opt := record.Options{Run: run.Options{Gate: asksSend{}}}
	r, err := record.Run(t.Context(), w.store, p, w.tools, opt)
	if err != nil {
		t.Fatal(err)
	}
	held, err := w.store.OpenRun(t.Context(), r.Run)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record.Fork(t.Context(), w.store, r.Run, p, w.tools, opt); !errors.Is(err, journal.ErrRunTaken) {
		t.Errorf("forking a run that is held got %v, want %v", err, journal.ErrRunTaken)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := record.Fork(t.Context(), w.store, r.Run, p, w.tools, opt); err != nil {
		t.Error(err)
	}
}
