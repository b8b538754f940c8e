package policy

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// A guard reads a checked condition for what CEL's types do not tell: fields that
// may be missing and are read without has(), operands that are always the same,
// names of tools and args inside strings. CEL absorbs an error when the other
// side of || or && decides, so such a read could turn a rule off in silence.
type guard struct {
	ast     *ast.AST
	records map[string]*record
	cat     *tool.Catalogue
	decider *decider
	faults  []guardFault
	loops   []string // variables of comprehensions over args

	// What the condition looks at, for the check before the run.
	args    map[string]bool // top-level args
	allArgs bool
	history bool
	looping bool // has a comprehension: its cost depends on what it is given
}

type guardFault struct {
	id      int64
	message string
}

func (g *guard) fault(e ast.Expr, format string, args ...any) {
	g.faults = append(g.faults, guardFault{e.ID(), fmt.Sprintf(format, args...)})
}

// walk visits e, knowing that the paths in known are present.
func (g *guard) walk(e ast.Expr, known []string) {
	switch e.Kind() {
	case ast.LiteralKind:
		if d, ok := e.AsLiteral().(types.Double); ok && math.Abs(float64(d)) >= maxExact {
			g.fault(e, "%v is not exact as a double; write it as an integer", float64(d))
		}
	case ast.IdentKind:
		g.ident(e.AsIdent())
		if e.AsIdent() == "args" {
			g.allArgs = true
		}
	case ast.SelectKind:
		g.selection(e, known)
	case ast.CallKind:
		g.call(e, known)
	case ast.ListKind:
		for _, x := range e.AsList().Elements() {
			g.walk(x, known)
		}
	case ast.MapKind:
		for _, x := range e.AsMap().Entries() {
			g.walk(x.AsMapEntry().Key(), known)
			g.walk(x.AsMapEntry().Value(), known)
		}
	case ast.ComprehensionKind:
		c := e.AsComprehension()
		g.looping = true
		g.walk(c.IterRange(), known)
		known = slices.DeleteFunc(slices.Clone(known), func(p string) bool { return root(p) == c.IterVar() })
		if g.fromArgs(c.IterRange()) {
			g.loops = append(g.loops, c.IterVar())
			defer func(n int) { g.loops = g.loops[:n] }(len(g.loops) - 1)
		}
		for _, x := range []ast.Expr{c.AccuInit(), c.LoopCondition(), c.LoopStep(), c.Result()} {
			g.walk(x, known)
		}
	}
}

func (g *guard) ident(name string) {
	if name == "history" || name == varHistory {
		g.history = true
	}
}

// selection checks a.b: what the schema does not require must be known to be
// there.
func (g *guard) selection(e ast.Expr, known []string) {
	s := e.AsSelect()
	op := s.Operand()
	if op.Kind() == ast.IdentKind && (op.AsIdent() == "args" || op.AsIdent() == "labels") {
		g.ident(op.AsIdent())
		g.args[s.FieldName()] = true
	} else {
		g.walk(op, known)
	}
	g.member(e, op, s.FieldName(), s.IsTestOnly(), known)
	if s.FieldName() == "tool" && g.ast.GetType(op.ID()).TypeName() == callRecord.name {
		g.history = true
	}
}

func (g *guard) member(e, op ast.Expr, name string, test bool, known []string) {
	at := pathOf(op)
	if r := g.records[g.ast.GetType(op.ID()).TypeName()]; r != nil {
		f := r.fields[name]
		switch {
		case f == nil:
		case test && f.required:
			g.fault(e, "has() of %q is always true: it is always there", name)
		case !test && !f.required && !present(known, at, name):
			g.fault(e, "%q need not be there; write has(%s.%s) && … before it", name, orX(at), name)
		}
		return
	}
	if !test && g.fromArgs(op) && !present(known, at, name) {
		g.fault(e, "the schema does not say that %q is there; write has(%s.%s) && … before it", name, orX(at), name)
	}
}

func orX(path string) string {
	if path == "" {
		return "x"
	}
	return path
}

// present reports whether the path is known. Labels are there when the arg is.
func present(known []string, at, name string) bool {
	if at == "" {
		return false
	}
	p := at + "." + name
	return slices.Contains(known, p) || at == "labels" && slices.Contains(known, "args."+name)
}

func root(path string) string {
	r, _, _ := strings.Cut(path, ".")
	return r
}

// fromArgs reports whether e is a part of args, also through a comprehension.
func (g *guard) fromArgs(e ast.Expr) bool {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent() == "args" || slices.Contains(g.loops, e.AsIdent())
	case ast.SelectKind:
		return g.fromArgs(e.AsSelect().Operand())
	case ast.CallKind:
		c := e.AsCall()
		return c.FunctionName() == operators.Index && g.fromArgs(c.Args()[0])
	case ast.ComprehensionKind: // map and filter
		return g.fromArgs(e.AsComprehension().IterRange())
	}
	return false
}

// pathOf writes a chain of names as text; "" for anything else.
func pathOf(e ast.Expr) string {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent()
	case ast.SelectKind:
		s := e.AsSelect()
		if p := pathOf(s.Operand()); p != "" && !s.IsTestOnly() {
			return p + "." + s.FieldName()
		}
	case ast.CallKind:
		if c := e.AsCall(); c.FunctionName() == operators.Index {
			if name, ok := literal(c.Args()[1]); ok {
				if p := pathOf(c.Args()[0]); p != "" {
					return p + "." + name
				}
			}
		}
	}
	return ""
}

func literal(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// facts are the paths that must be present when e is the given truth.
func facts(e ast.Expr, truth bool) []string {
	switch e.Kind() {
	case ast.SelectKind:
		s := e.AsSelect()
		if p := pathOf(s.Operand()); s.IsTestOnly() && truth && p != "" {
			return []string{p + "." + s.FieldName()}
		}
	case ast.CallKind:
		c := e.AsCall()
		switch c.FunctionName() {
		case operators.LogicalNot:
			return facts(c.Args()[0], !truth)
		case operators.LogicalAnd, operators.LogicalOr:
			if truth == (c.FunctionName() == operators.LogicalAnd) {
				return append(facts(c.Args()[0], truth), facts(c.Args()[1], truth)...)
			}
		case operators.In:
			name, ok := literal(c.Args()[0])
			if p := pathOf(c.Args()[1]); ok && truth && p != "" {
				return []string{p + "." + name}
			}
		}
	}
	return nil
}

func with(known, more []string) []string { return append(slices.Clip(known), more...) }

func (g *guard) call(e ast.Expr, known []string) {
	c := e.AsCall()
	args := c.Args()
	switch c.FunctionName() {
	case operators.LogicalAnd, operators.LogicalOr:
		g.operand(args[0], known)
		g.operand(args[1], with(known, facts(args[0], c.FunctionName() == operators.LogicalAnd)))
		return
	case operators.Conditional:
		g.operand(args[0], known)
		g.walk(args[1], with(known, facts(args[0], true)))
		g.walk(args[2], with(known, facts(args[0], false)))
		return
	case operators.Index:
		if name, ok := literal(args[1]); ok {
			g.walk(args[0], known)
			g.member(e, args[0], name, false, known)
			return
		}
	case operators.Equals, operators.NotEquals:
		g.named(args[0], args[1])
		g.named(args[1], args[0])
	case operators.In, "one_of":
		if args[1].Kind() == ast.ListKind {
			for _, text := range args[1].AsList().Elements() {
				g.named(args[0], text)
			}
		}
	case "matches":
		pattern := args[len(args)-1]
		if text, ok := literal(pattern); !ok {
			g.fault(pattern, "the pattern of matches is written out in the rule, not computed")
		} else if _, err := anchored(text); err != nil {
			g.fault(pattern, "%v", err)
		}
	case fnBefore, fnTimes, fnSum, fnLast:
		g.overHistory(c)
	}
	if c.IsMemberFunction() {
		g.walk(c.Target(), known)
	}
	for _, a := range args {
		g.walk(a, known)
	}
}

// operand walks a part of which the truth decides something, and refuses it if it is
// always the same: it decides the condition, or nothing at all, whatever is called.
// Where something else is wrong with it, that is why.
func (g *guard) operand(e ast.Expr, known []string) {
	before := len(g.faults)
	g.walk(e, known)
	if len(g.faults) == before {
		g.varies(e, "operand")
	}
}

func (g *guard) varies(e ast.Expr, what string) {
	if !reads(e) {
		g.fault(e, "this %s is always the same", what)
	} else if is, constant := g.decider.constant(e); constant {
		g.fault(e, "this %s is always the same: %t", what, is)
	}
}

// named checks what a field is compared with: h.tool == "send_money" against the
// catalogue, labels.to.integrity == "user" against the words that it can be.
func (g *guard) named(field, text ast.Expr) {
	name, ok := literal(text)
	if !ok || field.Kind() != ast.SelectKind {
		return
	}
	s := field.AsSelect()
	of := g.ast.GetType(s.Operand().ID()).TypeName()
	if of == callRecord.name && s.FieldName() == "tool" || of == toolRecord.name && s.FieldName() == "name" {
		g.known(text, name)
		return
	}
	r := g.records[of]
	if r == nil || r.fields[s.FieldName()] == nil {
		return
	}
	if words := r.fields[s.FieldName()].words; words != nil && !slices.Contains(words, name) {
		g.fault(text, "%s is never %q; it is %s", s.FieldName(), name, strings.Join(words, ", "))
	}
}

func (g *guard) known(e ast.Expr, name string) *tool.Declaration {
	d := g.cat.Get(name)
	if d == nil {
		g.fault(e, "%s", unknownTool(g.cat, name))
	}
	return d
}

func (g *guard) overHistory(c ast.CallExpr) {
	args := c.Args()
	name, ok := literal(args[1])
	if !ok {
		g.fault(args[1], "the tool is written out in the rule, not computed")
		return
	}
	d := g.known(args[1], name)
	if d == nil || len(args) < 3 {
		return
	}
	if c.FunctionName() == fnSum {
		arg, ok := literal(args[2])
		if !ok {
			g.fault(args[2], "the arg to add up is written out in the rule, not computed")
		} else if !declares(d, arg, "number", "integer") {
			g.fault(args[2], "tool %q declares no number %q", name, arg)
		}
		return
	}
	if args[2].Kind() != ast.MapKind {
		g.fault(args[2], "the args of the call are written as a map: {\"name\": value}")
		return
	}
	for _, entry := range args[2].AsMap().Entries() {
		key := entry.AsMapEntry().Key()
		if arg, ok := literal(key); !ok || !declares(d, arg) {
			g.fault(key, "tool %q declares no arg %q", name, arg)
		}
	}
}

// declares reports whether the tool's schema has the top-level arg, of one of
// the JSON types if any are given.
func declares(d *tool.Declaration, arg string, kinds ...string) bool {
	schemas := argSchemas(d, "/"+value.EscapePointer(arg))
	if len(kinds) == 0 {
		return len(schemas) > 0
	}
	for _, s := range schemas {
		for _, k := range kindsOf(s) {
			if slices.Contains(kinds, k) {
				return true
			}
		}
	}
	return false
}

// maxNear is how many names an error offers: more do not help.
const maxNear = 3

// unknownTool says so with the nearest names.
func unknownTool(cat *tool.Catalogue, name string) string {
	near := cat.Nearest(name, maxNear)
	if len(near) == 0 {
		return fmt.Sprintf("unknown tool %q", name)
	}
	return fmt.Sprintf("unknown tool %q; there is %s", name, strings.Join(near, ", "))
}
