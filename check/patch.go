package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/value"
)

// A Patch is a list of changes to a document, made one after the other
// (RFC 6902).
type Patch []Op

// An Op is one change: "add", "remove", "replace" or "move".
type Op struct {
	Op    string      `json:"op"`
	Path  string      `json:"path"`           // RFC 6901
	From  string      `json:"from,omitempty"` // of a move
	Value value.Value `json:"value,omitzero"` // of an add or a replace
}

// Apply returns doc with the changes made.
func (p Patch) Apply(doc value.Value) (value.Value, error) {
	for _, op := range p {
		var err error
		moved := op.Value
		if op.Op == "move" {
			var ok bool
			if moved, ok = doc.AtPointer(op.From); !ok {
				return value.Value{}, fmt.Errorf("patch: nothing at %q to move", op.From)
			}
			if doc, err = edit(doc, op.From, "remove", value.Value{}); err != nil {
				return value.Value{}, err
			}
		}
		if doc, err = edit(doc, op.Path, op.Op, moved); err != nil {
			return value.Value{}, err
		}
	}
	return doc, nil
}

// edit makes one change at pointer. Everything beside the way there is shared
// with v.
func edit(v value.Value, pointer, op string, put value.Value) (value.Value, error) {
	if pointer == "" {
		if op == "remove" {
			return value.Value{}, fmt.Errorf("patch: the whole document cannot be removed")
		}
		return put, nil
	}
	token, rest, more := strings.Cut(pointer[1:], "/")
	if more {
		rest = "/" + rest
	}
	last := rest == "" && !more
	missing := func() (value.Value, error) {
		return value.Value{}, fmt.Errorf("patch: nothing at %q", pointer)
	}
	switch v.Kind() {
	case value.Object:
		name := value.UnescapePointer(token)
		var ms []value.Member
		for k, m := range v.Members() {
			ms = append(ms, value.Member{Key: k, Value: m})
		}
		i := slices.IndexFunc(ms, func(m value.Member) bool { return m.Key == name })
		switch {
		case i < 0 && last && (op == "add" || op == "move"):
			ms = append(ms, value.Member{Key: name, Value: put})
		case i < 0:
			return missing()
		case last && op == "remove":
			ms = slices.Delete(ms, i, i+1)
		case last:
			ms[i].Value = put
		default:
			sub, err := edit(ms[i].Value, rest, op, put)
			if err != nil {
				return sub, err
			}
			ms[i].Value = sub
		}
		return value.ObjectOf(ms...), nil
	case value.List:
		var es []value.Value
		for _, e := range v.Elements() {
			es = append(es, e)
		}
		i, ok := value.Index(token)
		if token == "-" {
			i, ok = len(es), true
		}
		inserts := last && (op == "add" || op == "move")
		switch {
		case !ok || i > len(es) || i == len(es) && !inserts:
			return missing()
		case inserts:
			es = slices.Insert(es, i, put)
		case last && op == "remove":
			es = slices.Delete(es, i, i+1)
		case last:
			es[i] = put
		default:
			sub, err := edit(es[i], rest, op, put)
			if err != nil {
				return sub, err
			}
			es[i] = sub
		}
		return value.ListOf(es...), nil
	}
	return missing()
}

func replace(pointer, text string) Op {
	return Op{Op: "replace", Path: pointer, Value: value.MustText(text)}
}

func remove(pointer string) Op { return Op{Op: "remove", Path: pointer} }
