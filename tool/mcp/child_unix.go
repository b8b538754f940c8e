//go:build unix

package mcp

import "syscall"

type signal = syscall.Signal

const (
	terminate = syscall.SIGTERM
	kill      = syscall.SIGKILL
)

// signalGroup signals every process of the group that pid leads; a group that
// is gone is no error.
func signalGroup(pid int, sig signal) { _ = syscall.Kill(-pid, sig) }
