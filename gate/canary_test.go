package gate_test

import (
	"context"
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
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// parrot is a model that says everything that it was told, and the canary, in
// the replies that end in a submission.
type parrot struct {
	rnd  *rand.Rand
	look func(where, text string)
}

func (p *parrot) Ask(_ context.Context, req *model.Request) (*model.Reply, error) {
	var heard strings.Builder
	for _, m := range req.Messages {
		heard.WriteString(m.Text)
		heard.Write(m.Raw)
	}
	p.look("what the model is told", heard.String())
	said := encodings[p.rnd.IntN(len(encodings))](canary)
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
	runs := 10_000
	if testing.Short() {
		runs = 200
	}
	rnd := rand.New(rand.NewPCG(8, 8))
	s, err := tool.NewSet(tool.Tool{
		Declaration: tool.Declaration{Name: "echo", Args: []tool.Arg{{Pattern: "/secret", Role: tool.Secret}, {Pattern: "/*", Role: tool.Neutral}}, Effects: tool.Effects{ReadOnly: true}},
		Handler: func(_ context.Context, c *tool.Call) (value.Value, error) {
			v, _ := c.Args.Get("secret")
			text, _ := v.Text()
			if text != canary {
				return value.Value{}, fmt.Errorf("the tool got %s", c.Args)
			}
			text = encodings[rnd.IntN(len(encodings))](text)
			if rnd.IntN(3) == 0 {
				return value.Value{}, errors.New(text)
			}
			return value.ObjectOf(value.Member{Key: text, Value: c.Args}), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	vault, err := gate.NewVault(map[string]string{"pw": canary})
	if err != nil {
		t.Fatal(err)
	}
	store, err := journal.Open(filepath.Join(t.TempDir(), "j.db"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	look := looker(t)
	for i := range runs {
		config := agent.Config[map[string]string]{
			Model: &parrot{rnd, look}, Redactor: vault, Stream: true,
			Watch: func(e agent.Event) { look("an event", fmt.Sprintf("%+v %+v", e, e.Record)) },
		}
		task := agent.Task{System: "the password is " + canary, User: "log in with " + encodings[rnd.IntN(len(encodings))](canary)}
		var res *agent.Result[map[string]string]
		if i%10 == 0 {
			config.Redactor = nil // the record sees to it
			if res, err = record.RunAgent(t.Context(), store, s, config, task, record.Options{Run: run.Options{Vault: vault}}); err != nil {
				t.Fatal(err)
			}
			for e, err := range store.Entries(t.Context(), res.Run, 0) {
				if err != nil {
					t.Fatal(err)
				}
				body, err := e.Body(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				look("the journal", body.String())
			}
		} else {
			config.Tools, config.Caller = s.Catalogue(), agent.Through{Door: &call.Door{Tools: s, Vault: vault}}
			a, err := agent.New(config)
			if err != nil {
				t.Fatal(err)
			}
			if res, err = a.Run(t.Context(), task); err != nil {
				t.Fatal(err)
			}
		}
		look("the submission", res.Submitted.String())
		for k := range res.Trace {
			look("the trace", res.Trace[k].Value().String())
		}
		for _, m := range res.Transcript {
			look("the transcript", fmt.Sprintf("%s %s %+v", m.Text, m.Raw, m.Calls))
		}
	}
}
