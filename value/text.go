package value

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// MaxDepth is how deep text may nest: the bound of the JSON reader, so that
// everything that was written can be read again.
const MaxDepth = 10_000

// A SyntaxError says what is wrong with a text that should be JSON, and where.
type SyntaxError struct {
	Offset    int    // bytes before the fault
	Line      int    // counted from 1; 0 when the fault has no place
	Column    int    // counted from 1, in bytes
	Pointer   string // the RFC 6901 pointer of the value in which it is
	Duplicate bool   // a name that stands twice in one object
	Reason    string
}

// Error puts the place before the reason.
func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return e.Reason
	}
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

// Position turns a byte offset of text into a line and a column, both counted
// from 1; the column counts bytes.
func Position(text []byte, offset int) (line, column int) {
	offset = min(offset, len(text))
	line = 1 + bytes.Count(text[:offset], []byte{'\n'})
	column = offset - bytes.LastIndexByte(text[:offset], '\n')
	return line, column
}

// Parse reads one strict JSON value. The error is a [*SyntaxError].
func Parse[Bytes ~[]byte | ~string](text Bytes) (Value, error) {
	if len(text) <= len("false") {
		if v, ok := parseScalar(string(text)); ok {
			return v, nil
		}
	}
	compact, err := jsontext.AppendFormat(nil, text,
		jsontext.AllowDuplicateNames(false), jsontext.AllowInvalidUTF8(false), jsontext.PreserveRawStrings(false))
	if err != nil {
		return Value{}, explain([]byte(text), err)
	}
	return trusted(string(compact)), nil
}

// MustParse is [Parse] for text in programs and tests; it panics on a fault.
func MustParse(text string) Value {
	v, err := Parse(text)
	if err != nil {
		panic(fmt.Sprintf("value: %q: %v", text, err))
	}
	return v
}

// parseScalar takes the texts that need no reader.
func parseScalar(text string) (Value, bool) {
	switch text {
	case "null":
		return Value{nullNode}, true
	case "true":
		return Value{trueNode}, true
	case "false":
		return Value{falseNode}, true
	}
	return Value{}, false
}

// explain finds the place of a fault by reading the text once more with the
// decoder, whose offsets are those of the input.
func explain(text []byte, cause error) error {
	dec := jsontext.NewDecoder(bytes.NewReader(text))
	_, err := dec.ReadValue()
	if err == nil {
		at := int(dec.InputOffset())
		if _, err = dec.ReadToken(); err == nil || !errors.Is(err, io.EOF) {
			for at < len(text) && strings.IndexByte(" \t\r\n", text[at]) >= 0 {
				at++
			}
			return fault(text, at, "", "text after the end of the value")
		}
		err = cause
	}
	var syn *jsontext.SyntacticError
	if !errors.As(err, &syn) {
		return fault(text, len(text), "", "the text ends before the value does")
	}
	reason := syn.Err.Error()
	switch {
	case errors.Is(syn.Err, jsontext.ErrDuplicateName):
		e := fault(text, int(syn.ByteOffset), string(syn.JSONPointer), "")
		e.Duplicate = true
		e.Reason = fmt.Sprintf("the name %s stands twice in one object; keep one", Quoted(syn.JSONPointer.LastToken()))
		return e
	case errors.Is(syn.Err, io.ErrUnexpectedEOF):
		reason = "the text ends before the value does"
	case bytes.HasPrefix(text, []byte("\xef\xbb\xbf")):
		reason = "the text starts with a byte order mark; remove it"
	}
	return fault(text, int(syn.ByteOffset), string(syn.JSONPointer), reason)
}

func fault(text []byte, offset int, pointer, reason string) *SyntaxError {
	line, column := Position(text, offset)
	return &SyntaxError{Offset: offset, Line: line, Column: column, Pointer: pointer, Reason: reason}
}

// Excerpt shortens what a message quotes of a document or an answer: to 80
// characters, enough to recognise it by.
func Excerpt(s string) string {
	const most = 80
	if n := 0; len(s) > most {
		for i := range s {
			if n++; n > most {
				return s[:i] + "…"
			}
		}
	}
	return s
}

// Quoted is an [Excerpt] in quotes, with everything escaped that does not print.
func Quoted(s string) string { return strconv.Quote(Excerpt(s)) }

// Of turns a Go value into a Value with the rules of encoding/json/v2: maps in
// the order of their keys, text that is not UTF-8 and floats that are not
// finite refused. A Value, or a pointer to one, is taken as it is.
func Of(x any) (Value, error) {
	switch x := x.(type) {
	case Value:
		if x.n == nil {
			return NullValue(), nil
		}
		return x, nil
	case nil:
		return NullValue(), nil
	case string:
		return Text(x)
	case bool:
		return BoolValue(x), nil
	case int:
		return Int(int64(x)), nil
	case int64:
		return Int(x), nil
	case float64:
		return Float(x)
	}
	text, err := json.Marshal(x, json.Deterministic(true))
	if err != nil {
		return Value{}, err
	}
	return Parse(text)
}

// Decode stores the value in the Go value that into points at, with the rules
// of encoding/json/v2: names are compared exactly.
func (v Value) Decode(into any, opts ...json.Options) error {
	if p, ok := into.(*Value); ok {
		*p = v
		return nil
	}
	return json.Unmarshal([]byte(v.String()), into, opts...)
}

// trusted makes a Value of text that is known to be strict, compact JSON.
func trusted(text string) Value {
	n := new(node)
	n.set(text)
	if n.kind == List || n.kind == Object {
		_, n.depth = skip(text, 0)
	}
	return Value{n}
}

func (n *node) set(text string) {
	n.text, n.size, n.depth = text, len(text), 1
	switch text[0] {
	case '{':
		n.kind = Object
	case '[':
		n.kind = List
	case '"':
		n.kind = String
	case 't', 'f':
		n.kind = Bool
	case 'n':
		n.kind = Null
	default:
		n.kind = Number
	}
}

// children returns the parts of a composite, splitting its text at first use.
// Two goroutines that look at once both split; either result is right.
func (v Value) children() *children {
	if v.n == nil {
		return nil
	}
	if c := v.n.kids.Load(); c != nil {
		return c
	}
	if v.n.kind != List && v.n.kind != Object {
		return nil
	}
	c := split(v.n.text, v.n.kind)
	v.n.kids.Store(c)
	return c
}

// split cuts the text of a composite into its parts, one level deep. The text
// was validated when it came in, so this trusts it.
func split(text string, kind Kind) *children {
	if len(text) == 2 {
		return &children{}
	}
	type span struct {
		name, start, end int
		depth            int32
	}
	var few [16]span // most composites have no more parts, and cost no slice then
	spans := few[:0]
	for i := 1; i < len(text)-1; i++ { // past the comma, or the end
		var s span
		if kind == Object {
			s.name = i
			i = skipString(text, i) + 1
		}
		s.start = i
		i, s.depth = skip(text, i)
		s.end = i
		spans = append(spans, s)
	}
	count := len(spans)
	c := &children{vals: make([]Value, count)}
	if kind == Object {
		c.keys = make([]string, count)
	}
	nodes := make([]node, count)
	for k, s := range spans {
		if kind == Object {
			c.keys[k] = unquote(text[s.name : s.start-1])
		}
		nodes[k].set(text[s.start:s.end])
		nodes[k].depth = s.depth
		c.vals[k] = Value{&nodes[k]}
	}
	if count > indexAbove && kind == Object {
		c.buildIndex()
	}
	return c
}

// skip returns the end of the value that starts at i and how deep it nests.
func skip(text string, i int) (end int, depth int32) {
	switch text[i] {
	case '"':
		return skipString(text, i), 1
	case '{', '[':
	default:
		for i < len(text) && text[i] != ',' && text[i] != ']' && text[i] != '}' {
			i++
		}
		return i, 1
	}
	var open int32
	depth = 1
	for {
		switch text[i] {
		case '"':
			if open+1 > depth {
				depth = open + 1
			}
			i = skipString(text, i)
			continue
		case '{', '[':
			if open+1 > depth {
				depth = open + 1
			}
			open++
		case '}', ']':
			open--
			if open == 0 {
				return i + 1, depth
			}
		case ',', ':':
		default:
			if open+1 > depth {
				depth = open + 1
			}
		}
		i++
	}
}

// skipString returns the end of the string that starts at i.
func skipString(text string, i int) int {
	i++
	for {
		j := strings.IndexByte(text[i:], '"')
		i += j
		back := 0
		for text[i-1-back] == '\\' {
			back++
		}
		i++
		if back%2 == 0 {
			return i
		}
	}
}

func unquote(quoted string) string {
	if strings.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	b, err := jsontext.AppendUnquote(nil, quoted)
	if err != nil {
		panic("value: text that was validated cannot be unquoted: " + err.Error())
	}
	return string(b)
}

// AppendQuote appends s as a JSON string with minimal escapes. Text that is not
// UTF-8 panics: every string inside a Value was checked when it came in.
func AppendQuote(dst []byte, s string) []byte {
	b, err := jsontext.AppendQuote(dst, s)
	if err != nil {
		panic("value: a name that is not UTF-8")
	}
	return b
}

// quotedSize is the length of s as a JSON string.
func quotedSize(s string) int {
	n := len(s) + 2
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t' || c == '\b' || c == '\f':
			n++
		case c < 0x20:
			n += 5
		}
	}
	return n
}
