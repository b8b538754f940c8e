package callsheet_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

const module = "github.com/callsheet/callsheet/"

// levels are the rooms of docs/architecture.md. A package may import those of
// lower levels only; a package below a room has the room's level unless it is
// named here.
var levels = map[string]int{
	"internal":      1,
	"value":         1,
	"schema":        2,
	"plan":          2,
	"plan/importer": 3,
	"tool":          3,
	"secret":        2,
	"machine":       4,
	"policy":        4,
	"check":         5,
	"call":          6,
	"tool/demo":     6,
	"tool/arith":    6,
	"tool/stub":     6,
	"tool/command":  6,
	"tool/mcp":      6,
	"run":           7,
	"config":        7,
	"model":         7,
	"agent":         8,
	"journal":       5,
	"gate":          7,
	"record":        9,
	"planner":       9,
	"terminal":      9,
	"world":         10,
	"cmd/callsheet": 11,
}

func TestImportsRunDownwards(t *testing.T) {
	seen := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata" || d.Name() == "bench" || d.Name() == "examples") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		from := filepath.ToSlash(filepath.Dir(path))
		if from == "." {
			return nil
		}
		level, known := levelOf(from)
		if !known {
			t.Errorf("package %s has no level: give it one here and in docs/architecture.md", from)
			return nil
		}
		seen[room(from)] = true
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, im := range file.Imports {
			p, _ := strconv.Unquote(im.Path.Value)
			to, ours := strings.CutPrefix(p, module)
			if !ours || strings.Contains(to, "/internal/") && strings.HasPrefix(to, from) {
				continue
			}
			if l, _ := levelOf(to); l >= level && room(to) != room(from) {
				t.Errorf("%s (level %d) imports %s (level %d)", path, level, to, l)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range levels {
		if !seen[name] {
			t.Errorf("level table names %s, which has no Go files", name)
		}
	}
}

// room is the entry of levels that a package belongs to.
func room(pkg string) string {
	for pkg != "." && pkg != "" {
		if _, ok := levels[pkg]; ok {
			return pkg
		}
		pkg = filepath.ToSlash(filepath.Dir(pkg))
	}
	return ""
}

func levelOf(pkg string) (int, bool) {
	l, ok := levels[room(pkg)]
	return l, ok
}

// The table of docs/architecture.md has every room with its level, and no other.
func TestTheTableOfRooms(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]int{}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \| (.+?) \|`).FindAllStringSubmatch(string(text), -1) {
		level, _ := strconv.Atoi(row[1])
		for name := range strings.SplitSeq(row[2], ", ") {
			listed[strings.Trim(name, "`")] = level
		}
	}
	if !maps.Equal(listed, levels) {
		t.Errorf("docs/architecture.md lists %v, want %v", listed, levels)
	}
}

// link is a Markdown link or image, its target without title.
var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// Every relative link of every page leads to a file, and every #anchor to a
// heading of it.
func TestLinksResolve(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			name, anchor, _ := strings.Cut(m[1], "#")
			target := path
			if name != "" {
				target = filepath.Join(filepath.Dir(path), name)
			}
			there, err := os.ReadFile(target)
			if info, statErr := os.Stat(target); statErr != nil || err != nil && !info.IsDir() {
				t.Errorf("%s links to %s, which is not there", path, m[1])
			} else if anchor != "" && !slices.Contains(anchors(string(there)), anchor) {
				t.Errorf("%s links to %s, and there is no such heading", path, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// anchors are the names under which the headings of a page can be linked to.
func anchors(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if heading := strings.TrimLeft(line, "#"); heading != line && strings.HasPrefix(heading, " ") {
			name := strings.Map(func(r rune) rune {
				switch {
				case r == ' ' || r == '-':
					return '-'
				case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_':
					return unicode.ToLower(r)
				}
				return -1
			}, strings.TrimSpace(heading))
			all = append(all, name)
		}
	}
	return all
}
