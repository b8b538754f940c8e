package build

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/internal/python"
)

// minSupport is how many turns a rule must explain: two points make a line,
// the third says that it is one.
const minSupport = 3

// A group are the turns of one action that came back with the same kind of
// text: a branch of what the action does.
type group struct {
	action  string
	outcome world.Outcome
	pieces  []piece // of the first turn
	turns   []*sample

	sources []source // of each slot; nil when one is not determined
	effects []world.Mutation
	when    []world.Condition
	why     string // it makes no rule
}

// A sample is a turn with what its slots held, and the quantities that were
// known before it.
type sample struct {
	*turn
	slots  []piece
	before map[string]value.Value
}

// A source says where a slot's text comes from; exactly one is set.
type source struct{ literal, arg, quantity string }

// An inducer finds what the turns determine. It is deterministic: everything is
// gone through in the order of the recording or of names.
type inducer struct {
	train    map[int]bool // episodes, by index
	held     map[int]bool
	groups   []*group
	byTurn   map[*turn]*group
	byAction map[string][]*group
	turns    []*turn
	maps     map[string]bool // arguments whose values are kept as keys
	walked   int             // turns, to find them
}

// induce adds the rules that the turns determine, and the state that they need.
func induce(turns []*turn, a *book.Artifacts, o Options, r *Report) {
	in := &inducer{train: map[int]bool{}, held: map[int]bool{}, byTurn: map[*turn]*group{}, byAction: map[string][]*group{}, turns: turns, maps: map[string]bool{}}
	distinct := unlike(turns, len(a.Episodes))
	n := len(distinct)
	for k, i := range distinct {
		// Every so many, and with few episodes the last.
		if n >= 2 && (k%o.Holdout == o.Holdout-1 || n < o.Holdout && k == n-1) {
			in.held[i] = true
		} else {
			in.train[i] = true
		}
	}
	in.group()
	for _, g := range in.groups {
		g.explain()
	}
	in.follow()
	for _, g := range in.groups {
		g.change()
	}
	names := slices.Sorted(maps.Keys(in.byAction))
	for _, name := range names {
		in.separate(name)
	}
	in.emit(a, r)
}

// unlike are the episodes, by index, of which none says just what an earlier one
// does: a recording that is there twice, written otherwise, is not its own witness.
func unlike(turns []*turn, episodes int) []int {
	sums := make([]hash.Hash, episodes)
	for _, t := range turns {
		if sums[t.epIndex] == nil {
			sums[t.epIndex] = sha256.New()
		}
		for _, part := range []string{t.action.Type, t.action.Arguments.String(), string(t.outcome), t.text} {
			fmt.Fprintf(sums[t.epIndex], "%d:%s", len(part), part)
		}
	}
	var out []int
	seen := map[string]bool{}
	for i, h := range sums {
		if h == nil {
			continue
		}
		if key := string(h.Sum(nil)); !seen[key] {
			seen[key] = true
			out = append(out, i)
		}
	}
	return out
}

// group sorts the turns that are clear into branches.
func (in *inducer) group() {
	byKey := map[string]*group{}
	for _, t := range in.turns {
		if !t.clear {
			continue
		}
		pieces := scan(t.text, t.action)
		var key strings.Builder
		fmt.Fprintf(&key, "%s\x00%t\x00", t.action.Type, t.outcome == world.Failed)
		var slots []piece
		for _, p := range pieces {
			if p.slot {
				slots = append(slots, p)
				key.WriteByte(1)
			} else {
				key.WriteString(p.text)
			}
		}
		g := byKey[key.String()]
		if g == nil {
			g = &group{action: t.action.Type, outcome: t.outcome, pieces: pieces}
			byKey[key.String()] = g
			in.groups = append(in.groups, g)
			in.byAction[g.action] = append(in.byAction[g.action], g)
		}
		if t.outcome != g.outcome {
			g.outcome = world.Unknown // not all of its recordings say that it succeeds
		}
		g.turns = append(g.turns, &sample{turn: t, slots: slots})
		in.byTurn[t] = g
	}
	for _, g := range in.groups {
		g.turns = slices.DeleteFunc(g.turns, func(s *sample) bool { return !in.train[s.epIndex] })
	}
}

func (g *group) refuse(format string, args ...any) {
	if g.why == "" {
		g.why = fmt.Sprintf(format, args...)
	}
}

// explain finds where the text of each slot comes from. What two ideas explain
// alike is not determined.
func (g *group) explain() {
	if len(g.turns) < minSupport {
		g.refuse("it was seen in %s of %d that are needed", count.Of(len(g.turns), "turn"), minSupport)
	}
	at := 0
	before := ""
	for _, p := range g.pieces {
		if !p.slot {
			before = p.text
			if strings.ContainsAny(p.text, "{}") {
				g.refuse("its text has braces, which a template cannot hold")
			}
			continue
		}
		same := true
		args := p.args
		for _, s := range g.turns {
			same = same && s.slots[at].text == g.turns[0].slots[at].text
			args = slices.DeleteFunc(slices.Clone(args), func(a string) bool { return !slices.Contains(s.slots[at].args, a) })
		}
		name := label(before)
		switch {
		case len(g.turns) == 0:
		case same && len(args) > 0:
			g.refuse("slot %d is always %q, which is an argument too", at, p.text)
		case same:
			g.sources = append(g.sources, source{literal: g.turns[0].slots[at].text})
		case len(args) == 1:
			g.sources = append(g.sources, source{arg: args[0]})
		case len(args) > 1:
			g.refuse("slot %d may be any of the arguments %s", at, strings.Join(args, ", "))
		case name == "":
			g.refuse("slot %d follows no word that would name it", at)
		default:
			g.sources = append(g.sources, source{quantity: name})
		}
		at++
		before = ""
	}
}

func (g *group) quantities() []string {
	var out []string
	for _, s := range g.sources {
		if s.quantity != "" && !slices.Contains(out, s.quantity) {
			out = append(out, s.quantity)
		}
	}
	return out
}

// shown is what a turn says about a quantity.
func (g *group) shown(slots []piece, quantity string) (v value.Value, ok bool) {
	for i, s := range g.sources {
		if s.quantity == quantity && i < len(slots) {
			v, err := value.Parse(slots[i].text)
			return v, err == nil
		}
	}
	return value.Value{}, false
}

// follow walks each episode and keeps what is known before each turn. After a
// turn that could not be paired nothing is.
func (in *inducer) follow() {
	samples := map[*turn]*sample{}
	for _, g := range in.groups {
		for _, s := range g.turns {
			samples[s.turn] = s
		}
	}
	var known map[string]value.Value
	last := -1
	for _, t := range in.turns {
		if t.epIndex != last {
			known, last = map[string]value.Value{}, t.epIndex
		}
		g := in.byTurn[t]
		if g == nil {
			known = map[string]value.Value{}
			continue
		}
		s := samples[t]
		if s == nil {
			continue // held out
		}
		s.before = maps.Clone(known)
		for _, q := range g.quantities() {
			if v, ok := g.shown(s.slots, q); ok {
				known[q] = v
			}
		}
	}
}

// An idea is one way in which a quantity may change.
type idea struct {
	op  world.Op // "": it does not
	arg string
}

func (i idea) predict(before value.Value, a world.Action) (value.Value, bool) {
	if i.op == "" {
		return before, true
	}
	arg, ok := a.Arguments.Get(i.arg)
	if !ok || arg.Kind() != value.Number {
		return value.Value{}, false
	}
	var v value.Value
	var err error
	switch i.op {
	case world.Increment:
		v, err = python.Add(before, arg)
	case world.Decrement:
		v, err = python.Sub(before, arg)
	default:
		v = arg
	}
	return v, err == nil
}

// change finds how each quantity that is shown changes: the one idea that
// explains every turn before which it was known.
func (g *group) change() {
	if g.why != "" {
		return
	}
	for _, q := range g.quantities() {
		ideas := []idea{{}}
		for k := range g.turns[0].action.Arguments.Members() {
			for _, op := range []world.Op{world.Increment, world.Decrement, world.Set} {
				ideas = append(ideas, idea{op, k})
			}
		}
		n := 0
		for _, s := range g.turns {
			before, ok := s.before[q]
			if !ok {
				continue
			}
			n++
			after, _ := g.shown(s.slots, q)
			ideas = slices.DeleteFunc(ideas, func(i idea) bool {
				v, ok := i.predict(before, s.action)
				return !ok || python.Str(v) != python.Str(after)
			})
		}
		switch {
		case n < minSupport:
			g.refuse("%s was known before %s of %d that are needed", q, count.Of(n, "turn"), minSupport)
		case len(ideas) == 0:
			g.refuse("nothing explains how %s changes", q)
		case len(ideas) > 1:
			g.refuse("%d ideas explain how %s changes", len(ideas), q)
		case ideas[0].op != "":
			g.effects = append(g.effects, world.Mutation{Op: ideas[0].op, Path: "world." + q,
				Value: value.ObjectOf(value.Member{Key: "$action_arg", Value: value.MustText(ideas[0].arg)})})
		}
	}
}
