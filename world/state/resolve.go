package state

import (
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/internal/python"
)

const token = "{action.arguments."

// Argument looks up a dotted path in the arguments of an action with the rules
// of state paths.
func Argument(a world.Action, path string) (value.Value, bool) {
	p := ParsePath(path)
	n, ok := node{v: a.Arguments}.find(p.parts, 0)
	return n.v, ok
}

// Tokens are the argument paths of the {action.arguments.path} tokens in a
// text.
func Tokens(text string) []string {
	var out []string
	expand(text, func(path string) (string, bool) {
		out = append(out, path)
		return "", true
	})
	return out
}

// ReplaceTokens puts with in the place of every token.
func ReplaceTokens(text, with string) string {
	out, _ := expand(text, func(string) (string, bool) { return with, true })
	return out
}

// expand replaces every token; ok is false when f has no text for one.
func expand(text string, f func(path string) (string, bool)) (string, bool) {
	if !strings.Contains(text, token) {
		return text, true
	}
	var b strings.Builder
	for {
		i := strings.Index(text, token)
		if i < 0 {
			break
		}
		rest := text[i+len(token):]
		end := strings.IndexAny(rest, "{}")
		if end <= 0 || rest[end] != '}' {
			b.WriteString(text[:i+len(token)])
			text = rest
			continue
		}
		s, ok := f(rest[:end])
		if !ok {
			return "", false
		}
		b.WriteString(text[:i])
		b.WriteString(s)
		text = rest[end+1:]
	}
	b.WriteString(text)
	return b.String(), true
}

// ExpandPath puts arguments into the tokens of a path; ok is false when the
// action does not carry one.
func ExpandPath(path string, a world.Action) (string, bool) {
	return expand(path, func(arg string) (string, bool) {
		v, ok := Argument(a, arg)
		return python.Str(v), ok
	})
}

// missing is a reference to an argument that the action does not carry, or to a
// place where the state has nothing.
func missing(path string) error { return world.Faultf(world.KeyError, "%s", python.Quote(path)) }

// Resolve puts the arguments of the action, and as an extension values of the
// state, into the references of mutations (spec/world-reference.md §3.3). The
// error is a [*world.Fault] of type KeyError.
func (s State) Resolve(ms []world.Mutation, a world.Action) ([]world.Mutation, error) {
	out := make([]world.Mutation, len(ms))
	for i, m := range ms {
		var err error
		out[i] = m
		if out[i].Path, err = s.text(m.Path, a); err != nil {
			return nil, err
		}
		if out[i].Value, err = s.resolve(m.Value, a); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s State) text(text string, a world.Action) (string, error) {
	var absent error
	out, ok := expand(text, func(arg string) (string, bool) {
		v, ok := Argument(a, arg)
		if !ok {
			absent = missing(arg)
		}
		return python.Str(v), ok
	})
	if !ok {
		return "", absent
	}
	return out, nil
}

func (s State) resolve(v value.Value, a world.Action) (value.Value, error) {
	switch v.Kind() {
	case value.String:
		text, _ := v.Text()
		if !strings.Contains(text, token) {
			return v, nil
		}
		if paths := Tokens(text); len(paths) == 1 && len(text) == len(token)+len(paths[0])+1 {
			arg, ok := Argument(a, paths[0])
			if !ok {
				return value.Value{}, missing(paths[0])
			}
			return arg, nil
		}
		out, err := s.text(text, a)
		if err != nil {
			return value.Value{}, err
		}
		return value.Text(out)
	case value.List:
		if !strings.Contains(v.String(), "{") {
			return v, nil
		}
		vs := make([]value.Value, 0, v.Len())
		for _, e := range v.Elements() {
			r, err := s.resolve(e, a)
			if err != nil {
				return value.Value{}, err
			}
			vs = append(vs, r)
		}
		return value.ListOf(vs...), nil
	case value.Object:
		if v.Len() == 1 {
			switch ref := python.Str(v.At(0)); v.Key(0) {
			case "$action_arg":
				arg, ok := Argument(a, ref)
				if !ok {
					return value.Value{}, missing(ref)
				}
				return arg, nil
			case "$state_path":
				path, err := s.text(ref, a)
				if err != nil {
					return value.Value{}, err
				}
				found, ok := s.Get(path)
				if !ok {
					return value.Value{}, missing(path)
				}
				return found, nil
			}
		}
		ms := make([]value.Member, 0, v.Len())
		seen := make(map[string]int, v.Len())
		for k, m := range v.Members() {
			key, err := s.text(k, a)
			if err != nil {
				return value.Value{}, err
			}
			r, err := s.resolve(m, a)
			if err != nil {
				return value.Value{}, err
			}
			if at, twice := seen[key]; twice { // two names that became one: the later value, as in the source
				ms[at].Value = r
				continue
			}
			seen[key] = len(ms)
			ms = append(ms, value.Member{Key: key, Value: r})
		}
		return value.ObjectOf(ms...), nil
	}
	return v, nil
}
