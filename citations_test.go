package callsheet_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every rule that a comment or a page cites is in docs/spec.
func TestCitedRulesExist(t *testing.T) {
	cited := regexp.MustCompile(`spec/([a-z-]+\.md)((?:,? §\d+(?:\.\d+)?(?: and §\d+)?)+|(?:,? \d+)+|, [A-Z][a-z]+)?`)
	part := regexp.MustCompile(`§\d+(?:\.\d+)?|\d+|[A-Z][a-z]+`)
	pages, n := map[string]string{}, 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, ".md") || d.Name() == "citations_test.go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		// A citation may go on over the end of a comment line.
		joined := regexp.MustCompile(`\n\s*// ?`).ReplaceAllString(string(text), " ")
		for _, m := range cited.FindAllStringSubmatch(joined, -1) {
			page, ok := pages[m[1]]
			if !ok {
				content, err := os.ReadFile(filepath.Join("docs", "spec", m[1]))
				if err != nil {
					t.Errorf("%s cites %s: %v", path, m[0], err)
					continue
				}
				page = "\n" + string(content)
				pages[m[1]] = page
			}
			for _, p := range part.FindAllString(m[2], -1) {
				n++
				if !holds(page, p) {
					t.Errorf("%s cites %s, and docs/spec/%s has no %s", path, m[0], m[1], p)
				}
			}
		}
		return nil
	})
	if err != nil || n == 0 {
		t.Fatalf("%d citations, %v", n, err)
	}
}

// holds reports whether a page has what a citation names: a section (§3), a
// subsection or an item of a section's list (§3.2), a numbered case (34), or a
// heading (Labels).
func holds(page, part string) bool {
	number, isSection := strings.CutPrefix(part, "§")
	switch {
	case !isSection && part[0] <= '9':
		return strings.Contains(page, "\n"+part+". ")
	case !isSection:
		return strings.Contains(page, "\n## "+part+"\n")
	}
	section, item, isItem := strings.Cut(number, ".")
	_, page, ok := strings.Cut(page, "\n## "+section+". ")
	if !ok || !isItem {
		return ok
	}
	page, _, _ = strings.Cut(page, "\n## ")
	return strings.Contains(page, "\n### "+number+" ") || strings.Contains(page, "\n"+item+". ")
}
