package mcp

import "syscall"

// groupAttr gives the child a process group of its own, and has the kernel kill
// it when Callsheet dies, however that happens (spec/hostile.md 83).
func groupAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
