package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/config"
)

// maxAncestors bounds the walk up the tree of processes.
const maxAncestors = 256

// notBelow refuses what a person must do and a tool must not, when this process
// was started by a tool of a callsheet that is running (spec/hostile.md 67). The
// environment says so, or, on Linux, an ancestor is a callsheet or has the
// journal open. A process that hides from both is out of reach: it has the rights
// of the user, as docs/journal.md says.
func notBelow(journalPath string) error {
	if os.Getenv(config.BelowVariable) != "" {
		return refuse("this runs below a callsheet that is running: a tool must not answer in place of a person")
	}
	pid := os.Getppid()
	for range maxAncestors {
		if pid <= 1 {
			return nil
		}
		if isCallsheet(pid) || hasOpen(pid, journalPath) {
			return refuse("this runs below a callsheet that is running (process %d): a tool must not answer in place of a person", pid)
		}
		if pid = parentOf(pid); pid == 0 {
			return nil
		}
	}
	return nil
}

func proc(pid int, name string) string { return filepath.Join("/proc", strconv.Itoa(pid), name) }

// parentOf is the parent of a process, 0 where that cannot be known.
func parentOf(pid int) int {
	text, err := os.ReadFile(proc(pid, "stat"))
	if err != nil {
		return 0
	}
	// "pid (name) state ppid …", and the name may hold anything.
	s := string(text)
	fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// isCallsheet reports whether a process runs the program of this one.
func isCallsheet(pid int) bool {
	own, err := os.Executable()
	if err != nil {
		return false
	}
	its, err := os.Readlink(proc(pid, "exe"))
	return err == nil && filepath.Base(strings.TrimSuffix(its, " (deleted)")) == filepath.Base(own)
}

// hasOpen reports whether a process has a file open.
func hasOpen(pid int, path string) bool {
	file, err := os.Stat(path)
	if err != nil {
		return false
	}
	fds, err := os.ReadDir(proc(pid, "fd"))
	if err != nil {
		return false
	}
	for _, fd := range fds {
		if other, err := os.Stat(proc(pid, "fd/"+fd.Name())); err == nil && os.SameFile(file, other) {
			return true
		}
	}
	return false
}
