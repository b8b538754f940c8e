package world

import (
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world/internal/python"
)

// ID derives an id from content: the prefix and the first 16 hex digits of the
// SHA-256 of the parts, written as a JSON list with sorted members
// (spec/world-reference.md §4).
func ID(prefix string, parts ...value.Value) string { return python.ID(prefix, parts...) }

// Texts is a list of strings as a value.
func Texts(ss ...string) value.Value {
	vs := make([]value.Value, len(ss))
	for i, s := range ss {
		vs[i] = value.MustText(s)
	}
	return value.ListOf(vs...)
}
