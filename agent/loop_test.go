package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/scripted"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
	"pgregory.net/rapid"
)

type answer struct {
	Answer string   `json:"answer"`
	List   []string `json:"list,omitempty"`
}

// asks is a model made of a function.
type asks func(ctx context.Context, req *model.Request) (*model.Reply, error)

func (f asks) Ask(ctx context.Context, req *model.Request) (*model.Reply, error) { return f(ctx, req) }

// calls is a caller made of a function.
type calls func(ctx context.Context, r agent.Request) (agent.Outcome, error)

func (f calls) Call(ctx context.Context, r agent.Request) (agent.Outcome, error) { return f(ctx, r) }

// tape is a recorder made of a function.
type tape func(e agent.ReplyEvent) error

func (f tape) Reply(_ context.Context, e agent.ReplyEvent) error { return f(e) }

func catalogue(t interface{ Fatal(...any) }, names ...string) *tool.Catalogue {
	var ds []*tool.Declaration
	for _, n := range names {
		ds = append(ds, &tool.Declaration{Name: n, Source: "test"})
	}
	c, err := tool.NewCatalogue(ds...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func says(cs ...model.Call) *model.Reply { return &model.Reply{Calls: cs} }

func calling(id, name, args string) model.Call {
	return model.Call{ID: id, Name: name, Arguments: args}
}

var (
	ok    = agent.Outcome{Output: value.MustText("ok")}
	final = calling("s", "submit", `{"answer":"done"}`)
)

func build(t interface{ Fatal(...any) }, c agent.Config[answer]) *agent.Agent[answer] {
	a, err := agent.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestTypedSubmission(t *testing.T) {
	a := build(t, agent.Config[answer]{Model: scripted.New(says(calling("s", "submit", `{"answer":"done","list":["x"]}`)))})
	res, err := a.Run(t.Context(), agent.Task{User: "U"})
	if err != nil || res.Submission.Answer != "done" || len(res.Submission.List) != 1 {
		t.Errorf("got %+v, %v", res.Submission, err)
	}
}

// Whatever a model says, the run ends within its bounds, no transcript that a
// provider would refuse is sent, no more calls are made than allowed, and trace
// and usage come back.
func TestAnyRepliesWhatever(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := agent.Settings{
			MaxToolCalls:          rapid.Ptr(rapid.IntRange(-1, 6), true).Draw(t, "max calls"),
			MaxInvalidSubmissions: rapid.Ptr(rapid.IntRange(-1, 4), true).Draw(t, "max invalid"),
			MaxRounds:             rapid.Ptr(rapid.IntRange(0, 12), true).Draw(t, "max rounds"),
			MaxNudges:             rapid.Ptr(rapid.IntRange(0, 3), true).Draw(t, "max nudges"),
			MaxTokens:             rapid.SampledFrom([]int{0, 50, 1000}).Draw(t, "max tokens"),
			MaxBytes:              rapid.Ptr(rapid.SampledFrom([]int{0, 500, 100_000}), true).Draw(t, "max bytes"),
			MaxTranscript:         rapid.SampledFrom([]int{0, 300, 2000}).Draw(t, "max transcript"),
			RepeatLimit:           rapid.Ptr(rapid.IntRange(0, 3), true).Draw(t, "repeat"),
			Mixed:                 rapid.SampledFrom([]agent.Mixed{agent.InOrder, agent.Graceful, agent.Sole}).Draw(t, "mixed"),
			Burst:                 rapid.SampledFrom([]agent.Burst{agent.Refuse, agent.Overshoot}).Draw(t, "burst"),
			Siblings:              rapid.SampledFrom([]agent.Siblings{agent.Each, agent.Once}).Draw(t, "siblings"),
			Coerce:                rapid.Bool().Draw(t, "coerce"),
		}
		if rapid.Bool().Draw(t, "source") {
			source := agent.Source()
			source.MaxToolCalls, source.MaxRounds = s.MaxToolCalls, s.MaxRounds
			s = source
		}
		allowed := 8
		if s.MaxToolCalls != nil {
			allowed = max(0, *s.MaxToolCalls)
		}
		rounds := 2*allowed + 4
		if s.MaxRounds != nil {
			rounds = *s.MaxRounds
		}
		asked, made, largest := 0, 0, 0
		m := asks(func(_ context.Context, req *model.Request) (*model.Reply, error) {
			asked++
			if err := agent.CheckTranscript(req.Messages); err != nil {
				t.Fatalf("round %d: %v", asked, err)
			}
			if asked > rounds {
				t.Fatalf("model call %d of %d", asked, rounds)
			}
			if rapid.IntRange(0, 30).Draw(t, "fails") == 0 {
				return nil, model.Errorf("gone")
			}
			r := drawReply(t)
			largest = max(largest, len(r.Calls))
			return r, nil
		})
		c := calls(func(_ context.Context, r agent.Request) (agent.Outcome, error) {
			made++
			if r.Args.Kind() != value.Object {
				t.Fatalf("call %s has arguments %s", r.Step, r.Args)
			}
			switch rapid.IntRange(0, 20).Draw(t, "outcome") {
			case 0:
				return agent.Outcome{Waiting: agent.ForDecision}, nil
			case 1:
				return agent.Outcome{}, errors.New("the journal is full")
			case 2, 3, 4:
				return agent.Outcome{Failure: tool.Errorf("broke \xff %d", made)}, nil
			}
			return agent.Outcome{Output: value.MustText(strings.Repeat("o", rapid.SampledFrom([]int{0, 3, 900}).Draw(t, "size")))}, nil
		})
		a := build(t, agent.Config[answer]{Model: m, Tools: catalogue(t, "search", "now", "final"), Caller: c, Settings: s})
		res, err := a.Run(t.Context(), agent.Task{System: "S", User: "U"})

		bound := allowed
		if s.Burst == agent.Overshoot {
			bound = allowed - 1 + max(1, largest) // one reply may overshoot, whole
		}
		if made > bound && allowed > 0 || allowed == 0 && made > 0 {
			t.Fatalf("%d calls were made of %d allowed (replies of up to %d)", made, allowed, largest)
		}
		if res.Rounds > rounds || res.Usage.ModelCalls != res.Rounds {
			t.Fatalf("%d rounds of %d, %d model calls", res.Rounds, rounds, res.Usage.ModelCalls)
		}
		for _, n := range []*int{res.Usage.PromptTokens, res.Usage.CompletionTokens} {
			if n != nil && *n < 0 {
				t.Fatalf("usage is %s", res.Usage.Value())
			}
		}
		var waiting *agent.WaitingError
		if errors.As(err, &waiting) {
			if len(waiting.Calls) == 0 {
				t.Fatal("nothing is waited for")
			}
		} else if broken := agent.CheckTranscript(res.Transcript); broken != nil {
			t.Fatalf("after %v: %v", err, broken)
		}
		if (err == nil) == res.Submitted.IsZero() {
			t.Fatalf("submission %s with error %v", res.Submitted, err)
		}
		rows := 0
		for _, m := range res.Transcript {
			rows += len(m.Calls)
		}
		if err == nil && !slices.ContainsFunc(res.Trace, func(r agent.Record) bool { return r.Tool == "submit" && r.Error == "" }) {
			t.Fatal("the accepted submission is not in the trace")
		}
		if len(res.Trace) > rows {
			t.Fatalf("%d rows of trace for %d calls", len(res.Trace), rows)
		}
	})
}

func drawReply(t *rapid.T) *model.Reply {
	r := &model.Reply{
		Text:   rapid.SampledFrom([]string{"", "hm", "\xff\xfe", strings.Repeat("long ", 200)}).Draw(t, "text"),
		Finish: model.Finish(rapid.IntRange(0, int(model.FinishRefusal)).Draw(t, "finish")),
		Usage: model.Usage{
			Prompt:     rapid.Ptr(rapid.SampledFrom([]int{-5, 0, 10, 1 << 62}), true).Draw(t, "prompt"),
			Completion: rapid.Ptr(rapid.SampledFrom([]int{-5, 0, 10, 1 << 62}), true).Draw(t, "completion"),
		},
	}
	if rapid.Bool().Draw(t, "calm") {
		r.Finish = model.FinishCalls
	}
	for range rapid.IntRange(0, 5).Draw(t, "calls") {
		r.Calls = append(r.Calls, model.Call{
			ID:   rapid.SampledFrom([]string{"", "a", "b", "c", "call_2_1", "\xff"}).Draw(t, "id"),
			Name: rapid.SampledFrom([]string{"search", "now", "submit", "final", " SUBMIT ", "", "nosuch", "\xff"}).Draw(t, "name"),
			Arguments: rapid.SampledFrom([]string{
				"", "{}", `{"answer":"x"}`, `{"answer":"x"}`, `{"answer":1}`, `{"q":"x"}`, `{"q":`, `[1]`, `"{}"`, `{"a":1,"a":2}`, "null",
				`{"answer":"x","list":"[\"y\"]"}`, "\xff", strings.Repeat("[", 20_000), `{"answer":"` + strings.Repeat("x", 50_000) + `"}`,
			}).Draw(t, "arguments"),
		})
	}
	return r
}

// TestHostile050_NegativeUsage: a model reports negative usage.
func TestHostile050_NegativeUsage(t *testing.T) {
	n := -1 << 62
	r := says(final)
	r.Usage = model.Usage{Prompt: &n, Completion: agent.Int(7)}
	res, err := build(t, agent.Config[answer]{Model: scripted.New(r)}).Run(t.Context(), agent.Task{User: "U"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := res.Usage.Value().String(), `{"prompt_tokens":0,"completion_tokens":7,"model_calls":1,"complete":false}`; got != want {
		t.Errorf("usage: got %s, want %s", got, want)
	}
	if len(res.Degraded) != 1 || res.Degraded[0].Code != agent.CodeUsageNegative {
		t.Errorf("degraded: %+v", res.Degraded)
	}
}

// TestHostile052_NeverFinishes: a model that never finishes, or alternates two
// calls, is stopped by rounds, calls, bytes, tokens, and the detector of
// identical calls.
func TestHostile052_NeverFinishes(t *testing.T) {
	same := func(int) *model.Reply { return says(calling("a", "search", `{"q":"x"}`)) }
	alternating := func(n int) *model.Reply { return says(calling("a", "search", fmt.Sprintf(`{"q":"%d"}`, n%2))) }
	for name, c := range map[string]struct {
		reply    func(n int) *model.Reply
		settings agent.Settings
		code     string
		calls    int // made
	}{
		"rounds":         {func(int) *model.Reply { return says(calling("a", "submit", "{}")) }, agent.Settings{MaxInvalidSubmissions: agent.Int(1000)}, agent.CodeMaxRounds, 0},
		"calls":          {alternating, agent.Settings{}, agent.CodeRefused, 8},
		"identical":      {same, agent.Settings{MaxToolCalls: agent.Int(1000)}, agent.CodeRefused, agent.DefaultRepeatLimit + 1},
		"bytes":          {alternating, agent.Settings{MaxToolCalls: agent.Int(1000), MaxBytes: agent.Int(1000)}, agent.CodeMaxBytes, 59},
		"tokens":         {alternating, agent.Settings{MaxToolCalls: agent.Int(1000), MaxTokens: 500}, agent.CodeMaxTokens, 5},
		"prose for ever": {func(int) *model.Reply { return &model.Reply{Text: "still thinking"} }, agent.Settings{}, agent.CodeNoCall, 0},
	} {
		t.Run(name, func(t *testing.T) {
			made := 0
			a := build(t, agent.Config[answer]{
				Model: asks(func(_ context.Context, req *model.Request) (*model.Reply, error) {
					r := c.reply(req.Round)
					r.Usage = model.Usage{Prompt: agent.Int(90), Completion: agent.Int(10)}
					return r, nil
				}),
				Tools: catalogue(t, "search"), Settings: c.settings,
				Caller: calls(func(context.Context, agent.Request) (agent.Outcome, error) { made++; return ok, nil }),
			})
			res, err := a.Run(t.Context(), agent.Task{User: "U"})
			var p *agent.ProtocolError
			if !errors.As(err, &p) || p.Code != c.code || made != c.calls {
				t.Errorf("got %v after %d calls, want %s after %d", err, made, c.code, c.calls)
			}
			if res.Usage.ModelCalls == 0 || agent.CheckTranscript(res.Transcript) != nil {
				t.Errorf("the partial result is missing: %+v", res)
			}
		})
	}
}

// What a provider sent goes back byte for byte, also after a resume.
func TestRawMessagesAreKept(t *testing.T) {
	raw := []byte(`{ "role":"assistant","reasoning_content":"h\u006d", "tool_calls":[] }`)
	first := says(calling("a", "search", "{}"))
	first.Raw, first.Dialect = raw, "openai"
	var recorded agent.Recorded
	sent := 0
	m := func(replies ...*model.Reply) model.Model {
		s := scripted.New(replies...)
		return asks(func(ctx context.Context, req *model.Request) (*model.Reply, error) {
			for _, msg := range req.Messages {
				if msg.From == model.FromAssistant {
					sent++
					if string(msg.Raw) != string(raw) || msg.Dialect != "openai" {
						t.Errorf("round %d: sent %s", req.Round, msg.Raw)
					}
				}
			}
			return s.Ask(ctx, req)
		})
	}
	c := agent.Config[answer]{
		Model: m(first), Tools: catalogue(t, "search"),
		Caller: calls(func(context.Context, agent.Request) (agent.Outcome, error) {
			return agent.Outcome{Waiting: agent.ForDecision}, nil
		}),
		Recorder: tape(func(e agent.ReplyEvent) error { recorded.Replies = append(recorded.Replies, e); return nil }),
	}
	var waiting *agent.WaitingError
	if _, err := build(t, c).Run(t.Context(), agent.Task{User: "U"}); !errors.As(err, &waiting) {
		t.Fatal(err)
	}
	c.Model = m(says(), says(final))
	c.Caller = calls(func(context.Context, agent.Request) (agent.Outcome, error) { return ok, nil })
	if _, err := build(t, c).Resume(t.Context(), agent.Task{User: "U"}, recorded); err != nil || sent != 1 {
		t.Errorf("got %v, and the message was sent %d times", err, sent)
	}
}

func TestAdapterThatBreaksItsContract(t *testing.T) {
	bad := says(calling("a", "search", "{}"), calling("a", "search", "{}"))
	bad.Raw = []byte(`{}`)
	for name, m := range map[string]model.Model{
		"neither reply nor error": asks(func(context.Context, *model.Request) (*model.Reply, error) { return nil, nil }),
		"duplicate ids":           asks(func(context.Context, *model.Request) (*model.Reply, error) { return bad, nil }),
	} {
		a := build(t, agent.Config[answer]{Model: m, Tools: catalogue(t, "search"), Caller: calls(nil)})
		if res, err := a.Run(t.Context(), agent.Task{User: "U"}); err == nil || res == nil {
			t.Errorf("%s: got %v, %v", name, res, err)
		}
	}
}

func TestWatch(t *testing.T) {
	var seen []string
	a := build(t, agent.Config[answer]{
		Model: scripted.New(&model.Reply{Text: "hm", Calls: []model.Call{calling("a", "search", "{}")}}, says(final)),
		Tools: catalogue(t, "search"), Stream: true, Settings: agent.Settings{MaxToolCalls: agent.Int(1)},
		Caller: calls(func(_ context.Context, r agent.Request) (agent.Outcome, error) { r.Begins(); return ok, nil }),
		Watch: func(e agent.Event) {
			seen = append(seen, strings.TrimSpace(fmt.Sprintln(e.Kind, e.Round, e.Forced, e.Text, e.Step, e.Tool)))
		},
	})
	if _, err := a.Run(t.Context(), agent.Task{User: "U"}); err != nil {
		t.Fatal(err)
	}
	want := []string{"0 1", "1 1  hm", "2 1", "3 1   1.1 search", "5 1   1.1 search", "0 2 tool budget exhausted", "2 2", "5 2   2.1 submit"}
	if !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}

func TestNewRefuses(t *testing.T) {
	m := scripted.New()
	for want, c := range map[string]agent.Config[answer]{
		"Model is nil":                     {},
		"Caller is nil":                    {Model: m, Tools: catalogue(t, "search")},
		"name of the submission":           {Model: m, Tools: catalogue(t, " SUBMIT"), Caller: calls(nil)},
		"MaxRounds is negative":            {Model: m, Settings: agent.Settings{MaxRounds: agent.Int(-1)}},
		"no submission could be valid":     {Model: m, Settings: agent.Settings{MinToolCalls: 9}},
		"Mixed is unknown":                 {Model: m, Settings: agent.Settings{Mixed: 7}},
		"the submission has an empty name": {Model: m, Submission: agent.Submission{Aliases: []string{" "}}},
	} {
		if _, err := agent.New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if _, err := agent.New(agent.Config[[]string]{Model: m}); err == nil || !strings.Contains(err.Error(), "no object") {
		t.Errorf("a list as the submission: %v", err)
	}
}

func TestCheckTranscript(t *testing.T) {
	a, b := calling("a", "x", ""), calling("b", "x", "")
	two := says(a, b).Message()
	for want, ms := range map[string][]*model.Message{
		"":                              {model.User("u"), two, model.Answer(a, "", false), model.Answer(b, "", false), says(b).Message(), model.Answer(b, "", false)},
		`call "b" is not answered`:      {two, model.Answer(a, "", false)},
		"not answered before it":        {two, model.Answer(a, "", false), model.User("u")},
		`the next open call is "a"`:     {two, model.Answer(b, "", false)},
		"no call is open":               {model.User("u"), model.Answer(a, "", false)},
		`the id "a" is empty or stands`: {says(a, a).Message()},
	} {
		err := agent.CheckTranscript(ms)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
