package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// BenchmarkBinary is whole runs of the binary, its start and end included: a
// plan of ten steps run, and a document of 36 MB refused.
func BenchmarkBinary(b *testing.B) {
	dir := b.TempDir()
	exe := filepath.Join(dir, "callsheet")
	if out, err := exec.Command("go", "build", "-o", exe, ".").CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		return path
	}
	var ten strings.Builder
	ten.WriteString(`[{"id": "s0", "tool": "fetch", "args": {"doc": "first"}}`)
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&ten, `, {"id": "s%d", "tool": "fetch", "args": {"doc": "$s%d.doc"}}`, i, i-1)
	}
	plan := write("ten.json", ten.String()+"]")
	huge := write("huge.json", "["+strings.Repeat(`{"id":"s1","tool":"t","args":{"x":1}},`, 1_000_000))
	for _, c := range []struct {
		name, plan string
		exit       int
	}{{"run", plan, 0}, {"refuse", huge, 2}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				cmd := exec.Command(exe, "run", c.plan, "--tools", "demo", "--json", "--no-journal")
				out, err := cmd.CombinedOutput()
				if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != c.exit {
					b.Fatalf("got %v, want exit %d\n%.1000s", err, c.exit, out)
				}
			}
		})
	}
}
