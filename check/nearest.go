package check

import (
	"slices"
	"strings"

	"github.com/callsheet/callsheet/internal/nearest"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// maxSearches is how many findings of one plan get the nearest names: one costs
// as much as there are names (spec/plan.md §7).
const maxSearches = 100

// maxShown is how many near names a message lists.
const maxShown = 3

// names finds the names nearest to a wrong one.
type names struct {
	plan     *plan.Plan
	ids      *nearest.Search // made at the first search
	tools    *nearest.Search
	searches int
}

// spend reports whether another search is allowed.
func (n *names) spend() bool {
	n.searches++
	return n.searches <= maxSearches
}

// steps are the steps whose ids are nearest to id, those that wait for step i
// left out: first the last before i, at the end the last of all.
func (n *names) steps(g *graph, i int, id string) (found []int, distance int) {
	if n.ids == nil {
		ids := make([]string, len(n.plan.Steps))
		for j := range n.plan.Steps {
			ids[j] = n.plan.Steps[j].ID
		}
		n.ids = nearest.New(ids)
	}
	waits := g.waiting(i)
	for _, m := range n.ids.Find(id, 0, func(j int) bool { return waits[j] }) {
		found, distance = append(found, m.Index), m.Distance
	}
	after, _ := slices.BinarySearch(found, i)
	slices.Reverse(found[:after])
	return found, distance
}

// toolsLike are the tools whose names are nearest to name, in their order.
func (n *names) toolsLike(c *tool.Catalogue, name string) (found []int) {
	if n.tools == nil {
		all := make([]string, len(c.All()))
		for i, d := range c.All() {
			all[i] = d.Name
		}
		n.tools = nearest.New(all)
	}
	for _, m := range n.tools.Find(name, 0, nil) {
		found = append(found, m.Index)
	}
	return found
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
