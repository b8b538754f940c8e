package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/build"
	"github.com/callsheet/callsheet/world/episode"
	"github.com/callsheet/callsheet/world/session"
	"github.com/callsheet/callsheet/world/state"
)

// A document is an episode for the reader of recordings.
type document struct {
	name   string
	events []string
}

type documents []document

func (d documents) Export(_ context.Context, yield func(string, value.Value) error) error {
	for _, doc := range d {
		v, err := value.Parse(`{"id":"` + doc.name + `","events":[` + strings.Join(doc.events, ",") + `]}`)
		if err != nil {
			return err
		}
		if err := yield(doc.name, v); err != nil {
			return err
		}
	}
	return nil
}

// called is a recorded call with its result; kind is observation or error.
func called(id int, tool, args, kind, result string) []string {
	return []string{fmt.Sprintf(`{"role":"agent","kind":"action","call_id":"c%d","content":{"name":%q,"arguments":%s}}`, id, tool, args),
		fmt.Sprintf(`{"role":"tool","kind":%q,"tool_call_id":"c%d","content":%s}`, kind, id, result)}
}

// answered is a recorded call with a good result.
func answered(id int, tool, args, result string) []string {
	return called(id, tool, args, "observation", result)
}

func recording(t testing.TB, docs documents) *episode.Recording {
	t.Helper()
	rec, err := episode.ReadFrom(t.Context(), docs, episode.Options{})
	if err != nil || len(rec.Faults) > 0 {
		t.Fatal(err, rec.Faults)
	}
	return rec
}

func compile(t testing.TB, docs documents) *book.Book {
	t.Helper()
	rec := recording(t, docs)
	c := book.Defaults()
	c.EnvironmentID, c.Name = "test", "Test"
	a, _, err := build.Build(rec, &c, build.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "world")
	if err := book.Write(dir, a, &c, book.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	return open(t, dir)
}

func open(t testing.TB, dir string) *book.Book {
	t.Helper()
	b, err := book.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func begin(t testing.TB, b *book.Book, o Options) *Run {
	t.Helper()
	s, err := New(b, o)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Begin(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func effectful(names ...string) func(string) bool {
	return func(tool string) bool {
		for _, n := range names {
			if n == tool {
				return true
			}
		}
		return false
	}
}

// say is an answer in short: the way and the output, or the failure's code.
func say(t testing.TB, r *Run, tool, args string) string {
	t.Helper()
	a, err := r.Answer(t.Context(), tool, value.MustParse(args))
	if err != nil {
		t.Fatal(err)
	}
	if (a.Output.IsZero()) == (a.Failure == nil) || a.Provenance.Worldbook == "" {
		t.Fatalf("answer %+v", a)
	}
	if a.Failure != nil {
		return string(a.Provenance.Way) + " " + a.Failure.Code
	}
	return string(a.Provenance.Way) + " " + a.Output.String()
}

func TestRecordedAnswersOfTheSameState(t *testing.T) {
	b := compile(t, documents{
		{"one", append(append(append(called(1, "get", `{"id":1}`, "observation", `{"n":9007199254740993}`), called(2, "put", `{"id":1,"n":2.50}`, "observation", `"ok"`)...),
			called(3, "get", `{"id":1}`, "observation", `{"n":2.5}`)...), called(4, "drop", `{}`, "error", `{"code":"forbidden","message":"no"}`)...)},
		{"two", append(called(1, "get", `{"id":1.0}`, "observation", `{"n":9007199254740993}`), called(2, "get", `{"id":2}`, "observation", `"a"`)...)},
		{"three", called(1, "get", `{"id":2}`, "observation", `"b"`)},
	})
	r := begin(t, b, Options{Effectful: effectful("put", "drop")})
	for _, c := range [][3]string{
		{"get", `{"id":1e0}`, `recorded {"n":9007199254740993}`}, // by value
		{"get", `{"id":2}`, "miss rehearsal_miss"},               // the recordings disagree
		{"get", `{"id":"1"}`, "miss rehearsal_miss"},             // text is no number
		{"put", `{"n":2.5,"id":1}`, `recorded "ok"`},             // in any order
		{"get", `{"id":1}`, `recorded {"n":2.5}`},                // after the effect
		{"get", `{"id":2}`, "miss rehearsal_miss"},               // never a stale answer
		{"drop", `{}`, "recorded forbidden"},                     // a failure is recorded too
		{"get", `{"id":1}`, "miss rehearsal_miss"},               // nobody looked after that
	} {
		if got := say(t, r, c[0], c[1]); got != c[2] {
			t.Errorf("%s %s: %s, want %s", c[0], c[1], got, c[2])
		}
	}
	a, err := begin(t, b, Options{Effectful: effectful("put", "drop")}).Answer(t.Context(), "get", value.MustParse(`{"id":1}`))
	if err != nil || len(a.Provenance.Evidence) != 2 || !strings.HasPrefix(a.Provenance.Evidence[0], "evidence:evidence_tr_") {
		t.Errorf("provenance %+v, %v", a.Provenance, err)
	}
	// Without a word about effects every call may have one.
	all := begin(t, b, Options{})
	if got := say(t, all, "get", `{"id":1}`) + "; " + say(t, all, "get", `{"id":1}`); got != `recorded {"n":9007199254740993}; miss rehearsal_miss` {
		t.Error(got)
	}
}

func TestConcurrentEffectsEndWhatIsKnown(t *testing.T) {
	a, b := called(1, "put", `{"n":1}`, "observation", `"ok"`), called(2, "put", `{"n":2}`, "observation", `"ok"`)
	w := compile(t, documents{{"one", append([]string{a[0], b[0], a[1], b[1]}, called(3, "get", `{}`, "observation", `2`)...)}})
	r := begin(t, w, Options{Effectful: effectful("put")})
	for _, c := range [][2]string{{"put", `{"n":1}`}, {"put", `{"n":2}`}, {"get", `{}`}} {
		if got := say(t, r, c[0], c[1]); got != "miss rehearsal_miss" {
			t.Errorf("%v: %s", c, got)
		}
	}
}

func demo(t testing.TB) *book.Book {
	t.Helper()
	a, c := book.Demo()
	dir := filepath.Join(t.TempDir(), "ledger")
	if err := book.Write(dir, a, c, book.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	return open(t, dir)
}

func TestRulesAndThenTheAgent(t *testing.T) {
	initial, err := state.Parse(value.MustParse(`{"world":{"balance":50.0}}`))
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	text := "You win."
	agent := agentFunc(func(_ context.Context, turn *session.Turn) (*session.Prediction, error) {
		asked++
		if turn.Request.Action.Type == "broken" {
			return nil, errors.New("the model is away")
		}
		return &session.Prediction{Submission: session.Submission{Outcome: world.Success, Observation: &text, Citations: []string{"note:single_account"}}}, nil
	})
	for _, c := range []struct {
		o    Options
		want []string
	}{
		{Options{Initial: &initial}, []string{`rule "Withdrew 20. Balance: 30.0"`, "rule tool_error", "miss rehearsal_miss", "miss rehearsal_miss", "miss rehearsal_miss"}},
		{Options{Initial: &initial, Agent: agent}, []string{`rule "Withdrew 20. Balance: 30.0"`, "rule tool_error", `agent "You win."`, "miss rehearsal_miss", `agent "You win."`}},
	} {
		r := begin(t, demo(t), c.o)
		for i, call := range [][2]string{{"withdraw", `{"amount":20}`}, {"withdraw", `{"amount":31}`}, {"gamble", `{}`}, {"broken", `{}`}, {"balance", `{}`}} {
			if got := say(t, r, call[0], call[1]); got != c.want[i] {
				t.Errorf("%v: %s, want %s", call, got, c.want[i])
			}
		}
	}
	if asked != 3 {
		t.Errorf("the agent was asked %d times, want 3", asked)
	}
}

// A rule is chosen only where no other one might apply in its place, if what is not
// known of the state were: by an effect that no rule explains, or from the beginning.
func TestARuleThatMightNotBeTheOneDoesNotAnswer(t *testing.T) {
	a, c := book.Demo()
	rules, err := world.ReadLines[world.Rule]([]byte(`{"id":"pay_locked","action_type":"balance","description":"","priority":20,"conditions":[{"left":{"path":"world.locked"},"op":"eq","right":{"literal":true}}],"outcome":"failure","renderer":"ledger","observation_template":"refused: locked"}
{"id":"pay_ok","action_type":"balance","description":"","priority":10,"renderer":"ledger","observation_template":"paid"}
{"id":"free","action_type":"deposit","description":"","conditions":[{"left":{"path":"world.locked"},"op":"not_exists"}],"renderer":"ledger","observation_template":"free"}
{"id":"pay_low","action_type":"balance","description":"","priority":1,"conditions":[{"left":{"path":"world.asleep"},"op":"eq","right":{"literal":true}}],"renderer":"ledger","observation_template":"zzz"}`))
	if err != nil {
		t.Fatal(err)
	}
	a.Rules, a.Demonstrations, a.Notes = rules, nil, nil
	a.StateSchema.Fields = append(a.StateSchema.Fields, world.StateField{Path: "world.locked", Visibility: "world", Type: world.BooleanType, Default: value.NullValue()}, world.StateField{Path: "world.asleep", Visibility: "world", Type: world.BooleanType, Default: value.NullValue()})
	dir := filepath.Join(t.TempDir(), "world")
	if err := book.Write(dir, a, c, book.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	free, err := state.Parse(value.MustParse(`{"world":{"balance":1.0,"locked":false}}`))
	if err != nil {
		t.Fatal(err)
	}
	bare, err := state.Parse(value.MustParse(`{"world":{"balance":1.0}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name  string
		o     Options
		whole bool
		calls []string
		want  string
	}{
		{"known", Options{Initial: &free}, false, nil, `rule "paid"`},
		{"whole", Options{Initial: &bare}, true, nil, `rule "paid"`},
		{"unknown", Options{Initial: &bare}, false, nil, "miss rehearsal_miss"},
		{"lost", Options{Initial: &free}, false, []string{"lock"}, "miss rehearsal_miss"},
		{"whole, and lost", Options{Initial: &free}, true, []string{"lock"}, "miss rehearsal_miss"},
	} {
		tt.o.Effectful = effectful("lock")
		r := begin(t, open(t, dir), tt.o)
		r.stage.whole = tt.whole
		for _, call := range tt.calls {
			say(t, r, call, `{}`)
		}
		if got := say(t, r, "balance", `{}`); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		// What the rule itself takes to be absent must be known to be.
		want := "miss rehearsal_miss"
		if tt.name == "whole" {
			want = `rule "free"`
		}
		if got := say(t, r, "deposit", `{"amount":1}`); got != want {
			t.Errorf("%s: deposit: %s, want %s", tt.name, got, want)
		}
	}
}

// A state that somebody gave is not that in which the recordings began.
func TestAGivenStateSilencesRecordings(t *testing.T) {
	docs := documents{{"one", append(answered(1, "balance", `{}`, `"100"`), answered(2, "deposit", `{"amount":5}`, `"105"`)...)}}
	given, err := state.Parse(value.MustParse(`{"world":{"balance":5.0}}`))
	if err != nil {
		t.Fatal(err)
	}
	empty := state.Empty()
	for _, tt := range []struct {
		initial *state.State
		want    string
	}{{nil, `recorded "100"`}, {&empty, `recorded "100"`}, {&given, "miss rehearsal_miss"}} {
		r := begin(t, compile(t, docs), Options{Initial: tt.initial, Effectful: effectful("deposit")})
		if got := say(t, r, "balance", `{}`); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.initial, got, tt.want)
		}
	}
}

// Why a rule does not apply is said where it is that the state is not known.
func TestAMissNamesWhatARuleWouldHaveToKnow(t *testing.T) {
	empty := state.Empty()
	r := begin(t, demo(t), Options{Initial: &empty})
	r.stage.whole = false // as if it were rebuilt from recordings
	a, err := r.Answer(t.Context(), "withdraw", value.MustParse(`{"amount":20}`))
	if err != nil || a.Failure == nil || !strings.Contains(a.Failure.Message, "rule withdraw_success would have to know world.balance, and no state to begin with says it") {
		t.Errorf("%+v, %v", a.Failure, err)
	}
}

type agentFunc func(context.Context, *session.Turn) (*session.Prediction, error)

func (f agentFunc) Predict(ctx context.Context, t *session.Turn) (*session.Prediction, error) {
	return f(ctx, t)
}

// A rehearsal is handed a worldbook and no tool: there is nothing that it could
// call. What is not known is a miss, whatever its arguments are.
func TestHostile091_AMissNeverFallsThrough(t *testing.T) {
	r := begin(t, demo(t), Options{})
	for _, args := range []string{`{}`, `{"amount":"x"}`, `{"amount":null}`, `{"amount":1e400}`, `{"a":{"b":[1,2,{}]}}`} {
		if got := say(t, r, "never_recorded", args); got != "miss rehearsal_miss" {
			t.Errorf("%s: %s", args, got)
		}
		if got := say(t, r, "deposit", args); got != "miss rehearsal_miss" {
			t.Errorf("deposit %s: %s", args, got)
		}
	}
}

// A figure is how many calls of a tool were answered how.
type figure struct{ recorded, rule, wrong, miss int }

func (f figure) String() string {
	return fmt.Sprintf("%3d exact by recording, %3d exact by rule, %d wrong, %3d missed", f.recorded, f.rule, f.wrong, f.miss)
}

// gold is a call as a data set has it.
type gold struct {
	Tool    string      `json:"tool"`
	Args    value.Value `json:"args"`
	Output  value.Value `json:"output"`
	Error   value.Value `json:"error"`
	Changes bool        `json:"changes_state"`
}

// The worlds of data that nobody here wrote: built from the even tasks,
// rehearsed with the odd ones (docs/worlds.md).
func TestWorldsOfOthers(t *testing.T) {
	read := func(file string, into any) {
		text, err := os.ReadFile(filepath.Join("..", "..", "policy", "figures", "testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		if err := value.MustParse(string(text)).Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	type task struct {
		ID    string `json:"id"`
		Calls []gold `json:"calls"`
	}
	var retail struct {
		Tasks []task `json:"tasks"`
	}
	read("tau-bench/retail.json", &retail)
	changes := map[string]bool{}
	for _, task := range retail.Tasks {
		for _, c := range task.Calls {
			changes[c.Tool] = changes[c.Tool] || c.Changes
		}
	}
	var effects struct {
		Effects map[string]map[string]value.Value `json:"effects"`
	}
	read("agentdojo/effects.json", &effects)
	for _, w := range []struct {
		name        string
		tasks       []task
		effectful   func(string) bool
		exact, lies int
	}{
		{"tau-bench retail", retail.Tasks, func(tool string) bool { return changes[tool] }, 161, 0},
		{"AgentDojo banking", nil, nil, 6, 0},
		{"AgentDojo workspace", nil, nil, 19, 1}, // a shared file says when it was changed, by the clock on the wall
	} {
		if suite, ok := strings.CutPrefix(w.name, "AgentDojo "); ok {
			var doc struct {
				Tasks []task `json:"user_tasks"`
			}
			read("agentdojo/"+suite+".json", &doc)
			w.tasks = doc.Tasks
			w.effectful = func(tool string) bool { _, ok := effects.Effects[suite][tool]; return ok }
		}
		var docs documents
		for i, task := range w.tasks {
			if i%2 != 0 || len(task.Calls) == 0 {
				continue
			}
			d := document{name: task.ID}
			for j, c := range task.Calls {
				kind, result := "observation", c.Output
				if !c.Error.IsZero() && !c.Error.IsNull() {
					kind, result = "error", c.Error
				}
				d.events = append(d.events, called(j, c.Tool, c.Args.String(), kind, result.String())...)
			}
			docs = append(docs, d)
		}
		stage, err := New(compile(t, docs), Options{Effectful: w.effectful})
		if err != nil {
			t.Fatal(err)
		}
		figures, all := map[string]*figure{}, figure{}
		for i, task := range w.tasks {
			if i%2 == 0 {
				continue
			}
			r, err := stage.Begin(t.Context(), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range task.Calls {
				f := figures[c.Tool]
				if f == nil {
					f = &figure{}
					figures[c.Tool] = f
				}
				a, err := r.Answer(t.Context(), c.Tool, c.Args)
				if err != nil {
					t.Fatal(err)
				}
				failed := !c.Error.IsZero() && !c.Error.IsNull()
				exact := failed && a.Failure != nil || !failed && a.Failure == nil && value.Equal(a.Output, c.Output)
				for _, n := range []*figure{f, &all} {
					switch {
					case a.Provenance.Way == Missed:
						n.miss++
					case !exact:
						n.wrong++
					case a.Provenance.Way == Recorded:
						n.recorded++
					default:
						n.rule++
					}
				}
			}
			r.Close()
		}
		t.Logf("%s: %s", w.name, all)
		for _, tool := range slices.Sorted(maps.Keys(figures)) {
			t.Logf("  %-32s %s", tool, figures[tool])
		}
		if all.wrong != w.lies || all.recorded+all.rule != w.exact {
			t.Errorf("%s: %d exact and %d wrong, want %d and %d (docs/worlds.md)", w.name, all.recorded+all.rule, all.wrong, w.exact, w.lies)
		}
	}
}
