//go:build unix && !linux

package command

import (
	"io/fs"
	"syscall"
)

// attributes give the child a session of its own, and with it a process group
// and no terminal to write to or to ask on.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// wait reaps the program and then kills what is left of its group.
func (c *child) wait() error {
	err := c.cmd.Wait()
	c.finish()
	return err
}

// SealDescriptors does something on Linux only: elsewhere there is no call that
// marks a range of descriptors.
func SealDescriptors() error { return nil }

func signalGroup(pid int, sig syscall.Signal) { _ = syscall.Kill(-pid, sig) }

func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}
