package record_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// world is a store and tools that count their calls.
type world struct {
	store *journal.Store
	tools *tool.Set
	mu    sync.Mutex
	calls []string
	keys  map[string][]string
}

func newWorld(t *testing.T, tweak ...func(*tool.Tool)) *world {
	t.Helper()
	store, err := journal.Open(filepath.Join(t.TempDir(), "journal.db"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	w := &world{store: store, keys: map[string][]string{}}
	count := func(_ context.Context, c *tool.Call) (value.Value, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.calls = append(w.calls, c.Step)
		w.keys[c.Step] = append(w.keys[c.Step], c.Key())
		return value.MustText("out of " + c.Step), nil
	}
	tools := []tool.Tool{
		{Declaration: tool.Declaration{Name: "read", Effects: tool.Effects{ReadOnly: true}}, Handler: count},
		{Declaration: tool.Declaration{Name: "send", Effects: tool.Effects{Destructive: true}}, Handler: count},
		{Declaration: tool.Declaration{Name: "put", Effects: tool.Effects{Idempotent: true}}, Handler: count},
	}
	for i := range tools {
		for _, f := range tweak {
			f(&tools[i])
		}
	}
	if w.tools, err = tool.NewSet(tools...); err != nil {
		t.Fatal(err)
	}
	return w
}

func decode(t *testing.T, text string) *plan.Plan {
	t.Helper()
	p, err := plan.Decode([]byte(text), plan.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func want(t *testing.T, r *machine.Report, report string) {
	t.Helper()
	if got := string(r.AppendJSON(nil)); got != report {
		t.Errorf("got  %s\nwant %s", got, report)
	}
}

// asksSend asks for every call of send.
type asksSend struct{}

func (asksSend) Judge(_ context.Context, r call.Request) (call.Decision, error) {
	if r.Tool.Name == "send" {
		return call.Decision{Verdict: machine.Ask, Message: "send it?", By: "test"}, nil
	}
	return call.Decision{Verdict: machine.Allow, By: "test"}, nil
}

const three = `[{"id":"a","tool":"read","args":{"q":1}},{"id":"b","tool":"send","args":{"to":"$a"}},{"id":"c","tool":"put","args":{"x":"$b"}},{"id":"d","tool":"read"}]`

func TestAPausedRunGoesOnAfterTheAnswer(t *testing.T) {
	for _, c := range []struct {
		name   string
		allow  bool
		report string
		calls  string
	}{
		{"approved", true, `{"status":{"a":"ok","b":"ok","c":"ok","d":"ok"},"outputs":{"a":"out of a","b":"out of b","c":"out of c","d":"out of d"},"waves":[["a","d"],["b"],["c"]],"calls":4}`, "a d b c"},
		{"denied", false, `{"status":{"a":"ok","b":"denied","c":"skipped","d":"ok"},"outputs":{"a":"out of a","d":"out of d"},"waves":[["a","d"],["b"]],"calls":2}`, "a d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			var asked []record.Ask
			opt := record.Options{Run: run.Options{Gate: asksSend{}}, OnAsk: func(a record.Ask) { asked = append(asked, a) }}
			r, err := record.Run(t.Context(), w.store, decode(t, three), w.tools, opt)
			if err != nil {
				t.Fatal(err)
			}
			want(t, r, `{"status":{"a":"ok","b":"waiting","c":"waiting","d":"ok"},"outputs":{"a":"out of a","d":"out of d"},"waves":[["a","d"],["b"]],"calls":2}`)
			if len(asked) != 1 || asked[0].Step != "b" || asked[0].Args.String() != `{"to":"out of a"}` {
				t.Fatalf("asked %+v, want step b with its resolved args", asked)
			}
			answer := record.Answer{Allow: c.allow, By: "someone"}
			if err := record.Decide(t.Context(), w.store, r.Run, "b", answer, opt); err != nil {
				t.Fatal(err)
			}
			if err := record.Decide(t.Context(), w.store, r.Run, "b", record.Answer{Allow: !c.allow}, opt); !errors.Is(err, journal.ErrDecided) {
				t.Errorf("a second answer got %v, want %v", err, journal.ErrDecided)
			}
			r, err = record.Resume(t.Context(), w.store, r.Run, w.tools, opt)
			if err != nil {
				t.Fatal(err)
			}
			want(t, r, c.report)
			if got := strings.Join(w.calls, " "); got != c.calls {
				t.Errorf("called %q, want %q", got, c.calls)
			}
			if _, err := record.Resume(t.Context(), w.store, r.Run, w.tools, opt); !errors.Is(err, record.ErrOver) {
				t.Errorf("resuming a run that is over got %v, want %v", err, record.ErrOver)
			}
		})
	}
}

func TestHostile064_AnAskServesOneStepOnceAndExpires(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	opt := record.Options{Run: run.Options{Gate: asksSend{}}, Now: func() time.Time { return now }}
	r, err := record.Run(t.Context(), w.store, decode(t, three), w.tools, opt)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(record.DefaultApproval + time.Second)
	if err := record.Decide(t.Context(), w.store, r.Run, "b", record.Answer{Allow: true}, opt); !errors.Is(err, record.ErrExpired) {
		t.Fatalf("an answer after the expiry got %v, want %v", err, record.ErrExpired)
	}
	before, err := record.Load(t.Context(), w.store, r.Run)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = record.Resume(t.Context(), w.store, r.Run, w.tools, opt); err != nil {
		t.Fatal(err)
	}
	if r.Steps[1].Status != machine.Waiting {
		t.Fatalf("b is %s after its ask expired, want it asked anew", r.Steps[1].Status)
	}
	after, err := record.Load(t.Context(), w.store, r.Run)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := before.Asks(), after.Asks(); len(a) != 1 || len(b) != 1 || a[0].Digest == b[0].Digest {
		t.Errorf("asks %+v then %+v, want one each with different digests", a, b)
	}
}

func TestHostile065_OfManyAnswersExactlyOneHolds(t *testing.T) {
	w := newWorld(t)
	opt := record.Options{Run: run.Options{Gate: asksSend{}}}
	r, err := record.Run(t.Context(), w.store, decode(t, three), w.tools, opt)
	if err != nil {
		t.Fatal(err)
	}
	const many = 16
	errs := make([]error, many)
	var wg sync.WaitGroup
	for i := range many {
		wg.Go(func() {
			errs[i] = record.Decide(t.Context(), w.store, r.Run, "b", record.Answer{Allow: i%2 == 0, By: fmt.Sprint(i)}, opt)
		})
	}
	wg.Wait()
	winner := -1
	for i, err := range errs {
		switch {
		case err == nil && winner >= 0:
			t.Errorf("answers %d and %d both won", winner, i)
		case err == nil:
			winner = i
		case !errors.Is(err, journal.ErrDecided) || !strings.Contains(err.Error(), `step "b": `+journal.ErrDecided.Error()):
			t.Errorf("answer %d got %v, want %v, of step b", i, err, journal.ErrDecided)
		}
	}
	if r, err = record.Resume(t.Context(), w.store, r.Run, w.tools, opt); err != nil {
		t.Fatal(err)
	}
	wanted := machine.Denied
	if winner%2 == 0 {
		wanted = machine.OK
	}
	if r.Steps[1].Status != wanted {
		t.Errorf("answer %d won and b is %s, want %s", winner, r.Steps[1].Status, wanted)
	}
}

// What was shown is what is approved, not what was asked since.
func TestHostile062_AnAnswerToAnAskThatWasAskedAnewIsVoid(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	var asks []record.Ask
	opt := record.Options{Run: run.Options{Gate: asksSend{}}, Now: func() time.Time { return now }, OnAsk: func(a record.Ask) { asks = append(asks, a) }}
	r, err := record.Run(t.Context(), w.store, decode(t, three), w.tools, opt)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * record.DefaultApproval)
	if r, err = record.Resume(t.Context(), w.store, r.Run, w.tools, opt); err != nil || len(asks) != 2 {
		t.Fatalf("%v, %d asks, want the first and one anew", err, len(asks))
	}
	if err := record.Decide(t.Context(), w.store, r.Run, "b", record.Answer{Ask: asks[0].Digest, Allow: true}, opt); !errors.Is(err, record.ErrNoAsk) {
		t.Errorf("an answer to the first got %v, want %v", err, record.ErrNoAsk)
	}
	if err := record.Decide(t.Context(), w.store, r.Run, "b", record.Answer{Ask: asks[1].Digest, Allow: true}, opt); err != nil {
		t.Errorf("an answer to the second got %v", err)
	}
}

func TestHostile068_EditedArgsAreJudgedAnew(t *testing.T) {
	w := newWorld(t)
	opt := record.Options{Run: run.Options{Gate: gateFunc(func(r call.Request) machine.Verdict {
		if r.Tool.Name == "send" && r.Before.IsZero() {
			return machine.Ask
		}
		return machine.Allow
	})}}
	r, err := record.Run(t.Context(), w.store, decode(t, three), w.tools, opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := record.Decide(t.Context(), w.store, r.Run, "b", record.Answer{Allow: true, Args: value.MustParse(`{"to":"me"}`)}, opt); err != nil {
		t.Fatal(err)
	}
	if r, err = record.Resume(t.Context(), w.store, r.Run, w.tools, opt); err != nil {
		t.Fatal(err)
	}
	if got := r.Steps[1].Args.String(); r.Steps[1].Status != machine.OK || got != `{"to":"me"}` {
		t.Errorf("b is %s with args %s, want ok with the edited ones", r.Steps[1].Status, got)
	}
}

type gateFunc func(call.Request) machine.Verdict

func (g gateFunc) Judge(_ context.Context, r call.Request) (call.Decision, error) {
	return call.Decision{Verdict: g(r), By: "test"}, nil
}

func TestHostile059_AChangedCatalogueOrPolicyIsRefused(t *testing.T) {
	w := newWorld(t)
	opt := record.Options{Run: run.Options{Gate: asksSend{}}}
	r, err := record.Run(t.Context(), w.store, decode(t, three), w.tools, opt)
	if err != nil {
		t.Fatal(err)
	}
	other := newWorld(t, func(tl *tool.Tool) { tl.Description = "changed" })
	if _, err := record.Resume(t.Context(), w.store, r.Run, other.tools, opt); !errors.Is(err, record.ErrChanged) {
		t.Errorf("another catalogue got %v, want %v", err, record.ErrChanged)
	}
	changed := opt
	changed.Policy[0] = 1
	if _, err := record.Resume(t.Context(), w.store, r.Run, w.tools, changed); !errors.Is(err, record.ErrChanged) {
		t.Errorf("another policy got %v, want %v", err, record.ErrChanged)
	}
	if _, err := record.Resume(t.Context(), w.store, r.Run, w.tools, opt); err != nil {
		t.Errorf("the same again: %v", err)
	}
}

func TestAForkReusesWhatDidNotChange(t *testing.T) {
	w := newWorld(t)
	first, err := record.Run(t.Context(), w.store, decode(t, three), w.tools, record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.calls = nil
	// b is renamed, c gets other args, d is as it was, e is new and like d.
	changed := `[{"id":"a","tool":"read","args":{"q":1}},{"id":"b2","tool":"send","args":{"to":"$a"}},{"id":"c","tool":"put","args":{"x":"$b2","y":1}},{"id":"d","tool":"read"},{"id":"e","tool":"read"}]`
	r, err := record.Fork(t.Context(), w.store, first.Run, decode(t, changed), w.tools, record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want(t, r, `{"status":{"a":"ok","b2":"ok","c":"ok","d":"ok","e":"ok"},"outputs":{"a":"out of a","b2":"out of b","c":"out of c","d":"out of d","e":"out of e"},"waves":[["a","d","e"],["b2"],["c"]],"calls":2}`)
	if got := strings.Join(w.calls, " "); got != "e c" {
		t.Errorf("called %q, want only what changed: e c", got)
	}
}

func TestKeysAreConstantOverAttemptsAndForks(t *testing.T) {
	failures := map[string]int{"c": 1}
	w := newWorld(t)
	inner := w.tools
	set, err := tool.NewSet(
		tool.Tool{Declaration: *inner.Catalogue().Get("read"), Handler: inner.Handler("read")},
		tool.Tool{Declaration: *inner.Catalogue().Get("send"), Handler: inner.Handler("send")},
		tool.Tool{Declaration: *inner.Catalogue().Get("put"), Handler: func(ctx context.Context, c *tool.Call) (value.Value, error) {
			out, err := inner.Handler("put")(ctx, c)
			if failures[c.Step] > 0 {
				failures[c.Step]--
				return value.Value{}, tool.Retryable(errors.New("busy"))
			}
			return out, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record.Run(t.Context(), w.store, decode(t, three), set, record.Options{}); err != nil {
		t.Fatal(err)
	}
	if k := w.keys["c"]; len(k) != 2 || k[0] != k[1] || k[0] == "" || k[0] == w.keys["b"][0] {
		t.Errorf("keys of c %q, of b %q; want one for both attempts of c and another for b", k, w.keys["b"])
	}
}

func TestHostile058_OneRunInTwoPlaces(t *testing.T) {
	w := newWorld(t)
	opt := record.Options{Run: run.Options{Gate: asksSend{}}}
	r, err := record.Run(t.Context(), w.store, decode(t, three), w.tools, opt)
	if err != nil {
		t.Fatal(err)
	}
	held, err := w.store.OpenRun(t.Context(), r.Run)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record.Resume(t.Context(), w.store, r.Run, w.tools, opt); !errors.Is(err, journal.ErrRunTaken) {
		t.Errorf("resuming a run that is held got %v, want %v", err, journal.ErrRunTaken)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSecretsStayOutOfTheRecord(t *testing.T) {
	const secret = "hunter2-and-more"
	w := newWorld(t)
	set, err := tool.NewSet(
		tool.Tool{Declaration: tool.Declaration{Name: "vault", Effects: tool.Effects{ReadOnly: true}}, Handler: func(context.Context, *tool.Call) (value.Value, error) {
			return value.MustText(secret), nil
		}},
		tool.Tool{Declaration: tool.Declaration{Name: "login", Effects: tool.Effects{}, Args: []tool.Arg{{Pattern: "/password", Role: tool.Secret}}}, Handler: func(context.Context, *tool.Call) (value.Value, error) {
			return value.MustText("in"), nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	p := decode(t, `[{"id":"v","tool":"vault"},{"id":"l","tool":"login","args":{"user":"u","password":"$v"}}]`)
	r, err := record.Run(t.Context(), w.store, p, set, record.Options{})
	if err != nil || !r.OK() {
		t.Fatalf("%v, %s", err, r.AppendJSON(nil))
	}
	for e, err := range w.store.Entries(t.Context(), r.Run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		body, err := e.Body(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(body.String(), secret) {
			t.Errorf("record %d (%s) holds the secret: %s", e.Index, e.Kind, body)
		}
	}
	literal := decode(t, `[{"id":"l","tool":"login","args":{"user":"u","password":"`+secret+`"}}]`)
	if _, err := record.Run(t.Context(), w.store, literal, set, record.Options{}); !errors.Is(err, record.ErrSecretLiteral) {
		t.Errorf("a secret in the plan got %v, want %v", err, record.ErrSecretLiteral)
	}
}

func TestAJournalThatCannotWriteStopsTheRun(t *testing.T) {
	t.Run("Hostile056 at an intent that must be durable", func(t *testing.T) {
		testFailingJournal(t, `[{"id":"a","tool":"send"},{"id":"b","tool":"send"}]`, 0, "", `{"a":"cancelled","b":"cancelled"}`)
	})
	t.Run("Hostile057 at an outcome", func(t *testing.T) {
		testFailingJournal(t, `[{"id":"a","tool":"send"},{"id":"b","tool":"send"}]`, 1, "a", `{"a":"ok","b":"cancelled"}`)
	})
	t.Run("Hostile057 at the outcome of a read", func(t *testing.T) {
		testFailingJournal(t, `[{"id":"a","tool":"read"},{"id":"b","tool":"read"}]`, 0, "a", `{"a":"ok","b":"cancelled"}`)
	})
}

// testFailingJournal runs a plan over a store whose commits fail after good.
func testFailingJournal(t *testing.T, text string, good int, calls, status string) {
	t.Helper()
	w := newWorld(t)
	disk := errors.New("no space left on device")
	var mu sync.Mutex
	commits := 0
	store, err := journal.Open(filepath.Join(t.TempDir(), "full.db"), journal.Options{BeforeCommit: func() error {
		mu.Lock()
		defer mu.Unlock()
		if commits++; commits > good {
			return disk
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	r, err := record.Run(t.Context(), store, decode(t, text), w.tools, record.Options{})
	if !errors.Is(err, journal.ErrJournal) || !errors.Is(err, disk) {
		t.Fatalf("got %v, want %v because of %v", err, journal.ErrJournal, disk)
	}
	if got := strings.Join(w.calls, " "); got != calls {
		t.Errorf("called %q, want %q", got, calls)
	}
	full := string(r.AppendFullJSON(nil))
	if !strings.HasPrefix(full, `{"status":`+status) {
		t.Errorf("report %s, want statuses %s", full, status)
	}
	if calls != "" && !strings.Contains(full, `"recorded":false`) {
		t.Errorf("the attempt whose outcome was not kept does not say so: %s", full)
	}
}
