package group

import (
	"syscall"

	"golang.org/x/sys/unix"
)

func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// wait waits for the program, kills its group while the dead leader still holds
// the group's id, and only then reaps it.
func (g *Group) wait() error {
	for {
		err := unix.Waitid(unix.P_PID, g.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err == nil {
			g.finish()
		}
		break
	}
	err := g.cmd.Wait()
	g.finish() // where waiting without reaping is not allowed
	return err
}

func send(pid int, sig syscall.Signal) { _ = syscall.Kill(-pid, sig) } // gone already is as good
