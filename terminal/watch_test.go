package terminal

import (
	"bytes"
	"container/list"
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const threeSteps = `[
	{"id": "a", "tool": "good"},
	{"id": "b", "tool": "evil", "args": {"x": "$a"}},
	{"id": "漢字", "tool": "good", "after": ["b"]},
	{"id": "d", "tool": "busy"}
]`

// perform runs threeSteps and shows it.
func perform(t *testing.T, out *Output) {
	t.Helper()
	p, err := plan.Decode([]byte(threeSteps), plan.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	handler := func(f func(c *tool.Call) error) tool.Handler {
		return func(_ context.Context, c *tool.Call) (value.Value, error) { return value.Int(1), f(c) }
	}
	set, err := tool.NewSet(
		tool.Tool{Declaration: tool.Declaration{Name: "good"}, Handler: handler(func(c *tool.Call) error {
			c.Progress(tool.Progress{Done: 1, Total: 2, Message: "half\x1b[2J"})
			return nil
		})},
		tool.Tool{Declaration: tool.Declaration{Name: "evil"}, Handler: handler(func(*tool.Call) error {
			return errors.New("no\x1b]0;pwned\x07\n{\"level\":\"info\"}\u202e")
		})},
		tool.Tool{Declaration: tool.Declaration{Name: "busy"}, Handler: handler(func(c *tool.Call) error {
			if c.Attempt == 1 {
				return tool.Retryable(tool.Errorf("try later"))
			}
			return nil
		})},
	)
	if err != nil {
		t.Fatal(err)
	}
	watch := out.Watch(p)
	report, err := run.Do(t.Context(), p, set, run.Options{Observer: watch.Observe})
	watch.Close()
	if err != nil {
		t.Fatal(err)
	}
	out.Report(p, report, watch.Elapsed())
}

var times = regexp.MustCompile(`\d+ms`)

func TestHostile043_PlainLinesWhenPiped(t *testing.T) {
	var b bytes.Buffer
	perform(t, New(&b, 0, 0))
	// Steps that do not depend on each other may be told of in any order.
	want := `4 steps: 2 ok, 1 tool_error, 1 skipped; 4 calls, 0ms
call             a good
call             b evil
call             d busy
call             d busy, attempt 2
failed           b evil: no\x1b]0;pwned\x07\n{"level":"info"}\u202e
failed           d busy: try later
ok               a good, 0ms
ok               d busy, 0ms
output           d: 1
skipped          漢字 good: because of b: tool_error: no\x1b]0;pwned\x07\n{"level":"info"}\u202e
tool_error       b evil, 0ms: no\x1b]0;pwned\x07\n{"level":"info"}\u202e`
	lines := strings.Split(strings.TrimSpace(times.ReplaceAllString(b.String(), "0ms")), "\n")
	slices.Sort(lines)
	if diff := cmp.Diff(want, strings.Join(lines, "\n")); diff != "" {
		t.Error(diff)
	}
}

func TestTableOnATerminal(t *testing.T) {
	var b bytes.Buffer
	perform(t, New(&b, 60, 20))
	_, table, found := strings.Cut(b.String(), eraseBelow+"STEP")
	if !found {
		t.Fatalf("the live view is not erased before the table: %q", b.String())
	}
	plain := times.ReplaceAllString(table, "0ms")
	want := `  TOOL  STATUS      TIME      CAUSE
a     good  ok          0ms
b     evil  tool_error  0ms       no\x1b]0;pwned\x07\n{"le…
漢字  good  skipped               because of b: tool_error…
d     busy  ok          0ms in 2
tool_error       b: no\x1b]0;pwned\x07\n{"level":"info"}\u202e
output           d: 1
4 steps: 2 ok, 1 tool_error, 1 skipped; 4 calls, 0ms
`
	if diff := cmp.Diff(want, plain); diff != "" {
		t.Error(diff)
	}
}

// Whatever tools say, no line of a live view is wider than the terminal, and
// there are no more lines than it has.
func TestFrameFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1000, 0)
		w := &Watch{view: view{out: New(&bytes.Buffer{}, 80, 24)}, wave: map[string]int{}, first: map[string]time.Time{}, at: map[string]*list.Element{}, start: now, steps: 9, waves: 3}
		for range rapid.IntRange(0, 12).Draw(t, "running") {
			step, text := rapid.String().Draw(t, "step"), rapid.String()
			w.apply(run.Event{Kind: run.Called, Step: step, Tool: text.Draw(t, "tool"), Attempt: rapid.IntRange(1, 3).Draw(t, "attempt"), Time: now})
			w.apply(run.Event{Kind: run.Noted, Step: step, Progress: tool.Progress{Done: rapid.Float64().Draw(t, "done"), Total: rapid.Float64().Draw(t, "total"), Message: text.Draw(t, "message")}})
		}
		width, height := rapid.IntRange(2, 200).Draw(t, "width"), rapid.IntRange(4, 30).Draw(t, "height")
		lines := w.lines(now.Add(time.Second), width, height)
		if len(lines) >= height {
			t.Fatalf("%d lines on a terminal of %d", len(lines), height)
		}
		for _, l := range lines {
			if Width(l) >= width || strings.ContainsAny(l, "\n\r") {
				t.Fatalf("%q is %d wide on a terminal of %d", l, Width(l), width)
			}
		}
	})
}

func TestFrame(t *testing.T) {
	now := time.Unix(1000, 0)
	w := &Watch{view: view{out: &Output{styled: true}}, wave: map[string]int{"s2": 1}, first: map[string]time.Time{}, at: map[string]*list.Element{}, start: now, steps: 5, waves: 3}
	w.apply(run.Event{Kind: run.Settled, Step: "s1", Status: machine.OK, Time: now})
	w.apply(run.Event{Kind: run.Settled, Step: "s0", Status: machine.UnknownTool, Time: now})
	w.apply(run.Event{Kind: run.Called, Step: "s2", Tool: "fetch", Attempt: 2, Time: now})
	w.apply(run.Event{Kind: run.Noted, Step: "s2", Progress: tool.Progress{Done: 1, Total: 4, Message: "reading"}})
	got := strings.Join(w.lines(now.Add(1500*time.Millisecond), 80, 24), "\n")
	want := "\x1b[1mwave 2/3  2/5 steps, 1 not ok  1 call  1.5s\x1b[m\n  s2  fetch  1.5s  attempt 2  25% reading"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNoColor(t *testing.T) {
	for v, want := range map[string]bool{"NO_COLOR=": true, "NO_COLOR=1": false, "NO_COLOR=false": false, "NO_COLORS=1": true} {
		if got := styled([]string{"TERM=xterm", v}); got != want {
			t.Errorf("%s: styled is %v, want %v", v, got, want)
		}
	}
	var b bytes.Buffer
	perform(t, New(&b, 60, 20))
	redrawing := regexp.MustCompile(`\x1b\[(\d+A|J)`)
	if left := redrawing.ReplaceAllString(b.String(), ""); strings.Contains(left, "\x1b") || left == b.String() {
		t.Errorf("got %q, want redrawing and no other escape", &b)
	}
}

func TestReport(t *testing.T) {
	p, err := plan.Decode([]byte(`[
		{"id": "a", "tool": "t"}, {"id": "b", "tool": "t", "args": {"x": "$a"}},
		{"id": "c", "tool": "t"}, {"id": "d", "tool": "t", "after": ["c"]}, {"id": "e", "tool": "t"}
	]`), plan.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("no ", 30)
	r := &machine.Report{Calls: 4, Steps: []machine.StepReport{
		{ID: "a", Tool: "t", Status: machine.OK, Output: value.Int(1)},
		{ID: "b", Tool: "t", Status: machine.OK, Output: value.MustText("what the\x1b run was for")},
		{ID: "c", Tool: "t", Status: machine.ToolError, Cause: &machine.Cause{Step: "c", Code: "tool_error", Message: long}},
		{ID: "d", Tool: "t", Status: machine.Skipped, Cause: &machine.Cause{Step: "c", Code: "tool_error", Message: long}},
		{ID: "e", Tool: "t", Status: machine.OK, Output: value.MustText(strings.Repeat("x", 1000))},
	}}
	outputs := `output           b: "what the\u001b run was for"
output           e: "` + strings.Repeat("x", maxShown-1) + ` … 602 bytes not shown
5 steps: 3 ok, 1 tool_error, 1 skipped; 4 calls, 1.0s
`
	for width, want := range map[int]string{
		0: outputs,
		50: `STEP  TOOL  STATUS      TIME  CAUSE
a     t     ok
b     t     ok
c     t     tool_error        no no no no no no …
d     t     skipped           because of c: tool…
e     t     ok
tool_error       c: ` + long + "\n" + outputs,
	} {
		var b bytes.Buffer
		New(&b, width, 24).Report(p, r, time.Second)
		if diff := cmp.Diff(want, b.String()); diff != "" {
			t.Errorf("width %d: %s", width, diff)
		}
	}
}

func TestLineEscapesItsArguments(t *testing.T) {
	var b bytes.Buffer
	New(&b, 0, 0).Line("%s: %v (%d)", "a\x1b[2J", errors.New("b\n"), 3)
	if got, want := b.String(), `a\x1b[2J: b\n (3)`+"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0ms", 0: "0ms", 1500 * time.Microsecond: "2ms", 3400 * time.Millisecond: "3.4s", 125 * time.Second: "2m05s", 3 * time.Hour: "3h00m",
	} {
		if got := short(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
}

// A call that was offered and not made ends with its step; a note goes to its
// own call.
func TestWatchKeepsTheCallsThatAreOut(t *testing.T) {
	p, err := plan.Decode([]byte(`[{"id":"a","tool":"t"},{"id":"b","tool":"t"},{"id":"c","tool":"t"}]`), plan.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	w := New(&out, 80, 24).Watch(p)
	defer w.Close()
	now := time.Now()
	for _, e := range []run.Event{
		{Kind: run.Called, Step: "a"}, {Kind: run.Called, Step: "b"}, {Kind: run.Called, Step: "c"},
		{Kind: run.Noted, Step: "b", Progress: tool.Progress{Message: "half"}},
		{Kind: run.Returned, Step: "a"}, {Kind: run.Settled, Step: "c"},
	} {
		e.Time = now
		w.Observe(e)
	}
	got := w.lines(now, 80, 24)
	if len(got) != 2 || !strings.Contains(got[1], "b") || !strings.Contains(got[1], "half") {
		t.Errorf("got %q, want the head and b with its note", got)
	}
}

func TestAnAgentsLineIsNotStyledWhereNothingIs(t *testing.T) {
	now := time.Now()
	w := &AgentWatch{view: view{out: &Output{}}, start: now, round: 1}
	if got := w.line(now, 80, 24); len(got) != 1 || got[0] != "round 1  0 calls  0ms" {
		t.Errorf("got %q", got)
	}
}
