package command_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/command"
)

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
	if _, err := made.Handler(ctx, call(`{}`)); err == nil || !tool.AsFailure(err).NotStarted || tool.AsFailure(err).Lost {
		t.Errorf("a context that has ended already: got %v, want a call that was not started", err)
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
