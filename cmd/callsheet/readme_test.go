package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What README.md shows is what happens: every console block is played, in order,
// in one directory. A command that is shown without output may say anything;
// make and go install are not played.
func TestReadme(t *testing.T) {
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "bin", "callsheet")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(root, "examples"))); err != nil {
		t.Fatal(err)
	}
	played := 0
	blocks := strings.Split(string(text), "```console\n")
	for _, block := range blocks[1:] {
		block, _, _ = strings.Cut(block, "\n```")
		for _, shown := range strings.Split("\n"+block, "\n$ ")[1:] {
			command, want, _ := strings.Cut(shown, "\n")
			if strings.HasPrefix(command, "make ") || strings.HasPrefix(command, "go ") {
				continue
			}
			played++
			cmd := exec.Command("/bin/sh", "-c", command)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, ".state"))
			got, err := cmd.Output()
			if code := cmd.ProcessState.ExitCode(); code != exitOK && code != exitNotOK {
				t.Errorf("%s: %v, exit code %d", command, err, code)
			}
			if want == "" {
				continue
			}
			if diff := cmp.Diff(want, strings.TrimSuffix(string(got), "\n")); diff != "" {
				t.Errorf("%s (-shown +played):\n%s", command, diff)
			}
		}
	}
	if played < 10 {
		t.Errorf("only %d commands were found", played)
	}
}
