//go:build unix && !linux

package mcp

import "syscall"

// groupAttr gives the child a process group of its own. There is no death
// signal here: when Callsheet is killed the child sees the end of its stdin.
func groupAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
