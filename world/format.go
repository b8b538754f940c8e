package world

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Real is a number that the format keeps as a float: 1 is written 1.0.
type Real float64

// MarshalJSONTo writes the number as repr() writes a float.
func (r Real) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(jsontext.Value(python.Float(float64(r))))
}

// strict decodes the next value of dec into what into points at, refusing
// members that are not known.
func strict[T any](dec *jsontext.Decoder, into *T) error {
	return json.UnmarshalDecode(dec, into, json.RejectUnknownMembers(true))
}

// Decode reads one strict JSON document: unknown and duplicate members, text
// after the end and invalid UTF-8 are errors with the line.
func Decode(text []byte, into any) error {
	err := json.Unmarshal(text, into, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	line := 1
	var at int64 = -1
	switch e := err.(type) {
	case *json.SemanticError:
		at = e.ByteOffset
	case *jsontext.SyntacticError:
		at = e.ByteOffset
	}
	if at >= 0 {
		line, _ = value.Position(text, int(at))
	}
	return fmt.Errorf("line %d: %w", line, misread{err})
}

// DecodeValue is [Decode] of a value that was parsed already: the error has no
// line.
func DecodeValue(v value.Value, into any) error {
	if err := json.Unmarshal(v.AppendTo(nil), into, json.RejectUnknownMembers(true)); err != nil {
		return misread{err}
	}
	return nil
}

// misread is an error of the decoder in the words of JSON: where it is, as a
// pointer, and what is wrong there. Those of the decoder name Go's types.
type misread struct{ err error }

func (m misread) Unwrap() error { return m.err }

func (m misread) Error() string {
	var syntax *jsontext.SyntacticError
	if errors.As(m.err, &syntax) {
		return at(syntax.JSONPointer, strings.TrimPrefix(syntax.Err.Error(), "jsontext: "))
	}
	var e *json.SemanticError
	if !errors.As(m.err, &e) {
		return m.err.Error()
	}
	switch {
	case e.Err == json.ErrUnknownName:
		return at(e.JSONPointer.Parent(), "there is no member "+strconv.Quote(e.JSONPointer.LastToken()))
	case e.Err != nil && !errors.Is(e.Err, strconv.ErrSyntax) && !errors.Is(e.Err, strconv.ErrRange): // those are numbers of another type
		return at(e.JSONPointer, e.Err.Error())
	case e.GoType == nil:
		return at(e.JSONPointer, e.JSONKind.String()+" does not belong here")
	}
	return at(e.JSONPointer, "it must be "+wanted(e.GoType)+", not "+found(e.JSONKind, e.JSONValue))
}

func at(p jsontext.Pointer, what string) string {
	if p == "" {
		return what
	}
	return string(p) + ": " + what
}

// wanted is a Go type as JSON calls it.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wanted(t.Elem()) + " or null"
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "an integer of 64 bits"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "a list"
	}
	return "an object"
}

// longEcho is the longest number that is repeated.
const longEcho = 40

func found(k jsontext.Kind, v jsontext.Value) string {
	switch k {
	case 'n':
		return "null"
	case 'f', 't':
		return "a boolean"
	case '"':
		return "a string"
	case '0':
		if n := len(v); n > 0 && n <= longEcho {
			return string(v)
		}
		return "a number"
	case '[', ']':
		return "a list"
	}
	return "an object"
}

// AppendDocument appends x as the format writes a file: UTF-8 without escapes
// that are not needed, two spaces of indent, one line feed at the end.
func AppendDocument(dst []byte, x any) ([]byte, error) {
	var b bytes.Buffer
	if err := json.MarshalWrite(&b, x, jsontext.WithIndent("  "), json.Deterministic(true)); err != nil {
		return nil, err
	}
	return append(append(dst, b.Bytes()...), '\n'), nil
}

// WriteLines writes one object on each line, with a space after each comma and
// colon.
func WriteLines[T any](w io.Writer, xs []T) error {
	var b []byte
	for i := range xs {
		text, err := json.Marshal(&xs[i], jsontext.SpaceAfterComma(true), jsontext.SpaceAfterColon(true), json.Deterministic(true))
		if err != nil {
			return fmt.Errorf("item %d: %w", i, err)
		}
		b = append(append(b[:0], text...), '\n')
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// ReadLines reads one object from each line; blank lines are skipped. The error
// names the line.
func ReadLines[T any](text []byte) ([]T, error) {
	out := []T{}
	for n := 1; len(text) > 0; n++ {
		line, rest, _ := bytes.Cut(text, []byte{'\n'})
		text = rest
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var x T
		if err := json.Unmarshal(line, &x, json.RejectUnknownMembers(true)); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, misread{err})
		}
		out = append(out, x)
	}
	return out, nil
}

// A Field is a member that a document must have.
type Field struct {
	Name  string
	There bool
}

// Needs names the members that a document lacks; nil when it has them all.
func Needs(what string, fields ...Field) error {
	var missing []string
	for _, f := range fields {
		if !f.There {
			missing = append(missing, f.Name)
		}
	}
	if missing == nil {
		return nil
	}
	return fmt.Errorf("%s needs %s", what, strings.Join(missing, ", "))
}

// oneOf refuses a word that is not among those the format knows.
func oneOf(what, word string, known ...string) error {
	for _, k := range known {
		if word == k {
			return nil
		}
	}
	return fmt.Errorf("%s %s is not one of %v", what, strconv.Quote(word), known)
}
