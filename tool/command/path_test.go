package command_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/command"
	"github.com/callsheet/callsheet/value"
)

func TestHostile080_PathArgs(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "work")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "sub"), 0o700),
		os.WriteFile(filepath.Join(base, "outside"), []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(dir, "a.txt"), []byte("12345"), 0o600),
		os.WriteFile(filepath.Join(dir, "-n"), []byte("dash"), 0o600),
		os.WriteFile(filepath.Join(dir, "sub", "b.txt"), []byte("1"), 0o600),
		os.Link(filepath.Join(base, "outside"), filepath.Join(dir, "hard")),
		os.Symlink("../outside", filepath.Join(dir, "link")),
		os.Symlink("a.txt", filepath.Join(dir, "inner")),
		os.Symlink("..", filepath.Join(dir, "up")),
		os.Symlink("sub", filepath.Join(dir, "down")),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	made := func(kind command.PathKind, readOnly bool) tool.Tool {
		return mustNew(t, command.Spec{
			Declaration: tool.Declaration{Effects: tool.Effects{ReadOnly: readOnly}},
			Command:     command.Words("/bin/echo", "--", "{p}"), Dir: dir,
			Params: map[string]command.Param{"p": {Path: kind}},
		})
	}
	file, write := made(command.PathFile, true), made(command.PathFile, false)
	folder, fresh := made(command.PathDir, true), made(command.PathNew, false)
	const ok = ""
	for _, c := range []struct {
		tool tool.Tool
		path string
		want string
	}{
		{file, "a.txt", ok}, {file, "sub/b.txt", ok}, {file, "./down/b.txt", ok}, {file, "-n", ok}, {file, "hard", ok},
		{write, "a.txt", ok}, {folder, "sub", ok}, {folder, ".", ok}, {fresh, "new.txt", ok}, {fresh, "sub/new", ok},
		{file, "../outside", "goes up"}, {file, "sub/../../outside", "goes up"}, {file, "/etc/passwd", "absolute"},
		{file, "/proc/self/fd/0", "absolute"}, {file, "link", "symbolic link"}, {file, "inner", "symbolic link"},
		{file, "up/outside", "escapes"}, {file, "sub", "not a regular file"}, {file, "pipe", "not a regular file"},
		{file, "none", "no such file"}, {file, "", "empty"}, {file, "a.txt\x00", "control"}, {file, "a\n", "control"},
		{file, `C:\x`, "backslash or a colon"}, {file, "CON", "device"}, {file, "sub/nul.txt", "device"}, {file, "a.txt.", "dot or a space"},
		{file, strings.Repeat("a/", 4000), "longer than"}, {file, strings.Repeat("a", 300), "too long"},
		{write, "hard", "hard link"}, {folder, "a.txt", "not a directory"}, {folder, "up", "not a directory"},
		{fresh, "a.txt", "already"}, {fresh, "none/new", "no such file"}, {fresh, "up/new", "escapes"}, {fresh, "a.txt/new", "not a directory"},
	} {
		args := value.ObjectOf(value.Member{Key: "p", Value: value.MustText(c.path)})
		out, err := c.tool.Handler(t.Context(), &tool.Call{Args: args})
		if c.want == ok {
			if got, _ := out.Text(); err != nil || got != "-- "+c.path {
				t.Errorf("%q: got %q %v", c.path, got, err)
			}
		} else if f := tool.AsFailure(errors.Join(err)); err == nil || f.Code != tool.CodeInvalidArgs || !strings.Contains(f.Message, c.want) {
			t.Errorf("%q: got %v %v, want %q", c.path, out, err, c.want)
		}
	}
}

// Whatever path is accepted stays below the directory.
func TestHostile080_NoPathLeaves(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "w")
	os.MkdirAll(filepath.Join(dir, "d"), 0o700)
	os.WriteFile(filepath.Join(dir, "d", "f"), nil, 0o600)
	os.WriteFile(filepath.Join(base, "f"), nil, 0o600)
	os.Symlink("..", filepath.Join(dir, "up"))
	os.Symlink(base, filepath.Join(dir, "d", "abs"))
	made := mustNew(t, command.Spec{Command: command.Words("/bin/echo", "{p}"), Dir: dir, Params: map[string]command.Param{"p": {Path: command.PathFile}}})
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(r *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"d", "f", "up", "abs", "..", ".", "", "w"}), 1, 6).Draw(r, "parts")
		path := strings.Join(parts, "/")
		_, err := made.Handler(t.Context(), &tool.Call{Args: value.ObjectOf(value.Member{Key: "p", Value: value.MustText(path)})})
		if err != nil {
			return
		}
		if got, err := filepath.EvalSymlinks(filepath.Join(dir, path)); err != nil || !strings.HasPrefix(got, real+"/") {
			r.Fatalf("%q was accepted and is %s (%v)", path, got, err)
		}
	})
}
