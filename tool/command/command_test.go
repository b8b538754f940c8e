package command_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/command"
	"github.com/callsheet/callsheet/value"
)

// TestMain lets the test binary be the program: "child VERB ARGS".
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "child" {
		child(os.Args[2], os.Args[3:])
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func child(verb string, args []string) {
	switch verb {
	case "argv":
		fmt.Print(value.ListOf(texts(args)...))
	case "environ":
		fmt.Print(value.ListOf(texts(os.Environ())...))
	case "ignore-term": // writes its pid to a file, ignores SIGTERM and never ends
		signal.Ignore(syscall.SIGTERM)
		os.WriteFile(args[0], []byte(strconv.Itoa(os.Getpid())), 0o600)
		time.Sleep(time.Hour)
	case "flood":
		block := []byte(strings.Repeat("x", 64<<10))
		for {
			if _, err := os.Stdout.Write(block); err != nil {
				os.Exit(1)
			}
		}
	case "tty":
		if _, err := os.OpenFile("/dev/tty", os.O_RDWR, 0); err != nil {
			fmt.Print("none")
		}
	case "fds":
		for fd := 3; fd < 64; fd++ {
			if link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd)); err == nil && strings.HasSuffix(link, "/secret") {
				fmt.Println(link)
			}
		}
	case "host": // seals, then runs "child fds" as a tool would
		if err := command.SealDescriptors(); err != nil {
			fmt.Println(err)
		}
		t, err := command.New(command.Spec{Command: self("fds")})
		if err != nil {
			fmt.Println(err)
			return
		}
		out, err := t.Handler(context.Background(), call(`{}`))
		fmt.Print(out, err)
	case "parent": // starts a tool that never ends, and is killed
		t, _ := command.New(command.Spec{Command: self("ignore-term", args[0])})
		t.Handler(context.Background(), call(`{}`))
	}
}

func texts(ss []string) []value.Value {
	vs := make([]value.Value, len(ss))
	for i, s := range ss {
		vs[i] = value.MustText(s)
	}
	return vs
}

// self is the command of a child verb with literal words.
func self(verb string, words ...string) []command.Part {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return command.Words(append([]string{exe, "child", verb}, words...)...)
}

func sh(script string, words ...string) []command.Part {
	return command.Words(append([]string{"/bin/sh", "-c", strings.NewReplacer("{", "{{", "}", "}}").Replace(script), "sh"}, words...)...)
}

func call(args string) *tool.Call {
	return &tool.Call{Args: value.MustParse(args), Progress: func(tool.Progress) {}}
}

func mustNew(t *testing.T, spec command.Spec) tool.Tool {
	t.Helper()
	made, err := command.New(spec)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// do calls and returns the output text, or the failure's code and message.
func do(t *testing.T, made tool.Tool, args string) (out string, f *tool.Failure) {
	t.Helper()
	v, err := made.Handler(t.Context(), call(args))
	if err != nil {
		return "", tool.AsFailure(err)
	}
	return v.String(), nil
}

func TestArgvIsWhatTheTemplateSays(t *testing.T) {
	spec := command.Spec{
		Command: append(self("argv"), command.Group("-n", "{lines}"), command.Group("--all", "--of={of}"),
			command.Part{Words: []string{"--"}}, command.Part{Words: []string{"{a}"}}, command.Part{Words: []string{"{{a}}"}}),
		Params: map[string]command.Param{"of": {Embed: true, JSON: true}},
		Format: command.JSON,
	}
	made := mustNew(t, spec)
	for _, c := range []struct{ args, want string }{
		{`{"a":"x y; $(z) \"q\"\n"}`, `["--","x y; $(z) \"q\"\n","{a}"]`},
		{`{"a":-5,"lines":9007199254740993}`, `["-n","9007199254740993","--","-5","{a}"]`},
		{`{"a":null,"of":[1.0,"s"]}`, `["--all","--of=[1.0,\"s\"]","--","null","{a}"]`},
		{`{"a":true,"of":"s"}`, `["--all","--of=\"s\"","--","true","{a}"]`},
		{`{"a":""}`, `["--","","{a}"]`},
	} {
		if got, f := do(t, made, c.args); f != nil || got != c.want {
			t.Errorf("%s: got %s %v, want %s", c.args, got, f, c.want)
		}
	}
}

func TestRefusedArgs(t *testing.T) {
	made := mustNew(t, command.Spec{
		Command: append(self("argv"), command.Group("{free}"), command.Part{Words: []string{"{a}"}}),
		Params:  map[string]command.Param{"free": {AllowDash: true}},
	})
	for _, c := range []struct{ args, want string }{
		{`{"a":"-rf"}`, `arg "a" starts with a dash, which the program could take for an option`},
		{`{"a":-1}`, `arg "a" starts with a dash, which the program could take for an option`},
		{`{"a":"a\u0000b"}`, `arg "a" holds a NUL byte`},
		{`{"a":[1]}`, `arg "a" must be a scalar, not array`},
		{`{"a":{}}`, `arg "a" must be a scalar, not object`},
		{`{}`, `arg "a" is missing, and the command needs it`},
	} {
		if _, f := do(t, made, c.args); f == nil || f.Code != tool.CodeInvalidArgs || f.Message != c.want || f.Retryable || !f.NotStarted {
			t.Errorf("%s: got %+v, want %s", c.args, f, c.want)
		}
	}
	if got, f := do(t, made, `{"free":"-x","a":"b"}`); f != nil || got != `"[\"-x\",\"b\"]"` {
		t.Errorf("a declared dash: got %s %v", got, f)
	}
}

// No value ever changes how many elements argv has, or any element but its own.
func TestHostile078_NoShell(t *testing.T) {
	// The script is fixed; what it gets are its arguments, a NUL after each.
	made := mustNew(t, command.Spec{Command: sh(`for a; do printf '%s\0' "$a"; done`, "fixed", "--", "{v}", "end")})
	rapid.Check(t, func(r *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"; rm -rf /", "$(id)", "`id`", "a\nb", "--output=/etc/x", "-", "*", "{v}", "a b"})).
			Filter(func(s string) bool { return !strings.ContainsRune(s, 0) }).Draw(r, "v")
		out, err := made.Handler(t.Context(), &tool.Call{Args: value.ObjectOf(value.Member{Key: "v", Value: value.MustText(s)})})
		got, _ := out.Text()
		if want := "fixed\x00--\x00" + s + "\x00end\x00"; err != nil || got != want {
			r.Fatalf("got %q %v, want %q", got, err, want)
		}
	})
}

func TestHostile079_EmptyEnvironment(t *testing.T) {
	t.Setenv("LD_PRELOAD", "/nowhere/evil.so")
	t.Setenv("SECRET_TOKEN", "sk-1234567890")
	t.Setenv("LANG", "C.UTF-8")
	keyed := tool.Declaration{Effects: tool.Effects{Keyed: true}}
	made := mustNew(t, command.Spec{Declaration: keyed, Command: self("environ"), Env: []string{"LANG", "NOT_SET_ANYWHERE", "TZ=UTC"}, Format: command.JSON})
	out, err := made.Handler(t.Context(), &tool.Call{Args: value.MustParse(`{}`), Key: func() string { return "k1" }})
	if want := `["LANG=C.UTF-8","TZ=UTC","CALLSHEET_IDEMPOTENCY_KEY=k1"]`; err != nil || out.String() != want {
		t.Errorf("got %v %v, want %s", out, err, want)
	}
}

func TestHostile079_NoDescriptorsAndNoTerminal(t *testing.T) {
	if got, f := do(t, mustNew(t, command.Spec{Command: self("tty")}), `{}`); f != nil || got != `"none"` {
		t.Errorf("the program has a terminal: %s %v", got, f)
	}
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("needs /proc to list descriptors")
	}
	secret, err := os.Create(filepath.Join(t.TempDir(), "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	exe, _ := os.Executable()
	host := exec.Command(exe, "child", "host")
	host.ExtraFiles = []*os.File{secret} // inherited without close-on-exec
	out, err := host.CombinedOutput()
	if err != nil || string(out) != `"" <nil>` {
		t.Errorf("got %q %v, want no inherited descriptor", out, err)
	}
}

func TestHostile079_ProgramIsFixed(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "true"), []byte("#!/bin/sh\necho evil\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	t.Setenv("PATH", dir)
	if got, f := do(t, mustNew(t, command.Spec{Command: command.Words("true")}), `{}`); f != nil || got != `""` {
		t.Errorf("a program of the working directory or PATH was run: %s %v", got, f)
	}
}

func TestRetryableAndLost(t *testing.T) {
	if _, f := do(t, mustNew(t, command.Spec{Command: sh(`echo busy >&2; exit 75`)}), `{}`); f == nil || !f.Retryable || f.Lost || f.Message != "sh: exit status 75: busy" {
		t.Errorf("exit 75: got %+v", f)
	}
	if _, f := do(t, mustNew(t, command.Spec{Command: sh(`kill -9 $$`)}), `{}`); f == nil || !f.Lost || f.Retryable || f.Code != tool.CodeConnection {
		t.Errorf("killed from elsewhere: got %+v", f)
	}
}

func TestStdin(t *testing.T) {
	made := mustNew(t, command.Spec{Command: command.Words("/bin/cat"), Stdin: "<{body}>{n}", Params: map[string]command.Param{"body": {JSON: true}}})
	if got, f := do(t, made, `{"body":{"a":[1]},"n":-2}`); f != nil || got != `"<{\"a\":[1]}>-2"` {
		t.Errorf("got %s %v", got, f)
	}
	if got, f := do(t, mustNew(t, command.Spec{Command: command.Words("/bin/cat")}), `{}`); f != nil || got != `""` {
		t.Errorf("without a template standard input must be empty: %s %v", got, f)
	}
	big := strings.Repeat("x", 1<<20) // a program that does not read it must not block
	if got, f := do(t, mustNew(t, command.Spec{Command: command.Words("/bin/echo", "hi"), Stdin: "{b}"}), `{"b":"`+big+`"}`); f != nil || got != `"hi"` {
		t.Errorf("got %s %v", got, f)
	}
}

func TestSpecFaults(t *testing.T) {
	dir := t.TempDir()
	path := func(pattern string) tool.Declaration {
		return tool.Declaration{Args: []tool.Arg{{Pattern: pattern, Role: tool.Path}}}
	}
	for _, c := range []struct {
		name string
		spec command.Spec
		want string
	}{
		{"no command", command.Spec{}, "command: the first element must be the program"},
		{"a group first", command.Spec{Command: []command.Part{command.Group("/bin/echo", "{a}")}}, "command: the first element must be the program"},
		{"program from an arg", command.Spec{Command: command.Words("{p}")}, "command/0: the program must not come from an arg"},
		{"relative program", command.Spec{Command: command.Words("./x")}, `command/0: "./x" is neither an absolute path nor the name of a program`},
		{"unknown program", command.Spec{Command: command.Words("no-such-program")}, `command/0: no program "no-such-program" in /usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin; give its absolute path`},
		{"not executable", command.Spec{Command: command.Words("/etc/passwd")}, "command/0: /etc/passwd is not an executable file"},
		{"embedded", command.Spec{Command: command.Words("/bin/echo", "--x={a}")}, `command/1: {a} stands inside the longer element "--x={a}"; let it stand alone, or declare it with embed: true`},
		{"brace", command.Spec{Command: command.Words("/bin/echo", "{print $1}")}, "command/1: a brace that belongs to no placeholder; write {{ or }} for a brace"},
		{"open brace", command.Spec{Command: command.Words("/bin/echo", "{a")}, "command/1: a brace that belongs to no placeholder; write {{ or }} for a brace"},
		{"constant group", command.Spec{Command: append(command.Words("/bin/echo"), command.Group("-n"))}, "command/1: a group without a placeholder is always there; write its words without brackets"},
		{"unused param", command.Spec{Command: command.Words("/bin/echo"), Params: map[string]command.Param{"a": {}}}, "params/a: the command has no placeholder {a}"},
		{"path without dir", command.Spec{Command: command.Words("/bin/cat", "--", "{a}"), Declaration: path("/a")}, `dir: the arg "a" is a path; name the directory that it must stay in`},
		{"path by pattern", command.Spec{Command: command.Words("/bin/cat", "--", "{a}"), Dir: dir, Declaration: path("/*")}, "args/~1*: a path arg must be named itself, as in /path"},
		{"relative dir", command.Spec{Command: command.Words("/bin/echo"), Dir: "x"}, `dir: the path "x" is not absolute`},
		{"format", command.Spec{Command: command.Words("/bin/echo"), Format: "xml"}, `output: "xml" is no format; use text or json`},
		{"env", command.Spec{Command: command.Words("/bin/echo"), Env: []string{"=x"}}, `env/0: "=x" is neither NAME nor NAME=value`},
		{"path kind", command.Spec{Command: command.Words("/bin/echo", "{a}"), Params: map[string]command.Param{"a": {Path: "x"}}}, `params/a/path: "x" is no kind of path; use file, dir or new`},
		{"path and JSON", command.Spec{Command: command.Words("/bin/echo", "{a}"), Params: map[string]command.Param{"a": {Path: "file", JSON: true}}}, `params/a: an arg is either a path or JSON`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := command.New(c.spec)
			var se *command.SpecError
			if !errors.As(err, &se) || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestInputSchemaIsMadeOfPlaceholders(t *testing.T) {
	made := mustNew(t, command.Spec{
		Command: append(command.Words("/bin/echo"), command.Group("-n", "{n}"), command.Part{Words: []string{"--"}}, command.Part{Words: []string{"{p}"}}),
		Stdin:   "{body}{p}", Dir: t.TempDir(),
		Params: map[string]command.Param{"body": {JSON: true}, "p": {Path: command.PathFile}},
	})
	want := `{"type":"object","properties":{"n":{"type":["string","number","boolean","null"]},"p":{"type":"string"},"body":{}},"required":["p","body"],"additionalProperties":false}`
	if diff := cmp.Diff(want, made.Input.Value().String()); diff != "" {
		t.Error(diff)
	}
	if got := made.Args; len(got) != 1 || got[0] != (tool.Arg{Pattern: "/p", Role: tool.Path}) {
		t.Errorf("the role of a path arg: got %v", got)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{"{a}", "{{}}", "x{a}y", "{", "}", "{a b}", "{{{a}}}", "{\xff}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		made, err := command.New(command.Spec{Command: command.Words("/bin/echo", s)})
		if err == nil && made.Input.Value().Kind() != value.Object {
			t.Errorf("%q: no input schema", s)
		}
	})
}

func Example() {
	wc, err := command.New(command.Spec{
		Declaration: tool.Declaration{Name: "count", Effects: tool.Effects{ReadOnly: true}},
		Command:     command.Words("wc", "-c"),
		Stdin:       "{text}",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := wc.Handler(context.Background(), &tool.Call{Args: value.MustParse(`{"text": "five!"}`)})
	fmt.Println(out, err)
	// Output: "5" <nil>
}
