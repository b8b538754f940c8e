package gate_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/gate"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// encodings are the ways in which a secret is echoed.
var encodings = []func(string) string{
	func(s string) string { return s },
	func(s string) string { return fmt.Sprintf("%x", s) },
	func(s string) string { return strings.ReplaceAll(s, "-", "%2D") },
	func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	func(s string) string { return "error near " + s + "!" },
}

// An echo is a world whose one tool knows a secret and answers with it.
type echo struct {
	rnd   *rand.Rand
	tools *tool.Set
	vault *gate.Vault
	store *journal.Store
	look  func(where, text string) // for the secret
	runs  int
}

// newEcho makes the tool of what it answers, which is told the secret in one of
// its encodings.
func newEcho(t *testing.T, seed uint64, answer func(rnd *rand.Rand, said string, c *tool.Call) (value.Value, error)) *echo {
	t.Helper()
	e := &echo{rnd: rand.New(rand.NewPCG(seed, seed)), look: looker(t), runs: 10_000}
	if testing.Short() {
		e.runs = 200
	}
	var err error
	e.tools, err = tool.NewSet(tool.Tool{
		Declaration: tool.Declaration{Name: "echo", Args: []tool.Arg{{Pattern: "/secret", Role: tool.Secret}, {Pattern: "/*", Role: tool.Neutral}}, Effects: tool.Effects{ReadOnly: true}},
		Handler: func(_ context.Context, c *tool.Call) (value.Value, error) {
			v, _ := c.Args.Get("secret")
			text, _ := v.Text()
			if text != canary {
				return value.Value{}, fmt.Errorf("the tool got %s", c.Args)
			}
			return answer(e.rnd, e.said(), c)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if e.vault, err = gate.NewVault(map[string]string{"pw": canary}); err != nil {
		t.Fatal(err)
	}
	if e.store, err = journal.Open(filepath.Join(t.TempDir(), "j.db"), journal.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.store.Close() })
	return e
}

// said is the secret as somebody says it.
func (e *echo) said() string { return encodings[e.rnd.IntN(len(encodings))](canary) }

// recorded looks through the record of a run.
func (e *echo) recorded(t *testing.T, id string) {
	t.Helper()
	for entry, err := range e.store.Entries(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		body, err := entry.Body(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e.look("the journal", body.String())
	}
}

// looker looks for the canary in texts, and tells the first ten places.
func looker(t *testing.T) func(where, text string) {
	var forms []string
	for _, e := range encodings[:4] {
		forms = append(forms, e(canary))
	}
	hits := 0
	return func(where, text string) {
		for _, f := range forms {
			if strings.Contains(text, f) {
				if hits++; hits <= 10 {
					t.Errorf("%s holds the secret as %s", where, f)
				}
			}
		}
	}
}

// TestCanary runs random plans whose tools echo a secret in every way that they
// can think of, and looks for it in everything that was written.
func TestCanary(t *testing.T) {
	e := newEcho(t, 7, func(rnd *rand.Rand, said string, c *tool.Call) (value.Value, error) {
		c.Progress(tool.Progress{Message: said})
		switch rnd.IntN(4) {
		case 0:
			return value.Value{}, errors.New(said)
		case 1:
			return value.Value{}, tool.Retryable(errors.New(said))
		case 2:
			panic(said)
		}
		return value.ObjectOf(value.Member{Key: said, Value: value.ListOf(value.MustText(said), value.MustText("a"+said))}), nil
	})
	for i := range e.runs {
		var b strings.Builder
		for k := range 1 + e.rnd.IntN(3) {
			if k > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"id":"s%d","tool":"echo","args":{"secret":{"$secret":"pw"}`, k)
			if k > 0 && e.rnd.IntN(2) == 0 {
				fmt.Fprintf(&b, `,"from":"$s%d"`, k-1)
			}
			b.WriteString("}}")
		}
		p := decode(t, "["+b.String()+"]")
		opt := run.Options{Vault: e.vault, Observer: func(event run.Event) {
			e.look("an event", fmt.Sprintf("%+v %+v %+v", event, event.Failure, event.Cause))
		}}
		var r *machine.Report
		var err error
		if i%10 == 0 {
			if r, err = record.Run(t.Context(), e.store, p, e.tools, record.Options{Run: opt}); err == nil {
				e.recorded(t, r.Run)
			}
		} else {
			r, err = run.Do(t.Context(), p, e.tools, opt)
		}
		if err != nil {
			t.Fatal(err)
		}
		for k := range r.Steps {
			for _, a := range r.Steps[k].Attempts {
				e.look("an attempt", fmt.Sprintf("%+v", a.Failure))
			}
		}
		e.look("the report", string(r.AppendFullJSON(nil)))
	}
}

// parrot is a model that says everything that it was told, and the canary, in
// the replies that end in a submission.
type parrot struct{ *echo }

func (p *parrot) Ask(_ context.Context, req *model.Request) (*model.Reply, error) {
	var heard strings.Builder
	for _, m := range req.Messages {
		heard.WriteString(m.Text)
		heard.Write(m.Raw)
	}
	p.look("what the model is told", heard.String())
	said := p.said()
	quoted, _ := value.Text(said)
	r := &model.Reply{Text: "I say " + said, Calls: []model.Call{{
		ID: fmt.Sprint("c", req.Round), Name: "echo",
		Arguments: fmt.Sprintf(`{"secret":{"$secret":"pw"},"note":%s}`, quoted),
	}}}
	if req.Choice.Mode == model.ModeTool || p.rnd.IntN(3) == 0 {
		r.Calls[0].Name, r.Calls[0].Arguments = "submit", fmt.Sprintf(`{"said":%s}`, quoted)
	}
	r.Dialect, r.Raw = "parrot", fmt.Appendf(nil, `{"content":%s}`, quoted)
	return r, nil
}

// TestCanaryOfAgents is TestCanary with a model in it that knows the secret and
// repeats it wherever it can.
func TestCanaryOfAgents(t *testing.T) {
	e := newEcho(t, 8, func(rnd *rand.Rand, said string, c *tool.Call) (value.Value, error) {
		if rnd.IntN(3) == 0 {
			return value.Value{}, errors.New(said)
		}
		return value.ObjectOf(value.Member{Key: said, Value: c.Args}), nil
	})
	for i := range e.runs {
		config := agent.Config[map[string]string]{
			Model: &parrot{e}, Redactor: e.vault, Stream: true,
			Watch: func(event agent.Event) { e.look("an event", fmt.Sprintf("%+v %+v", event, event.Record)) },
		}
		task := agent.Task{System: "the password is " + canary, User: "log in with " + e.said()}
		var res *agent.Result[map[string]string]
		var err error
		if i%10 == 0 {
			config.Redactor = nil // the record sees to it
			if res, err = record.RunAgent(t.Context(), e.store, e.tools, config, task, record.Options{Run: run.Options{Vault: e.vault}}); err == nil {
				e.recorded(t, res.Run)
			}
		} else {
			config.Tools, config.Caller = e.tools.Catalogue(), agent.Through{Door: &call.Door{Tools: e.tools, Vault: e.vault}}
			var a *agent.Agent[map[string]string]
			if a, err = agent.New(config); err == nil {
				res, err = a.Run(t.Context(), task)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		e.look("the submission", res.Submitted.String())
		for k := range res.Trace {
			e.look("the trace", res.Trace[k].Value().String())
		}
		for _, m := range res.Transcript {
			e.look("the transcript", fmt.Sprintf("%s %s %+v", m.Text, m.Raw, m.Calls))
		}
	}
}
