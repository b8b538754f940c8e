// Package group runs a program at the head of a process group of its own, so
// that what the program starts ends with it.
//
//	var running group.List
//	g, err := running.Start(&exec.Cmd{Path: "/bin/sh", Args: []string{"sh", "-c", "sleep 60 & echo started"}})
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
	"errors"
	"maps"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// ErrKilled is the error of a start after [List.Kill].
var ErrKilled = errors.New("no program is started any more: all were killed")

// A List keeps the groups that run, so that a process which must leave at once
// leaves none of them behind. The zero value is ready; a nil List starts programs
// and keeps none.
type List struct {
	// Within is a list that keeps the groups of this one too; nil: none does. It
	// must not change once a program was started.
	Within *List

	mu      sync.Mutex
	running map[*Group]struct{}
	killed  bool
}

// Kill kills every group that runs. None is started from then on.
func (l *List) Kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.killed = true
	for g := range l.running {
		g.Signal(syscall.SIGKILL)
	}
}

// Close ends every group that runs and returns when all have ended: those that
// were not asked to stop are asked now (SIGTERM), and what is left after grace is
// killed. None is started from then on.
func (l *List) Close(grace time.Duration) {
	l.mu.Lock()
	l.killed = true
	running := slices.Collect(maps.Keys(l.running))
	l.mu.Unlock()
	for _, g := range running {
		g.ask()
	}
	over := time.NewTimer(grace)
	defer over.Stop()
	for _, g := range running {
		select {
		case <-g.Done():
		case <-over.C:
			l.Kill()
			over.Reset(0) // for those that follow
			<-g.Done()
		}
	}
}

// Start starts cmd, whose SysProcAttr it sets, with a session and a group of its
// own and no terminal to write to or to ask on. When the program ends, what is
// left of its group is killed.
func (l *List) Start(cmd *exec.Cmd) (*Group, error) { return l.start(cmd, func(*Group) {}) }

func (l *List) start(cmd *exec.Cmd, ended func(*Group)) (*Group, error) {
	if l == nil {
		return start(cmd, ended)
	}
	// Held over the start, or a program could come to life behind Kill's back.
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.killed {
		return nil, ErrKilled
	}
	g, err := l.Within.start(cmd, func(g *Group) { l.forget(g); ended(g) })
	if err != nil {
		return nil, err
	}
	if l.running == nil {
		l.running = make(map[*Group]struct{})
	}
	l.running[g] = struct{}{}
	return g, nil
}

func (l *List) forget(g *Group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, g)
}

// A Group is a running program with what it started.
type Group struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when err is set
	err  error

	mu    sync.Mutex
	ended bool // the id of the group may belong to somebody else; holding mu
	asked bool // it had a SIGTERM; holding mu
}

func start(cmd *exec.Cmd, ended func(*Group)) (*Group, error) {
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
			ended(g)
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
	g.signal(sig)
}

// ask asks the group to stop, once: to many programs a second signal means that
// they should leave their work as it is.
func (g *Group) ask() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.asked {
		g.signal(syscall.SIGTERM)
	}
}

// signal sends sig. Holding mu.
func (g *Group) signal(sig syscall.Signal) {
	g.asked = g.asked || sig == syscall.SIGTERM
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
