//go:build !unix

package group

import (
	"os"
	"syscall"
)

func attributes() *syscall.SysProcAttr { return nil }

func (g *Group) wait() error {
	err := g.cmd.Wait()
	g.finish()
	return err
}

// send ends the process itself, whatever the signal: there is no gentler way that
// reaches a child without a console, and without process groups its descendants
// are on their own.
func send(pid int, _ syscall.Signal) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
		_ = p.Release()
	}
}
