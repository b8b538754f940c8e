package transport

import (
	"fmt"
	"slices"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/value"
)

// CheckExtra says what is wrong with the members that a configuration adds to
// every request: an object, or no value, without any of the reserved names.
func CheckExtra(extra value.Value, reserved []string) error {
	if !extra.IsZero() && extra.Kind() != value.Object {
		return fmt.Errorf("the member Extra is a %s, not an object", extra.Kind())
	}
	for name := range extra.Members() {
		if slices.Contains(reserved, name) {
			return fmt.Errorf("the member Extra sets %q, which the adapter writes", name)
		}
	}
	return nil
}

// AppendExtra appends those members to an object that is not empty.
func AppendExtra(to []byte, extra value.Value) []byte {
	for name, v := range extra.Members() {
		to = value.AppendQuote(append(to, ','), name)
		to = v.AppendTo(append(to, ':'))
	}
	return to
}

var comma = []byte(",")

// AppendTools appends the declarations of tools to the segments of a body, with
// commas between them; declare writes one in the dialect, once.
func AppendTools(body [][]byte, tools []*model.Tool, dialect string, declare func(*model.Tool) ([]byte, error)) ([][]byte, error) {
	for i, t := range tools {
		text, err := t.Encoded(dialect, func() ([]byte, error) { return declare(t) })
		if err != nil {
			return nil, model.Errorf("tool %q: %w", t.Name, err)
		}
		if i > 0 {
			body = append(body, comma)
		}
		body = append(body, text)
	}
	return body, nil
}
