package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/value"
)

// span is where a piece of text starts in the file that the document came from;
// the zero span is nowhere.
type span struct {
	line, column int
	block        bool // the text stands on the lines that follow
}

// position is the place of a line (from 1) and a column (from 0) of the text.
func (s span) position(line, column int) (int, int) {
	switch {
	case s.line == 0:
		return 0, 0
	case s.block:
		return s.line + line, column + 1
	case line > 1:
		return s.line + line - 1, column + 1
	}
	return s.line, s.column + column
}

// Read reads the policy section of a configuration strictly: the word "default",
// or a mapping.
//
//	base: default                      # or allow, ask, deny: for a call about which no rule speaks
//	lists: {contacts: [ann@example.com]}
//	accept:
//	  - {tool: send_email, arg: /recipients, list: contacts}
//	outputs:
//	  search: {trusted: [/*/id], untrusted: [/*/id/note], secret: [/*/token]}
//	rules:
//	  - id: small
//	    effect: deny
//	    tools: [transfer]
//	    when: sum("transfer", "amount") + args.amount > 500.0
//	    message: at most 500 a run
//	tests:
//	  - {name: too much, tool: transfer, args: {amount: 501}, want: deny, rule: small}
//
// position gives the line and column of a pointer into the section, from 1; nil
// leaves faults without a place. The error is an [*Error] with every fault.
func Read(section value.Value, position func(pointer string) (line, column int)) (*Document, error) {
	r := &reader{position: position}
	doc := r.document(section)
	if len(r.faults) > 0 {
		return nil, &Error{Faults: r.faults[:min(len(r.faults), MaxFaults)]}
	}
	return doc, nil
}

type reader struct {
	position func(string) (int, int)
	faults   []Fault
}

func (r *reader) span(pointer string) span {
	if r.position == nil {
		return span{}
	}
	line, column := r.position(pointer)
	return span{line: line, column: column}
}

func (r *reader) fault(pointer, format string, args ...any) {
	s := r.span(pointer)
	r.faults = append(r.faults, Fault{Line: s.line, Column: s.column, Message: strings.TrimPrefix(pointer+": ", ": ") + fmt.Sprintf(format, args...)})
}

// members ranges over an object.
func (r *reader) members(v value.Value, pointer string, read func(key, at string, v value.Value)) {
	if v.Kind() != value.Object {
		r.fault(pointer, "this is a %s; write a mapping", v.Kind())
		return
	}
	for k, m := range v.Members() {
		read(k, pointer+"/"+value.EscapePointer(k), m)
	}
}

// An entry is one key of a mapping, and what reads it.
type entry struct {
	key  string
	read func(at string, v value.Value)
}

// fields reads a mapping that has no other keys, and reports which it has.
func (r *reader) fields(v value.Value, pointer string, fields ...entry) (has map[string]bool) {
	has = map[string]bool{}
	r.members(v, pointer, func(key, at string, m value.Value) {
		i := slices.IndexFunc(fields, func(f entry) bool { return f.key == key })
		if i < 0 {
			known := make([]string, len(fields))
			for i, f := range fields {
				known[i] = f.key
			}
			r.fault(at, "unknown key; there is %s", strings.Join(known, ", "))
			return
		}
		has[key] = true
		fields[i].read(at, m)
	})
	return has
}

// textTo reads an entry's text.
func (r *reader) textTo(to *string) func(string, value.Value) {
	return func(at string, v value.Value) { *to = r.text(v, at) }
}

// valueTo takes an entry's value, whatever it is.
func valueTo(to *value.Value) func(string, value.Value) {
	return func(_ string, v value.Value) { *to = v }
}

// listTo reads an entry's list, element by element.
func listTo[T any](r *reader, to *[]T, read func(v value.Value, at string) T) func(string, value.Value) {
	return func(at string, v value.Value) {
		r.elements(v, at, func(at string, e value.Value) { *to = append(*to, read(e, at)) })
	}
}

// mapTo reads an entry's mapping, which may have any keys.
func mapTo[T any](r *reader, to *map[string]T, read func(v value.Value, at string) T) func(string, value.Value) {
	return func(at string, v value.Value) {
		*to = map[string]T{}
		r.members(v, at, func(key, at string, m value.Value) { (*to)[key] = read(m, at) })
	}
}

func (r *reader) elements(v value.Value, pointer string, read func(pointer string, v value.Value)) {
	if v.Kind() != value.List {
		r.fault(pointer, "this is a %s; write a list", v.Kind())
		return
	}
	for i, e := range v.Elements() {
		read(childPointer(pointer, v, i), e)
	}
}

func (r *reader) text(v value.Value, pointer string) string {
	s, ok := v.Text()
	if !ok {
		r.fault(pointer, "this is a %s; write text", v.Kind())
	}
	return s
}

func (r *reader) texts(v value.Value, pointer string) []string {
	out := []string{}
	r.elements(v, pointer, func(at string, e value.Value) { out = append(out, r.text(e, at)) })
	return out
}

func (r *reader) effect(v value.Value, pointer string) Effect {
	e, ok := parseEffect(r.text(v, pointer))
	if !ok {
		r.fault(pointer, "this is allow, ask or deny")
	}
	return e
}

func (r *reader) document(v value.Value) *Document {
	doc := Default()
	if s, ok := v.Text(); ok {
		if s != string(baseDefault) {
			r.fault("", "policy is %q or a mapping", baseDefault)
		}
		return doc
	}
	r.fields(v, "",
		entry{"base", func(at string, m value.Value) { doc.Base = Base(r.text(m, at)) }},
		entry{"lists", mapTo(r, &doc.Lists, r.texts)},
		entry{"accept", listTo(r, &doc.Accept, r.accept)},
		entry{"outputs", mapTo(r, &doc.Outputs, r.output)},
		entry{"rules", listTo(r, &doc.Rules, r.rule)},
		entry{"tests", listTo(r, &doc.Cases, r.testCase)})
	return doc
}

func (r *reader) accept(v value.Value, pointer string) Accept {
	a := Accept{at: r.span(pointer)}
	r.fields(v, pointer,
		entry{"tool", r.textTo(&a.Tool)},
		entry{"arg", func(at string, m value.Value) { a.Arg, a.argAt = r.text(m, at), r.span(at) }},
		entry{"list", r.textTo(&a.List)})
	return a
}

func (r *reader) output(v value.Value, pointer string) Output {
	o := Output{at: r.span(pointer), places: map[string]span{}}
	patterns := func(to *[]string) func(string, value.Value) {
		return func(at string, m value.Value) { *to = r.patterns(m, at, &o) }
	}
	r.fields(v, pointer,
		entry{"trusted", patterns(&o.Trusted)},
		entry{"untrusted", patterns(&o.Untrusted)},
		entry{"secret", patterns(&o.Secret)},
		entry{"text", func(at string, m value.Value) {
			if o.UntrustedText = r.text(m, at) == "untrusted"; !o.UntrustedText {
				r.fault(at, "text is \"untrusted\", or leave it out")
			}
		}})
	return o
}

// patterns are the texts of a list of o, whose places are kept.
func (r *reader) patterns(v value.Value, pointer string, o *Output) []string {
	list := r.texts(v, pointer)
	for i, text := range list {
		if _, twice := o.places[text]; !twice {
			o.places[text] = r.span(childPointer(pointer, v, i))
		}
	}
	return list
}

func (r *reader) rule(v value.Value, pointer string) Rule {
	rule := Rule{at: r.span(pointer), Effect: Deny}
	has := r.fields(v, pointer,
		entry{"id", r.textTo(&rule.ID)},
		entry{"effect", func(at string, m value.Value) { rule.Effect = r.effect(m, at) }},
		entry{"tools", func(at string, m value.Value) { rule.Tools = r.texts(m, at) }},
		entry{"when", func(at string, m value.Value) {
			rule.When = r.text(m, at)
			rule.at = r.span(at)
			rule.at.block = strings.Contains(rule.When, "\n")
			if strings.TrimSpace(rule.When) == "" {
				r.fault(at, "an empty condition; leave it out for a rule that always holds")
			}
		}},
		entry{"message", r.textTo(&rule.Message)})
	for _, key := range []string{"id", "effect", "tools"} {
		if v.Kind() == value.Object && !has[key] {
			r.fault(pointer, "a rule needs %s", key)
		}
	}
	return rule
}

// Digest is the digest of what the document means: everything but the cases,
// with lists in their order.
func (d *Document) Digest() value.Digest { return d.value().Digest() }

func (d *Document) value() value.Value {
	texts := func(list []string) value.Value {
		vs := make([]value.Value, len(list))
		for i, s := range list {
			vs[i] = value.MustText(strings.ToValidUTF8(s, "\uFFFD"))
		}
		return value.ListOf(vs...)
	}
	text := func(s string) value.Value { return value.MustText(strings.ToValidUTF8(s, "\uFFFD")) }
	var lists, outputs []value.Member
	for name, entries := range d.Lists {
		lists = append(lists, value.Member{Key: name, Value: texts(entries)})
	}
	for name, o := range d.Outputs {
		outputs = append(outputs, value.Member{Key: name, Value: value.ObjectOf(
			value.Member{Key: "trusted", Value: texts(o.Trusted)},
			value.Member{Key: "untrusted", Value: texts(o.Untrusted)},
			value.Member{Key: "secret", Value: texts(o.Secret)},
			value.Member{Key: "untrusted_text", Value: value.BoolValue(o.UntrustedText)},
		)})
	}
	accept := make([]value.Value, len(d.Accept))
	for i, a := range d.Accept {
		accept[i] = texts([]string{a.Tool, a.Arg, a.List})
	}
	rules := make([]value.Value, len(d.Rules))
	for i, r := range d.Rules {
		rules[i] = value.ObjectOf(
			value.Member{Key: "id", Value: text(r.ID)},
			value.Member{Key: "effect", Value: text(r.Effect.String())},
			value.Member{Key: "tools", Value: texts(r.Tools)},
			value.Member{Key: "when", Value: text(r.When)},
			value.Member{Key: "message", Value: text(r.Message)},
		)
	}
	base := d.Base
	if base == "" {
		base = baseDefault
	}
	return value.ObjectOf(
		value.Member{Key: "base", Value: text(string(base))},
		value.Member{Key: "lists", Value: value.ObjectOf(lists...)},
		value.Member{Key: "outputs", Value: value.ObjectOf(outputs...)},
		value.Member{Key: "accept", Value: value.ListOf(accept...)},
		value.Member{Key: "rules", Value: value.ListOf(rules...)},
	)
}
