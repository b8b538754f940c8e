// Package rawjson changes single values in JSON text and leaves every other
// byte as it is.
package rawjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Lenient is how a provider's text is read: a duplicate name is the provider's
// business. Text that is not UTF-8 is not accepted.
var Lenient = jsontext.AllowDuplicateNames(true)

// Edit returns text with the scalars at the pointers in replace exchanged, and
// with the members in insert put first into the object at their pointer. An
// edit that finds no place is an error.
func Edit(text []byte, replace, insert map[string]string) ([]byte, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(text), Lenient)
	var out []byte
	done, copied := 0, int64(0)
	for {
		kind := dec.PeekKind()
		switch kind {
		case '{', '[', '}', ']':
			if _, err := dec.ReadToken(); err != nil {
				return nil, err
			}
			member, ok := insert[string(dec.StackPointer())]
			if kind != '{' || !ok {
				continue
			}
			out = append(append(out, text[copied:dec.InputOffset()]...), member...)
			copied = dec.InputOffset()
			if dec.PeekKind() != '}' {
				out = append(out, ',')
			}
			done++
		case 0:
			if _, err := dec.ReadToken(); !errors.Is(err, io.EOF) {
				return nil, err
			}
			if want := len(replace) + len(insert); done != want {
				return nil, fmt.Errorf("%d of %d edits found no place", want-done, want)
			}
			return append(out, text[copied:]...), nil
		default:
			v, err := dec.ReadValue()
			if err != nil {
				return nil, err
			}
			if in, n := dec.StackIndex(dec.StackDepth()); in == '{' && n%2 == 1 {
				continue // a name
			}
			if with, ok := replace[string(dec.StackPointer())]; ok {
				end := dec.InputOffset()
				out = append(append(out, text[copied:end-int64(len(v))]...), with...)
				copied = end
				done++
			}
		}
	}
}

// Quote appends s as a JSON string.
func Quote(dst []byte, s string) ([]byte, error) {
	return jsontext.AppendQuote(dst, s)
}

// Text is the characters of a JSON string, "" for anything else.
func Text(v jsontext.Value) (s string) {
	if v.Kind() == '"' {
		_ = json.Unmarshal(v, &s)
	}
	return s
}

// Valid reports whether s is one JSON value, duplicate names allowed: text that
// a server can at least read.
func Valid(s string) bool {
	return jsontext.Value(s).IsValid(Lenient)
}
