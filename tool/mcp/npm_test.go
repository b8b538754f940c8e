package mcp_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/mcp"
	"github.com/callsheet/callsheet/tool/mcp/internal/npmservers"
	"github.com/callsheet/callsheet/value"
)

// judged calls a tool of a real server and judges both sides by the schemas
// that it declares.
func judged(t *testing.T, src *mcp.Source, name string, args value.Value) value.Value {
	t.Helper()
	tl := find(t, src, name)
	if faults := tl.Input.Validate(args); len(faults) > 0 {
		t.Fatalf("%s: args %v", name, faults)
	}
	out := succeed(t, src, name, args.String())
	if tl.Output != nil {
		if faults := tl.Output.Validate(out); len(faults) > 0 {
			t.Fatalf("%s: output %v", name, faults)
		}
	}
	return out
}

func object(t *testing.T, pairs ...any) value.Value {
	t.Helper()
	var ms []value.Member
	for i := 0; i < len(pairs); i += 2 {
		v, err := value.Of(pairs[i+1])
		if err != nil {
			t.Fatal(err)
		}
		ms = append(ms, value.Member{Key: pairs[i].(string), Value: v})
	}
	return value.ObjectOf(ms...)
}

func TestNPMFilesystem(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	src := open(t, mcp.Config{Name: "files", Prefix: "files.", Trust: true, Command: npmservers.Command(t, "filesystem", dir)})
	if r := src.Refused(); len(r) > 0 {
		t.Errorf("left out: %v", r)
	}
	if e := find(t, src, "files.read_text_file").Effects; !e.ReadOnly {
		t.Errorf("read_text_file: %+v, want read-only by its annotation", e)
	}
	if e := find(t, src, "files.write_file").Effects; e.ReadOnly || !e.Idempotent || !e.Destructive {
		t.Errorf("write_file: %+v, want destructive and idempotent", e)
	}
	name, text := filepath.Join(dir, "a.txt"), "first\nsecond \u2603 9007199254740993\n"
	judged(t, src, "files.write_file", object(t, "path", name, "content", text))
	if got, err := os.ReadFile(name); err != nil || string(got) != text {
		t.Errorf("on disk: %q, %v; want %q", got, err, text)
	}
	out := judged(t, src, "files.read_text_file", object(t, "path", name))
	content, _ := out.Get("content")
	if got, _ := content.Text(); got != text {
		t.Errorf("read back: %q, want %q", got, text)
	}
	f := failing(t, src, "files.read_text_file", `{"path":"/etc/passwd"}`)
	if f.Code != tool.CodeToolError || !strings.Contains(f.Message, "denied") {
		t.Errorf("outside the directory: %+v, want it denied", f)
	}
	if len(find(t, src, "files.read_text_file").Input.Validate(value.MustParse(`{"path":5}`))) == 0 {
		t.Error("path 5 passes the draft-07 schema")
	}
}

func TestNPMMemory(t *testing.T) {
	src := open(t, mcp.Config{
		Name: "memory", Trust: true, Command: npmservers.Command(t, "memory"),
		Env: map[string]string{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")},
	})
	args := value.MustParse(`{"entities":[{"name":"Ada","entityType":"person","observations":["wrote the first program"]}]}`)
	judged(t, src, "create_entities", args)
	graph := judged(t, src, "read_graph", value.MustParse(`{}`))
	want, _ := args.Get("entities")
	if got, _ := graph.Get("entities"); !value.Equal(got, want) {
		t.Errorf("entities = %s, want %s", got, want)
	}
}

func TestNPMEverything(t *testing.T) {
	src := open(t, mcp.Config{Name: "everything", Command: npmservers.Command(t, "everything", "stdio")})
	checkEverything(t, src)
}

// checkEverything uses what only this server offers, over either transport.
func checkEverything(t *testing.T, src *mcp.Source) {
	t.Helper()
	if got := judged(t, src, "get-sum", value.MustParse(`{"a":2,"b":3}`)).String(); got != `"The sum of 2 and 3 is 5."` {
		t.Errorf("get-sum = %s", got)
	}
	weather := judged(t, src, "get-structured-content", value.MustParse(`{"location":"Chicago"}`))
	if _, ok := weather.Get("temperature"); !ok {
		t.Errorf("get-structured-content = %s, want the structured content", weather)
	}
	if got := judged(t, src, "get-tiny-image", value.MustParse(`{}`)); got.Kind() != value.List || got.Len() < 2 {
		t.Errorf("get-tiny-image = %.80s, want the content blocks", got)
	}
	if f := failing(t, src, "get-sum", `{"a":"two"}`); f.Lost || f.Retryable || !strings.Contains(f.Message, "a") {
		t.Errorf("get-sum with text: %+v, want a failure for good", f)
	}
	var notices []tool.Progress
	c := request(`{"duration":0.1,"steps":2}`)
	c.Progress = func(p tool.Progress) { notices = append(notices, p) }
	if _, f := do(t, t.Context(), src, "trigger-long-running-operation", c); f != nil {
		t.Fatal(f)
	}
	if n := len(notices); n == 0 || notices[n-1].Done != 2 || notices[n-1].Total != 2 {
		t.Errorf("progress %v, want it to end at 2 of 2", notices)
	}
}

func TestNPMEverythingKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("finds the server's process in /proc")
	}
	src := open(t, mcp.Config{Name: "everything", Command: npmservers.Command(t, "everything", "stdio")})
	var once sync.Once
	c := request(`{"duration":600,"steps":6000}`)
	c.Progress = func(tool.Progress) {
		once.Do(func() {
			for _, pid := range children(t, "server-everything") {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Error(err)
				}
			}
		})
	}
	_, f := do(t, t.Context(), src, "trigger-long-running-operation", c)
	if f == nil || f.Code != tool.CodeConnection || !f.Lost || !strings.Contains(f.Message, "killed") {
		t.Errorf("%+v, want lost", f)
	}
	succeed(t, src, "echo", `{"message":"again"}`)
	if got := src.Stats().Restarts; got != 1 {
		t.Errorf("%d restarts, want 1", got)
	}
}

// children are the processes that this one started with a word in their
// command.
func children(t *testing.T, word string) (pids []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range stats {
		stat, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		_, after, _ := strings.Cut(string(stat), ") ")
		fields := strings.Fields(after) // state, parent, …
		cmdline, err := os.ReadFile(filepath.Join(filepath.Dir(name), "cmdline"))
		if err != nil || len(fields) < 2 || fields[1] != strconv.Itoa(os.Getpid()) || !strings.Contains(string(cmdline), word) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

func TestNPMEverythingOverHTTP(t *testing.T) {
	argv := npmservers.Command(t, "everything", "streamableHttp")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().(*net.TCPAddr)
	l.Close()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), fmt.Sprint("PORT=", addr.Port))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the context is over by then
	eventually(t, "the server listens", func() bool {
		conn, err := net.Dial("tcp", addr.String())
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	checkEverything(t, open(t, mcp.Config{Name: "everything", URL: fmt.Sprintf("http://%s/mcp", addr)}))
}
