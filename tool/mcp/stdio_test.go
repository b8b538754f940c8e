package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/mcp"
	"github.com/callsheet/callsheet/value"
)

func TestResults(t *testing.T) {
	src := open(t, fakeConfig(t, ""))
	for _, c := range []struct{ name, args, want string }{
		{"echo", `{"n":9007199254740993,"x":0.10,"big":1e400,"z":-0}`, `{"n":9007199254740993,"x":0.10,"big":1e400,"z":-0}`},
		{"text", `{"text":"plain \u202e text"}`, "\"plain \u202e text\""},
		{"text", `{"text":"{\"n\":1}"}`, `"{\"n\":1}"`},
		{"blocks", `{}`, `[{"type":"text","text":"a"},{"type":"resource_link","uri":"file:///a","name":"a","size":9007199254740993}]`},
		{"empty", `{}`, `[]`},
		{"wrongid", `{}`, `"mine"`},
	} {
		if got := succeed(t, src, c.name, c.args).String(); got != c.want {
			t.Errorf("%s(%s) = %s, want %s", c.name, c.args, got, c.want)
		}
	}
	if got := src.Stats(); got.Noise != 3 || got.Restarts != 0 || got.Late != 0 {
		t.Errorf("stats = %+v, want the three stray replies as noise", got)
	}
}

func TestFailures(t *testing.T) {
	cfg := fakeConfig(t, "")
	cfg.Overrides = map[string]mcp.Override{"text": {ParseJSON: ptr(true)}}
	src := open(t, cfg)
	for _, c := range []struct{ name, args, code, message string }{
		{"fail", `{"text":"try another"}`, "tool_error", "no such file\ntry another"},
		{"rpcfail", `{}`, "jsonrpc-32602", "unknown tool"},
		{"dup", `{}`, "invalid_output", "not strict JSON"},
		{"text", `{"text":"{\"a\":1,\"a\":2}"}`, "tool_error", "should be JSON"},
		{"input", `{}`, "tool_error", "input_required"},
		{"textid", `{}`, "invalid_output", "the reply is to \""},
		{"pointid", `{}`, "invalid_output", "and the request was "},
		{"badfail", `{"text":"\"no\""}`, "invalid_output", `the error of the reply cannot be read: "no"`},
		{"badfail", `{"text":"{\"code\":-1,\"message\":[]}"}`, "invalid_output", "cannot be read"},
		{"iserror", `{"text":"\"true\""}`, "invalid_output", `isError of the result is "true"`},
		{"iserror", `{"text":"null"}`, "invalid_output", "isError of the result is null"},
		{"iserror", `{"text":"1"}`, "invalid_output", "isError of the result is 1"},
	} {
		f := failing(t, src, c.name, c.args)
		if f.Code != c.code || !strings.Contains(f.Message, c.message) || f.Lost || f.Retryable {
			t.Errorf("%s(%s): %+v, want code %s for good and a message with %q", c.name, c.args, f, c.code, c.message)
		}
	}
	if got := succeed(t, src, "text", `{"text":" {\"n\": 9007199254740993} "}`).String(); got != `{"n":9007199254740993}` {
		t.Errorf("parsed text = %s", got)
	}
	long := failing(t, src, "fail", fmt.Sprintf(`{"text":%q}`, strings.Repeat("é", 10_000)))
	if len(long.Message) > tool.MaxMessage+len("…") {
		t.Errorf("a message of %d bytes was kept, want at most %d", len(long.Message), tool.MaxMessage)
	}
}

func ptr[T any](v T) *T { return &v }

func TestDeathInTheMiddleOfACall(t *testing.T) {
	cfg := fakeConfig(t, "")
	cfg.RestartsPerMinute = 2
	src := open(t, cfg)
	for range 3 {
		f := failing(t, src, "die", `{}`)
		if f.Code != tool.CodeConnection || !f.Lost || f.Retryable {
			t.Errorf("die: %+v, want lost with %s", f, tool.CodeConnection)
		}
		if !strings.Contains(f.Message, "exit status 3") || !strings.Contains(f.Message, "out of ink") {
			t.Errorf("die: message %q, want the exit status and the stderr", f.Message)
		}
	}
	f := failing(t, src, "echo", `{}`)
	if f.Code != tool.CodeConnection || f.Lost || !f.Retryable || !strings.Contains(f.Message, "2 times within a minute") {
		t.Errorf("echo after the last restart: %+v, want a retryable failure that says so", f)
	}
	if got := src.Stats().Restarts; got != 2 {
		t.Errorf("%d restarts, want 2", got)
	}
}

func TestDeadServerIsReplacedBeforeACall(t *testing.T) {
	src := open(t, fakeConfig(t, ""))
	failing(t, src, "die", `{}`)
	if got := succeed(t, src, "echo", `{"a":1}`).String(); got != `{"a":1}` {
		t.Errorf("echo = %s", got)
	}
	if got := src.Stats().Restarts; got != 1 {
		t.Errorf("%d restarts, want 1", got)
	}
}

func TestNeverSentIsRetryable(t *testing.T) {
	cfg := fakeConfig(t, "")
	cfg.RestartsPerMinute = -1
	src := open(t, cfg)
	failing(t, src, "die", `{}`)
	if f := failing(t, src, "echo", `{}`); !f.Retryable || f.Lost || !strings.Contains(f.Message, "was not sent") {
		t.Errorf("%+v, want a retryable failure", f)
	}
}

func TestServerThatTalksTooMuch(t *testing.T) {
	src := open(t, fakeConfig(t, ""))
	succeed(t, src, "chat", `{}`)
	if f := failing(t, src, "ask", `{}`); !f.Lost || !strings.Contains(f.Message, "without reading the answers") {
		t.Errorf("%+v, want the server stopped", f)
	}
}

func TestHostile034_OutputCap(t *testing.T) {
	cfg := fakeConfig(t, "")
	cfg.MaxOutput = 1000
	src := open(t, cfg)
	if got := succeed(t, src, "huge", `{"n":998}`).Size(); got != 1000 {
		t.Errorf("%d bytes, want 1000", got)
	}
	for _, args := range []string{
		`{"n":999}`,                  // over the output, within the line: the server lives
		`{"n":10000000}`,             // its id is in the head
		`{"n":10000000,"last":true}`, // its id is cut off, but no other call waits
	} {
		if f := failing(t, src, "huge", args); f.Code != tool.CodeOutputTooLarge || f.Lost {
			t.Errorf("huge(%s): %+v, want %s", args, f, tool.CodeOutputTooLarge)
		}
	}
	if got := src.Stats().Restarts; got != 1 {
		t.Errorf("%d restarts so far, want 1", got)
	}
}

// hold begins a call that the server keeps; it returns the server's process and
// how to wait for the outcome.
func hold(t *testing.T, ctx context.Context, src *mcp.Source) (pid string, wait func() (value.Value, *tool.Failure)) {
	t.Helper()
	began := make(chan string, 1)
	c := request(`{}`)
	c.Progress = func(p tool.Progress) { began <- p.Message }
	var out value.Value
	var f *tool.Failure
	var wg sync.WaitGroup
	wg.Go(func() { out, f = do(t, ctx, src, "hold", c) })
	return <-began, func() (value.Value, *tool.Failure) {
		wg.Wait()
		return out, f
	}
}

func TestHostile082_LongLineAmongOthers(t *testing.T) {
	cfg := fakeConfig(t, "")
	cfg.MaxOutput = 1000
	src := open(t, cfg)
	_, first := hold(t, t.Context(), src)
	if f := failing(t, src, "huge", `{"n":1000000}`); f.Code != tool.CodeOutputTooLarge {
		t.Errorf("huge: %+v, want %s", f, tool.CodeOutputTooLarge)
	}
	if _, f := first(); f == nil || f.Code != tool.CodeConnection || !f.Lost {
		t.Errorf("the other call: %+v, want lost", f)
	}
	_, second := hold(t, t.Context(), src)
	if f := failing(t, src, "huge", `{"n":1000000,"last":true}`); !f.Lost {
		t.Errorf("huge that cannot be told from the other: %+v, want lost", f)
	}
	if _, f := second(); f == nil || !f.Lost {
		t.Errorf("the other call: %+v, want lost", f)
	}
}

func TestHostile082_Noise(t *testing.T) {
	src := open(t, fakeConfig(t, "greet"))
	if got := src.Stats().Noise; got != 2 {
		t.Errorf("%d lines of noise before the first call, want 2", got)
	}
	succeed(t, src, "noise", `{"n":998}`)
	if got := src.Stats().Noise; got != 1000 {
		t.Errorf("%d lines of noise, want 1000", got)
	}
	if f := failing(t, src, "noise", `{"n":1}`); !f.Lost || !strings.Contains(f.Message, "1000 lines") {
		t.Errorf("at the next line: %+v, want the server stopped", f)
	}
	succeed(t, src, "noise", `{"n":10}`) // a new session has its own bound
}

func TestHostile036_NeverReturns(t *testing.T) {
	src := open(t, fakeConfig(t, ""))
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(20*time.Millisecond))
	defer cancel()
	if _, f := do(t, ctx, src, "hold", request(`{}`)); f == nil || f.Code != tool.CodeTimeout || !f.Lost {
		t.Errorf("%+v, want lost by %s", f, tool.CodeTimeout)
	}
	succeed(t, src, "echo", `{}`) // the session goes on
}

func TestHostile037_LateResult(t *testing.T) {
	src := open(t, fakeConfig(t, ""))
	ctx, cancel := context.WithCancel(t.Context())
	_, wait := hold(t, ctx, src)
	cancel()
	if _, f := wait(); f == nil || f.Code != tool.CodeCancelled || !f.Lost {
		t.Errorf("%+v, want lost by %s", f, tool.CodeCancelled)
	}
	succeed(t, src, "release", `{}`)
	if got := src.Stats(); got.Late != 1 || got.Noise != 0 {
		t.Errorf("stats = %+v, want one late result", got)
	}
}

func TestCancelledBeforeItWasSent(t *testing.T) {
	src := open(t, fakeConfig(t, ""))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, f := do(t, ctx, src, "echo", request(`{}`)); f == nil || f.Lost || f.Code != tool.CodeCancelled {
		t.Errorf("%+v, want cancelled and not lost", f)
	}
}

func TestHostile044_IdempotencyKey(t *testing.T) {
	src := open(t, fakeConfig(t, ""))
	c := request(`{}`)
	c.Key = func() string { return "run/step/1" }
	out, f := do(t, t.Context(), src, "meta", c)
	if f != nil {
		t.Fatal(f)
	}
	if got, _ := out.Get(mcp.KeyMeta); got.String() != `"run/step/1"` {
		t.Errorf("_meta = %s, want the key in %s", out, mcp.KeyMeta)
	}
	if out := succeed(t, src, "meta", `{}`); strings.Contains(out.String(), mcp.KeyMeta) {
		t.Errorf("_meta = %s, want no key where the call has none", out)
	}
}

func TestProgress(t *testing.T) {
	src := open(t, fakeConfig(t, ""))
	var got []tool.Progress
	c := request(`{}`)
	c.Progress = func(p tool.Progress) { got = append(got, p) }
	if _, f := do(t, t.Context(), src, "progress", c); f != nil {
		t.Fatal(f)
	}
	want := []tool.Progress{{Done: 1, Total: 3, Message: "step"}, {Done: 2, Total: 3, Message: "step"}, {Done: 3, Total: 3, Message: "step"}}
	if !slices.Equal(got, want) {
		t.Errorf("progress %v, want %v", got, want)
	}
}

func TestPool(t *testing.T) {
	cfg := fakeConfig(t, "")
	cfg.Pool = 2
	src := open(t, cfg)
	first, wait := hold(t, t.Context(), src)
	second := succeed(t, src, "release", `{}`)
	if got, _ := second.Text(); got == first {
		t.Errorf("both calls went to process %s", first)
	}
	if got := src.Stats().Restarts; got != 0 {
		t.Errorf("%d restarts, want 0: a first start is none", got)
	}
	if err := src.Close(); err != nil {
		t.Error(err)
	}
	if _, f := wait(); f == nil || !f.Lost || !strings.Contains(f.Message, "closed") {
		t.Errorf("the call in flight at Close: %+v, want lost", f)
	}
	if f := failing(t, src, "echo", `{}`); f.Retryable || f.Lost {
		t.Errorf("a call after Close: %+v, want a failure for good", f)
	}
}

func TestSideBySide(t *testing.T) {
	cfg := fakeConfig(t, "")
	cfg.Pool = 2
	src := open(t, cfg)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			args := fmt.Sprintf(`{"i":%d}`, i)
			if out, f := do(t, t.Context(), src, "echo", request(args)); f != nil || out.String() != args {
				t.Errorf("echo(%s) = %v, %v", args, out, f)
			}
		})
	}
	wg.Wait()
}

func TestOpenRefuses(t *testing.T) {
	for _, c := range []struct {
		name, modes string
		change      func(*mcp.Config)
		want        string
	}{
		{"a server that ends at once", "stillborn", nil, "no licence found"},
		{"a server that says nothing", "mute", func(c *mcp.Config) { c.StartTimeout = 50 * time.Millisecond }, "deadline"},
		{"a list without end", "endless", nil, "more than 100 pages"},
		{"an override for nobody", "", func(c *mcp.Config) { c.Overrides = map[string]mcp.Override{"ehco": {}} }, `"ehco"; it has echo, text`},
		{"no such program", "", func(c *mcp.Config) { c.Command = []string{"no-such-program-here"} }, "no-such-program-here"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := fakeConfig(t, c.modes)
			if c.change != nil {
				c.change(&cfg)
			}
			_, err := mcp.Open(t.Context(), cfg)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `"fake"`) {
				t.Errorf("Open: %v, want the source's name and %q", err, c.want)
			}
		})
	}
}

func TestNewerProtocolWhereTheHandshakeIsRefused(t *testing.T) {
	src := open(t, fakeConfig(t, "picky"))
	if got := succeed(t, src, "echo", `{"n":9007199254740993}`).String(); got != `{"n":9007199254740993}` {
		t.Errorf("echo = %s", got)
	}
	if got := src.Stats().Restarts; got != 0 {
		t.Errorf("%d restarts, want 0", got)
	}
}

func TestHostile022_RefusedSchemas(t *testing.T) {
	var log bytes.Buffer
	cfg := fakeConfig(t, "badschema")
	cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	src := open(t, cfg)
	var names []string
	for _, r := range src.Refused() {
		names = append(names, r.Name)
	}
	if want := []string{"remote", "backtrack", "text", ""}; !slices.Equal(names, want) {
		t.Errorf("refused %q, want %q", names, want)
	}
	if !strings.Contains(log.String(), "tool=remote") {
		t.Errorf("the log does not name the tool:\n%s", &log)
	}
	succeed(t, src, "text", `{"text":"the first of the name is kept"}`)
}

func TestEffects(t *testing.T) {
	cfg := fakeConfig(t, "")
	if got := find(t, open(t, cfg), "echo").Effects; got != tool.Undeclared() {
		t.Errorf("untrusted: %+v, want the worst", got)
	}
	cfg.Trust = true
	cfg.Overrides = map[string]mcp.Override{
		"text": {Override: tool.Override{Idempotent: ptr(true), Keyed: ptr(true), Attempts: 5, Deadline: time.Minute,
			Args: []tool.Arg{{Pattern: "/text", Role: tool.Content}}, Allowed: []string{"bcc"}}},
		"blocks": {Override: tool.Override{ReadOnly: ptr(true)}},
	}
	src := open(t, cfg)
	for name, want := range map[string]tool.Effects{
		"echo":   {ReadOnly: true},
		"fail":   tool.Undeclared(),
		"text":   {Destructive: true, OpenWorld: true, Idempotent: true, Keyed: true},
		"blocks": {ReadOnly: true, OpenWorld: true},
	} {
		if got := find(t, src, name).Effects; got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	d := find(t, src, "text").Declaration
	if d.Attempts != 5 || d.Deadline != time.Minute || len(d.Args) != 1 || !slices.Equal(d.Allowed, []string{"bcc"}) || d.Source != "mcp:fake" {
		t.Errorf("declaration = %+v", d)
	}
}
