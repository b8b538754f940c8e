// Package group runs a program at the head of a process group of its own, so
// that what the program starts ends with it.
//
//	g, err := group.Start(&exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", "sleep 60 & echo started"}})
//	if err != nil {
//		return err
//	}
//	<-g.Done() // the sleep was killed when the shell ended
//	err = g.Err()
//
// On Linux the program also dies with this process, however that ends. A process
// that leaves the group by setsid is out of reach.
package group

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// A Group is a running program with what it started.
type Group struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when err is set
	err  error

	mu    sync.Mutex
	ended bool // the id of the group may belong to somebody else; holding mu
}

// Start starts cmd, whose SysProcAttr it sets, with a session and a group of its
// own and no terminal to write to or to ask on. When the program ends, what is
// left of its group is killed.
func Start(cmd *exec.Cmd) (*Group, error) {
	cmd.SysProcAttr = attributes()
	g := &Group{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// On Linux the child dies with the thread that started it, so this
		// thread must live as long as the child.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			g.err = g.wait()
			close(g.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return g, nil
}

// Done is closed when the program has ended, its group was killed, and its
// ProcessState is set.
func (g *Group) Done() <-chan struct{} { return g.done }

// Err is what [exec.Cmd.Wait] returned, once Done is closed.
func (g *Group) Err() error { return g.err }

// Signal sends sig to the whole group, unless the program has ended.
func (g *Group) Signal(sig syscall.Signal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ended {
		send(g.cmd.Process.Pid, sig)
	}
}

// finish kills what is left of the group once the program itself has ended.
func (g *Group) finish() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ended {
		send(g.cmd.Process.Pid, syscall.SIGKILL)
		g.ended = true
	}
}
