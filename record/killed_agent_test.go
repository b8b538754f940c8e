package record_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

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
