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

func TestHostile080_PathArgs(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "work")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "sub"), 0o700),
		os.WriteFile(filepath.Join(base, "outside"), []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(dir, "a.txt"), []byte("12345"), 0o600),
		os.WriteFile(filepath.Join(dir, "-n"), []byte("dash"), 0o600),
		os.WriteFile(filepath.Join(dir, "sub", "b.txt"), []byte("1"), 0o600),
		os.Link(filepath.Join(base, "outside"), filepath.Join(dir, "hard")),
		os.Symlink("../outside", filepath.Join(dir, "link")),
		os.Symlink("a.txt", filepath.Join(dir, "inner")),
		os.Symlink("..", filepath.Join(dir, "up")),
		os.Symlink("sub", filepath.Join(dir, "down")),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	made := func(kind command.PathKind, readOnly bool) tool.Tool {
		return mustNew(t, command.Spec{
			Declaration: tool.Declaration{Effects: tool.Effects{ReadOnly: readOnly}},
			Command:     command.Words("/bin/echo", "--", "{p}"), Dir: dir,
			Params: map[string]command.Param{"p": {Path: kind}},
		})
	}
	file, write := made(command.PathFile, true), made(command.PathFile, false)
	folder, fresh := made(command.PathDir, true), made(command.PathNew, false)
	const ok = ""
	for _, c := range []struct {
		tool tool.Tool
		path string
		want string
	}{
		{file, "a.txt", ok}, {file, "sub/b.txt", ok}, {file, "./down/b.txt", ok}, {file, "-n", ok}, {file, "hard", ok},
		{write, "a.txt", ok}, {folder, "sub", ok}, {folder, ".", ok}, {fresh, "new.txt", ok}, {fresh, "sub/new", ok},
		{file, "../outside", "goes up"}, {file, "sub/../../outside", "goes up"}, {file, "/etc/passwd", "absolute"},
		{file, "/proc/self/fd/0", "absolute"}, {file, "link", "symbolic link"}, {file, "inner", "symbolic link"},
		{file, "up/outside", "escapes"}, {file, "sub", "not a regular file"}, {file, "pipe", "not a regular file"},
		{file, "none", "no such file"}, {file, "", "empty"}, {file, "a.txt\x00", "control"}, {file, "a\n", "control"},
		{file, `C:\x`, "backslash or a colon"}, {file, "CON", "device"}, {file, "sub/nul.txt", "device"}, {file, "a.txt.", "dot or a space"},
		{file, strings.Repeat("a/", 4000), "longer than"}, {file, strings.Repeat("a", 300), "too long"},
		{write, "hard", "hard link"}, {folder, "a.txt", "not a directory"}, {folder, "up", "not a directory"},
		{fresh, "a.txt", "already"}, {fresh, "none/new", "no such file"}, {fresh, "up/new", "escapes"}, {fresh, "a.txt/new", "not a directory"},
	} {
		args := value.ObjectOf(value.Member{Key: "p", Value: value.MustText(c.path)})
		out, err := c.tool.Handler(t.Context(), &tool.Call{Args: args})
		if c.want == ok {
			if got, _ := out.Text(); err != nil || got != "-- "+c.path {
				t.Errorf("%q: got %q %v", c.path, got, err)
			}
		} else if f := tool.AsFailure(errors.Join(err)); err == nil || f.Code != tool.CodeInvalidArgs || !strings.Contains(f.Message, c.want) {
			t.Errorf("%q: got %v %v, want %q", c.path, out, err, c.want)
		}
	}
}

// Whatever path is accepted stays below the directory.
func TestHostile080_NoPathLeaves(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "w")
	os.MkdirAll(filepath.Join(dir, "d"), 0o700)
	os.WriteFile(filepath.Join(dir, "d", "f"), nil, 0o600)
	os.WriteFile(filepath.Join(base, "f"), nil, 0o600)
	os.Symlink("..", filepath.Join(dir, "up"))
	os.Symlink(base, filepath.Join(dir, "d", "abs"))
	made := mustNew(t, command.Spec{Command: command.Words("/bin/echo", "{p}"), Dir: dir, Params: map[string]command.Param{"p": {Path: command.PathFile}}})
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(r *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"d", "f", "up", "abs", "..", ".", "", "w"}), 1, 6).Draw(r, "parts")
		path := strings.Join(parts, "/")
		_, err := made.Handler(t.Context(), &tool.Call{Args: value.ObjectOf(value.Member{Key: "p", Value: value.MustText(path)})})
		if err != nil {
			return
		}
		if got, err := filepath.EvalSymlinks(filepath.Join(dir, path)); err != nil || !strings.HasPrefix(got, real+"/") {
			r.Fatalf("%q was accepted and is %s (%v)", path, got, err)
		}
	})
}

func TestOutput(t *testing.T) {
	for _, c := range []struct {
		name, script string
		format       command.Format
		want         string // JSON text, or code: message
	}{
		{"one newline is removed", `printf 'a\n\n'`, command.Text, `"a\n"`},
		{"text stays text", `echo '{"a":1}'`, "", `"{\"a\":1}"`},
		{"JSON keeps numbers", `echo '{"a": 9007199254740993, "b": 1.0}'`, command.JSON, `{"a":9007199254740993,"b":1.0}`},
		{"bad JSON", `echo '{"a":1} x'`, command.JSON, `invalid_output: sh: the output is not one JSON value: line 1, column 9: text after the end of the value`},
		{"no JSON", `:`, command.JSON, `invalid_output: sh: the output is not one JSON value: line 1, column 1: the text ends before the value does`},
		{"not UTF-8", `printf 'a\377'`, command.Text, `invalid_output: sh: the output is not valid UTF-8`},
		{"exit status", `echo one >&2; echo out; exit 3`, command.Text, `sh: exit status 3: one`},
		{"exit status alone", `exit 1`, command.Text, `sh: exit status 1`},
		{"stderr of a success is not output", `echo noise >&2; echo ok`, command.Text, `"ok"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, f := do(t, mustNew(t, command.Spec{Command: sh(c.script), Format: c.format}), `{}`)
			if f != nil {
				got = f.Error()
			}
			if got != c.want || f != nil && (f.Retryable || f.Lost) {
				t.Errorf("got %s (%+v), want %s", got, f, c.want)
			}
		})
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

func TestHostile034_EndlessOutput(t *testing.T) {
	for _, max := range []int{0, 100, 1 << 20} {
		made := mustNew(t, command.Spec{Declaration: tool.Declaration{MaxOutput: max}, Command: self("flood")})
		out, f := do(t, made, `{}`)
		if f == nil || f.Code != tool.CodeOutputTooLarge || f.Retryable || f.Lost || out != "" {
			t.Errorf("cap %d: got %.40q %+v", max, out, f)
		}
	}
	made := mustNew(t, command.Spec{Declaration: tool.Declaration{MaxOutput: 3}, Command: command.Words("/usr/bin/printf", "abc")})
	if got, f := do(t, made, `{}`); f != nil || got != `"abc"` {
		t.Errorf("exactly the cap: got %s %v", got, f)
	}
}

func TestLongStandardErrorIsCut(t *testing.T) {
	_, f := do(t, mustNew(t, command.Spec{Command: sh(`i=0; while [ $i -lt 2000 ]; do echo "line $i of many" >&2; i=$((i+1)); done; echo last words >&2; exit 1`)}), `{}`)
	if f == nil || len(f.Message) > tool.MaxMessage || !strings.HasSuffix(f.Message, "last words") || !strings.Contains(f.Message, "…") {
		t.Errorf("got %d bytes: %+v", len(f.Message), f)
	}
}

// alive reports whether the process still runs; a zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return syscall.Kill(pid, 0) == nil
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// await polls until done, bounded by the test's own deadline.
func await(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 2000 {
		if done() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("waited in vain for %s", what)
}

func pidIn(t *testing.T, file string) (pid int) {
	t.Helper()
	await(t, "the pid in "+file, func() bool {
		text, _ := os.ReadFile(file)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(text)))
		return pid > 0
	})
	return pid
}

func TestHostile036_NeverReturns(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	made := mustNew(t, command.Spec{Command: self("ignore-term", file)})
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := made.Handler(ctx, call(`{}`))
		done <- err
	}()
	pid := pidIn(t, file)
	cancel(nil)
	f := tool.AsFailure(<-done)
	if !f.Lost || f.Code != tool.CodeCancelled || alive(pid) {
		t.Errorf("got %+v, alive %v", f, alive(pid))
	}

	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	_, err := mustNew(t, command.Spec{Command: command.Words("/bin/sleep", "1000")}).Handler(ctx, call(`{}`))
	if f := tool.AsFailure(err); !f.Lost || f.Code != tool.CodeTimeout {
		t.Errorf("deadline: got %+v", f)
	}
	_, err = made.Handler(ctx, call(`{}`))
	if f := tool.AsFailure(err); f == nil || f.Code != tool.CodeTimeout || f.Lost || !f.NotStarted {
		t.Errorf("a context that has ended already: got %+v, want a timeout before the start", f)
	}
}

func TestHostile083_ChildrenDieWithTheProgram(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	// The grandchild keeps standard output open, which must not hold up the call.
	out, f := do(t, mustNew(t, command.Spec{Command: sh(`sleep 1000 & echo $! > "$1"; echo done`, file)}), `{}`)
	if f != nil || out != `"done"` {
		t.Fatalf("got %s %v", out, f)
	}
	pid := pidIn(t, file)
	await(t, "the grandchild's end", func() bool { return !alive(pid) })
}

func TestHostile083_ChildDiesWithItsParent(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("only Linux has PDEATHSIG")
	}
	file := filepath.Join(t.TempDir(), "pid")
	exe, _ := os.Executable()
	parent := exec.Command(exe, "child", "parent", file)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	pid := pidIn(t, file)
	parent.Process.Kill()
	parent.Wait()
	await(t, "the child's end", func() bool { return !alive(pid) })
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
