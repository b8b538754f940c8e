package plan

import "slices"

// link fills in Deps, Unknown and Wave of every step.
func (p *Plan) link() {
	most := 0
	for i := range p.Steps {
		most += len(p.Steps[i].After) + len(p.Steps[i].Refs)
	}
	room, edges := make([]int, most), 0
	for i := range p.Steps {
		s := &p.Steps[i]
		deps := room[: 0 : len(s.After)+len(s.Refs)]
		room = room[cap(deps):]
		for _, id := range s.After {
			if d := p.ids.index(id); d >= 0 {
				deps = append(deps, d)
			} else {
				s.Unknown = append(s.Unknown, id)
			}
		}
		for _, r := range s.Refs {
			if r.Step >= 0 {
				deps = append(deps, r.Step)
			}
		}
		slices.Sort(deps)
		deps = slices.Compact(deps)
		s.Deps = deps[:len(deps):len(deps)]
		edges += len(deps)
	}

	next := p.dependents(edges)
	open := make([]int, len(p.Steps)) // dependencies that have no wave yet
	ready := make([]int, 0, len(p.Steps))
	for i := range p.Steps {
		s := &p.Steps[i]
		s.Wave = -1
		open[i] = len(s.Deps)
		if len(s.Unknown) > 0 {
			open[i]++ // never counted down
		}
		if open[i] == 0 {
			s.Wave = 0
			ready = append(ready, i)
		}
	}
	depth := make([]int, len(p.Steps))
	for len(ready) > 0 {
		i := ready[0]
		ready = ready[1:]
		for _, d := range next[i] {
			depth[d] = max(depth[d], depth[i]+1)
			if open[d]--; open[d] == 0 {
				p.Steps[d].Wave = depth[d]
				ready = append(ready, d)
			}
		}
	}
}

// dependents turns Deps round: the steps that depend on each step, ascending.
func (p *Plan) dependents(edges int) [][]int {
	count := make([]int, len(p.Steps))
	for i := range p.Steps {
		for _, d := range p.Steps[i].Deps {
			count[d]++
		}
	}
	all := make([]int, edges)
	next := make([][]int, len(p.Steps))
	for i, n := range count {
		next[i], all = all[:0:n], all[n:]
	}
	for i := range p.Steps {
		for _, d := range p.Steps[i].Deps {
			next[d] = append(next[d], i)
		}
	}
	return next
}

// Waves are the indexes of the steps by their wave, in plan order. Steps that
// can never run are in none.
func (p *Plan) Waves() [][]int {
	var waves [][]int
	for i := range p.Steps {
		w := p.Steps[i].Wave
		if w < 0 {
			continue
		}
		for len(waves) <= w {
			waves = append(waves, nil)
		}
		waves[w] = append(waves[w], i)
	}
	return waves
}

// Cycles finds what can never run because it waits for itself. Each cycle is a
// list of step indexes in order: each depends on the next, and the last on the
// first. A step that depends on itself is a cycle of one. Of steps that are
// entangled in several cycles a shortest one through the first of them is
// given. The cycles are in the order of their first members.
func (p *Plan) Cycles() [][]int {
	var cycles [][]int
	for i := range p.Steps {
		if slices.Contains(p.Steps[i].Deps, i) {
			cycles = append(cycles, []int{i})
		}
	}
	for _, group := range p.entangled() {
		cycles = append(cycles, p.cycleIn(group))
	}
	slices.SortStableFunc(cycles, func(a, b []int) int { return a[0] - b[0] })
	return cycles
}

// entangled are the strongly connected components of more than one step, each
// ascending: Tarjan's algorithm with a stack of its own, because a plan may be
// a chain of any length.
func (p *Plan) entangled() [][]int {
	type frame struct{ step, dep int }
	var (
		groups [][]int
		order  = make([]int, len(p.Steps)) // of discovery, from 1; 0: not seen
		low    = make([]int, len(p.Steps))
		on     = make([]bool, len(p.Steps)) // on the path
		path   []int
		calls  []frame
		seen   int
	)
	for root := range p.Steps {
		if order[root] != 0 || p.Steps[root].Wave >= 0 {
			continue
		}
		calls = append(calls, frame{step: root})
		for len(calls) > 0 {
			f := &calls[len(calls)-1]
			if f.dep == 0 {
				seen++
				order[f.step], low[f.step], on[f.step] = seen, seen, true
				path = append(path, f.step)
			}
			deps := p.Steps[f.step].Deps
			if f.dep < len(deps) {
				d := deps[f.dep]
				f.dep++
				switch {
				case order[d] == 0 && p.Steps[d].Wave < 0:
					calls = append(calls, frame{step: d})
				case on[d]:
					low[f.step] = min(low[f.step], order[d])
				}
				continue
			}
			step := f.step
			calls = calls[:len(calls)-1]
			if len(calls) > 0 {
				parent := calls[len(calls)-1].step
				low[parent] = min(low[parent], low[step])
			}
			if low[step] != order[step] {
				continue
			}
			at := len(path) - 1
			for path[at] != step {
				at--
			}
			group := slices.Clone(path[at:])
			path = path[:at]
			for _, s := range group {
				on[s] = false
			}
			if len(group) > 1 {
				slices.Sort(group)
				groups = append(groups, group)
			}
		}
	}
	return groups
}

// cycleIn is a shortest cycle of at least two steps through the first of group.
func (p *Plan) cycleIn(group []int) []int {
	in := make(map[int]bool, len(group))
	for _, s := range group {
		in[s] = true
	}
	first := group[0]
	from := map[int]int{} // who was reached from whom
	queue := []int{first}
	for {
		s := queue[0]
		queue = queue[1:]
		for _, d := range p.Steps[s].Deps {
			if d == first && s != first {
				cycle := []int{s}
				for s != first {
					s = from[s]
					cycle = append(cycle, s)
				}
				slices.Reverse(cycle)
				return cycle
			}
			if _, reached := from[d]; in[d] && d != first && !reached {
				from[d] = s
				queue = append(queue, d)
			}
		}
	}
}
