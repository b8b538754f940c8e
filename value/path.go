package value

import (
	"fmt"
	"strconv"
	"strings"
)

// A PathError says at which part a path left the value it was looked up in.
type PathError struct {
	Path   string // the whole path
	At     string // the part of it that was found
	Reason string
}

// Error names the path, the part that was reached, and what was there.
func (e *PathError) Error() string {
	if e.At == "" {
		return fmt.Sprintf("path %s: %s", Quoted(e.Path), e.Reason)
	}
	return fmt.Sprintf("path %s: at %s: %s", Quoted(e.Path), Quoted(e.At), e.Reason)
}

// Lookup resolves a dotted path as references do (spec/plan.md §2). At an
// object the whole remaining path may be a key, else the part before the first
// dot must be one. At a list that part must be a decimal index in ASCII digits,
// without leading zeros, inside the list. The error is a [*PathError].
func (v Value) Lookup(path string) (Value, error) {
	rest, at := path, 0
	for {
		switch v.Kind() {
		case Object:
			c := v.children()
			if i := c.find(rest); i >= 0 {
				return c.vals[i], nil
			}
			part, tail, more := strings.Cut(rest, ".")
			i := -1
			if more {
				i = c.find(part)
			}
			if i < 0 {
				return Value{}, &PathError{path, found(path, at), missing(c.keys, part)}
			}
			v, rest, at = c.vals[i], tail, at+len(part)+1
		case List:
			part, tail, more := strings.Cut(rest, ".")
			i, ok := Index(part)
			if !ok {
				return Value{}, &PathError{path, found(path, at), fmt.Sprintf("a list of %d has no key %s; use an index from 0", v.Len(), Quoted(part))}
			}
			if i >= v.Len() {
				return Value{}, &PathError{path, found(path, at), fmt.Sprintf("index %s is outside a list of %d", part, v.Len())}
			}
			v = v.At(i)
			if !more {
				return v, nil
			}
			rest, at = tail, at+len(part)+1
		case String:
			reason := "a string has no parts"
			if s, _ := v.Text(); looksLikeJSON(s) {
				reason = "the text looks like JSON but is still text; let the tool return JSON"
			}
			return Value{}, &PathError{path, found(path, at), reason}
		default:
			return Value{}, &PathError{path, found(path, at), fmt.Sprintf("%s has no parts", v.Kind())}
		}
	}
}

// found is the part of path before offset at, without the dot.
func found(path string, at int) string {
	if at == 0 {
		return ""
	}
	return path[:at-1]
}

func missing(keys []string, part string) string {
	if len(keys) == 0 {
		return fmt.Sprintf("no key %s in an empty object", Quoted(part))
	}
	shown := keys[:min(len(keys), 8)]
	quoted := make([]string, len(shown))
	for i, k := range shown {
		quoted[i] = Quoted(k)
	}
	more := ""
	if len(keys) > len(shown) {
		more = fmt.Sprintf(" and %d more", len(keys)-len(shown))
	}
	return fmt.Sprintf("no key %s; there are %s%s", Quoted(part), strings.Join(quoted, ", "), more)
}

func looksLikeJSON(s string) bool {
	s = strings.TrimSpace(s)
	return len(s) > 1 && (s[0] == '{' && s[len(s)-1] == '}' || s[0] == '[' && s[len(s)-1] == ']')
}

// Index reads a list index as references write it: ASCII digits without leading
// zeros. An index that no list can have is out of range, not an error, so it
// comes back as the largest int.
func Index(part string) (i int, ok bool) {
	if part == "" || len(part) > 1 && part[0] == '0' {
		return 0, false
	}
	for j := range len(part) {
		if part[j] < '0' || part[j] > '9' {
			return 0, false
		}
	}
	i, err := strconv.Atoi(part)
	if err != nil {
		return int(^uint(0) >> 1), true
	}
	return i, true
}

// AtPointer resolves an RFC 6901 pointer; ok is false when there is nothing.
func (v Value) AtPointer(pointer string) (at Value, ok bool) {
	for pointer != "" {
		if pointer[0] != '/' {
			return Value{}, false
		}
		token, rest, more := strings.Cut(pointer[1:], "/")
		switch v.Kind() {
		case Object:
			if v, ok = v.Get(UnescapePointer(token)); !ok {
				return Value{}, false
			}
		case List:
			i, isIndex := Index(token)
			if !isIndex || i >= v.Len() {
				return Value{}, false
			}
			v = v.At(i)
		default:
			return Value{}, false
		}
		if !more {
			break
		}
		pointer = "/" + rest
	}
	return v, v.n != nil
}

// EscapePointer writes a name as one token of an RFC 6901 pointer.
func EscapePointer(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// UnescapePointer reads one token of an RFC 6901 pointer.
func UnescapePointer(token string) string {
	if !strings.Contains(token, "~") {
		return token
	}
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}
