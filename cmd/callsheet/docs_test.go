package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

const repository = "../.."

// documents are the pages that people read, by their path in the repository.
func documents(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(repository, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, name := range append(names, filepath.Join(repository, "README.md")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(repository, name)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.ToSlash(rel)] = string(text)
	}
	return texts
}

// A consoleCommand is one command of a console block, with what the page shows of it.
type consoleCommand struct {
	line    int
	command string
	exit    int    // "# exit N" at its end; else 0
	output  string // both streams; "" shows nothing and is not compared
}

var exitNote = regexp.MustCompile(`# exit ([0-9]+)$`)

// console are the commands of a page's console blocks, in order.
func console(text string) []consoleCommand {
	var all []consoleCommand
	inside := false
	for i, line := range strings.Split(text, "\n") {
		switch command, ok := strings.CutPrefix(line, "$ "); {
		case strings.HasPrefix(line, "```"):
			inside = line == "```console"
		case inside && ok:
			s := consoleCommand{line: i + 1, command: command}
			if m := exitNote.FindStringSubmatch(command); m != nil {
				s.exit, _ = strconv.Atoi(m[1])
			}
			all = append(all, s)
		case inside && len(all) > 0:
			all[len(all)-1].output += line + "\n"
		}
	}
	return all
}

// pattern is what an output must match: … stands for any text, and on a line of
// its own for any lines. The id of a run is any id.
func pattern(output string) *regexp.Regexp {
	var b strings.Builder
	for line := range strings.Lines(output) {
		if line == "…\n" {
			b.WriteString(`(?:.*\n)*`)
			continue
		}
		line = strings.TrimRight(line, " \n")
		q := strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*")
		b.WriteString(runID.ReplaceAllString(q, `[a-z2-7]{26}`) + " *\n")
	}
	return regexp.MustCompile(`^` + b.String() + `$`)
}

// Every command of a page's console blocks, typed into one shell in the order of
// the page, ends and prints as the page shows.
func TestDocumentedCommands(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("the pages' commands are for a POSIX shell, and there is none")
	}
	binary, err := exec.LookPath("callsheet") // the test binary, put there by TestMain
	if err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range documents(t) {
		var session []consoleCommand
		for _, s := range console(text) {
			if target, ok := strings.CutPrefix(s.command, "make "); ok {
				if target = strings.Fields(target)[0]; !strings.Contains("\n"+string(makefile), "\n"+target+":") {
					t.Errorf("%s:%d: the Makefile has no %s", name, s.line, target)
				}
				continue
			}
			if strings.HasPrefix(s.command, "go ") {
				continue // it would fetch
			}
			session = append(session, s)
		}
		if len(session) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(repository, "examples"))); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(binary, filepath.Join(dir, "bin", "callsheet")); err != nil {
				t.Fatal(err)
			}
			const mark = "\x01"
			var script strings.Builder
			for _, s := range session {
				fmt.Fprintf(&script, "%s\nprintf '%s%%d%s' $?\n", s.command, `\001`, `\001`)
			}
			sh := exec.Command("sh")
			sh.Dir = dir
			sh.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "state"), "NO_COLOR=1")
			file := filepath.Join(dir, "session.sh")
			if err := os.WriteFile(file, []byte(script.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			sh.Args = append(sh.Args, file)
			got, err := sh.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, got)
			}
			parts := strings.Split(string(got), mark) // output, exit, output, exit, …, rest
			if len(parts) != 2*len(session)+1 {
				t.Fatalf("%d commands left %d marks:\n%s", len(session), len(parts)-1, got)
			}
			for i, s := range session {
				output, exit := parts[2*i], parts[2*i+1]
				if exit != strconv.Itoa(s.exit) {
					t.Errorf("%s:%d: %s\nexit %s, want %d\n%s", name, s.line, s.command, exit, s.exit, output)
				} else if s.output != "" && !pattern(s.output).MatchString(output) {
					t.Errorf("%s:%d: %s\ngot:\n%s\nthe page shows:\n%s", name, s.line, s.command, output, s.output)
				}
			}
		})
	}
}

// mention is a command in a page: as a word of its own, or behind $ or a
// variable's assignment.
var mention = regexp.MustCompile("(?m)(?:^|[ `])(?:bin/)?callsheet ([a-z][^`|#\n]*)")

// What the pages say can be typed exists, with its flags, and every command that
// exists is in a page.
func TestDocumentedCommandsExist(t *testing.T) {
	var c cli
	parser, err := kong.New(&c, kong.Name("callsheet"), kong.Vars{"formats": formats()})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for name, text := range documents(t) {
		for _, m := range mention.FindAllStringSubmatch(text, -1) {
			words := strings.Fields(m[1])
			node := parser.Model.Node
			for len(words) > 0 {
				i := slices.IndexFunc(node.Children, func(n *kong.Node) bool { return n.Name == words[0] })
				if i < 0 {
					break
				}
				node, words = node.Children[i], words[1:]
				told[node.FullPath()] = true
			}
			if node == parser.Model.Node {
				continue // a sentence
			}
			if node.DefaultCmd != nil {
				node = node.DefaultCmd
			}
			for _, w := range words {
				flag, ok := strings.CutPrefix(w, "--")
				if flag, _, _ = strings.Cut(flag, "="); !ok || flag == "" {
					continue
				}
				flag = strings.TrimRight(flag, "],.:;)")
				known := slices.ContainsFunc(node.AllFlags(true), func(fs []*kong.Flag) bool {
					return slices.ContainsFunc(fs, func(f *kong.Flag) bool { return f.Name == flag })
				})
				if !known {
					t.Errorf("%s: %s has no --%s", name, node.FullPath(), flag)
				}
			}
		}
	}
	for _, leaf := range parser.Model.Leaves(true) {
		if !told[leaf.FullPath()] {
			t.Errorf("no page says what %s does", leaf.FullPath())
		}
	}
}
