//go:build unix && !linux

package group

import "syscall"

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// wait reaps the program and then kills what is left of its group.
func (g *Group) wait() error {
	err := g.cmd.Wait()
	g.finish()
	return err
}

func send(pid int, sig syscall.Signal) { _ = syscall.Kill(-pid, sig) } // gone already is as good
