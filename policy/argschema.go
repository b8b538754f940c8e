package policy

import (
	"strings"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// maxRefs is how many $ref and composition keywords are followed on the way to
// one arg: schemas of real tools use two or three, and a recursive one must end.
const maxRefs = 32

// argSchemas are the parts of a tool's input schema that speak of the arg at a
// pointer: several where anyOf, oneOf or allOf offer several.
func argSchemas(d *tool.Declaration, pointer string) []value.Value {
	if d.Input == nil {
		return nil
	}
	root := d.Input.Value()
	at := unfold(root, root, maxRefs, nil)
	for pointer != "" && len(at) > 0 {
		token, rest := pointer[1:], ""
		if i := strings.IndexByte(token, '/'); i >= 0 {
			token, rest = token[:i], token[i:]
		}
		var next []value.Value
		for _, s := range at {
			if sub, ok := child(s, value.UnescapePointer(token)); ok {
				next = unfold(root, sub, maxRefs, next)
			}
		}
		at, pointer = next, rest
	}
	return at
}

// child is the schema of a member or an element.
func child(s value.Value, token string) (value.Value, bool) {
	if props, ok := s.Get("properties"); ok {
		if p, ok := props.Get(token); ok {
			return p, true
		}
	}
	if i, isIndex := value.Index(token); isIndex {
		for _, k := range []string{"prefixItems", "items"} {
			items, _ := s.Get(k)
			if items.Kind() == value.List {
				if i < items.Len() {
					return items.At(i), true
				}
				continue
			}
			if items.Kind() == value.Object {
				return items, true
			}
		}
	}
	if more, ok := s.Get("additionalProperties"); ok && more.Kind() == value.Object {
		return more, true
	}
	return value.Value{}, false
}

// unfold appends s and everything that it says through $ref, allOf, anyOf and
// oneOf.
func unfold(root, s value.Value, budget int, out []value.Value) []value.Value {
	if s.Kind() != value.Object || budget <= 0 {
		return out
	}
	out = append(out, s)
	if r, ok := s.Get("$ref"); ok {
		if target, ok := localRef(root, r); ok {
			out = unfold(root, target, budget-1, out)
		}
	}
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		if list, ok := s.Get(k); ok {
			for _, e := range list.Elements() {
				if len(out) >= maxRefs {
					return out
				}
				out = unfold(root, e, budget-1, out)
			}
		}
	}
	return out
}

// localRef resolves a $ref inside the document; others were refused when the
// schema was compiled.
func localRef(root, ref value.Value) (value.Value, bool) {
	text, _ := ref.Text()
	if !strings.HasPrefix(text, "#") {
		return value.Value{}, false
	}
	return root.AtPointer(text[1:])
}
