package command

import (
	"io/fs"
	"math"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes give the child a session of its own, and with it a process group
// and no terminal to write to or to ask on; it dies with the thread that
// started it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// wait waits for the program, kills its group while the dead leader still holds
// the group's id, and only then reaps it.
func (c *child) wait() error {
	for {
		err := unix.Waitid(unix.P_PID, c.cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			break
		}
	}
	c.finish()
	return c.cmd.Wait()
}

// SealDescriptors marks every open descriptor of this process but the standard
// three as closed on exec. Go opens files so anyway; what the process itself
// inherited is not. A main function calls it once, before it starts programs.
func SealDescriptors() error {
	return unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}

func signalGroup(pid int, sig syscall.Signal) { _ = syscall.Kill(-pid, sig) } // gone already is as good

func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}
