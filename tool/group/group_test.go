//go:build unix

package group_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/callsheet/callsheet/tool/group"
)

// start runs a shell script that writes "begun" and returns a pipe that every
// process of the group holds open.
func start(t *testing.T, l *group.List, script string) (*group.Group, *bufio.Reader, *exec.Cmd) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	cmd := &exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", script}, Stdout: w}
	g, err := l.Start(cmd)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Signal(syscall.SIGKILL) })
	out := bufio.NewReader(r)
	if line, err := out.ReadString('\n'); line != "begun\n" {
		t.Fatalf("the script wrote %q: %v", line, err)
	}
	return g, out, cmd
}

// gone waits until no process holds the pipe.
func gone(t *testing.T, out *bufio.Reader) {
	t.Helper()
	if rest, err := io.ReadAll(out); err != nil || len(rest) != 0 {
		t.Errorf("the group wrote %q: %v", rest, err)
	}
}

func TestWhatIsLeftEndsWithTheProgram(t *testing.T) {
	g, out, cmd := start(t, nil, "sleep 1000 & echo begun; exit 7")
	<-g.Done()
	gone(t, out)
	var exit *exec.ExitError
	if !errors.As(g.Err(), &exit) || cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("got %v and exit code %d, want 7", g.Err(), cmd.ProcessState.ExitCode())
	}
	g.Signal(syscall.SIGKILL) // must reach nobody, whoever has the id now
}

func TestASignalReachesTheWholeGroup(t *testing.T) {
	g, out, cmd := start(t, nil, "sleep 1000 & echo begun; wait")
	g.Signal(syscall.SIGTERM)
	<-g.Done()
	gone(t, out)
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGTERM {
		t.Errorf("ended by %v, want SIGTERM", cmd.ProcessState)
	}
}

func TestAProgramThatCannotStart(t *testing.T) {
	if g, err := new(group.List).Start(&exec.Cmd{Path: "/nowhere"}); err == nil || g != nil {
		t.Errorf("got %v, %v, want an error", g, err)
	}
}

func TestKillLeavesNoneBehind(t *testing.T) {
	var l group.List
	ended, _, _ := start(t, &l, "echo begun")
	<-ended.Done()
	a, outA, _ := start(t, &l, "trap '' TERM; sleep 1000 & echo begun; wait")
	b, outB, _ := start(t, &l, "sleep 1000 & echo begun; exec sleep 1000")
	l.Kill()
	gone(t, outA)
	gone(t, outB)
	<-a.Done()
	<-b.Done()
	if g, err := l.Start(&exec.Cmd{Path: "/bin/true"}); !errors.Is(err, group.ErrKilled) {
		t.Errorf("a start after Kill: %v, %v, want ErrKilled", g, err)
	}
}

func TestCloseAsksOnceAndThenKills(t *testing.T) {
	var l, outer group.List
	l.Within = &outer
	polite, outP, cmd := start(t, &l, "trap 'echo bye; exit 7' TERM; echo begun; while :; do sleep 0.01; done")
	asked, outA, _ := start(t, &l, "trap 'echo again' TERM; echo begun; while :; do sleep 0.01; done")
	asked.Signal(syscall.SIGTERM)
	if line, err := outA.ReadString('\n'); line != "again\n" {
		t.Fatalf("the script wrote %q: %v", line, err)
	}
	other, outO, _ := start(t, &outer, "echo begun; exec sleep 1000")
	l.Close(200 * time.Millisecond)
	<-polite.Done()
	<-asked.Done()
	if rest, err := io.ReadAll(outP); err != nil || string(rest) != "bye\n" || cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("the polite program wrote %q, %v, and ended with %v; want bye and 7", rest, err, cmd.ProcessState)
	}
	gone(t, outA) // without a second "again"
	if g, err := l.Start(&exec.Cmd{Path: "/bin/true"}); !errors.Is(err, group.ErrKilled) {
		t.Errorf("a start after Close: %v, %v, want ErrKilled", g, err)
	}
	select {
	case <-other.Done():
		t.Error("a group of the outer list ended")
	default:
	}
	outer.Kill()
	gone(t, outO)
	l.Close(0) // nothing is left to end
}
