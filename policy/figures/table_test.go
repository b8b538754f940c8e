package figures

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the table of docs/safety.md")

func itoa(n int) string { return strconv.Itoa(n) }

// row is one figure: a numerator over a denominator, and what it means.
type row struct {
	id, what string
	n, of    int
	note     string
}

func (r row) String() string {
	return fmt.Sprintf("| %s | %s | %d of %d | %s |", r.id, r.what, r.n, r.of, r.note)
}

// report is a table of figures with the lists that explain it.
type report struct {
	title string
	rows  []row
	notes []string
}

func (r *report) add(id, what string, n, of int, note string, args ...any) {
	r.rows = append(r.rows, row{id, what, n, of, fmt.Sprintf(note, args...)})
}

func (r *report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n| | figure | count | note |\n|---|---|---|---|\n", r.title)
	for _, row := range r.rows {
		b.WriteString(row.String() + "\n")
	}
	if len(r.notes) > 0 {
		b.WriteString("\n")
	}
	for _, n := range r.notes {
		b.WriteString("- " + n + "\n")
	}
	return b.String()
}

// publish prints the report and holds docs/safety.md to it: the part between the
// marks of that name must be this report. With -update it is rewritten.
func (r *report) publish(t *testing.T, name string) {
	t.Helper()
	text := r.String()
	fmt.Print("\n" + text)
	if customData() || os.Getenv(searchVariable) != "" {
		return // other data, other figures
	}
	path := filepath.Join("..", "..", "docs", "safety.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	open, end := "<!-- figures: "+name+" -->\n", "<!-- end: "+name+" -->\n"
	before, rest, ok := strings.Cut(string(page), open)
	old, after, ok2 := strings.Cut(rest, end)
	switch {
	case !ok || !ok2:
		t.Fatalf("%s has no part between %q and %q", path, open, end)
	case old == text:
	case !*update:
		t.Errorf("%s has other figures than these; run with -update", path)
	default:
		if err := os.WriteFile(path, []byte(before+open+text+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
