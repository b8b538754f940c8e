package cassette_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/cassette"
	"github.com/callsheet/callsheet/model/modeltest"
	"github.com/callsheet/callsheet/model/openai"
	"github.com/callsheet/callsheet/model/scripted"
)

func live(t *testing.T, s *modeltest.Server) model.Model {
	t.Helper()
	m, err := openai.New(openai.Config{BaseURL: s.URL, Model: "test-1", KeyEnv: modeltest.KeyEnv, Retry: s.Retry})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// both asks the recorder, and the player of what it recorded.
type both struct {
	model.Model
	path string
}

func (b both) Ask(ctx context.Context, req *model.Request) (*model.Reply, error) {
	if _, err := b.Model.Ask(ctx, req); err != nil {
		return nil, err
	}
	player, err := cassette.Replay(b.path)
	if err != nil {
		return nil, err
	}
	return player.Ask(ctx, req)
}

func TestModel(t *testing.T) {
	modeltest.Replies(t, func(t *testing.T, said ...modeltest.Said) (model.Model, bool) {
		s := modeltest.NewServer(t, modeltest.OpenAI{}, modeltest.Says(modeltest.OpenAI{}, said[0]), modeltest.Says(modeltest.OpenAI{}, said[len(said)-1]))
		path := filepath.Join(t.TempDir(), "c")
		m, err := cassette.Record(path, live(t, s), cassette.Config{Secrets: []string{modeltest.KeyEnv}})
		if err != nil {
			t.Fatal(err)
		}
		return both{m, path}, true
	})
}

func record(t *testing.T, live model.Model, c cassette.Config) (*cassette.Model, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c")
	m, err := cassette.Record(path, live, c)
	if err != nil {
		t.Fatal(err)
	}
	return m, path
}

func TestARequestIsRecordedOnce(t *testing.T) {
	m, path := record(t, scripted.New(&model.Reply{Text: "one"}, &model.Reply{Text: "two"}), cassette.Config{})
	for range 2 {
		if r, err := m.Ask(t.Context(), modeltest.Request()); err != nil || r.Text != "one" {
			t.Fatalf("got %+v, %v", r, err)
		}
	}
	again, err := cassette.Record(path, scripted.New(), cassette.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := again.Ask(t.Context(), modeltest.Request()); err != nil || r.Text != "one" {
		t.Errorf("opened again: got %+v, %v", r, err)
	}
}

// Whatever differs in the content of a request is another request; its number
// and whether somebody watches are not content.
func TestAMissIsAnError(t *testing.T) {
	m, path := record(t, scripted.New(&model.Reply{Text: "one"}), cassette.Config{})
	if _, err := m.Ask(t.Context(), modeltest.Request()); err != nil {
		t.Fatal(err)
	}
	player, err := cassette.Replay(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(r *model.Request)
		hit    bool
	}{
		"same":     {func(*model.Request) {}, true},
		"round":    {func(r *model.Request) { r.Round = 9 }, true},
		"progress": {func(r *model.Request) { r.Progress = func(string) {} }, true},
		"role":     {func(r *model.Request) { r.Role = "other" }, false},
		"choice":   {func(r *model.Request) { r.Choice = model.Force("submit") }, false},
		"bound":    {func(r *model.Request) { r.MaxTokens = 1 }, false},
		"tool":     {func(r *model.Request) { r.Tools[0].Description += "." }, false},
		"message":  {func(r *model.Request) { r.Messages[1] = model.User("begin") }, false},
		"sender":   {func(r *model.Request) { r.Messages[1] = model.System("Begin.") }, false},
		"more":     {func(r *model.Request) { r.Messages = append(r.Messages, model.User("")) }, false},
	} {
		req := modeltest.Request()
		c.change(req)
		r, err := player.Ask(t.Context(), req)
		if c.hit && (err != nil || r.Text != "one") || !c.hit && (err == nil || !strings.Contains(err.Error(), "holds no reply to request")) {
			t.Errorf("%s: got %+v, %v; want a hit: %v", name, r, err, c.hit)
		}
	}
}

func TestHostile093_SecretsAreNotRecorded(t *testing.T) {
	const secret = "sk-live-abcdef0123"
	t.Setenv("CASSETTE_TEST_KEY", secret)
	reply := &model.Reply{Text: "your key is " + secret, Raw: []byte(`{"content":"` + secret + `"}`), Dialect: "openai",
		Calls: []model.Call{{ID: "1", Name: "x", Arguments: `{"k":"` + secret + `"}`}}}
	m, path := record(t, scripted.New(reply), cassette.Config{Secrets: []string{"CASSETTE_TEST_KEY"}})
	r, err := m.Ask(t.Context(), modeltest.Request())
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for where, s := range map[string]string{"file": string(text), "text": r.Text, "raw": string(r.Raw), "arguments": r.Calls[0].Arguments} {
		if strings.Contains(s, secret) || !strings.Contains(s, "[secret]") {
			t.Errorf("%s: %s", where, s)
		}
	}
}

func TestASecretThatIsNotSet(t *testing.T) {
	if _, err := cassette.Record(filepath.Join(t.TempDir(), "c"), scripted.New(), cassette.Config{Secrets: []string{"CASSETTE_NO_SUCH_KEY"}}); err == nil {
		t.Error("no error: the recorder would have nothing to look for")
	}
}

func TestFileFaults(t *testing.T) {
	m, path := record(t, scripted.New(&model.Reply{Text: "one"}), cassette.Config{})
	if _, err := m.Ask(t.Context(), modeltest.Request()); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.SplitAfter(string(good), "\n")[1]
	for want, text := range map[string]string{
		":1: not a cassette":       "{}\n",
		":2: the last line has no": strings.TrimSuffix(string(good), "\n"),
		"stands twice":             string(good) + line,
		"is no digest":             strings.Replace(string(good), `"key":"`, `"key":"x`, 1),
		":2: line 1, column 2":     "{\"cassette\":1}\n{]\n",
		"tape":                     strings.Replace(string(good), `"role"`, `"tape"`, 1),
		"unknown finish":           strings.Replace(string(good), `"finish":"other"`, `"finish":"done"`, 1),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := cassette.Replay(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

var (
	liveModel = flag.String("live-model", "", "record from this model of a real server")
	liveURL   = flag.String("live-url", openai.DefaultBaseURL, "the server's address")
	liveKey   = flag.String("live-key", "", "environment variable that holds its key")
	liveOut   = flag.String("live-out", "", "the cassette to write")
	liveField = flag.String("live-max-field", "", "max_tokens or max_completion_tokens")
)

// TestRecordLive records a call and the answer to it, then plays both back. The
// model is a stand-in unless -live-model names one.
func TestRecordLive(t *testing.T) {
	s := modeltest.NewServer(t, modeltest.OpenAI{},
		modeltest.Says(modeltest.OpenAI{}, modeltest.Said{Calls: []modeltest.SaidCall{{ID: modeltest.ID("c"), Name: "now", Arguments: "{}"}}, Finish: model.FinishCalls}),
		modeltest.Says(modeltest.OpenAI{}, modeltest.Said{Text: "done", Finish: model.FinishStop}))
	m, path, c := live(t, s), filepath.Join(t.TempDir(), "c"), cassette.Config{Secrets: []string{modeltest.KeyEnv}}
	if *liveModel != "" {
		var err error
		if m, err = openai.New(openai.Config{BaseURL: *liveURL, Model: *liveModel, KeyEnv: *liveKey, MaxTokensField: *liveField}); err != nil {
			t.Fatal(err)
		}
		c.Secrets = nil
		if *liveKey != "" {
			c.Secrets = []string{*liveKey}
		}
		if *liveOut != "" {
			path = *liveOut
		}
	}
	recorder, err := cassette.Record(path, m, c)
	if err != nil {
		t.Fatal(err)
	}
	converse := func(m model.Model) (texts []string) {
		req := modeltest.Request()
		req.Choice = model.Force("now")
		for range 2 {
			r, err := m.Ask(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, string(r.Raw))
			req = modeltest.Next(req, r)
			req.Choice = model.Choice{Mode: model.ModeNone}
		}
		return texts
	}
	recorded := converse(recorder)
	player, err := cassette.Replay(path)
	if err != nil {
		t.Fatal(err)
	}
	if played := converse(player); strings.Join(played, "\n") != strings.Join(recorded, "\n") {
		t.Errorf("played\n%q\nrecorded\n%q", played, recorded)
	}
}
