package check

import (
	"slices"
	"strconv"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/value"
)

// graph answers what advice about a plan has to know of its dependencies.
type graph struct {
	*plan.Plan
	next [][]int     // see dependents; nil until asked for
	doc  value.Value // the document; zero until asked for

	// What was found out last, of one step; a step can be asked about often.
	mentioned struct {
		step  int
		where map[string][]string
	}
	earlier struct{ step, nearest, candidates int }
	counted int // steps of which before was found out
}

// dependents are, for each step, the steps that depend on it.
func (g *graph) dependents() [][]int {
	if g.next == nil {
		g.next = make([][]int, len(g.Steps))
		for j := range g.Steps {
			for _, d := range g.Steps[j].Deps {
				g.next[d] = append(g.next[d], j)
			}
		}
	}
	return g.next
}

// waiting are the steps that depend on step i, directly or through others, and
// i itself: whatever i is made to wait for, it must not be one of them.
func (g *graph) waiting(i int) []bool {
	next := g.dependents()
	seen := make([]bool, len(g.Steps))
	seen[i] = true
	for queue := []int{i}; len(queue) > 0; queue = queue[1:] {
		for _, j := range next[queue[0]] {
			if !seen[j] {
				seen[j] = true
				queue = append(queue, j)
			}
		}
	}
	return seen
}

// before is the nearest step before i that does not wait for i, and how many
// there are; -1 and 0 when there is none, or after maxSearches steps.
func (g *graph) before(i int) (step, candidates int) {
	last := &g.earlier
	if g.counted > 0 && last.step == i {
		return last.nearest, last.candidates
	}
	if g.counted == maxSearches {
		return -1, 0
	}
	g.counted++
	last.step, last.nearest, last.candidates = i, -1, 0
	waits := g.waiting(i)
	for j := range i {
		if !waits[j] {
			last.nearest = j
			last.candidates++
		}
	}
	return last.nearest, last.candidates
}

// reference writes a reference to a step, with the path of another; "" when no
// text would be read that way, because a longer id stands in its way.
func (g *graph) reference(step int, path string, hasPath bool) string {
	text := "$" + g.Steps[step].ID
	if hasPath {
		text += "." + path
	}
	if ref, _, ok := g.Read(text); !ok || ref.Step != step || ref.Path != path {
		return ""
	}
	return text
}

// afters are the pointers into the document of every mention of id in the after
// of step i. There can be several: the plan keeps one.
func (g *graph) afters(i int, id string) []string {
	if g.doc.IsZero() {
		doc, err := value.Parse(g.Source())
		if err != nil {
			panic("check: a plan that was decoded is no JSON: " + err.Error())
		}
		g.doc = doc
	}
	if m := &g.mentioned; m.where == nil || m.step != i {
		m.step, m.where = i, make(map[string][]string)
		list, _ := g.doc.AtPointer(g.Pointer(i) + "/after")
		for j, e := range list.Elements() {
			s, _ := e.Text()
			m.where[s] = append(m.where[s], g.Pointer(i)+"/after/"+strconv.Itoa(j))
		}
	}
	return g.mentioned.where[id]
}

// rename is the patch that puts another id in place of every mention; without
// one it takes them out.
func rename(mentions []string, id string) Patch {
	var p Patch
	for _, at := range slices.Backward(mentions) { // so that indexes stay right
		if id == "" {
			p = append(p, remove(at))
		} else {
			p = append(p, replace(at, id))
		}
	}
	return p
}
