package command

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/callsheet/callsheet/tool"
)

const (
	// killAfter is how long a program that was asked to stop (SIGTERM) may take
	// before it is killed: below the runner's grace of 5 s, so that the call
	// has settled when that ends.
	killAfter = 2 * time.Second
	// drainFor is how long a pipe may stay open after the program ended and its
	// group was killed: only a process that left the group can hold it.
	drainFor = time.Second
	// stderrKept is how much of the end of standard error goes into a failure's
	// message; the rest of tool.MaxMessage is for the sentence around it.
	stderrKept = tool.MaxMessage - 256
)

// process is one start of a program.
type process struct {
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

// child is a running program. mu guards ended, after which the id of the group
// may belong to somebody else.
type child struct {
	cmd   *exec.Cmd
	mu    sync.Mutex
	ended bool
}

// signal sends sig to the whole group, unless it is gone.
func (c *child) signal(sig syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		signalGroup(c.cmd.Process.Pid, sig)
	}
}

// finish kills what is left of the group once the program itself has ended.
func (c *child) finish() {
	c.mu.Lock()
	defer c.mu.Unlock()
	signalGroup(c.cmd.Process.Pid, syscall.SIGKILL)
	c.ended = true
}

// run starts p and waits for its end. The error is that it could not start.
func run(ctx context.Context, p process) (ending, error) {
	c := &child{cmd: &exec.Cmd{
		Path: p.path, Args: p.argv, Env: p.env, Dir: p.dir,
		SysProcAttr: attributes(), WaitDelay: drainFor,
	}}
	if p.hasStdin {
		c.cmd.Stdin = strings.NewReader(p.stdin)
	}
	stdout := &capped{max: p.max, over: func() { c.signal(syscall.SIGKILL) }}
	stderr := &tail{max: stderrKept}
	c.cmd.Stdout, c.cmd.Stderr = stdout, stderr

	started, done := make(chan error, 1), make(chan error, 1)
	go func() {
		// On Linux the child dies with the thread that started it, so this
		// thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			done <- c.wait()
		}
	}()
	if err := <-started; err != nil {
		return ending{}, err
	}
	err, stopped := c.await(ctx, done)

	end := ending{stdout: stdout.buf, stderr: stderr.String(), stopped: stopped, tooLarge: stdout.full, held: errors.Is(err, exec.ErrWaitDelay)}
	if status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		end.signal = status.Signal()
	} else {
		end.code = c.cmd.ProcessState.ExitCode()
	}
	return end, nil
}

// await waits for the program, and stops it when ctx ends first.
func (c *child) await(ctx context.Context, done <-chan error) (err error, stopped bool) {
	select {
	case err = <-done:
		return err, false
	case <-ctx.Done():
	}
	select {
	case err = <-done: // both at once: an answer is an answer
		return err, false
	default:
	}
	c.signal(syscall.SIGTERM)
	timer := time.NewTimer(killAfter)
	defer timer.Stop()
	select {
	case err = <-done:
	case <-timer.C:
		c.signal(syscall.SIGKILL)
		err = <-done
	}
	return err, true
}
