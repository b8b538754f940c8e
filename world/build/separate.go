package build

import (
	"maps"
	"slices"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/internal/python"
)

func path(p string) world.Operand {
	return world.Operand{Path: &p, Literal: value.NullValue()}
}

// separate finds the comparison that tells the branches of an action apart.
func (in *inducer) separate(action string) {
	gs := in.byAction[action]
	switch {
	case len(gs) == 1:
		return
	case len(gs) == 2 && (in.byQuantity(gs[0], gs[1]) || in.byKey(gs[0], gs[1])):
		return
	}
	for _, g := range gs {
		g.refuse("nothing tells the %d kinds of answers of %s apart", len(gs), action)
	}
}

// byQuantity compares a quantity with an argument. A branch that never saw them
// equal does not claim that case.
func (in *inducer) byQuantity(a, b *group) bool {
	if len(a.turns) == 0 || len(b.turns) == 0 {
		return false
	}
	type pair struct{ q, arg string }
	signs := func(g *group, p pair) (set [3]bool, ok bool) {
		n := 0
		for _, s := range g.turns {
			before, known := s.before[p.q]
			if !known {
				continue
			}
			arg, has := s.action.Arguments.Get(p.arg)
			order, comparable := python.Compare(before, arg)
			if !has || !comparable {
				return set, false
			}
			set[order+1] = true
			n++
		}
		return set, n >= minSupport
	}
	quantities := map[string]bool{}
	for _, s := range a.turns {
		for q := range s.before {
			quantities[q] = true
		}
	}
	ops := map[[3]bool]string{{false, false, true}: "gt", {false, true, true}: "gte", {true, false, false}: "lt", {true, true, false}: "lte", {false, true, false}: "eq", {true, false, true}: "ne"}
	var found []pair
	var x, y string
	for _, q := range slices.Sorted(maps.Keys(quantities)) {
		for k := range a.turns[0].action.Arguments.Members() {
			p := pair{q, k}
			sa, ok := signs(a, p)
			sb, ok2 := signs(b, p)
			if !ok || !ok2 || sa[0] && sb[0] || sa[1] && sb[1] || sa[2] && sb[2] {
				continue
			}
			found = append(found, p)
			x, y = ops[sa], ops[sb]
		}
	}
	if len(found) != 1 {
		return false
	}
	for g, op := range map[*group]string{a: x, b: y} {
		arg := found[0].arg
		g.when = append(g.when, world.Condition{Left: path("world." + found[0].q), Op: op, Right: &world.Operand{ActionArg: &arg, Literal: value.NullValue()}})
	}
	return true
}

// byKey asks whether a key is known to be there: one branch of some action puts
// it there, one takes it away. What no turn of the episode said is not known,
// and no branch claims it.
func (in *inducer) byKey(a, b *group) bool {
	if len(a.turns) == 0 || len(b.turns) == 0 {
		return false
	}
	type found struct {
		arg      string
		puts     *group
		takes    *group
		presence bool // of a's turns
	}
	var all []found
	for k, v := range a.turns[0].action.Arguments.Members() {
		if v.Kind() != value.String {
			continue
		}
		var able []*group // what fewer turns than a rule needs say determines nothing
		for _, g := range in.groups {
			if len(g.turns) >= minSupport && g.has(k) {
				able = append(able, g)
			}
		}
		if in.walked += len(able) * len(able) / 2 * len(in.turns); in.walked > maxWalked {
			a.refuse("there are too many kinds of answers to find out what tells those of %s apart", a.action)
			return false
		}
		for i, puts := range able {
			for _, takes := range able[i+1:] { // the other way round means the same with the other sign
				yes, no, ok := in.presence(k, puts, takes, a, b)
				if ok && yes != no {
					all = append(all, found{k, puts, takes, yes})
				}
			}
		}
	}
	if len(all) != 1 {
		return false
	}
	f := all[0]
	in.maps[f.arg] = true
	at := "world.known_" + f.arg + ".{action.arguments." + f.arg + "}"
	for g, is := range map[*group]bool{f.puts: true, f.takes: false} {
		g.effects = append(g.effects, world.Mutation{Op: world.Set, Path: at, Value: value.BoolValue(is)})
	}
	for g, is := range map[*group]bool{a: f.presence, b: !f.presence} {
		g.when = append(g.when, world.Condition{Left: path(at), Op: "eq", Right: &world.Operand{Literal: value.BoolValue(is)}})
	}
	return true
}

// maxWalked bounds the turns that are walked over to find keys, in all: a few
// seconds of work.
const maxWalked = 200_000_000

func (g *group) has(arg string) bool {
	for _, s := range g.turns {
		if v, ok := s.action.Arguments.Get(arg); !ok || v.Kind() != value.String {
			return false
		}
	}
	return len(g.turns) > 0
}

// presence walks the training episodes and says whether the key was there
// before each known turn of a, and of b; ok when that is the same for all of
// each, and known often enough.
func (in *inducer) presence(arg string, puts, takes, a, b *group) (ofA, ofB, ok bool) {
	var known map[string]bool
	last, n := -1, [2]int{}
	var is [2]bool
	for _, t := range in.turns {
		if !in.train[t.epIndex] {
			continue
		}
		if t.epIndex != last {
			known, last = map[string]bool{}, t.epIndex
		}
		g := in.byTurn[t]
		if g == nil {
			known = map[string]bool{}
			continue
		}
		v, _ := t.action.Arguments.Get(arg)
		key, isText := v.Text()
		if !isText {
			continue
		}
		if was, ok := known[key]; ok {
			for i, side := range []*group{a, b} {
				if g != side {
					continue
				}
				if n[i] > 0 && is[i] != was {
					return false, false, false
				}
				is[i] = was
				n[i]++
			}
		}
		switch g {
		case puts:
			known[key] = true
		case takes:
			known[key] = false
		}
	}
	return is[0], is[1], n[0] >= minSupport && n[1] >= minSupport
}
