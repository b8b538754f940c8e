package policy

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// maxCases bounds what is tried for one condition, cases times the terms that each
// places: a rule that a person can review needs hundreds, and what is beyond the
// bound is taken to vary.
const maxCases = 1 << 16

// reads reports whether e has a variable that is not bound inside it: what has
// none is the same whatever is called.
func reads(e ast.Expr) bool {
	var names []string
	bound := map[string]bool{}
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.IdentKind:
			names = append(names, e.AsIdent())
		case ast.ComprehensionKind:
			c := e.AsComprehension()
			bound[c.IterVar()], bound[c.IterVar2()], bound[c.AccuVar()] = true, true, true
		}
	}))
	return slices.ContainsFunc(names, func(n string) bool { return !bound[n] })
}

// A decider finds out whether a part of a condition is the same whatever is
// called. What a condition reads is cut into cases: of a term that is compared with
// what is written out, before, at, between and after those values, or one of them
// and any other; of two terms, less, equal and greater; of everything else that is
// true or false, both. A part that is the same in every combination is constant.
// Cases of different terms count as independent even where they are not, so that
// nothing is called constant that varies; some of what never varies is not found.
type decider struct {
	guard *guard
	left  int // of maxCases
}

// constant reports whether e is the same in all cases, and which.
func (d *decider) constant(e ast.Expr) (is, constant bool) {
	c := &cases{guard: d.guard, index: map[string]*term{}}
	f := c.formula(e)
	worlds := 1
	for _, t := range c.terms {
		t.settle()
		// No case at all: a value that its type does not have. Others say so.
		if worlds *= len(t.regions); worlds == 0 || worlds*len(c.terms) > d.left {
			return false, false
		}
	}
	d.left -= worlds * len(c.terms)
	first := make([]int, len(c.terms))
	last := make([]int, len(c.terms))
	for i, t := range c.terms {
		last[i] = len(t.regions) - 1
	}
	at := func(w []int) bool {
		for i, t := range c.terms {
			t.at = t.regions[w[i]]
		}
		return f()
	}
	is = at(first)
	// From both ends: what a conjunction and a disjunction do is known at once.
	for n := 0; n < worlds; n += 2 {
		if at(first) != is || at(last) != is {
			return false, false
		}
		for i, t := range c.terms {
			size := len(t.regions)
			if first[i], last[i] = (first[i]+1)%size, (last[i]-1+size)%size; first[i] != 0 {
				break
			}
		}
	}
	return is, true
}

// cases are the terms of one formula, by what they read.
type cases struct {
	guard *guard
	index map[string]*term
	terms []*term
}

// A formula is true or false in the case that the terms are at.
type formula func() bool

// A term is something that a condition reads. With k values to compare with, region
// 2i+1 is the i-th of them; of a number, 2i is what lies before it and 2k what lies
// after all; of anything else 2k is any other value.
type term struct {
	number  bool
	whole   bool       // a number that is an integer
	least   *big.Rat   // the least that it can be; nil: there is none
	numbers []*big.Rat // sorted by settle
	texts   []string
	words   []string // the only texts that it can be; nil: any
	regions []int    // that it can be in
	at      int
}

func (c *cases) term(key string) *term {
	t := c.index[key]
	if t == nil {
		t = &term{}
		c.index[key] = t
		c.terms = append(c.terms, t)
	}
	return t
}

// settle finds the regions that a term can be in.
func (t *term) settle() {
	if !t.number {
		for i, text := range t.texts {
			if t.words == nil || slices.Contains(t.words, text) {
				t.regions = append(t.regions, 2*i+1)
			}
		}
		if t.words == nil || slices.ContainsFunc(t.words, func(w string) bool { return !slices.Contains(t.texts, w) }) {
			t.regions = append(t.regions, 2*len(t.texts))
		}
		return
	}
	if t.least != nil {
		t.numbers = append(t.numbers, t.least)
	}
	slices.SortFunc(t.numbers, (*big.Rat).Cmp)
	t.numbers = slices.CompactFunc(t.numbers, func(a, b *big.Rat) bool { return a.Cmp(b) == 0 })
	for region := range 2*len(t.numbers) + 1 {
		if t.can(region) {
			t.regions = append(t.regions, region)
		}
	}
}

// can reports whether a number can be in a region.
func (t *term) can(region int) bool {
	i := region / 2
	if t.least != nil && i < len(t.numbers) {
		if over := t.numbers[i].Cmp(t.least); over < 0 || over == 0 && region%2 == 0 {
			return false
		}
	}
	switch {
	case !t.whole:
		return true
	case region%2 == 1:
		return t.numbers[i].IsInt()
	case i == 0 || i == len(t.numbers):
		return true
	}
	// The first integer after the one bound lies before the other.
	floor := new(big.Int).Div(t.numbers[i-1].Num(), t.numbers[i-1].Denom())
	return new(big.Rat).SetInt(floor.Add(floor, big.NewInt(1))).Cmp(t.numbers[i]) < 0
}

// against is how a number stands to one of its values: less than, equal to or
// greater than 0. It may be asked once the term has settled.
func (t *term) against(n *big.Rat) func() int {
	i := -1
	return func() int {
		if i < 0 {
			i, _ = slices.BinarySearchFunc(t.numbers, n, (*big.Rat).Cmp)
		}
		return t.at - (2*i + 1)
	}
}

func always(b bool) formula { return func() bool { return b } }

// formula is what e, which is true or false, says about terms.
func (c *cases) formula(e ast.Expr) formula {
	switch e.Kind() {
	case ast.LiteralKind:
		if b, ok := e.AsLiteral().(types.Bool); ok {
			return always(bool(b))
		}
	case ast.CallKind:
		if f := c.call(e.AsCall()); f != nil {
			return f
		}
	}
	return c.open(e)
}

// open is a part of which nothing is known but that it is true or false, and the
// same wherever it stands.
func (c *cases) open(e ast.Expr) formula {
	t := c.term(key(e))
	t.texts, t.words = []string{"true", "false"}, []string{"true", "false"}
	return func() bool { return t.at == 1 }
}

func (c *cases) call(call ast.CallExpr) formula {
	args := call.Args()
	switch call.FunctionName() {
	case operators.LogicalNot:
		f := c.formula(args[0])
		return func() bool { return !f() }
	case operators.LogicalAnd:
		a, b := c.formula(args[0]), c.formula(args[1])
		return func() bool { return a() && b() }
	case operators.LogicalOr:
		a, b := c.formula(args[0]), c.formula(args[1])
		return func() bool { return a() || b() }
	case operators.Conditional:
		when, a, b := c.formula(args[0]), c.formula(args[1]), c.formula(args[2])
		return func() bool {
			if when() {
				return a()
			}
			return b()
		}
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		return c.comparison(call.FunctionName(), args[0], args[1])
	case "between":
		low, high := c.comparison(operators.GreaterEquals, args[0], args[1]), c.comparison(operators.LessEquals, args[0], args[2])
		if low == nil || high == nil {
			return nil
		}
		return func() bool { return low() && high() }
	case operators.In, "one_of":
		if args[1].Kind() != ast.ListKind {
			return nil
		}
		var any []formula
		for _, x := range args[1].AsList().Elements() {
			f := c.comparison(operators.Equals, args[0], x)
			if f == nil {
				return nil
			}
			any = append(any, f)
		}
		return func() bool { return slices.ContainsFunc(any, func(f formula) bool { return f() }) }
	}
	return nil
}

// ordered is what an operator says of an order: less than, equal to, or greater
// than 0.
func ordered(op string, order int) bool {
	switch op {
	case operators.Equals:
		return order == 0
	case operators.NotEquals:
		return order != 0
	case operators.Less:
		return order < 0
	case operators.LessEquals:
		return order <= 0
	case operators.Greater:
		return order > 0
	}
	return order >= 0
}

var mirrored = map[string]string{
	operators.Less: operators.Greater, operators.LessEquals: operators.GreaterEquals,
	operators.Greater: operators.Less, operators.GreaterEquals: operators.LessEquals,
}

// comparison is a op b, nil where nothing is known of it.
func (c *cases) comparison(op string, a, b ast.Expr) formula {
	equality := op == operators.Equals || op == operators.NotEquals
	if equality && c.isBool(a) && c.isBool(b) {
		f, g := c.formula(a), c.formula(b)
		return func() bool { return (f() == g()) == (op == operators.Equals) }
	}
	y, left := written(a)
	x, right := written(b)
	if left && !right {
		a, x, left, right = b, y, false, true
		if m, ok := mirrored[op]; ok {
			op = m
		}
	}
	switch {
	case left: // both are
		if y.number != nil && x.number != nil {
			return always(ordered(op, y.number.Cmp(x.number)))
		}
		if (y.number == nil) == (x.number == nil) {
			return always(ordered(op, strings.Compare(y.text, x.text)))
		}
		return always(op == operators.NotEquals)
	case right && x.number != nil:
		t := c.term("number " + key(a))
		t.number, t.whole = true, c.typeOf(a) == types.IntType.TypeName()
		t.numbers = append(t.numbers, x.number)
		if counts(a) {
			t.least = new(big.Rat)
		}
		order := t.against(x.number)
		return func() bool { return ordered(op, order()) }
	case right && !equality:
		return nil
	case right:
		t := c.term("text " + key(a))
		t.words = c.words(a)
		i := slices.Index(t.texts, x.text)
		if i < 0 {
			i = len(t.texts)
			t.texts = append(t.texts, x.text)
		}
		return func() bool { return (t.at == 2*i+1) == (op == operators.Equals) }
	}
	ka, kb := key(a), key(b)
	if ka == kb {
		return always(ordered(op, 0))
	}
	if ka > kb {
		ka, kb = kb, ka
		if m, ok := mirrored[op]; ok {
			op = m
		}
	}
	t := c.term("order " + ka + " " + kb)
	zero := new(big.Rat)
	t.number, t.numbers = true, append(t.numbers, zero)
	order := t.against(zero)
	return func() bool { return ordered(op, order()) }
}

func (c *cases) typeOf(e ast.Expr) string { return c.guard.ast.GetType(e.ID()).TypeName() }
func (c *cases) isBool(e ast.Expr) bool   { return c.typeOf(e) == types.BoolType.TypeName() }

// words are the only texts that e can be, nil if it can be any.
func (c *cases) words(e ast.Expr) []string {
	if e.Kind() != ast.SelectKind {
		return nil
	}
	s := e.AsSelect()
	if r := c.guard.records[c.typeOf(s.Operand())]; r != nil && r.fields[s.FieldName()] != nil {
		return r.fields[s.FieldName()].words
	}
	return nil
}

// counts reports whether e is a number of things, so never below 0.
func counts(e ast.Expr) bool {
	if e.Kind() != ast.CallKind {
		return false
	}
	name := e.AsCall().FunctionName()
	return name == "size" || name == fnTimes
}

// literalValue is what is written out in a condition: a number, or anything else as
// it is written.
type literalValue struct {
	number *big.Rat
	text   string
}

func written(e ast.Expr) (literalValue, bool) {
	if e.Kind() != ast.LiteralKind {
		return literalValue{}, false
	}
	switch l := e.AsLiteral().(type) {
	case types.Int:
		return literalValue{number: new(big.Rat).SetInt64(int64(l))}, true
	case types.Uint:
		return literalValue{number: new(big.Rat).SetUint64(uint64(l))}, true
	case types.Double:
		// As decimal: 0.1 is what is written, and what a JSON number 0.1 is read as.
		if r, ok := new(big.Rat).SetString(strconv.FormatFloat(float64(l), 'g', -1, 64)); ok {
			return literalValue{number: r}, true
		}
		return literalValue{}, false
	case types.String:
		return literalValue{text: string(l)}, true
	default:
		return literalValue{text: fmt.Sprintf("\x00%s %v", l.Type().TypeName(), l.Value())}, true
	}
}

// key writes an expression down, so that two of one key give the same.
func key(e ast.Expr) string {
	var b strings.Builder
	write(&b, e)
	return b.String()
}

func write(b *strings.Builder, e ast.Expr) {
	list := func(open string, es ...ast.Expr) {
		b.WriteString(open)
		for _, x := range es {
			b.WriteByte(' ')
			write(b, x)
		}
		b.WriteByte(')')
	}
	switch e.Kind() {
	case ast.LiteralKind:
		fmt.Fprintf(b, "%s:%q", e.AsLiteral().Type().TypeName(), fmt.Sprint(e.AsLiteral().Value()))
	case ast.IdentKind:
		b.WriteString(e.AsIdent())
	case ast.SelectKind:
		s := e.AsSelect()
		list(fmt.Sprintf("(.%q %t", s.FieldName(), s.IsTestOnly()), s.Operand())
	case ast.CallKind:
		call := e.AsCall()
		args := call.Args()
		if call.IsMemberFunction() {
			args = append([]ast.Expr{call.Target()}, args...)
		}
		if name, ok := "", false; call.FunctionName() == operators.Index {
			if name, ok = literal(args[1]); ok { // a["b"] is a.b
				list(fmt.Sprintf("(.%q false", name), args[0])
				return
			}
		}
		list("("+call.FunctionName(), args...)
	case ast.ListKind:
		list("([]", e.AsList().Elements()...)
	case ast.MapKind:
		var es []ast.Expr
		for _, x := range e.AsMap().Entries() {
			es = append(es, x.AsMapEntry().Key(), x.AsMapEntry().Value())
		}
		list("({}", es...)
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		list(fmt.Sprintf("(for %q %q %q", c.IterVar(), c.IterVar2(), c.AccuVar()), c.IterRange(), c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result())
	default:
		fmt.Fprintf(b, "(%d)", e.ID())
	}
}
