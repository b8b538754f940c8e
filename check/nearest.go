package check

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// maxSearches is how many findings of one plan get the nearest names: one costs
// as much as there are names (spec/plan.md §7).
const maxSearches = 100

// maxWork is how many letters of names are compared for one plan, about half a
// second: a hundred searches among ten thousand long ids would take ten.
const maxWork = 100_000_000

// maxEdits is how many letters of a mistyped name may differ. Models take one
// word for another more often than that, but those are not found by spelling;
// and the time for a search grows with it.
const maxEdits = 4

// maxShown is how many near names a message lists.
const maxShown = 3

// names finds the names nearest to a wrong one.
type names struct {
	plan     *plan.Plan
	ids      []folded // made at the first search
	tools    []folded
	searches int
	work     int
	rows     [3][]int // of the table of distances, kept from one to the next
}

// folded is a name in the form in which names are compared, so that case is no
// distance.
type folded struct {
	name string
	form []rune
}

func foldedOf(name string) folded { return folded{name, []rune(plan.Fold(name))} }

// spend reports whether another search is allowed.
func (n *names) spend() bool {
	n.searches++
	return n.searches <= maxSearches && n.work <= maxWork
}

// steps are the steps whose ids are nearest to id, those that wait for step i
// left out: first the last before i, at the end the last of all.
func (n *names) steps(g *graph, i int, id string) (found []int, distance int) {
	if n.ids == nil {
		n.ids = make([]folded, len(n.plan.Steps))
		for j := range n.plan.Steps {
			n.ids[j] = foldedOf(n.plan.Steps[j].ID)
		}
	}
	found, distance = n.nearest(n.ids, id, g.waiting(i))
	after, _ := slices.BinarySearch(found, i)
	slices.Reverse(found[:after])
	return found, distance
}

// toolsLike are the tools whose names are nearest to name, in their order.
func (n *names) toolsLike(c *tool.Catalogue, name string) []int {
	if n.tools == nil {
		for _, d := range c.All() {
			n.tools = append(n.tools, foldedOf(d.Name))
		}
	}
	found, _ := n.nearest(n.tools, name, nil)
	return found
}

// nearest are the names that are nearest to name, in their order and without
// those to skip, if they are near enough to be meant: a third of the letters may
// differ, at most maxEdits, and something must be in common.
func (n *names) nearest(all []folded, name string, skip []bool) (found []int, distance int) {
	if len(name) > 2*utf8.UTFMax*plan.MaxID {
		return nil, 0 // too long to be a mistyped anything
	}
	want := foldedOf(name).form
	best := len(want)
	for i, f := range all {
		if skip != nil && skip[i] {
			continue
		}
		longest := max(len(f.form), len(want))
		allowed := min(max(1, longest/3), longest-1, maxEdits, best)
		d := n.distance(f.form, want, allowed)
		if d > allowed {
			continue
		}
		if d < best {
			best, found = d, found[:0]
		}
		found = append(found, i)
	}
	return found, best
}

// distance is the number of letters to insert, delete, change or swap with
// their neighbour; more than most is only known to be more.
func (n *names) distance(a, b []rune, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	for k := range n.rows {
		if len(n.rows[k]) <= len(b) {
			n.rows[k] = make([]int, 2*len(b)+1)
		}
	}
	before, last, row := n.rows[0], n.rows[1], n.rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	// Only the band around the diagonal can be within most; beside it stands
	// what is too much.
	for i := 1; i <= len(a); i++ {
		from, to := max(1, i-most), min(len(b), i+most)
		n.work += to - from + 1
		row[from-1] = most + 1
		if from == 1 {
			row[0] = i
		}
		least := row[from-1]
		for j := from; j <= to; j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if to < len(b) {
			row[to+1] = most + 1
		}
		if least > most {
			return most + 1
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// orNearest ends a sentence with the names that may have been meant.
func orNearest(found []int, name func(int) string) string {
	if len(found) == 0 {
		return ""
	}
	var quoted []string
	for _, i := range found[:min(len(found), maxShown)] {
		quoted = append(quoted, value.Quoted(name(i)))
	}
	return "; did you mean " + strings.Join(quoted, " or ") + "?"
}
