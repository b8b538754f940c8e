package policy

import (
	"fmt"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// A Placeholder is {"$secret": "name"} in a call's own literals. What a tool
// returned is never one, whatever it looks like.
type Placeholder struct {
	Pointer string // RFC 6901, into args
	Name    string
	Role    tool.Role // of the arg; only [tool.Secret] may hold it
}

// Placeholders lists the secrets that a call asks for.
func Placeholders(c Call) []Placeholder {
	r, err := compileRoles(c.Tool)
	if err != nil {
		return nil // such a call is denied
	}
	var out []Placeholder
	l := labeller{call: &c}
	var visit func(pointer string, v value.Value)
	visit = func(pointer string, v value.Value) {
		if l.origin(pointer) != nil && !l.split(pointer) {
			return
		}
		if name, ok := secretName(v); ok && !l.split(pointer) {
			role, _ := r.at(pointer)
			out = append(out, Placeholder{pointer, name, role})
			return
		}
		for i := range v.Len() {
			visit(childPointer(pointer, v, i), v.At(i))
		}
	}
	visit("", c.Args)
	return out
}

// Reveal is the call's args with the placeholders replaced by the secrets
// themselves: what the tool is given and nothing else sees. A placeholder that is
// not in an arg of kind secret, or a name that lookup does not know, is an error.
func Reveal(c Call, lookup func(name string) (secret string, ok bool)) (value.Value, error) {
	args := c.Args
	for _, p := range Placeholders(c) {
		if p.Role != tool.Secret {
			return value.Value{}, fmt.Errorf("%s of %s is not an arg of kind secret", p.Pointer, c.Tool.Name)
		}
		s, ok := lookup(p.Name)
		if !ok {
			return value.Value{}, fmt.Errorf("%s of %s: there is no secret %q", p.Pointer, c.Tool.Name, p.Name)
		}
		v, err := value.Text(s)
		if err != nil {
			return value.Value{}, fmt.Errorf("%s of %s: the secret %q is not UTF-8 text", p.Pointer, c.Tool.Name, p.Name)
		}
		args = put(args, p.Pointer, v)
	}
	return args, nil
}

// put is v with what stands at the pointer replaced.
func put(v value.Value, pointer string, with value.Value) value.Value {
	if pointer == "" {
		return with
	}
	if v.Kind() == value.List {
		out := make([]value.Value, v.Len())
		for i, e := range v.Elements() {
			out[i] = e
			if at := childPointer("", v, i); holds(at, pointer) {
				out[i] = put(e, pointer[len(at):], with)
			}
		}
		return value.ListOf(out...)
	}
	out := make([]value.Member, v.Len())
	for i := range out {
		out[i] = value.Member{Key: v.Key(i), Value: v.At(i)}
		if at := childPointer("", v, i); holds(at, pointer) {
			out[i].Value = put(v.At(i), pointer[len(at):], with)
		}
	}
	return value.ObjectOf(out...)
}
