package mcp_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callsheet/callsheet/tool/mcp"
)

func TestHostile079_Environment(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "sesame")
	t.Setenv("LD_PRELOAD", "")
	t.Setenv("ASKED_FOR", "yes")
	t.Setenv("HOME", "/home/somebody")
	cfg := fakeConfig(t, "")
	cfg.EnvAllow = []string{"ASKED_FOR", "NOT_SET"}
	src := open(t, cfg)
	out := succeed(t, src, "env", `{}`)
	list, _ := out.Get("env")
	var got []string
	for _, v := range list.Elements() {
		s, _ := v.Text()
		name, _, _ := strings.Cut(s, "=")
		got = append(got, name)
	}
	slices.Sort(got)
	if want := []string{"ASKED_FOR", fakeEnv, "HOME", "PATH"}; !slices.Equal(got, want) {
		t.Errorf("the child's variables are %q, want %q", got, want)
	}
}

func TestHostile079_ProgramOfWorkingDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "trojan"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	t.Setenv("PATH", ".")
	_, err := mcp.Open(t.Context(), mcp.Config{Name: "x", Command: []string{"trojan"}})
	if err == nil || !strings.Contains(err.Error(), "current directory") {
		t.Errorf("Open: %v, want the lookup refused", err)
	}
}

func TestHostile083_GroupIsKilled(t *testing.T) {
	cfg := fakeConfig(t, "")
	src, err := mcp.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	out := succeed(t, src, "spawn", `{}`)
	v, _ := out.Get("pid")
	pid, _ := v.Int()
	if err := src.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the grandchild is gone", func() bool { return !running(int(pid)) })
}

// running reports whether a process lives; one that nobody reaped does not.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}

// eventually waits for what another process does; it fails only when the test
// as a whole would.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for tick := time.NewTicker(2 * time.Millisecond); ; <-tick.C {
		if ok() {
			tick.Stop()
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestStubbornServerIsKilled(t *testing.T) {
	cfg := fakeConfig(t, "stubborn")
	cfg.StopGrace = time.Millisecond
	src, err := mcp.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	pid, _ := succeed(t, src, "release", `{}`).Text()
	if err := src.Close(); err != nil {
		t.Fatal(err)
	}
	var n int
	fmt.Sscan(pid, &n)
	if syscall.Kill(n, 0) == nil {
		t.Errorf("process %d is still there, as a zombie at least", n)
	}
}
