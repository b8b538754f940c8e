package record_test

import (
	"context"
	"errors"
	"fmt"
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

// What the feed of a record tells is what whoever watched was told, of the calls
// that reached the gate.
func TestAnAgentsFeedTellsWhatTheRunTold(t *testing.T) {
	script := `[
		{"tool_calls": [{"name": "read", "arguments": {"n": 1}}, {"name": "send", "arguments": {"n": 2}}]},
		{"content": "hm"},
		{"tool_calls": [{"name": "put", "arguments": {"n": 3}}, {"name": "broken", "arguments": {}}]},
		{"tool_calls": [{"name": "submit", "arguments": {"answer": "done"}}]}
	]`
	w := newWorld(t)
	broken := tool.Tool{Declaration: tool.Declaration{Name: "broken"}, Handler: func(context.Context, *tool.Call) (value.Value, error) {
		return value.Value{}, tool.Errorf("it always fails")
	}}
	var all []tool.Tool
	for _, d := range w.tools.Catalogue().All() {
		all = append(all, tool.Tool{Declaration: *d, Handler: w.tools.Handler(d.Name)})
	}
	tools, err := tool.NewSet(append(all, broken)...)
	if err != nil {
		t.Fatal(err)
	}
	say := func(e agent.Event) string {
		s := fmt.Sprint(e.Kind, " ", e.Round, " ", e.Step, " ", e.Tool, " ", e.Args, " ", e.Text)
		if e.Record != nil {
			s += " " + e.Record.Error
		}
		return s
	}
	for name, gate := range map[string]call.Gate{"none": nil, "denies": judge(func(r call.Request) call.Decision {
		if r.Tool.Name == "send" {
			return call.Decision{Verdict: machine.Deny, Code: "rule", Message: "never"}
		}
		return call.Decision{Verdict: machine.Allow}
	}), "asks": asksSend{}} {
		t.Run(name, func(t *testing.T) {
			var live []string
			c := agentConfig(t, script)
			c.Watch = func(e agent.Event) {
				if e.Tool != "submit" {
					live = append(live, say(e))
				}
			}
			res, err := record.RunAgent(t.Context(), w.store, tools, c, agentTask, record.Options{Run: run.Options{Gate: gate}})
			var waiting *agent.WaitingError
			if err != nil && !errors.As(err, &waiting) {
				t.Fatal(err)
			}
			feed, err := record.NewAgentFeed(t.Context(), w.store, res.Run)
			if err != nil {
				t.Fatal(err)
			}
			var fed []string
			for e, err := range w.store.Entries(t.Context(), res.Run, 0) {
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
		})
	}
	plan, err := record.Run(t.Context(), w.store, decode(t, three), w.tools, record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record.NewAgentFeed(t.Context(), w.store, plan.Run); err == nil {
		t.Error("the run of a plan was taken for an agent's")
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
