package policy

import (
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/value"
)

// An Origin says where the part of resolved args at Pointer came from. What is
// not at or below the pointer of an origin is a literal of whoever wrote the
// call.
type Origin struct {
	Pointer string // RFC 6901, relative to args

	// Step is the id of the step whose output was put here; "" means that a
	// person did it: approved this very value, or typed it in place of another.
	Step    string
	Path    string // as in a reference
	HasPath bool
}

// Origins are the origins of a plan's step: its references.
func Origins(p *plan.Plan, step int) []Origin {
	refs := p.Steps[step].Refs
	if len(refs) == 0 {
		return nil
	}
	o := make([]Origin, 0, len(refs))
	for _, r := range refs {
		if r.Step >= 0 {
			o = append(o, Origin{Pointer: r.Pointer, Step: p.Steps[r.Step].ID, Path: r.Path, HasPath: r.HasPath})
		}
	}
	return o
}

// Edited are the origins of args after a person changed before into after: what
// differs is now that person's, everything else is still what it was. Of two
// origins the one with the longer pointer counts. The edited call must be
// validated and judged again.
func Edited(before, after value.Value, origins []Origin) []Origin {
	var human []Origin
	diff(before, after, "", &human)
	kept := make([]Origin, 0, len(origins)+len(human))
	for _, o := range origins {
		if _, ok := after.AtPointer(o.Pointer); ok && !under(o.Pointer, human) {
			kept = append(kept, o)
		}
	}
	return append(kept, human...)
}

func under(pointer string, origins []Origin) bool {
	for _, o := range origins {
		if holds(o.Pointer, pointer) {
			return true
		}
	}
	return false
}

// holds reports whether pointer is at or below outer.
func holds(outer, pointer string) bool {
	return strings.HasPrefix(pointer, outer) && (len(pointer) == len(outer) || pointer[len(outer)] == '/')
}

// diff lists the pointers at which b is not a. A list of another length is new as
// a whole, because its elements may have moved.
func diff(a, b value.Value, pointer string, out *[]Origin) {
	switch {
	case value.Equal(a, b):
	case a.Kind() == value.Object && b.Kind() == value.Object:
		for k, m := range b.Members() {
			old, _ := a.Get(k)
			diff(old, m, pointer+"/"+value.EscapePointer(k), out)
		}
	case a.Kind() == value.List && b.Kind() == value.List && a.Len() == b.Len():
		for i, e := range b.Elements() {
			diff(a.At(i), e, pointer+"/"+strconv.Itoa(i), out)
		}
	default:
		*out = append(*out, Origin{Pointer: pointer})
	}
}

// pointerOf is the RFC 6901 pointer of what a reference's path names in v, by
// the rules of value.Lookup; ok is false when it names nothing there.
func pointerOf(v value.Value, path string) (pointer string, at value.Value, ok bool) {
	var b strings.Builder
	for {
		switch v.Kind() {
		case value.Object:
			if m, found := v.Get(path); found {
				b.WriteString("/" + value.EscapePointer(path))
				return b.String(), m, true
			}
			part, rest, more := strings.Cut(path, ".")
			m, found := v.Get(part)
			if !more || !found {
				return "", value.Value{}, false
			}
			b.WriteString("/" + value.EscapePointer(part))
			v, path = m, rest
		case value.List:
			part, rest, more := strings.Cut(path, ".")
			i, isIndex := value.Index(part)
			if !isIndex || i >= v.Len() {
				return "", value.Value{}, false
			}
			b.WriteString("/" + part)
			v = v.At(i)
			if !more {
				return b.String(), v, true
			}
			path = rest
		default:
			return "", value.Value{}, false
		}
	}
}

// presumed is the pointer that a path has when no key of the output holds a dot.
// The check must name one before there is an output; where the real one is
// another and its label worse, the call asks.
func presumed(path string, has bool) string {
	if !has {
		return ""
	}
	parts := strings.Split(path, ".")
	for i, p := range parts {
		parts[i] = value.EscapePointer(p)
	}
	return "/" + strings.Join(parts, "/")
}
