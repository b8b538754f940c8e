// Package policy decides what a call may do by who could have written its args.
//
//	cat, _ := tool.NewCatalogue(&sendMail, &search)
//	p, err := policy.Default().Compile(cat)
//
//	// Before anything runs: what will be allowed, asked or denied.
//	flow := p.Check(plan, policy.Author{Kind: policy.Planner, Grants: policy.NewGrants(task)})
//
//	// At the gate, on real values.
//	s := p.Session(runID, author)
//	call := policy.Call{Step: "s2", Tool: &sendMail, Args: args, Origins: policy.Origins(plan, 1), Promise: flow.Step(1)}
//	if d := s.Judge(call); d.Effect == policy.Allow {
//		s.Begin(call)
//		// … the call is made …
//		s.End(call, "ok", output)
//	}
//
// A fixed, checked plan already stops an injected call: text that a tool returns
// cannot add a step. It does not stop injected data. So every JSON leaf has a
// [Label], the answer to each call is allow, ask or deny, and when several have
// something to say, deny wins over ask and ask over allow (spec/policy.md).
//
// The package is pure: it has no clock and does no I/O, and the same calls give
// the same decisions.
package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// Base is what happens to a call about which no rule says anything.
type Base string

const (
	baseDefault Base = "default"
	baseAllow   Base = "allow"
	baseAsk     Base = "ask"
	baseDeny    Base = "deny"
)

func (b Base) effect() Effect {
	switch b {
	case baseAllow:
		return Allow
	case baseAsk:
		return Ask
	}
	return Deny
}

func (b Base) code() string { return b.effect().code() }

// A Document is a policy as it is written. The zero Document is "policy:
// default" (spec/policy.md): read-only tools are allowed; an effect that is not
// destructive is allowed when every target is the user's or trusted; a
// destructive one, or one with an untrusted target, asks; an effect without
// targets asks when what the model had read is untrusted.
//
// Whatever it says, an untrusted host, path or program is denied unless Accept
// names a closed list, and a secret goes only into an arg of kind secret.
type Document struct {
	// Base is "default" (or ""), or an effect: "allow", "ask" or "deny" for
	// every call about which no rule speaks.
	Base    Base
	Lists   map[string][]string // closed lists of exact values, for Accept and for rules (lists.NAME)
	Accept  []Accept
	Outputs map[string]Output // labels of what tools return, by tool
	Rules   []Rule
	Cases   []Case // the table of "policy test"; not part of the digest
}

// An Accept makes an untrusted value usable if it is in a closed list: the typed
// predicate of spec/policy.md, Labels.
type Accept struct {
	Tool string // a name, or "*"
	Arg  string // pointer pattern
	List string // name in Lists

	at, argAt span
}

// misnamed says what is wrong with an Arg that the tool does not have, or with one
// for every tool that none has; "" for nothing.
func (a *Accept) misnamed(cat *tool.Catalogue) string {
	if a.Tool != "*" {
		return cat.Get(a.Tool).MisnamedArg(a.Arg)
	}
	for _, t := range cat.All() {
		if t.MisnamedArg(a.Arg) == "" {
			return ""
		}
	}
	return fmt.Sprintf("no tool has an arg %s", a.Arg)
}

// Default is the document that "policy: default" stands for.
func Default() *Document { return &Document{Base: baseDefault} }

// A Policy is a document compiled against a catalogue. It is immutable and safe
// for concurrent use.
type Policy struct {
	none    bool
	base    Base
	digest  value.Digest
	doc     *Document
	cat     *tool.Catalogue
	members map[string]map[string]bool
	lists   *record
	accept  []accept
	outputs map[string]*outputLabels
	byTool  map[string][]*ruleFor
	envs    map[string]*toolEnv
	roles   map[string]roles
}

type accept struct {
	tool string
	arg  pattern
	list string
}

// ruleFor is a rule with its condition for one tool.
type ruleFor struct {
	*Rule
	*condition
}

// None allows every call and asks nothing: a run without any policy.
var None = &Policy{none: true}

// A Fault is something wrong with a document.
type Fault struct {
	Rule    string // id of the rule, "" for the document
	Line    int    // from 1; 0 when the document was not read from text
	Column  int
	Message string
}

func (f Fault) String() string {
	var b strings.Builder
	if f.Line > 0 {
		fmt.Fprintf(&b, "line %d, column %d: ", f.Line, f.Column)
	}
	if f.Rule != "" {
		fmt.Fprintf(&b, "rule %s: ", f.Rule)
	}
	b.WriteString(f.Message)
	return b.String()
}

// An Error is a document that was refused.
type Error struct {
	Faults []Fault // never empty; at most MaxFaults
}

// MaxFaults is how many faults an error lists: one mistake in a rule about every
// tool of a catalogue is not a hundred mistakes to read.
const MaxFaults = 100

func (e *Error) Error() string {
	if n := len(e.Faults) - 1; n > 0 {
		return fmt.Sprintf("%s (and %d more)", e.Faults[0], n)
	}
	return e.Faults[0].String()
}

// Compile types every rule against the schemas of the tools that it speaks of.
// The error is an [*Error] with every fault: an unknown tool, list or field, a
// wrong type, an arg or an output that a tool does not declare, a field that need
// not be there and is read without has(), a condition that is always the same.
func (d *Document) Compile(cat *tool.Catalogue) (*Policy, error) {
	p := &Policy{
		doc: d, cat: cat, digest: d.Digest(), base: d.Base,
		members: map[string]map[string]bool{}, outputs: map[string]*outputLabels{},
		byTool: map[string][]*ruleFor{}, envs: map[string]*toolEnv{}, roles: map[string]roles{},
	}
	var faults []Fault
	fault := func(rule string, at span, format string, args ...any) {
		line, column := at.position(1, 0)
		faults = append(faults, Fault{rule, line, column, fmt.Sprintf(format, args...)})
	}
	switch p.base {
	case "":
		p.base = baseDefault
	case baseDefault, baseAllow, baseAsk, baseDeny:
	default:
		fault("", span{}, "base %q: it is default, allow, ask or deny", p.base)
	}
	for _, t := range cat.All() {
		r, err := compileRoles(t)
		if err != nil {
			fault("", span{}, "%v", err)
		}
		p.roles[t.Name] = r
	}
	for name, entries := range d.Lists {
		p.members[name] = map[string]bool{}
		for _, e := range entries {
			p.members[name][e] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Outputs)) {
		o := d.Outputs[name]
		t := cat.Get(name)
		if t == nil {
			fault("", o.at, "outputs: %s", unknownTool(cat, name))
		}
		p.outputs[name] = &outputLabels{untrustedText: o.UntrustedText}
		for _, list := range []struct {
			from []string
			to   *[]pattern
		}{{o.Trusted, &p.outputs[name].trusted}, {o.Untrusted, &p.outputs[name].untrusted}, {o.Secret, &p.outputs[name].secret}} {
			for _, text := range list.from {
				labelled, err := parsePattern(text)
				if err != nil {
					fault("", o.places[text], "outputs of %q: %v", name, err)
				} else if t != nil {
					if wrong := t.MisnamedOutput(text); wrong != "" {
						fault("", o.places[text], "outputs: %s", wrong)
					}
				}
				*list.to = append(*list.to, labelled)
			}
		}
	}
	for _, a := range d.Accept {
		arg, err := parsePattern(a.Arg)
		switch {
		case err != nil:
			fault("", a.at, "accept: %v", err)
		case a.Tool != "*" && cat.Get(a.Tool) == nil:
			fault("", a.at, "accept: %s", unknownTool(cat, a.Tool))
		case a.misnamed(cat) != "":
			fault("", a.argAt, "accept: %s", a.misnamed(cat))
		case p.members[a.List] == nil:
			fault("", a.at, "accept: there is no list %q", a.List)
		}
		p.accept = append(p.accept, accept{a.Tool, arg, a.List})
	}
	c, err := newCompiler(cat, d.Lists)
	if err != nil {
		return nil, fmt.Errorf("the language of rules: %w", err)
	}
	p.lists = c.lists
	seen := map[string]bool{}
	for i := range d.Rules {
		r := &d.Rules[i]
		if r.ID == "" || seen[r.ID] || r.ID == "base" || strings.HasPrefix(r.ID, "default.") || strings.HasPrefix(r.ID, "lists.") {
			fault(r.ID, r.at, "a rule needs an id of its own, which is not \"base\" and starts neither with \"default.\" nor with \"lists.\"")
		}
		seen[r.ID] = true
		names, unknown := r.toolNames(cat)
		for _, u := range unknown {
			fault(r.ID, r.at, "%s", unknownTool(cat, u))
		}
		if len(r.Tools) == 0 {
			fault(r.ID, r.at, "a rule names the tools that it speaks of, or \"*\"")
		}
		for _, name := range names {
			t := cat.Get(name)
			cond, bad := c.compile(r, t)
			faults = append(faults, bad...)
			p.byTool[name] = append(p.byTool[name], &ruleFor{r, cond})
			if p.envs[name], err = c.envOf(t); err != nil {
				fault(r.ID, r.at, "tool %q: %v", name, err)
			}
		}
	}
	if len(faults) > 0 {
		return nil, &Error{Faults: faults[:min(len(faults), MaxFaults)]}
	}
	return p, nil
}

// AsError is the [*Error] that err is or wraps.
func AsError(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

// Digest is the digest of what the policy means.
func (p *Policy) Digest() value.Digest { return p.digest }

// Document is what the policy was compiled from; it must not be changed.
func (p *Policy) Document() *Document { return p.doc }

// rolesOf are the roles of a tool's args; a tool that the catalogue did not have
// is compiled anew.
func (p *Policy) rolesOf(d *tool.Declaration) (roles, error) {
	if r, ok := p.roles[d.Name]; ok {
		return r, nil
	}
	return compileRoles(d)
}

// accepts is the name of the closed list that has every leaf of v, which is an
// arg that some Accept speaks of; "" if there is none.
func (p *Policy) accepts(name, pointer string, v value.Value) string {
	for _, a := range p.accept {
		if (a.tool == "*" || a.tool == name) && p.inList(a, pointer, v) {
			return a.list
		}
	}
	return ""
}

func (p *Policy) inList(a accept, pointer string, v value.Value) bool {
	if v.Len() > 0 {
		for i := range v.Len() {
			if !p.inList(a, childPointer(pointer, v, i), v.At(i)) {
				return false
			}
		}
		return true
	}
	text, ok := v.Text()
	return ok && a.arg.to(pointer) == above && p.members[a.list][text]
}

// mayAccept reports whether some list could make a value there usable.
func (p *Policy) mayAccept(name, pointer string) bool {
	for _, a := range p.accept {
		if (a.tool == "*" || a.tool == name) && a.arg.to(pointer) != apart {
			return true
		}
	}
	return false
}

// LooksBack reports whether some rule looks at the history: then the order in
// which calls are judged is part of the answer, and a run makes one call at a
// time so that parallelism cannot change it.
func (p *Policy) LooksBack() bool {
	for _, rules := range p.byTool {
		for _, r := range rules {
			if r.history {
				return true
			}
		}
	}
	return false
}

// needsRun reports whether only the run can evaluate the rule: it looks at the
// history, or at an arg of which a reference is a part.
func (r *ruleFor) needsRun(c *Call) bool {
	if r.program == nil {
		return false
	}
	if r.history {
		return true
	}
	for _, o := range c.Origins {
		name, _, _ := strings.Cut(strings.TrimPrefix(o.Pointer, "/"), "/")
		if r.allArgs || o.Pointer == "" || r.args[value.UnescapePointer(name)] {
			return true
		}
	}
	return false
}
