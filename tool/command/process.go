package command

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/group"
)

const (
	// StopGrace is how long a program that was asked to stop (SIGTERM) may take
	// before it is killed: below the runner's grace of 5 s, so that the call
	// has settled when that ends.
	StopGrace = 2 * time.Second
	// drainFor is how long a pipe may stay open after the program ended and its
	// group was killed: only a process that left the group can hold it.
	drainFor = time.Second
	// stderrKept is how much of the end of standard error goes into a failure's
	// message; the rest of tool.MaxMessage is for the sentence around it.
	stderrKept = tool.MaxMessage - 256
)

// process is one start of a program.
type process struct {
	groups   *group.List
	path     string
	argv     []string
	env      []string
	dir      string
	stdin    string
	hasStdin bool
	max      int // bytes of standard output
}

// ending is how a program ended.
type ending struct {
	stdout   []byte
	stderr   string
	code     int            // exit status, when signal is 0
	signal   syscall.Signal // that killed it, when this package did not
	stopped  bool           // because the context ended
	tooLarge bool           // standard output passed max
	held     bool           // a process outside the group kept standard output open
}

// said is the end of standard error as the tail of a sentence.
func (e ending) said() string {
	s := strings.TrimSpace(e.stderr)
	if s == "" {
		return ""
	}
	return ": " + s
}

// run starts p and waits for its end. The error is that it could not start.
func run(ctx context.Context, p process) (ending, error) {
	cmd := &exec.Cmd{Path: p.path, Args: p.argv, Env: p.env, Dir: p.dir, WaitDelay: drainFor}
	if p.hasStdin {
		cmd.Stdin = strings.NewReader(p.stdin)
	}
	flood := make(chan struct{})
	stdout := &capped{max: p.max, over: func() { close(flood) }}
	stderr := &tail{max: stderrKept}
	cmd.Stdout, cmd.Stderr = stdout, stderr

	g, err := p.groups.Start(cmd)
	if err != nil {
		return ending{}, err
	}
	stopped := await(ctx, g, flood)

	end := ending{stdout: stdout.buf, stderr: stderr.String(), stopped: stopped, tooLarge: stdout.full, held: errors.Is(g.Err(), exec.ErrWaitDelay)}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		end.signal = status.Signal()
	} else {
		end.code = cmd.ProcessState.ExitCode()
	}
	return end, nil
}

// await waits for the program, and stops it when its output floods or ctx ends
// first.
func await(ctx context.Context, g *group.Group, flood <-chan struct{}) (stopped bool) {
	select {
	case <-g.Done():
		return false
	case <-flood:
		g.Signal(syscall.SIGKILL)
		<-g.Done()
		return false
	case <-ctx.Done():
	}
	select {
	case <-g.Done(): // both at once: an answer is an answer
		return false
	default:
	}
	g.Signal(syscall.SIGTERM)
	timer := time.NewTimer(StopGrace)
	defer timer.Stop()
	select {
	case <-g.Done():
	case <-timer.C:
		g.Signal(syscall.SIGKILL)
		<-g.Done()
	}
	return true
}
