//go:build !unix

package mcp

import (
	"os"
	"syscall"
)

type signal = os.Signal

var (
	terminate signal = os.Kill // there is no gentler way that reaches a console-less child
	kill      signal = os.Kill
)

func groupAttr() *syscall.SysProcAttr { return nil }

// signalGroup ends the process itself: without process groups its descendants
// are on their own.
func signalGroup(pid int, sig signal) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Signal(sig)
		_ = p.Release()
	}
}
