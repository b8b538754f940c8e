package record_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/scripted"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// agentScript calls every kind of tool, wrongly too, and submits.
const agentScript = `[
	{"content": "first", "tool_calls": [
		{"id": "a", "name": "read", "arguments": {"n": 1}},
		{"id": "b", "name": "send", "arguments": {"n": 2}},
		{"id": "c", "name": "nosuch", "arguments": {}}], "usage": {"prompt_tokens": 10, "completion_tokens": 2}},
	{"tool_calls": [{"id": "a", "name": "put", "arguments": {"n": 3}}, {"id": "a", "name": "keyed", "arguments": "{\"n\": 4"}]},
	{"content": "thinking aloud"},
	{"tool_calls": [{"name": "keyed", "arguments": {"n": 5}}, {"name": "submit", "arguments": {"answer": 7}}]},
	{"tool_calls": [{"name": "send", "arguments": {"n": 6}}, {"name": "submit", "arguments": {"answer": "done"}}]}
]`

const agentSchema = `{"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}`

func agentConfig(t interface{ Fatal(...any) }, script string) agent.Config[value.Value] {
	m, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	s, err := schema.Compile(value.MustParse(agentSchema))
	if err != nil {
		t.Fatal(err)
	}
	return agent.Config[value.Value]{Model: m, Schema: s, Role: "test"}
}

var agentTask = agent.Task{System: "You answer.", User: "What is it?"}

// written is a transcript as text, every byte of it.
func written(messages []*model.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%v %q %q %v %v %v %q\n", m.From, m.Text, m.Raw, m.Calls, m.CallID, m.Failed, m.Tool)
	}
	return b.String()
}

func TestAnAgentsRunIsRecorded(t *testing.T) {
	w := newWorld(t)
	res, err := record.RunAgent(t.Context(), w.store, w.tools, agentConfig(t, agentScript), agentTask, record.Options{Name: "asking", Setup: value.MustText("kept")})
	if err != nil {
		t.Fatal(err)
	}
	h, err := record.LoadAgent(t.Context(), w.store, res.Run)
	if err != nil {
		t.Fatal(err)
	}
	if h.Task != agentTask || h.Role != "test" || h.Setup.String() != `"kept"` || len(h.Replies) != 5 || h.Summary.Name != "asking" || h.Summary.Status != record.StatusOK {
		t.Errorf("the record says %+v", h)
	}
	var got []string
	for _, c := range h.Calls {
		got = append(got, c.Step+" "+c.Tool+" "+c.Status()+" "+c.Args.String())
	}
	// keyed is not among this world's tools, and unknown tools reach no door.
	if want := `1.1 read ok {"n":1}, 1.2 send ok {"n":2}, 2.1 put ok {"n":3}, 5.1 send ok {"n":6}`; strings.Join(got, ", ") != want {
		t.Errorf("calls: got %s, want %s", strings.Join(got, ", "), want)
	}
	end := `{"rounds":5,"calls":7,"usage":{"prompt_tokens":10,"completion_tokens":2,"model_calls":5,"complete":false},"submission":{"answer":"done"},"status":"ok"}`
	if h.End.String() != end {
		t.Errorf("end: got %s, want %s", h.End, end)
	}
	if _, err := record.ResumeAgent(t.Context(), w.store, res.Run, w.tools, agentConfig(t, agentScript), record.Options{}); !errors.Is(err, record.ErrOver) {
		t.Errorf("resuming a run that is over got %v, want %v", err, record.ErrOver)
	}
	if _, err := record.Load(t.Context(), w.store, res.Run); !errors.Is(err, record.ErrNotAPlan) {
		t.Errorf("read as a plan's: %v", err)
	}
	if rep, err := w.store.Verify(t.Context(), res.Run, journal.Trust{}); err != nil || !rep.OK() {
		t.Errorf("the chain does not hold: %v, %+v", err, rep)
	}
}

// An ask pauses the run; the answer, also one with other args, lets it go on
// with the same transcript before it.
func TestAnAgentAsks(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer record.Answer
		asks   int // in all: edited args are judged anew
		said   string
		made   string
	}{
		{"approved", record.Answer{Allow: true, By: "someone"}, 1, "out of 1.2", "1.1 1.2 2.1 5.1"},
		{"denied", record.Answer{By: "someone", Why: "not today"}, 1, "error: denied: person: a person said no (someone): not today", "1.1 2.1 5.1"},
		{"edited", record.Answer{Allow: true, By: "someone", Args: value.MustParse(`{"n":9}`)}, 2, "out of 1.2\n\nnote: a person changed the arguments to {\"n\":9}", "1.1 1.2 2.1 5.1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			asked := 0
			opt := record.Options{Run: run.Options{Gate: gateOnce{}}, OnAsk: func(a record.Ask) { asked++ }}
			res, err := record.RunAgent(t.Context(), w.store, w.tools, agentConfig(t, agentScript), agentTask, opt)
			for range c.asks {
				var waiting *agent.WaitingError
				if !errors.As(err, &waiting) || len(waiting.Calls) != 1 || waiting.Calls[0].Step != "1.2" {
					t.Fatalf("got %v, want a run that waits for 1.2", err)
				}
				if err := record.Decide(t.Context(), w.store, res.Run, "1.1", c.answer, opt); !errors.Is(err, record.ErrNoAsk) {
					t.Errorf("deciding about another call got %v", err)
				}
				if err := record.Decide(t.Context(), w.store, res.Run, "1.2", c.answer, opt); err != nil {
					t.Fatal(err)
				}
				if err := record.Decide(t.Context(), w.store, res.Run, "1.2", c.answer, opt); !errors.Is(err, journal.ErrDecided) {
					t.Errorf("deciding twice got %v", err)
				}
				c.answer.Args = value.Value{}
				res, err = record.ResumeAgent(t.Context(), w.store, res.Run, w.tools, agentConfig(t, agentScript), opt)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := res.Transcript[4].Text; got != c.said {
				t.Errorf("the model was told %q, want %q", got, c.said)
			}
			if got := strings.Join(w.calls, " "); got != c.made || asked != c.asks {
				t.Errorf("made %s and asked %d times, want %s and %d", got, asked, c.made, c.asks)
			}
		})
	}
}

// gateOnce asks about the call 1.2 alone.
type gateOnce struct{}

func (gateOnce) Judge(_ context.Context, r call.Request) (call.Decision, error) {
	if r.Step == "1.2" {
		return call.Decision{Verdict: machine.Ask, Message: "send it?"}, nil
	}
	return call.Decision{Verdict: machine.Allow}, nil
}

func TestAnAgentsAskExpires(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	var asks []record.Ask
	opt := record.Options{Run: run.Options{Gate: gateOnce{}}, Now: func() time.Time { return now }, OnAsk: func(a record.Ask) { asks = append(asks, a) }}
	res, err := record.RunAgent(t.Context(), w.store, w.tools, agentConfig(t, agentScript), agentTask, opt)
	var waiting *agent.WaitingError
	if !errors.As(err, &waiting) {
		t.Fatal(err)
	}
	// Before it expires it is the same question.
	if _, err = record.ResumeAgent(t.Context(), w.store, res.Run, w.tools, agentConfig(t, agentScript), opt); !errors.As(err, &waiting) || len(asks) != 1 {
		t.Fatalf("got %v, asked %d times", err, len(asks))
	}
	now = now.Add(record.DefaultApproval + time.Second)
	if err := record.Decide(t.Context(), w.store, res.Run, "1.2", record.Answer{Allow: true}, opt); !errors.Is(err, record.ErrExpired) {
		t.Errorf("got %v, want %v", err, record.ErrExpired)
	}
	if _, err = record.ResumeAgent(t.Context(), w.store, res.Run, w.tools, agentConfig(t, agentScript), opt); !errors.As(err, &waiting) || len(asks) != 2 || asks[0].Digest == asks[1].Digest {
		t.Fatalf("got %v, asked %d times", err, len(asks))
	}
}

// A gate's denial holds when the run goes on, whatever the gate would say then.
func TestADenialIsRecorded(t *testing.T) {
	w := newWorld(t)
	deny := judge(func(r call.Request) call.Decision {
		switch r.Step {
		case "1.2":
			return call.Decision{Verdict: machine.Deny, Code: "rule", Message: "no mail"}
		case "2.1":
			return call.Decision{Verdict: machine.Ask, Message: "put it?"}
		}
		return call.Decision{Verdict: machine.Allow}
	})
	res, err := record.RunAgent(t.Context(), w.store, w.tools, agentConfig(t, agentScript), agentTask, record.Options{Run: run.Options{Gate: deny}})
	var waiting *agent.WaitingError
	if !errors.As(err, &waiting) {
		t.Fatal(err)
	}
	before := written(res.Transcript)
	opt := record.Options{Run: run.Options{Gate: judge(func(call.Request) call.Decision { return call.Decision{Verdict: machine.Allow} })}}
	if err := record.Decide(t.Context(), w.store, res.Run, "2.1", record.Answer{Allow: true}, opt); err != nil {
		t.Fatal(err)
	}
	if res, err = record.ResumeAgent(t.Context(), w.store, res.Run, w.tools, agentConfig(t, agentScript), opt); err != nil {
		t.Fatal(err)
	}
	if got := res.Transcript[4].Text; got != "error: denied: rule: no mail" {
		t.Errorf("the denied call is answered %q", got)
	}
	if !strings.HasPrefix(written(res.Transcript), before) {
		t.Errorf("the transcript changed:\n%s\nwas\n%s", written(res.Transcript), before)
	}
}

type judge func(call.Request) call.Decision

func (f judge) Judge(_ context.Context, r call.Request) (call.Decision, error) { return f(r), nil }

// A call that ends without an answer waits for a person, who knows.
func TestAnUncertainCallIsResolved(t *testing.T) {
	for _, c := range []struct {
		r     record.Resolution
		said  string
		calls int
	}{
		{record.Resolution{What: machine.Happened, Output: value.MustText("it did")}, "it did", 1},
		{record.Resolution{What: machine.DidNotHappen}, "out of 1.2", 2},
		{record.Resolution{What: machine.GiveUp}, "error: uncertain: whether the call happened is not known; do not repeat it", 1},
	} {
		t.Run(fmt.Sprint(c.r.What), func(t *testing.T) {
			tries := 0
			w := newWorld(t, func(x *tool.Tool) {
				work := x.Handler
				if x.Name == "send" {
					x.Handler = func(ctx context.Context, k *tool.Call) (value.Value, error) {
						if tries++; tries == 1 {
							return value.Value{}, tool.Lost(errors.New("the line went dead"))
						}
						return work(ctx, k)
					}
				}
			})
			res, err := record.RunAgent(t.Context(), w.store, w.tools, agentConfig(t, agentScript), agentTask, record.Options{})
			var waiting *agent.WaitingError
			if !errors.As(err, &waiting) || waiting.Calls[0].Waiting != agent.ForResolution {
				t.Fatalf("got %v", err)
			}
			if _, err := record.ResumeAgent(t.Context(), w.store, res.Run, w.tools, agentConfig(t, agentScript), record.Options{}); !errors.As(err, &waiting) || tries != 1 {
				t.Fatalf("resumed without a resolution: %v after %d calls", err, tries)
			}
			if err := record.Resolve(t.Context(), w.store, res.Run, "1.2", c.r); err != nil {
				t.Fatal(err)
			}
			if res, err = record.ResumeAgent(t.Context(), w.store, res.Run, w.tools, agentConfig(t, agentScript), record.Options{}); err != nil {
				t.Fatal(err)
			}
			if got := res.Transcript[4].Text; got != c.said || tries != c.calls+1 { // and 5.1
				t.Errorf("the model was told %q after %d calls, want %q after %d", got, tries, c.said, c.calls+1)
			}
		})
	}
}

// What the tools or the policy are must not change under a run.
func TestAnAgentsRunGoesOnUnderTheSame(t *testing.T) {
	w := newWorld(t)
	opt := record.Options{Run: run.Options{Gate: gateOnce{}}}
	res, err := record.RunAgent(t.Context(), w.store, w.tools, agentConfig(t, agentScript), agentTask, opt)
	var waiting *agent.WaitingError
	if !errors.As(err, &waiting) {
		t.Fatal(err)
	}
	other := newWorld(t, func(x *tool.Tool) { x.Description = "another" })
	if _, err := record.ResumeAgent(t.Context(), w.store, res.Run, other.tools, agentConfig(t, agentScript), opt); !errors.Is(err, record.ErrChanged) {
		t.Errorf("other tools: %v", err)
	}
	opt.Policy = value.MustText("another").Digest()
	if _, err := record.ResumeAgent(t.Context(), w.store, res.Run, w.tools, agentConfig(t, agentScript), opt); !errors.Is(err, record.ErrChanged) {
		t.Errorf("another policy: %v", err)
	}
}

// A journal of digests holds no text of the model's or the tools', and cannot be
// resumed.
func TestAnAgentsDigests(t *testing.T) {
	w := newWorld(t)
	opt := record.Options{Run: run.Options{Gate: gateOnce{}}, Contents: record.Digests}
	res, _ := record.RunAgent(t.Context(), w.store, w.tools, agentConfig(t, agentScript), agentTask, opt)
	for e, err := range w.store.Entries(t.Context(), res.Run, 1) {
		if err != nil {
			t.Fatal(err)
		}
		if body := e.Slim().String(); strings.Contains(body, "first") || strings.Contains(body, "out of") {
			t.Errorf("record %d holds %s", e.Index, body)
		}
	}
	if _, err := record.ResumeAgent(t.Context(), w.store, res.Run, w.tools, agentConfig(t, agentScript), opt); !errors.Is(err, record.ErrDigestsOnly) {
		t.Errorf("got %v, want %v", err, record.ErrDigestsOnly)
	}
}

// Whatever a model replies, the journal of the run verifies, and what is read
// back of it is the transcript.
func TestAnyAgentsJournalVerifies(t *testing.T) {
	w := newWorld(t)
	rapid.Check(t, func(t *rapid.T) {
		replies := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			calls := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
				name := rapid.SampledFrom([]string{"read", "send", "put", "nosuch", "submit", "final"}).Draw(t, "name")
				args := rapid.SampledFrom([]string{`{"n": 1}`, `{"answer": "x"}`, `"{"`, `""`, `{"answer": 3}`}).Draw(t, "args")
				return fmt.Sprintf(`{"id": %q, "name": %q, "arguments": %s}`, rapid.SampledFrom([]string{"a", "b", ""}).Draw(t, "id"), name, args)
			}), 0, 3).Draw(t, "calls")
			return `{"content": ` + strconv.Quote(rapid.SampledFrom([]string{"", "text", "π", strings.Repeat("long ", 2000)}).Draw(t, "text")) + `, "tool_calls": [` + strings.Join(calls, ",") + `]}`
		}), 0, 6).Draw(t, "replies")
		script := "[" + strings.Join(replies, ",") + "]"
		opt := record.Options{Run: run.Options{Gate: gateOnce{}}}
		res, err := record.RunAgent(context.Background(), w.store, w.tools, agentConfig(t, script), agentTask, opt)
		rep, verr := w.store.Verify(context.Background(), res.Run, journal.Trust{})
		if verr != nil || !rep.OK() {
			t.Fatalf("after %v the chain does not hold: %v, %+v", err, verr, rep)
		}
		h, lerr := record.LoadAgent(context.Background(), w.store, res.Run)
		if lerr != nil || len(h.Replies) != res.Rounds {
			t.Fatalf("%d replies of %d rounds are recorded: %v", len(h.Replies), res.Rounds, lerr)
		}
		if h.Summary.Finished {
			return
		}
		again, err2 := record.ResumeAgent(context.Background(), w.store, res.Run, w.tools, agentConfig(t, script), opt)
		if fmt.Sprint(err) != fmt.Sprint(err2) || written(again.Transcript) != written(res.Transcript) {
			t.Fatalf("resumed: %v with\n%s\nwas %v with\n%s", err2, written(again.Transcript), err, written(res.Transcript))
		}
	})
}

// agentChild runs or resumes the agent in dir, and dies where it is told to.
func agentChild(dir string) error {
	var d *death
	if s := os.Getenv(childDeath); s != "" {
		d = &death{}
		if _, err := fmt.Sscanf(s, "%s %d", &d.place, &d.n); err != nil {
			return err
		}
	}
	store, err := journal.Open(filepath.Join(dir, "journal.db"), journal.Options{BeforeCommit: func() error {
		d.at("commit")
		return nil
	}})
	if err != nil {
		return err
	}
	defer store.Close()
	tools, err := killTools(effects{filepath.Join(dir, "effects")}, d, 0)
	if err != nil {
		return err
	}
	c := agentConfig(fatal{}, agentScript)
	if id := os.Getenv(childResume); id != "" {
		_, err = record.ResumeAgent(context.Background(), store, id, tools, c, record.Options{})
	} else {
		_, err = record.RunAgent(context.Background(), store, tools, c, agentTask, record.Options{})
	}
	return err
}

type fatal struct{}

func (fatal) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// TestKilledAgentsGoOn kills an agent at every commit and before and after every
// effect, some of them twice, and resumes it: the transcript is the one of an
// undisturbed run byte for byte, and no call with a durable outcome is made
// again (spec/hostile.md 53, 54).
func TestKilledAgentsGoOn(t *testing.T) {
	if testing.Short() {
		t.Skip("kills some forty processes; the full run does it")
	}
	undisturbed := agentWorld(t, t.TempDir())
	res, err := record.RunAgent(t.Context(), undisturbed.store, undisturbed.tools, agentConfig(t, agentScript), agentTask, record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	whole, kills := written(res.Transcript), 0
	try := func(t *testing.T, deaths ...string) {
		dir := t.TempDir()
		env := map[string]string{childKind: record.KindAgent}
		var durable map[string]int
		for _, d := range deaths {
			env[childDeath] = d
			if spawn(t, dir, env, 0) {
				kills++
			}
			w := agentWorld(t, dir)
			h := w.only(t)
			if h == nil {
				w.store.Close()
				return // it died before it had begun
			}
			env[childResume] = h.Summary.ID
			now := w.effects.count()
			for step, n := range durable {
				if now[step] != n {
					t.Errorf("call %s had a durable outcome and was made again", step)
				}
			}
			durable = map[string]int{}
			for _, c := range h.Calls {
				if c.Status() == "ok" {
					durable[c.Step] = now[c.Step]
				}
			}
			w.answer(t, h)
			w.store.Close()
			if h.Summary.Finished {
				break
			}
		}
		w := agentWorld(t, dir)
		for {
			h := w.only(t)
			if h.Summary.Finished {
				w.verify(t, h, durable)
				return
			}
			res, err := record.ResumeAgent(t.Context(), w.store, h.Summary.ID, w.tools, agentConfig(t, agentScript), record.Options{})
			var waiting *agent.WaitingError
			switch {
			case errors.As(err, &waiting):
				if !w.answer(t, w.only(t)) {
					t.Fatalf("nothing can be answered, and %v", err)
				}
			case err != nil:
				t.Fatal(err)
			case written(res.Transcript) != whole:
				t.Errorf("the transcript is\n%s\nundisturbed it was\n%s", written(res.Transcript), whole)
			}
		}
	}
	for n := 1; n <= 18; n++ {
		t.Run(fmt.Sprint("commit/", n), func(t *testing.T) { try(t, fmt.Sprint("commit ", n)) })
	}
	for n := 1; n <= 5; n++ {
		for _, place := range []string{"before", "after"} {
			t.Run(fmt.Sprint(place, "/", n), func(t *testing.T) { try(t, fmt.Sprint(place, " ", n)) })
			t.Run(fmt.Sprint("twice/", place, n), func(t *testing.T) { try(t, fmt.Sprint(place, " ", n), "commit 3") })
		}
	}
	t.Logf("%d kills", kills)
	if kills < 30 {
		t.Errorf("%d kills, want at least 30", kills)
	}
}

// killedWorld is the journal, the tools and the effects of agents that are
// killed.
type killedWorld struct {
	store   *journal.Store
	tools   *tool.Set
	effects effects
}

func agentWorld(t *testing.T, dir string) *killedWorld {
	t.Helper()
	store, err := journal.Open(filepath.Join(dir, "journal.db"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	e := effects{filepath.Join(dir, "effects")}
	tools, err := killTools(e, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return &killedWorld{store, tools, e}
}

// only is the run of the journal, nil if it never was on the disk.
func (w *killedWorld) only(t *testing.T) *record.AgentHistory {
	t.Helper()
	runs, err := w.store.Runs(t.Context(), journal.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) == 0 {
		return nil
	}
	h, err := record.LoadAgent(t.Context(), w.store, runs[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// answer settles what waits for a resolution by looking at the world.
func (w *killedWorld) answer(t *testing.T, h *record.AgentHistory) (any bool) {
	t.Helper()
	for _, step := range h.Lost() {
		r := record.Resolution{What: machine.DidNotHappen}
		if w.effects.count()[step] > 0 {
			r = record.Resolution{What: machine.Happened, Output: value.ObjectOf(value.Member{Key: "step", Value: value.MustText(step)})}
		}
		err := record.Resolve(t.Context(), w.store, h.Summary.ID, step, r)
		if err != nil && !errors.Is(err, record.ErrNotLost) {
			t.Fatal(err)
		}
		any = any || err == nil
	}
	return any
}

// verify holds what must hold at the end.
func (w *killedWorld) verify(t *testing.T, h *record.AgentHistory, durable map[string]int) {
	t.Helper()
	now := w.effects.count()
	again := 0
	for _, c := range h.Calls {
		again += c.Made - 1
		if c.Status() != "ok" || now[c.Step] == 0 {
			t.Errorf("call %s is %s and happened %d times", c.Step, c.Status(), now[c.Step])
		}
		if c.Tool == "send" && now[c.Step] != 1 {
			t.Errorf("call %s, which must not be doubled, happened %d times", c.Step, now[c.Step])
		}
		if n, ok := durable[c.Step]; ok && now[c.Step] != n {
			t.Errorf("call %s had a durable outcome and was made again", c.Step)
		}
	}
	calls, _ := h.End.Get("calls")
	if n, _ := calls.Int(); int(n) != 7+again {
		t.Errorf("%s calls are counted, want 7 and %d again", calls, again)
	}
	if rep, err := w.store.Verify(t.Context(), h.Summary.ID, journal.Trust{}); err != nil || !rep.OK() {
		t.Errorf("the chain does not hold: %v, %+v", err, rep)
	}
}

// askFunc is a model that keeps what it was sent.
type askFunc func(*model.Request) (*model.Reply, error)

func (f askFunc) Ask(_ context.Context, r *model.Request) (*model.Reply, error) { return f(r) }

// B32, and B8 in a history: after a person's answer, in another process, the
// provider's message goes back byte for byte; it is never rebuilt from its calls.
func TestB32_AnApprovalDoesNotRebuildTheMessage(t *testing.T) {
	const raw = `{"role":"assistant","content":null,  "tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{}"},"extra_content":{"google":{"thought_signature":"c2ln"}}},{"id":"c2","type":"function","function":{"name":"send","arguments":"{}"}}]}`
	var sent [][]*model.Message
	c := agentConfig(t, "[]")
	c.Model = askFunc(func(r *model.Request) (*model.Reply, error) {
		sent = append(sent, r.Messages)
		if r.Round == 1 {
			return &model.Reply{Raw: []byte(raw), Dialect: "openai", Calls: []model.Call{{ID: "c1", Name: "read", Arguments: "{}"}, {ID: "c2", Name: "send", Arguments: ""}}}, nil
		}
		return &model.Reply{Calls: []model.Call{{ID: "c3", Name: "submit", Arguments: `{"answer":"done"}`}}}, nil
	})
	w := newWorld(t)
	opt := record.Options{Run: run.Options{Gate: gateOnce{}}}
	res, err := record.RunAgent(t.Context(), w.store, w.tools, c, agentTask, opt)
	var waiting *agent.WaitingError
	if !errors.As(err, &waiting) {
		t.Fatal(err)
	}
	if err := record.Decide(t.Context(), w.store, res.Run, "1.2", record.Answer{Allow: true}, opt); err != nil {
		t.Fatal(err)
	}
	if _, err := record.ResumeAgent(t.Context(), w.store, res.Run, w.tools, c, opt); err != nil {
		t.Fatal(err)
	}
	if len(sent) != 2 || string(sent[1][2].Raw) != raw {
		t.Errorf("%d requests; the message went back as %s", len(sent), sent[len(sent)-1][2].Raw)
	}
}
