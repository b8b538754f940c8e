package build

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/engine"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/callsheet/callsheet/world/state"
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
}

// induce adds the rules that the turns determine, and the state that they need.
func induce(turns []*turn, a *book.Artifacts, o Options, r *Report) {
	in := &inducer{train: map[int]bool{}, held: map[int]bool{}, byTurn: map[*turn]*group{}, byAction: map[string][]*group{}, turns: turns, maps: map[string]bool{}}
	n := len(a.Episodes)
	for i := range n {
		// Every so many, and with few episodes the last.
		if n >= 2 && (i%o.Holdout == o.Holdout-1 || n < o.Holdout && i == n-1) {
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

// group sorts the turns that are clear into branches.
func (in *inducer) group() {
	byKey := map[string]*group{}
	for _, t := range in.turns {
		if !t.clear {
			continue
		}
		pieces := scan(t.text, t.action)
		var key strings.Builder
		fmt.Fprintf(&key, "%s\x00%s\x00", t.action.Type, t.outcome)
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
		g.refuse("it was seen in %d turns, %d are needed", len(g.turns), minSupport)
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
			g.refuse("%s was known before %d of its turns, %d are needed", q, n, minSupport)
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
		for i, puts := range in.groups {
			for _, takes := range in.groups[i+1:] { // the other way round means the same with the other sign
				if !puts.has(k) || !takes.has(k) {
					continue
				}
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

// emit makes rules of the branches that are determined, tries them on every
// episode, and keeps those that nothing contradicts.
func (in *inducer) emit(a *book.Artifacts, r *Report) {
	fields := map[string]world.Type{}
	index := map[string]int{}
	var rules []world.Rule
	for _, g := range in.groups {
		index[g.action]++
		id := fmt.Sprintf("%s_%d", g.action, index[g.action])
		if g.why != "" {
			if len(g.turns) >= minSupport {
				a.Unresolved = append(a.Unresolved, "rule "+id+": "+g.why)
			}
			continue
		}
		rule := world.Rule{ID: id, ActionType: g.action, Conditions: g.when, Effects: g.effects, Outcome: g.outcome, Renderer: "default", Status: world.Supported, Confidence: 1}
		template := g.template()
		rule.ObservationTemplate = &template
		rule.Description = fmt.Sprintf("Induced from %d recorded turns of %s.", len(g.turns), g.action)
		for _, q := range g.quantities() {
			fields["world."+q] = world.NumberType
			rule.Conditions = append(rule.Conditions, world.Condition{Left: path("world." + q), Op: "exists"})
		}
		for _, c := range g.when {
			if p := *c.Left.Path; !strings.Contains(p, "{") {
				fields[p] = world.NumberType
			}
		}
		for _, s := range g.turns[:min(len(g.turns), maxProvenance)] {
			rule.Provenance = append(rule.Provenance, s.ep.Ref(append(slices.Clone(s.slice.Actions), s.slice.Results...)...))
		}
		rules = append(rules, rule)
	}
	for arg := range in.maps {
		fields["world.known_"+arg] = world.ObjectType
	}
	for _, p := range slices.Sorted(maps.Keys(fields)) {
		a.StateSchema.Fields = append(a.StateSchema.Fields, world.StateField{Path: p, Type: fields[p], Mutable: true, Visibility: "world",
			Default: value.NullValue(), Description: "Followed through the recorded observations."})
	}
	verdicts := in.try(a, rules)
	for i := range rules {
		rule, v := &rules[i], verdicts[rules[i].ID]
		switch {
		case v.wrong > 0:
			r.Rejected++
			a.Rejected = append(a.Rejected, value.ObjectOf(value.Member{Key: "rule", Value: value.MustText(rule.ID)},
				value.Member{Key: "reason", Value: value.MustText(fmt.Sprintf("%d of %d recorded turns contradict it", v.wrong, v.wrong+v.right+v.held))}))
			continue
		case v.held > 0:
			r.Rules++
		default:
			r.Tentative++
			rule.Status = world.Tentative
		}
		// Laplace's rule of succession: eight turns that agree make 0.9.
		n := float64(v.right + v.held)
		rule.Confidence = world.Real((n + 1) / (n + 2))
		a.Rules = append(a.Rules, *rule)
	}
}

func (g *group) template() string {
	var b strings.Builder
	at := 0
	for _, p := range g.pieces {
		if !p.slot {
			b.WriteString(p.text)
			continue
		}
		switch s := g.sources[at]; {
		case s.arg != "":
			b.WriteString("{action.arguments." + s.arg + "}")
		case s.quantity != "":
			b.WriteString("{state_after.world." + s.quantity + "}")
		default:
			b.WriteString(s.literal)
		}
		at++
	}
	return b.String()
}

// A verdict is how often a rule said what was recorded.
type verdict struct{ right, held, wrong int }

// try plays every episode with the rules. What an observation shows of a
// quantity is taken in after the turn, so that a rule is judged on what was
// really so.
func (in *inducer) try(a *book.Artifacts, rules []world.Rule) map[string]*verdict {
	out := map[string]*verdict{}
	for i := range rules {
		out[rules[i].ID] = &verdict{}
	}
	e, err := engine.New(engine.Knowledge{Actions: a.ActionSchema.Actions, Fields: a.StateSchema.Fields, Rules: rules, Renderers: a.Renderers})
	if err != nil {
		return out // the artifacts' check will say so
	}
	s, last := state.Empty(), -1
	for _, t := range in.turns {
		if t.epIndex != last {
			s, last = state.Empty(), t.epIndex
		}
		if !t.clear {
			s = state.Empty()
			continue
		}
		if rule, plan, err := e.Select(s, t.action, false); err == nil && rule != nil {
			v := out[rule.ID]
			after, err := s.Apply(plan.Effects)
			text := ""
			if err == nil {
				text, err = e.Render(&plan, s, after)
			}
			switch {
			case err != nil || text != t.text:
				v.wrong++
			case in.held[t.epIndex]:
				v.held++
			default:
				v.right++
			}
			if err == nil && text == t.text {
				s = after
			}
		} else if err != nil {
			for _, r := range e.RulesOf(t.action.Type) { // they contradict each other
				out[r.ID].wrong++
			}
		}
		if g := in.byTurn[t]; g.why == "" {
			slots := slotsOf(t)
			for _, q := range g.quantities() {
				if v, ok := g.shown(slots, q); ok {
					if next, err := s.Apply([]world.Mutation{{Op: world.Set, Path: "world." + q, Value: v}}); err == nil {
						s = next
					}
				}
			}
		} else {
			s = state.Empty() // nobody knows what it did
		}
	}
	return out
}

func slotsOf(t *turn) []piece {
	return slices.DeleteFunc(scan(t.text, t.action), func(p piece) bool { return !p.slot })
}
