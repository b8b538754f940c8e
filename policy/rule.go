package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/interpreter"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// Bounds of a condition. A rule that a person can review is far below them.
const (
	maxCondition = 8 << 10   // characters
	maxNesting   = 64        // of expressions
	maxCost      = 1_000_000 // units of CEL's cost, about a second at the worst; only loops can reach it
)

// A Rule says what happens to the calls of some tools when a condition holds.
type Rule struct {
	ID      string
	Effect  Effect
	Tools   []string // names; "*" is every tool of the catalogue
	When    string   // a CEL condition; "" holds always
	Message string   // for the person who is asked or refused; "" makes one from the id

	at span // of When in the document
}

// condition is a compiled When for one tool.
type condition struct {
	program cel.Program
	args    map[string]bool // the top-level args that it reads
	allArgs bool
	history bool
	looping bool // its cost is counted while it runs
}

// compiler compiles the conditions of one policy.
type compiler struct {
	cat   *tool.Catalogue
	base  *cel.Env
	p     *provider
	lists *record
	tools map[string]*toolEnv
}

// toolEnv is the language of the rules about one tool.
type toolEnv struct {
	env    *cel.Env
	shape  *shape
	labels *record
}

func newCompiler(cat *tool.Catalogue, lists map[string][]string) (*compiler, error) {
	p := &provider{Provider: types.NewEmptyRegistry(), records: map[string]*record{}}
	for _, r := range []*record{callRecord, historyRecord, toolRecord, stepRecord, runRecord, labelRecord} {
		p.add(r)
	}
	c := &compiler{cat: cat, p: p, lists: newRecord("lists"), tools: map[string]*toolEnv{}}
	for name, entries := range lists {
		list := types.NewStringList(types.DefaultTypeAdapter, entries)
		c.lists.fields[name] = &field{
			shape: &shape{cel: cel.ListType(cel.StringType)}, required: true,
			isSet: func(any) bool { return true },
			get:   func(any) (any, error) { return list, nil },
		}
	}
	p.add(c.lists)
	opts := append(library(),
		cel.CustomTypeProvider(p),
		cel.CustomTypeAdapter(adapter{}),
		cel.Variable("tool", toolRecord.cel),
		cel.Variable("step", stepRecord.cel),
		cel.Variable("run", runRecord.cel),
		cel.Variable("lists", c.lists.cel),
		cel.Variable("history", cel.ListType(callRecord.cel)),
		cel.Variable(varHistory, historyType),
	)
	var err error
	c.base, err = cel.NewCustomEnv(opts...)
	return c, err
}

func (c *compiler) envOf(d *tool.Declaration) (*toolEnv, error) {
	if t := c.tools[d.Name]; t != nil {
		return t, nil
	}
	t := &toolEnv{shape: &shape{cel: mapType}, labels: newRecord("labels of " + d.Name)}
	if d.Input != nil {
		root := d.Input.Value()
		if sh, _ := c.p.shapeOf(root, root, "args of "+d.Name, 0); sh.record != nil {
			t.shape = sh
			for name, f := range sh.record.fields {
				t.labels.fields[name] = labelField(name, f)
			}
		}
	}
	c.p.add(t.labels)
	var err error
	t.env, err = c.base.Extend(cel.Variable("args", t.shape.cel), cel.Variable("labels", t.labels.cel))
	c.tools[d.Name] = t
	return t, err
}

// compile types a rule's condition for one tool. The faults have positions in
// the document.
func (c *compiler) compile(r *Rule, d *tool.Declaration) (*condition, []Fault) {
	if r.When == "" {
		return &condition{}, nil
	}
	refuse := func(line, column int, format string, args ...any) Fault {
		l, col := r.at.position(line, column)
		return Fault{Rule: r.ID, Line: l, Column: col, Message: fmt.Sprintf(format, args...)}
	}
	t, err := c.envOf(d)
	if err != nil {
		return nil, []Fault{refuse(1, 0, "tool %q: %v", d.Name, err)}
	}
	checked, issues := t.env.Compile(r.When)
	if issues.Err() != nil {
		var faults []Fault
		for _, e := range issues.Errors() {
			faults = append(faults, refuse(e.Location.Line(), e.Location.Column(), "for tool %q: %s", d.Name, tidy(e.Message)))
		}
		return nil, faults
	}
	if !checked.OutputType().IsExactType(cel.BoolType) {
		return nil, []Fault{refuse(1, 0, "for tool %q: the condition is a %s, not true or false", d.Name, checked.OutputType())}
	}
	tree := checked.NativeRep()
	g := &guard{ast: tree, records: c.p.records, cat: c.cat, args: map[string]bool{}}
	g.decider = &decider{guard: g, left: maxCases}
	g.walk(tree.Expr(), nil)
	if len(g.faults) == 0 {
		g.varies(tree.Expr(), "condition")
	}
	if len(g.faults) > 0 {
		var faults []Fault
		for _, f := range g.faults {
			loc := tree.SourceInfo().GetStartLocation(f.id)
			faults = append(faults, refuse(loc.Line(), loc.Column(), "for tool %q: %s", d.Name, f.message))
		}
		return nil, faults
	}
	opts := []cel.ProgramOption{
		cel.CustomDecoratorV2(watch),
		cel.OptimizeRegex(compiledPattern),
	}
	if g.looping {
		opts = append(opts, cel.CostLimit(maxCost))
	}
	program, err := t.env.Program(checked, opts...)
	if err != nil {
		return nil, []Fault{refuse(1, 0, "for tool %q: %v", d.Name, err)}
	}
	return &condition{program: program, args: g.args, allArgs: g.allArgs, history: g.history, looping: g.looping}, nil
}

// tidy takes CEL's own names for our macros out of its messages.
func tidy(message string) string {
	return strings.NewReplacer("'@", "'", "undeclared reference to", "unknown name").Replace(message)
}

// compiledPattern compiles the pattern of matches once, when the rule is loaded.
var compiledPattern = &interpreter.RegexOptimization{
	Function:   "matches",
	RegexIndex: 1,
	Factory: func(call interpreter.InterpretableCall, pattern string) (interpreter.InterpretableCall, error) {
		re, err := anchored(pattern)
		if err != nil {
			return nil, err
		}
		return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(values ...ref.Val) ref.Val {
			s, ok := values[0].(types.String)
			if !ok {
				return types.MaybeNoSuchOverloadErr(values[0])
			}
			return types.Bool(re.MatchString(string(s)))
		}), nil
	},
}

// varFaults is the variable that holds the errors of one evaluation.
const varFaults = "@faults"

// evalFaults are the errors of one evaluation, also those that CEL absorbed: an
// error under || whose other side is true leaves no trace in the result, and
// would let a rule look sound that could not be judged.
type evalFaults struct {
	missing *missingFact
	other   error
}

func (f *evalFaults) add(err error) {
	var m *missingFact
	if errors.As(err, &m) {
		f.missing = m
	} else if f.other == nil {
		f.other = err
	}
}

// watch makes a node of a program report the errors that it gives.
func watch(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	switch i := i.(type) {
	case interpreter.InterpretableConst, *watched, *watchedAttribute, *watchedCall:
		return i, nil
	case interpreter.InterpretableAttribute:
		return &watchedAttribute{i}, nil
	case interpreter.InterpretableCall:
		return &watchedCall{i}, nil
	}
	return &watched{i}, nil
}

type watched struct{ interpreter.InterpretableV2 }

func (w *watched) Exec(f *interpreter.ExecutionFrame) ref.Val {
	return report(f, w.InterpretableV2.Exec(f))
}

type watchedAttribute struct {
	interpreter.InterpretableAttribute
}

func (w *watchedAttribute) Exec(f *interpreter.ExecutionFrame) ref.Val {
	return report(f, w.InterpretableAttribute.Exec(f))
}

// watchedCall stays a call, so that the pattern of a matches is still found.
type watchedCall struct{ interpreter.InterpretableCall }

func (w *watchedCall) Exec(f *interpreter.ExecutionFrame) ref.Val {
	return report(f, w.InterpretableCall.Exec(f))
}

func report(f *interpreter.ExecutionFrame, v ref.Val) ref.Val {
	if err, bad := v.(*types.Err); bad {
		if to, ok := f.ResolveName(varFaults); ok {
			to.(*evalFaults).add(err)
		}
	}
	return v
}

// toolNames are the tools that a rule speaks of.
func (r *Rule) toolNames(cat *tool.Catalogue) (names []string, unknown []string) {
	for _, t := range r.Tools {
		switch {
		case t == "*":
			for _, d := range cat.All() {
				if !slices.Contains(names, d.Name) {
					names = append(names, d.Name)
				}
			}
		case cat.Get(t) == nil:
			unknown = append(unknown, t)
		case !slices.Contains(names, t):
			names = append(names, t)
		}
	}
	return names, unknown
}

// labelField reads the label of a top-level arg: the join over its leaves.
func labelField(name string, arg *field) *field {
	return &field{
		shape: &shape{cel: labelRecord.cel}, required: arg.required,
		isSet: func(l any) bool { return arg.isSet(&object{json: l.(*labeller).call.Args}) },
		get: func(l any) (any, error) {
			label := l.(*labeller).at("/" + value.EscapePointer(name))
			return &handle{labelRecord, &label}, nil
		},
	}
}

func textField[T any](get func(*T) string) *field {
	return &field{
		shape: &shape{cel: cel.StringType}, required: true,
		isSet: func(any) bool { return true },
		get:   func(v any) (any, error) { return types.String(get(v.(*T))), nil },
	}
}

// wordField is a text that is one of a few words.
func wordField[T any](get func(*T) string, words ...string) *field {
	f := textField(get)
	f.words = words
	return f
}

func flagField[T any](get func(*T) bool) *field {
	return &field{
		shape: &shape{cel: cel.BoolType}, required: true,
		isSet: func(any) bool { return true },
		get:   func(v any) (any, error) { return types.Bool(get(v.(*T))), nil },
	}
}

// The records of the variables that every rule has.
var (
	toolRecord = recordWith("tool", map[string]*field{
		"name":        textField(func(d *tool.Declaration) string { return d.Name }),
		"source":      textField(func(d *tool.Declaration) string { return d.Source }),
		"read_only":   flagField(func(d *tool.Declaration) bool { return d.Effects.ReadOnly }),
		"destructive": flagField(func(d *tool.Declaration) bool { return !d.Effects.ReadOnly && d.Effects.Destructive }),
		"idempotent":  flagField(func(d *tool.Declaration) bool { return d.Effects.Idempotent }),
		"open_world":  flagField(func(d *tool.Declaration) bool { return d.Effects.OpenWorld }),
	})
	stepRecord = recordWith("step", map[string]*field{
		"id": textField(func(c *Call) string { return c.Step }),
	})
	runRecord = recordWith("run", map[string]*field{
		"id":     textField(func(s *Session) string { return s.run }),
		"author": wordField(func(s *Session) string { return s.author.Kind.String() }, Person.String(), Planner.String(), Agent.String()),
	})
	labelRecord = recordWith("label", map[string]*field{
		"integrity": wordField(func(l *Label) string { return l.Integrity.String() }, User.String(), Trusted.String(), Untrusted.String()),
		"secrecy": wordField(func(l *Label) string {
			if l.Secret {
				return "secret"
			}
			return "public"
		}, "public", "secret"),
		"sources": {
			shape: &shape{cel: cel.ListType(cel.StringType)}, required: true,
			isSet: func(any) bool { return true },
			get: func(v any) (any, error) {
				var steps []string
				for _, s := range v.(*Label).Sources {
					steps = append(steps, s.Step)
				}
				return types.NewStringList(types.DefaultTypeAdapter, steps), nil
			},
		},
	})
)

func recordWith(name string, fields map[string]*field) *record {
	r := newRecord(name)
	r.fields = fields
	return r
}
