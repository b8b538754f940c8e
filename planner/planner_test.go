package planner_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/scripted"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/planner"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/demo"
	"github.com/callsheet/callsheet/value"
)

func tools(t testing.TB) *tool.Set {
	t.Helper()
	set, err := tool.NewSet(demo.New()...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func session(t testing.TB, c planner.Config) *planner.Session {
	t.Helper()
	if c.Catalogue == nil {
		c.Catalogue = tools(t).Catalogue()
	}
	if c.Task == "" {
		c.Task = "Count the words of the first document about go."
	}
	s, err := planner.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// submits is a script that submits these plans.
func submits(t testing.TB, plans ...string) *scripted.Model {
	t.Helper()
	var replies []string
	for _, p := range plans {
		replies = append(replies, `{"tool_calls": [{"name": "submit_plan", "arguments": `+p+`}]}`)
	}
	return script(t, replies...)
}

func script(t testing.TB, replies ...string) *scripted.Model {
	t.Helper()
	m, err := scripted.Parse([]byte("[" + strings.Join(replies, ",") + "]"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const (
	sound = `{"steps": [{"id": "s1", "tool": "search", "args": {"query": "go"}}, {"id": "s2", "tool": "fetch", "args": {"doc": "$s1.0"}}]}`
	self  = `{"steps": [{"id": "s1", "tool": "search", "args": {"query": "go"}}, {"id": "s2", "tool": "fetch", "args": {"doc": "$s2.0"}}]}`
	worse = `{"steps": [{"id": "s1", "tool": "serch", "args": {"query": "go"}}, {"id": "s2", "tool": "fetch", "args": {"doc": "$s7.0"}}, {"id": "s3", "tool": "fetsh"}, {"id": "s4", "tool": "fetsh"}]}`
)

// A plan without steps is sound and does nothing: for a task it is a stand-in, and
// no draft, unless it is allowed.
func TestAPlanWithoutSteps(t *testing.T) {
	d, res, err := session(t, planner.Config{}).Write(t.Context(), submits(t, `{"steps": []}`, sound))
	if err != nil || !d.OK() || len(d.Plan.Steps) != 2 || res.Rounds != 2 {
		t.Fatalf("got %v, %+v", err, d)
	}
	if answer := res.Transcript[3].Text; !strings.Contains(answer, "/steps") || !strings.Contains(answer, "the least is 1") {
		t.Errorf("the model is told %s", answer)
	}
	d, _, err = session(t, planner.Config{}).Write(t.Context(), submits(t, `{"steps": []}`, `{"steps": []}`, `{"steps": []}`))
	if err == nil || d != nil {
		t.Errorf("got %v, %+v, want a protocol error without a draft", err, d)
	}
	d, _, err = session(t, planner.Config{AllowEmpty: true}).Write(t.Context(), submits(t, `{"steps": []}`))
	if err != nil || !d.OK() || len(d.Plan.Steps) != 0 {
		t.Errorf("allowed: got %v, %+v", err, d)
	}
}

func TestAPlanWithoutErrors(t *testing.T) {
	s := session(t, planner.Config{})
	d, res, err := s.Write(t.Context(), submits(t, sound))
	if err != nil || !d.OK() {
		t.Fatalf("got %v, %+v", err, d)
	}
	report, err := run.Do(t.Context(), d.Plan, tools(t), run.Options{})
	if err != nil || !report.OK() || res.Rounds != 1 || res.Calls != 0 {
		t.Errorf("got %v, %s, %d rounds, %d calls", err, report.AppendJSON(nil), res.Rounds, res.Calls)
	}
	if want := "{\n  \"steps\": [\n    {\n      \"id\": \"s1\",\n"; !strings.HasPrefix(string(d.Text), want) {
		t.Errorf("the text begins %.60q", d.Text)
	}
	user := res.Transcript[1].Text
	for _, want := range []string{"Count the words", `{"name":"search","description":"Two`} {
		if !strings.Contains(user, want) {
			t.Errorf("the task does not tell %s:\n%s", want, user)
		}
	}
}

// Errors go back with their advice as data, and cost no tool calls.
func TestErrorsGoBackWithAdvice(t *testing.T) {
	d, res, err := session(t, planner.Config{}).Write(t.Context(), submits(t, self, sound))
	if err != nil || !d.OK() || res.Calls != 0 {
		t.Fatalf("got %v, %+v", err, d)
	}
	answer := res.Transcript[3].Text
	for _, want := range []string{
		`self_reference at step s2 (/steps/1/args/doc): `,
		`{"code":"self_reference","pointer":"/steps/1/args/doc","advice":[{"op":"replace","path":"/steps/1/args/doc","value":"$s1.0"}]}`,
	} {
		if !strings.Contains(answer, want) {
			t.Errorf("the model is not told %s, but\n%s", want, answer)
		}
	}
	if res.Degraded[len(res.Degraded)-1].Code != agent.CodeFailedSubmissions {
		t.Errorf("degraded: %+v", res.Degraded)
	}
}

// Advice is a patch of the very document that was submitted: applied, it makes
// the plan sound.
func TestAdviceMendsWhatWasSubmitted(t *testing.T) {
	s := session(t, planner.Config{Settings: agent.Settings{MaxInvalidSubmissions: agent.Int(0)}})
	d, _, _ := s.Write(t.Context(), submits(t, self))
	doc := value.MustParse(self)
	for _, f := range d.Report.Diagnostics {
		if f.Code == check.SelfReference {
			var err error
			if doc, err = f.Advice.Apply(doc); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := doc.String(); got != value.MustParse(sound).String() {
		t.Errorf("mended it is %s", got)
	}
}

// Without a sound plan the best one comes out, with its findings and the error.
func TestTheBestDraft(t *testing.T) {
	renamed := strings.ReplaceAll(self, `"s2"`, `"two"`)
	renamed = strings.ReplaceAll(renamed, "$s2", "$two")
	for _, c := range []struct {
		name  string
		plans []string
		best  string
	}{
		{"the fewest errors", []string{worse, self, worse}, self},
		{"of equals the latest", []string{self, worse, renamed}, renamed},
		{"only one", []string{worse, `{"steps": "none"}`, `{"other": 1}`}, worse},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, res, err := session(t, planner.Config{}).Write(t.Context(), submits(t, c.plans...))
			var protocol *agent.ProtocolError
			if !errors.As(err, &protocol) || protocol.Code != agent.CodeInvalid || res.Rounds != 3 {
				t.Fatalf("got %v after %d rounds", err, res.Rounds)
			}
			if d.OK() || d.Errors() == 0 || value.MustParse(string(d.Text)).String() != value.MustParse(c.best).String() {
				t.Errorf("got %d errors in\n%s\nwant %s", d.Errors(), d.Text, c.best)
			}
		})
	}
}

func TestNothingLikeAPlan(t *testing.T) {
	d, _, err := session(t, planner.Config{}).Write(t.Context(), script(t, `{"content": "I would rather not."}`, `{"content": "No."}`))
	if d != nil || err == nil {
		t.Errorf("got %+v, %v", d, err)
	}
}

// A warning alone does not send a plan back.
func TestWarningsAreForPeople(t *testing.T) {
	budget := 1
	d, _, err := session(t, planner.Config{Check: check.Options{Budget: &budget}}).Write(t.Context(), submits(t, sound))
	if err != nil || !d.OK() || d.Report.Count(check.Warning) == 0 {
		t.Errorf("got %v, %+v", err, d.Report)
	}
}

// A malformed document goes back with its faults, not as a fault of a schema.
func TestMalformedPlansAreToldWhatIsWrong(t *testing.T) {
	_, res, _ := session(t, planner.Config{}).Write(t.Context(), submits(t, `{"steps": [{"id": "a b", "tool": "search", "after": "x", "when": true}]}`, sound))
	for _, want := range []string{"bad_document at", "/steps/0/after", "/steps/0/id", "/steps/0/when"} {
		if !strings.Contains(res.Transcript[3].Text, want) {
			t.Errorf("the model is not told of %s:\n%s", want, res.Transcript[3].Text)
		}
	}
}

// At most twenty errors go back, and nothing of a huge argument.
func TestWhatGoesBackIsBounded(t *testing.T) {
	var steps []string
	for i := range 300 {
		steps = append(steps, fmt.Sprintf(`{"id": "s%d", "tool": "%s", "args": {}}`, i, strings.Repeat("x", 1000)))
	}
	_, res, _ := session(t, planner.Config{}).Write(t.Context(), submits(t, `{"steps": [`+strings.Join(steps, ",")+`]}`, sound))
	answer := res.Transcript[3].Text
	if n := strings.Count(answer, "unknown_tool at"); n != 20 || !strings.Contains(answer, "(and 280 more)") || len(answer) > 20*1000 {
		t.Errorf("%d errors in %d bytes", n, len(answer))
	}
}

// long is a catalogue that is not told whole.
func long(t testing.TB) *tool.Catalogue {
	t.Helper()
	text, err := schema.Compile(value.MustParse(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	var decls []*tool.Declaration
	for i := range 2000 {
		decls = append(decls, &tool.Declaration{Name: fmt.Sprintf("thing_%d_polish", i), Description: "Polishes a thing of kind " + fmt.Sprint(i) + "."})
	}
	decls = append(decls,
		&tool.Declaration{Name: "sendMail", Description: "Sends a letter to a person.", Input: text, Output: text},
		&tool.Declaration{Name: "archive", Description: "Puts mail away. Sends nothing."})
	c, err := tool.NewCatalogue(decls...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestALongCatalogueIsSearched(t *testing.T) {
	s := session(t, planner.Config{Catalogue: long(t)})
	d, res, err := s.Write(t.Context(), script(t,
		`{"tool_calls": [{"id": "a", "name": "search_tools", "arguments": {"query": "send a mail"}}, {"id": "b", "name": "search_tools", "arguments": {"query": "xyzzy"}}]}`,
		`{"tool_calls": [{"name": "submit_plan", "arguments": {"steps": [{"id": "s1", "tool": "sendMail", "args": {}}]}}]}`))
	if err != nil || !d.OK() || res.Calls != 2 {
		t.Fatalf("got %v, %d calls", err, res.Calls)
	}
	if user := res.Transcript[1].Text; len(user) > 20<<10 || !strings.Contains(user, "There are 2002 tools. Find those that you need with search_tools") {
		t.Errorf("%d bytes are told: %.300s", len(user), user)
	}
	var names []string
	for _, v := range value.MustParse(res.Transcript[3].Text).Elements() {
		name, _ := v.Get("name")
		names = append(names, name.String())
	}
	if first := value.MustParse(res.Transcript[3].Text).At(0).String(); first != `{"name":"sendMail","description":"Sends a letter to a person.","input":{"type":"object"},"output":{"type":"object"}}` {
		t.Errorf("a tool is told as %s", first)
	}
	if len(names) < 2 || names[0] != `"sendMail"` || names[1] != `"archive"` {
		t.Errorf("found %v", names)
	}
	if got := res.Transcript[4].Text; got != "error: no tool fits these words; try others" {
		t.Errorf("a search for nothing is answered %q", got)
	}
}

// What an earlier run came to is told, clipped.
func TestAnEarlierRunIsTold(t *testing.T) {
	p, err := plan.Decode([]byte(`[{"id":"a","tool":"search","args":{"query":"`+strings.Repeat("go", 500)+`"}},{"id":"b","tool":"broken"},{"id":"c","tool":"fetch","args":{"doc":"$b"}}]`), plan.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	report, err := run.Do(t.Context(), p, tools(t), run.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, res, _ := session(t, planner.Config{Earlier: &planner.Earlier{Plan: p, Report: report}}).Write(t.Context(), submits(t, sound))
	user := res.Transcript[1].Text
	for _, want := range []string{"\na: ok, output [", "truncated", "\nb: tool_error, because of b: tool_error: broken: this tool always fails", "\nc: skipped, because of b: tool_error"} {
		if !strings.Contains(user, want) {
			t.Errorf("the model is not told %q:\n%s", want, user)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	empty, err := tool.NewCatalogue()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]planner.Config{
		"no task":  {Catalogue: tools(t).Catalogue()},
		"no tools": {Task: "something", Catalogue: empty},
		"nothing":  {},
	} {
		if _, err := planner.New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func BenchmarkSearch(b *testing.B) {
	s := session(b, planner.Config{Catalogue: long(b)})
	call := &tool.Call{Args: value.MustParse(`{"query": "send a mail to a person"}`)}
	for b.Loop() {
		if _, err := s.Tools().Handler("search_tools")(b.Context(), call); err != nil {
			b.Fatal(err)
		}
	}
}

func ExampleSession_Write() {
	set, err := tool.NewSet(demo.New()...)
	if err != nil {
		panic(err)
	}
	s, err := planner.New(planner.Config{Task: "Find a document about go.", Catalogue: set.Catalogue()})
	if err != nil {
		panic(err)
	}
	m := scripted.New(&model.Reply{Calls: []model.Call{{
		ID: "c1", Name: "submit_plan", Arguments: `{"steps":[{"id":"s1","tool":"search","args":{"query":"go"}}]}`,
	}}})
	draft, _, err := s.Write(context.Background(), m)
	if err != nil {
		panic(err)
	}
	fmt.Print(string(draft.Text))
	// Output:
	// {
	//   "steps": [
	//     {
	//       "id": "s1",
	//       "tool": "search",
	//       "args": {
	//         "query": "go"
	//       }
	//     }
	//   ]
	// }
}
