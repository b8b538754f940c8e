package policy

import (
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// AuthorKind is who writes calls.
type AuthorKind uint8

// The authors (spec/policy.md, Labels).
const (
	Person  AuthorKind = iota // literals are the user's own
	Planner                   // a model that had only the task: only its granted tokens are
	Agent                     // a model in a loop: as a person until it saw something untrusted, then as a planner
)

// String is the kind as rules see it.
func (k AuthorKind) String() string {
	switch k {
	case Person:
		return "user"
	case Planner:
		return "model"
	}
	return "agent"
}

// An Author wrote the calls that a session judges. The zero Author is a person.
type Author struct {
	Kind   AuthorKind
	Grants *Grants // of the task; nil grants nothing
	// Seen is the join of everything that the model read before it wrote:
	// untrusted tool descriptions, for a planner. A session adds the results that
	// an agent is given.
	Seen Label
}

// A Call is one call that wants to be made.
type Call struct {
	Step    string
	Tool    *tool.Declaration
	Args    value.Value // resolved
	Origins []Origin    // of what in Args is not a literal
	// Promise is what the check said of this step, nil if there was no check. A
	// call that turns out worse asks at least.
	Promise *Promise
}

// Approved is the call after a person approved it as it stands: every value in it
// is now that person's, and so is what the call chooses. Begin and End it in this
// form.
func (c Call) Approved() Call {
	c.Origins = []Origin{{}}
	return c
}

// A Session judges the calls of one run. It holds the history and the outputs'
// labels, and nothing of the world: fed the same calls and results in the same
// order it gives the same decisions. It is not safe for concurrent use.
type Session struct {
	policy  *Policy
	author  Author
	run     string
	sources map[string]*source // by step
	history history
	begun   map[string]*past
	list    ref.Val // history as a CEL list; nil when it must be made anew
}

// source is the output of a step, labelled when somebody asks.
type source struct {
	Source
	labels *outputLabels
	args   labeller // of the call that gave the output: what went in taints what came out
	taint  *Label   // of args, when it was first asked for
	output value.Value
	static bool // there is no output yet: labels are those of the declarations
	memo   map[string]Label
	paths  map[string]resolved // what references' paths name in output
}

// resolved is what a path names; ok is false when it names nothing.
type resolved struct {
	pointer string
	value   value.Value
	ok      bool
}

// resolve is pointerOf, remembered: a gate asks at least twice for each
// reference, and a rule that reads labels once more.
func (s *source) resolve(path string, hasPath bool) resolved {
	if !hasPath {
		return resolved{"", s.output, true}
	}
	if r, ok := s.paths[path]; ok {
		return r
	}
	var r resolved
	r.pointer, r.value, r.ok = pointerOf(s.output, path)
	if s.paths == nil {
		s.paths = map[string]resolved{}
	}
	s.paths[path] = r
	return r
}

// Session starts the judging of one run.
func (p *Policy) Session(run string, author Author) *Session {
	return &Session{policy: p, author: author, run: run, sources: map[string]*source{}, begun: map[string]*past{}}
}

// Begin records that the call was let through and is about to be made: a limit
// on how often a tool is called counts it from now on. Begin of a step that
// began already changes nothing (a retry, a resume).
func (s *Session) Begin(c Call) {
	if s.begun[c.Step] != nil {
		return
	}
	p := &past{step: c.Step, tool: c.Tool.Name, status: StatusRunning, args: c.Args}
	s.history.calls = append(s.history.calls, p)
	s.begun[c.Step] = p
	s.list = nil
}

// End records how the call ended: a status of spec/plan.md §3, and the output
// when that is "ok". In an agent the model is about to read the output.
func (s *Session) End(c Call, status string, output value.Value) {
	s.Begin(c)
	p := s.begun[c.Step]
	p.status, p.output = status, output
	src := Source{Step: c.Step, Tool: c.Tool.Name}
	if status == statusOK {
		author := s.author // as it was when the call was made
		s.sources[c.Step] = &source{Source: src, labels: s.policy.outputs[c.Tool.Name], output: output,
			args: labeller{session: s, call: &c, author: &author}}
	}
	if s.author.Kind == Agent {
		// A failure's text is the tool's too.
		l := Label{Integrity: Untrusted}
		if status == statusOK {
			l = s.sources[c.Step].label("", output)
		}
		if l.Integrity == Untrusted {
			l.Sources = []Source{src}
			s.author.Seen = s.author.Seen.Join(l)
		}
	}
}

// Saw adds something that the model has read besides results: the description of
// a tool whose server is not trusted.
func (s *Session) Saw(l Label) { s.author.Seen = s.author.Seen.Join(l) }

// Seen is the join of what the model has read.
func (s *Session) Seen() Label { return s.author.Seen }

// Label is the label of what a path names in the output of a step, as a
// reference would take it. Without such an output it is untrusted.
func (s *Session) Label(step, path string, hasPath bool) Label {
	src := s.sources[step]
	if src == nil {
		return Label{Integrity: Untrusted, Sources: []Source{{Step: step}}}
	}
	r := src.resolve(path, hasPath)
	if !r.ok {
		return Label{Integrity: Untrusted, Sources: []Source{src.Source}}
	}
	return src.label(r.pointer, r.value)
}

func (s *source) label(pointer string, v value.Value) Label {
	if l, ok := s.memo[pointer]; ok {
		return l
	}
	l := s.labels.label(v, pointer)
	l.Sources = []Source{s.Source}
	l = l.Join(s.tainted())
	if s.memo == nil {
		s.memo = map[string]Label{}
	}
	s.memo[pointer] = l
	return l
}

// tainted is what the args of the call pass on.
func (s *source) tainted() Label {
	if s.taint == nil {
		var l Label
		if s.args.call != nil {
			l = s.args.all().tainted()
		}
		s.taint = &l
	}
	return *s.taint
}

// labeller labels the args of one call, part by part, as somebody asks.
type labeller struct {
	session *Session
	call    *Call
	author  *Author
}

// literal is the label of a literal leaf.
func (l *labeller) literal(pointer string, v value.Value) Label {
	return l.author.literal(l.call.Tool, pointer, v)
}

func (a *Author) literal(d *tool.Declaration, pointer string, v value.Value) Label {
	if a.trusted() || a.Grants.Allows(d, pointer, v) {
		return Label{}
	}
	return Label{Integrity: Untrusted, Sources: a.Seen.Sources}
}

// ownName reports whether the name of a member that a literal object has is as
// good as the user's own: names can be targets too ({"eve@evil.test": "read"}),
// and a model may choose those that no schema declares.
func (a *Author) ownName(d *tool.Declaration, object, name string) bool {
	if a.trusted() {
		return true
	}
	for _, s := range argSchemas(d, object) {
		if props, ok := s.Get("properties"); ok {
			if _, ok := props.Get(name); ok {
				return true
			}
		}
	}
	return a.Grants != nil && a.Grants.allowsText(name, nil, false, false)
}

// trusted reports whether whatever the author writes is the user's own.
func (a *Author) trusted() bool {
	return a.Kind == Person || a.Kind == Agent && a.Seen.Integrity != Untrusted
}

// origin is the origin that speaks of the pointer: the one with the longest
// pointer at or above it.
func (l *labeller) origin(pointer string) *Origin {
	var best *Origin
	for i := range l.call.Origins {
		o := &l.call.Origins[i]
		if holds(o.Pointer, pointer) && (best == nil || len(o.Pointer) >= len(best.Pointer)) {
			best = o
		}
	}
	return best
}

// split reports whether an origin starts below the pointer.
func (l *labeller) split(pointer string) bool {
	for i := range l.call.Origins {
		if p := l.call.Origins[i].Pointer; len(p) > len(pointer) && holds(pointer, p) {
			return true
		}
	}
	return false
}

// of is the label of the value v at the pointer, joined over its leaves.
func (l *labeller) of(pointer string, v value.Value) Label {
	var out Label
	l.parts(pointer, v, func(_ string, _ value.Value, label Label) { out = out.Join(label) })
	return out
}

// at is [labeller.of] for a pointer alone.
func (l *labeller) at(pointer string) Label {
	v, ok := l.call.Args.AtPointer(pointer)
	if !ok {
		return Label{}
	}
	return l.of(pointer, v)
}

// all is the label of the args as a whole.
func (l *labeller) all() Label { return l.of("", l.call.Args) }

// parts visits v at the pointer in the largest pieces that have one origin: a
// literal leaf, or what one reference put there.
func (l *labeller) parts(pointer string, v value.Value, visit func(pointer string, v value.Value, label Label)) {
	if !l.split(pointer) {
		if o := l.origin(pointer); o != nil {
			visit(pointer, v, l.fromOrigin(o, pointer, v))
			return
		}
		if l.author.Kind == Person {
			visit(pointer, v, Label{})
			return
		}
	}
	if v.Len() == 0 {
		visit(pointer, v, l.literal(pointer, v))
		return
	}
	for i := range v.Len() {
		child := childPointer(pointer, v, i)
		if v.Kind() == value.Object && pointer != "" && l.origin(pointer) == nil && !l.author.ownName(l.call.Tool, pointer, v.Key(i)) {
			visit(child, v.At(i), Label{Integrity: Untrusted, Sources: l.author.Seen.Sources})
		}
		l.parts(child, v.At(i), visit)
	}
}

func (l *labeller) fromOrigin(o *Origin, pointer string, v value.Value) Label {
	if o.Step == "" {
		return Label{}
	}
	src := l.session.sources[o.Step]
	if src == nil {
		return Label{Integrity: Untrusted, Sources: []Source{{Step: o.Step}}}
	}
	if src.static {
		label, _ := src.labels.declared(presumed(o.Path, o.HasPath))
		label.Sources = []Source{src.Source}
		return label.Join(src.tainted())
	}
	r := src.resolve(o.Path, o.HasPath)
	if !r.ok {
		return Label{Integrity: Untrusted, Sources: []Source{src.Source}}
	}
	return src.label(r.pointer+pointer[len(o.Pointer):], v)
}

// childPointer is the pointer of element or member i of v.
func childPointer(pointer string, v value.Value, i int) string {
	if v.Kind() == value.List {
		return pointer + "/" + strconv.Itoa(i)
	}
	return pointer + "/" + value.EscapePointer(v.Key(i))
}

// activation gives the rules about one call their variables.
type activation struct {
	session *Session
	args    object
	labels  handle
	tool    handle
	step    handle
	run     handle
	lists   handle
	history handle
	faults  evalFaults
}

func (j *judgement) activation() *activation {
	s, env := j.session, j.session.policy.envs[j.call.Tool.Name]
	return &activation{
		session: s,
		args:    object{json: j.call.Args, shape: env.shape},
		labels:  handle{env.labels, &j.labels},
		tool:    handle{toolRecord, j.call.Tool},
		step:    handle{stepRecord, j.call},
		run:     handle{runRecord, s},
		lists:   handle{s.policy.lists, nil},
		history: handle{historyRecord, &s.history},
	}
}

// historyList is the history as rules range over it.
func (s *Session) historyList() ref.Val {
	if s.list == nil {
		calls := make([]ref.Val, len(s.history.calls))
		for i, c := range s.history.calls {
			calls[i] = &handle{callRecord, c}
		}
		s.list = types.NewRefValList(adapter{}, calls)
	}
	return s.list
}

// secretName is the name in a placeholder {"$secret": "name"}.
func secretName(v value.Value) (name string, ok bool) {
	if v.Kind() != value.Object || v.Len() != 1 || v.Key(0) != "$secret" {
		return "", false
	}
	name, ok = v.At(0).Text()
	return name, ok && strings.TrimSpace(name) != ""
}
