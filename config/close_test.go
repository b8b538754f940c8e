//go:build unix

package config_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// A call that was given up may leave a program that does not heed its SIGTERM.
// None is left, with what it started, when the sources are closed.
func TestHostile083_CloseLeavesNoProgramBehind(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte("exec 3>"+fifo+"\ntrap 'echo asked >&3' TERM\nsleep 1000 &\necho begun >&3\nwhile :; do sleep 0.01; done\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := open(t, strings.ReplaceAll(`sources:
  own:
    commands:
      stuck: {description: never ends, command: [/bin/sh, SCRIPT]}
`, "SCRIPT", script), config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		_, err := o.Set.Handler("stuck")(ctx, &tool.Call{Args: value.ObjectOf(), Key: func() string { return "" }})
		answered <- err
	}()
	f, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := bufio.NewReader(f)
	if line, err := out.ReadString('\n'); line != "begun\n" {
		t.Fatalf("the script wrote %q: %v", line, err)
	}
	cancel()
	if line, err := out.ReadString('\n'); line != "asked\n" {
		t.Fatalf("the script wrote %q: %v", line, err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(out); err != nil || len(rest) != 0 {
		t.Errorf("the script wrote %q, %v, after it was asked; want nothing and its end", rest, err)
	}
	if err := <-answered; !errors.Is(err, context.Canceled) && !tool.AsFailure(err).Lost {
		t.Errorf("the call ended with %v, want that it was stopped", err)
	}
}
