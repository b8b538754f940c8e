package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// A Case is one row of the table of "policy test": a call, what led to it, and
// the wanted answer.
type Case struct {
	Name    string
	Tool    string
	Args    value.Value
	Author  AuthorKind
	Task    string               // whose tokens are granted, for a model's call
	Labels  map[string]Integrity // of args that came from an earlier step, by pointer; others are literals
	History []CaseCall
	Want    Effect
	Rule    string // id of a rule that must have spoken, "" for any
	Code    string // the code that it must have, "" for any
}

// A CaseCall is a call of a case's history.
type CaseCall struct {
	Tool         string
	Args, Output value.Value
	Status       string // "" is "ok"
}

// A Result is the outcome of a case.
type Result struct {
	Case     *Case
	Decision Decision
	Fault    string // why the case fails, "" when it passes
}

// Test judges every case of the document.
func (p *Policy) Test() []Result {
	out := make([]Result, len(p.doc.Cases))
	for i := range p.doc.Cases {
		out[i] = p.test(&p.doc.Cases[i])
	}
	return out
}

func (p *Policy) test(c *Case) Result {
	res := Result{Case: c}
	d := p.cat.Get(c.Tool)
	if d == nil {
		res.Fault = unknownTool(p.cat, c.Tool)
		return res
	}
	args := c.Args
	if args.IsZero() {
		args = value.ObjectOf()
	}
	if f := d.CheckArgs(args); f != nil {
		res.Fault = "the args would be refused before any policy: " + f.Message
		return res
	}
	s := p.Session("test", Author{Kind: c.Author, Grants: NewGrants(c.Task)})
	for i, h := range c.History {
		hd := p.cat.Get(h.Tool)
		if hd == nil {
			res.Fault = "history: " + unknownTool(p.cat, h.Tool)
			return res
		}
		status := h.Status
		if status == "" {
			status = statusOK
		}
		call := Call{Step: fmt.Sprintf("h%d", i+1), Tool: hd, Args: h.Args}
		if call.Args.IsZero() {
			call.Args = value.ObjectOf()
		}
		s.Begin(call)
		s.End(call, status, h.Output)
	}
	call := Call{Step: "call", Tool: d, Args: args}
	for pointer, integrity := range c.Labels {
		v, ok := args.AtPointer(pointer)
		if !ok {
			res.Fault = fmt.Sprintf("labels: the args have nothing at %q", pointer)
			return res
		}
		call.Origins = append(call.Origins, s.pretend(pointer, v, integrity))
	}
	res.Decision = s.Judge(call)
	switch {
	case res.Decision.Effect != c.Want:
		res.Fault = fmt.Sprintf("got %s, want %s", res.Decision.Effect, c.Want)
	case c.Code != "" && res.Decision.Code != c.Code:
		res.Fault = fmt.Sprintf("got code %q, want %q", res.Decision.Code, c.Code)
	case c.Rule != "" && !slices.Contains(res.Decision.Rules, c.Rule):
		res.Fault = fmt.Sprintf("rule %s did not speak; %s did", c.Rule, strings.Join(res.Decision.Rules, ", "))
	}
	return res
}

// pretend makes a step whose output is v with that integrity.
func (s *Session) pretend(pointer string, v value.Value, i Integrity) Origin {
	if i == User {
		return Origin{Pointer: pointer}
	}
	labels := &outputLabels{}
	if i == Trusted {
		labels.trusted = []pattern{{}}
	}
	step := "earlier" + pointer
	s.sources[step] = &source{Source: Source{Step: step}, labels: labels, output: v}
	return Origin{Pointer: pointer, Step: step}
}

func (r *reader) testCase(v value.Value, pointer string) Case {
	var c Case
	has := r.fields(v, pointer,
		entry{"name", r.textTo(&c.Name)},
		entry{"tool", r.textTo(&c.Tool)},
		entry{"args", valueTo(&c.Args)},
		entry{"author", func(at string, m value.Value) { c.Author = r.author(m, at) }},
		entry{"task", r.textTo(&c.Task)},
		entry{"labels", mapTo(r, &c.Labels, r.integrity)},
		entry{"history", listTo(r, &c.History, r.caseCall)},
		entry{"want", func(at string, m value.Value) { c.Want = r.effect(m, at) }},
		entry{"rule", r.textTo(&c.Rule)},
		entry{"code", r.textTo(&c.Code)})
	if v.Kind() == value.Object && (c.Tool == "" || !has["want"]) {
		r.fault(pointer, "a test needs tool and want")
	}
	return c
}

func (r *reader) caseCall(v value.Value, pointer string) CaseCall {
	var c CaseCall
	r.fields(v, pointer,
		entry{"tool", r.textTo(&c.Tool)},
		entry{"args", valueTo(&c.Args)},
		entry{"output", valueTo(&c.Output)},
		entry{"status", r.textTo(&c.Status)})
	return c
}

func (r *reader) author(v value.Value, pointer string) AuthorKind {
	switch r.text(v, pointer) {
	case Person.String():
		return Person
	case Planner.String():
		return Planner
	case Agent.String():
		return Agent
	}
	r.fault(pointer, "author is user, model or agent")
	return Planner
}

func (r *reader) integrity(v value.Value, pointer string) Integrity {
	text := r.text(v, pointer)
	for _, i := range []Integrity{User, Trusted, Untrusted} {
		if text == i.String() {
			return i
		}
	}
	r.fault(pointer, "a label is user, trusted or untrusted")
	return Untrusted
}

// maxExplained is the size from which a value is only measured: it is not
// flattened to show its first characters.
const maxExplained = 4 << 10

// Explain writes a decision for a person: the answer, the rules that spoke, and
// what was known of each part of the args. Values are JSON, shortened.
func (d Decision) Explain(t *tool.Declaration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", d.Effect, t.Name)
	if d.Code != "" {
		fmt.Fprintf(&b, " (%s): %s", d.Code, d.Message)
	}
	fmt.Fprintf(&b, "\nrules: %s\n", strings.Join(d.Rules, ", "))
	for _, f := range d.Facts {
		fmt.Fprintf(&b, "%s: %s, %s", f.Pointer, f.Role, f.Label)
		if f.Accepted != "" {
			fmt.Fprintf(&b, ", in the list %s", f.Accepted)
		}
		switch size := f.Value.Size(); {
		case size > maxExplained:
			fmt.Fprintf(&b, ": %s", count.Of(size, "byte"))
		case size > 0:
			fmt.Fprintf(&b, ": %s", clip(f.Value.String()))
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "policy: %s\n", d.Policy)
	return b.String()
}
