package state

import (
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
)

// A Path is a dotted path that was taken apart (spec/world-reference.md §3.1).
type Path struct {
	text  string
	parts []string
}

// ParsePath takes a path apart. Every text is a path; whether it leads anywhere
// is another question.
func ParsePath(path string) Path {
	path = world.NormalizePath(path)
	return Path{path, strings.Split(path, ".")}
}

// String is the path in dotted form.
func (p Path) String() string { return p.text }

// namesFile reports whether a segment is a file or URL, whose dots belong to
// the key.
func namesFile(segment string) bool {
	return strings.HasPrefix(segment, "/") || strings.HasPrefix(segment, "~/") || strings.Contains(segment, "://")
}

// How a path is followed: to read or delete, to write an object, to write
// anything else.
type manner int

const (
	reading manner = iota
	writingObject
	writingOther
)

// step chooses the key of n, an object, that parts[i:] addresses, and the index
// of the first part left over.
func (n node) step(parts []string, i int, how manner) (key string, next int) {
	if i == len(parts)-1 || !namesFile(parts[i]) {
		return parts[i], i + 1
	}
	full := strings.Join(parts[i:], ".")
	if _, ok := n.child(full); ok {
		return full, len(parts)
	}
	last := len(parts) - 1
	owner := full[:len(full)-len(parts[last])-1]
	if how == writingObject {
		if entry, ok := n.child(owner); ok && entry.kind() == value.Object {
			if _, ok := entry.child(parts[last]); ok {
				return owner, last
			}
		}
		return full, len(parts)
	}
	for stop, key := last, owner; ; stop-- {
		if _, ok := n.child(key); ok {
			return key, stop
		}
		if stop == i+1 {
			break
		}
		key = key[:len(key)-len(parts[stop-1])-1]
	}
	if how == reading {
		return full, len(parts)
	}
	return owner, last
}

// listIndex reads decimal digits; leading zeros are allowed.
func listIndex(part string) (int, bool) {
	for i := range len(part) {
		if part[i] < '0' || part[i] > '9' {
			return 0, false
		}
	}
	i, err := strconv.Atoi(part)
	return i, err == nil
}

// find follows parts[i:] for reading.
func (n node) find(parts []string, i int) (node, bool) {
	for i < len(parts) {
		var ok bool
		switch n.kind() {
		case value.Object:
			var key string
			key, i = n.step(parts, i, reading)
			n, ok = n.child(key)
		case value.List:
			index, isIndex := listIndex(parts[i])
			if !isIndex {
				return node{}, false
			}
			n, ok = n.at(index)
			i++
		}
		if !ok {
			return node{}, false
		}
	}
	return n, true
}

// set gives n, an object, with val at parts[i:], creating the objects on the
// way.
func (n node) set(p Path, i int, val node, how manner) (node, error) {
	key, next := n.step(p.parts, i, how)
	if next < len(p.parts) {
		child, ok := n.child(key)
		if !ok || child.kind() == value.Null {
			child = node{o: &object{}}
		}
		if child.kind() != value.Object {
			return node{}, world.Faultf(world.ValueError, "Cannot traverse non-object at %s in %s", key, p.text)
		}
		var err error
		if val, err = child.set(p, next, val, how); err != nil {
			return node{}, err
		}
	}
	return node{o: n.object().set(key, val)}, nil
}

// remove gives n without what is at parts[i:]; n itself when there is nothing
// or it is not in an object.
func (n node) remove(parts []string, i int) node {
	if n.kind() != value.Object {
		return n
	}
	key, next := n.step(parts, i, reading)
	if next >= len(parts) {
		if _, ok := n.child(key); !ok {
			return n
		}
		return node{o: n.object().remove(key)}
	}
	child, ok := n.child(key)
	if !ok {
		return n
	}
	after := child.remove(parts, next)
	if after == child {
		return n
	}
	return node{o: n.object().set(key, after)}
}
