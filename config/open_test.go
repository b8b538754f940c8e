package config_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// TestMain lets the test binary be an MCP server.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		serve()
		return
	}
	goleak.VerifyTestMain(m)
}

func serve() {
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	type in struct {
		Text string `json:"text"`
	}
	for _, name := range []string{"echo", "search"} {
		mcp.AddTool(s, &mcp.Tool{Name: name, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(_ context.Context, _ *mcp.CallToolRequest, args in) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: args.Text + os.Getenv("TOKEN")}}}, nil, nil
		})
	}
	if len(os.Args) > 2 { // one more, whose schema is no RE2
		s.AddTool(&mcp.Tool{Name: os.Args[2], InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"pattern":"(?=a)b"}}}`)},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, nil })
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

// open loads text, in which $SELF is this program, and opens it.
func open(t *testing.T, text string, opt config.Options) (*config.Opened, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, err := load(t, strings.ReplaceAll(text, "$SELF", self))
	if err != nil {
		t.Fatal(err)
	}
	o, err := config.Open(t.Context(), c, opt)
	if err == nil {
		t.Cleanup(func() {
			if err := o.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return o, err
}

func names(o *config.Opened) string {
	var all []string
	for _, d := range o.Set.Catalogue().All() {
		all = append(all, d.Name)
	}
	return strings.Join(all, " ")
}

func invoke(t *testing.T, o *config.Opened, name, args string) (string, error) {
	t.Helper()
	h := o.Set.Handler(name)
	if h == nil {
		t.Fatalf("no handler of %s among %s", name, names(o))
	}
	out, err := h(t.Context(), &tool.Call{Args: value.MustParse(args), Key: func() string { return "" }, Progress: func(tool.Progress) {}})
	return out.String(), err
}

func TestOpenAllSourcesTogether(t *testing.T) {
	t.Setenv("CALLSHEET_TEST_TOKEN", "-s3cret-token")
	o, err := open(t, `
secrets: {hub: {env: CALLSHEET_TEST_TOKEN}}
sources:
  demo: {builtin: demo, only: [search, sum]}
  server: {mcp: {command: [$SELF, serve], env_secrets: {TOKEN: hub}}, prefix: m_}
  local:
    prefix: c_
    commands:
      echo: {command: [echo, --, "{x}"], attempts: 5, deadline: 3s, concurrency: 1, effects: {read_only: true}, max_output: 1KiB}
      rm: {command: [rm, --, "{path}"], dir: work, args: {/path: path}}
overrides:
  m_echo: {effects: {idempotent: true}, args: {/text: content}, allow_args: [bcc], rate: 10/s}
  c_echo: {attempts: 3}
approve: destructive
limits: {output: 100B}
`, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(o), "search sum m_echo m_search c_echo c_rm"; got != want {
		t.Errorf("got the tools %s, want %s", got, want)
	}
	if out, err := invoke(t, o, "m_echo", `{"text":"hi"}`); err != nil || out != `"hi-s3cret-token"` {
		t.Errorf("the server: got %s %v", out, err)
	}
	if out, err := invoke(t, o, "c_echo", `{"x":"hi"}`); err != nil || out != `"-- hi"` {
		t.Errorf("the command: got %s %v", out, err)
	}
	cat := o.Set.Catalogue()
	echo, local := cat.Get("m_echo"), cat.Get("c_echo")
	if e := echo.Effects; e.ReadOnly || !e.Destructive || !e.Idempotent || len(echo.Args) == 0 || echo.Args[0].Role != tool.Content || echo.Allowed[0] != "bcc" || echo.MaxOutput != 100 {
		t.Errorf("an untrusted server's read-only hint, or an override: got %+v", echo)
	}
	if local.Attempts != 3 || local.Deadline != 3*time.Second || !local.Effects.ReadOnly || local.MaxOutput != 100 || cat.Get("search").MaxOutput != 100 {
		t.Errorf("a command's declaration: got %+v", local)
	}
	if got, want := fmt.Sprint(o.Approve), "map[c_rm:true m_echo:true m_search:true]"; got != want {
		t.Errorf("tools to approve: got %s, want %s", got, want)
	}
	if o.Limits == nil || len(o.Warnings) != 0 || len(o.Declared) != 0 {
		t.Errorf("got limits %v, warnings %q, declared %q", o.Limits, o.Warnings, o.Declared)
	}
}

func TestTrustAndOverridesOfHints(t *testing.T) {
	o, err := open(t, `
sources: {s: {mcp: {command: [$SELF, serve], trust: true}}}
overrides: {search: {effects: {destructive: true}, approve: always}}
`, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cat := o.Set.Catalogue()
	if e := cat.Get("echo").Effects; !e.ReadOnly {
		t.Errorf("a trusted hint is not believed: %+v", e)
	}
	if e := cat.Get("search").Effects; e.ReadOnly || !e.Destructive || !o.Approve["search"] {
		t.Errorf("an override must win over a trusted hint: %+v", e)
	}
}

func TestHostile020_Shadowing(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"two sources", "sources:\n  a: {builtin: demo}\n  b: {commands: {search: {command: ['true']}}}", `callsheet.yaml:3:3: tool "search" comes from source a and from source b; give one of them a prefix`},
		{"a prefix that collides", "sources:\n  a: {builtin: demo, prefix: x}\n  b: {commands: {xsum: {command: ['true']}}}", `callsheet.yaml:3:3: tool "xsum" comes from source a and from source b; give one of them a prefix`},
		{"an override without a tool", "sources: {a: {builtin: demo}}\noverrides: {serch: {approve: always}}", `callsheet.yaml:2:13: no source has a tool "serch"; did you mean search?`},
		{"an unknown name in only", "sources: {a: {builtin: demo, only: [fetsh]}}", `callsheet.yaml:1:11: source a: only: there is no tool "fetsh"; did you mean fetch?`},
		{"a secret that is not set", "secrets: {s: {env: CALLSHEET_NOT_SET}}\nsources: {a: {commands: {x: {command: ['true'], env_secrets: {T: s}}}}}", `callsheet.yaml:2:26: source a: variable T: secret s: the environment variable CALLSHEET_NOT_SET is not set`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := open(t, c.text, config.Options{})
			var e *config.Error
			if !errors.As(err, &e) || e.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	o, err := open(t, "sources:\n  a: {commands: {send_email: {command: ['true']}, send_emaiI: {command: ['true']}}}", config.Options{})
	if err != nil || len(o.Warnings) != 1 || !strings.Contains(o.Warnings[0], "look alike") {
		t.Errorf("look-alike names: got %v %v", o, err)
	}
	if _, err := config.Open(t.Context(), nil, config.Options{Tools: []string{"demo", "demo"}}); err == nil || !strings.HasPrefix(err.Error(), `--tools demo: tool "search" comes from --tools demo and from --tools demo`) {
		t.Errorf("one flag twice: got %v", err)
	}
}

func TestServerThatDoesNotStart(t *testing.T) {
	// The other server did start, and must be closed again; goleak watches.
	_, err := open(t, "sources:\n  ok: {mcp: {command: [$SELF, serve]}}\n  bad: {mcp: {command: [/bin/false], start_timeout: 5s}}", config.Options{})
	var e *config.Error
	if !errors.As(err, &e) || e.Faults[0].Line != 3 || !strings.HasPrefix(e.Faults[0].Message, `mcp source "bad": `) {
		t.Errorf("got %v", err)
	}
}

func TestFlags(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	catalogue := file("tools.json", `{"tools":[{"name":"pay","inputSchema":{"type":"object","required":["to"]}}]}`)
	stubs := file("stub.json", `{"s1": 7}`)
	bad := file("bad.json", `{"tools":[{"nam":"x"}]}`)

	o, err := config.Open(t.Context(), nil, config.Options{Tools: []string{"arith", catalogue}})
	if err != nil || !strings.HasSuffix(names(o), " pay") || len(o.Declared) != 1 || o.Declared[0] != "pay" || o.Set.Handler("pay") != nil {
		t.Errorf("a catalogue: got %+v %v", o, err)
	}
	o, err = config.Open(t.Context(), nil, config.Options{Tools: []string{catalogue}, Stub: stubs})
	if err != nil || names(o) != "pay" || o.Set.Catalogue().Get("pay").Input == nil || len(o.Declared) != 0 {
		t.Errorf("a catalogue with stubs: got %+v %v", o, err)
	}
	o, err = config.Open(t.Context(), nil, config.Options{Stub: stubs, Names: []string{"any", "other"}})
	if err != nil || names(o) != "any other" {
		t.Errorf("stubs alone: got %+v %v", o, err)
	}
	o, err = config.Open(t.Context(), nil, config.Options{})
	if err != nil || names(o) != "" {
		t.Errorf("nothing: got %+v %v", o, err)
	}
	for _, c := range []struct {
		opt  config.Options
		want string
	}{
		{config.Options{Tools: []string{"dmo"}}, "no tools are called dmo, and there is no such file; use demo, arith or the path of a catalogue"},
		{config.Options{Tools: []string{bad}}, `did you mean "name"?`},
		{config.Options{Stub: filepath.Join(dir, "none")}, "--stub: open"},
		{config.Options{Stub: file("s.json", `[1]`)}, "--stub"},
	} {
		if _, err := config.Open(t.Context(), nil, c.opt); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.opt, err, c.want)
		}
	}
}

// What is left out of a server's tools is not misspelt: the error says why it is
// not there.
func TestToolsThatAreLeftOutAreNamed(t *testing.T) {
	const server = "sources:\n  web: {prefix: w_, mcp: {command: [$SELF, serve, bad]}%s}\n%s"
	for name, c := range map[string]struct{ only, rest, want string }{
		"an override": {"", "overrides: {w_bad: {approve: always}}", `the tool "w_bad" is left out: source web: `},
		"only":        {", only: [bad]", "", `only: the tool "bad" is left out: `},
		"not in only": {", only: [echo]", "overrides: {w_search: {approve: always}}", `the tool "w_search" is left out: source web: only does not name it`},
	} {
		_, err := open(t, fmt.Sprintf(server, c.only, c.rest), config.Options{})
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.HasSuffix(c.want, ": ") && !strings.Contains(err.Error(), "RE2") {
			t.Errorf("%s: got %v, want %s and the reason", name, err, c.want)
		}
	}
}

// A role for an arg that the tool does not have is refused where it stands: the
// arg that was meant would stay a target, and a secret or a path none.
func TestRolesAreOfArgsThatThereAre(t *testing.T) {
	const command = "sources:\n  local:\n    commands:\n      send:\n        command: [/bin/echo, \"{to}\", \"{body}\"]\n"
	for _, c := range []struct{ name, text, want string }{
		{"of a command's own", command + "        args:\n          /to: target\n          /bdoy: content",
			`callsheet.yaml:8:11: args: tool "send" has no arg /bdoy; there is /body, /to; did you mean /body?`},
		{"of a command, elsewhere", command + "overrides:\n  send:\n    args:\n      /body/text: content",
			`callsheet.yaml:9:7: args: tool "send" has no arg /body/text; there is nothing inside /body`},
		{"of a tool of no schema", "sources: {demo: {builtin: demo}}\noverrides: {search: {args: {/querry: content}}}", ""},
		{"of an arg that is allowed", command + "overrides: {send: {allow_args: [lang], args: {/lang: content}}}", ""},
		{"of every arg", command + "overrides: {send: {args: {/*: content}}}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := open(t, c.text, config.Options{})
			if err == nil {
				defer o.Close()
			}
			if got := fmt.Sprint(err); (err == nil) != (c.want == "") || err != nil && got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
