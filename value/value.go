// Package value holds JSON values as immutable text.
//
//	v := value.MustParse(`{"total": 9007199254740993, "items": [{"id": "a"}]}`)
//	id, err := v.Lookup("items.0.id")   // "a"
//	n, _ := v.Get("total")              // 9007199254740993, digit for digit
//
// A [Value] is compact JSON text with an index that is built when it is first
// needed, or a composite whose members are other Values. Nothing in this
// package changes a Value after it was made, so one may be shared by any number
// of goroutines, steps and reports without a copy: a 10 MB output that is
// passed down a hundred steps is stored once. Numbers are kept exactly as they
// were written, object members in the order in which they came.
//
// Text is strict JSON (RFC 8259 with the restrictions of RFC 7493): valid
// UTF-8, no lone surrogates, no duplicate names, one value and nothing after
// it. The text that a Value writes has no insignificant white space and escapes
// only what it must.
package value

import (
	"io"
	"iter"
	"math"
	"strconv"
	"sync/atomic"

	"github.com/go-json-experiment/json/jsontext"
)

// A Kind is the JSON type of a [Value].
type Kind uint8

// The kinds. Invalid is the kind of the zero Value, which stands for "no value"
// and is not JSON.
const (
	Invalid Kind = iota
	Null
	Bool
	Number
	String
	List
	Object
)

// String names the kind as people and JSON Schema do: "null", "boolean",
// "number", "string", "array", "object".
func (k Kind) String() string {
	switch k {
	case Null:
		return "null"
	case Bool:
		return "boolean"
	case Number:
		return "number"
	case String:
		return "string"
	case List:
		return "array"
	case Object:
		return "object"
	}
	return "no value"
}

// A Value is an immutable JSON value. The zero Value is no value at all: its
// kind is [Invalid], and it must not be put into another Value.
type Value struct{ n *node }

// node is what a Value points at. text is set for a value that came as text and
// for every scalar; a composite made of other values has kids instead and is
// flattened only when somebody asks for its text.
type node struct {
	kind   Kind
	depth  int32 // 1 for a scalar or an empty composite, else 1 + the deepest child
	size   int   // bytes of the compact text, saturating at math.MaxInt
	text   string
	kids   atomic.Pointer[children]
	digest atomic.Pointer[Digest]
}

// children are the elements of a list or the members of an object, in order.
type children struct {
	keys  []string // objects only
	vals  []Value
	index map[string]int // objects above indexAbove members only
}

// indexAbove is the number of members above which an object gets a map: below
// it a walk over the keys is faster than hashing.
const indexAbove = 12

var (
	nullNode  = &node{kind: Null, depth: 1, size: 4, text: "null"}
	trueNode  = &node{kind: Bool, depth: 1, size: 4, text: "true"}
	falseNode = &node{kind: Bool, depth: 1, size: 5, text: "false"}
)

// NullValue is JSON null.
func NullValue() Value { return Value{nullNode} }

// BoolValue is true or false.
func BoolValue(b bool) Value {
	if b {
		return Value{trueNode}
	}
	return Value{falseNode}
}

// Int is the number i.
func Int(i int64) Value {
	return scalar(Number, strconv.FormatInt(i, 10))
}

// Float is the number f in its shortest form. NaN and the infinities are not
// JSON: they give an error.
func Float(f float64) (Value, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Value{}, &SyntaxError{Reason: "a number that is not finite (" + strconv.FormatFloat(f, 'g', -1, 64) + ") cannot be written as JSON"}
	}
	return scalar(Number, string(jsontext.AppendFloat(nil, f, 64))), nil
}

// Text is the string s. Bytes that are not UTF-8 give an error: they are never
// replaced, because a digest and an effect must speak of the same bytes.
func Text(s string) (Value, error) {
	b, err := jsontext.AppendQuote(make([]byte, 0, len(s)+2), s)
	if err != nil {
		return Value{}, &SyntaxError{Reason: "text that is not valid UTF-8"}
	}
	return scalar(String, string(b)), nil
}

// MustText is [Text] for text that is known to be UTF-8; it panics otherwise.
func MustText(s string) Value {
	v, err := Text(s)
	if err != nil {
		panic(err)
	}
	return v
}

func scalar(k Kind, text string) Value {
	return Value{&node{kind: k, depth: 1, size: len(text), text: text}}
}

// ListOf is the list of vs. The slice is copied, the values are shared.
func ListOf(vs ...Value) Value {
	return compose(List, nil, append([]Value(nil), vs...))
}

// A Member is one name and value of an object.
type Member struct {
	Key   string
	Value Value
}

// ObjectOf is the object of ms in that order. Two members of one name, or a
// name that is not UTF-8, panic: they are mistakes of the program, not of data.
func ObjectOf(ms ...Member) Value {
	keys := make([]string, len(ms))
	vals := make([]Value, len(ms))
	for i, m := range ms {
		keys[i], vals[i] = m.Key, m.Value
	}
	v := compose(Object, keys, vals)
	for i, k := range keys {
		if v.n.kids.Load().find(k) != i {
			panic("value: duplicate member " + strconv.Quote(k))
		}
	}
	return v
}

// compose makes a composite that owns keys and vals.
func compose(k Kind, keys []string, vals []Value) Value {
	c := &children{keys: keys, vals: vals}
	if len(keys) > indexAbove {
		c.buildIndex()
	}
	n := &node{kind: k, depth: 1, size: 2}
	if len(vals) > 0 {
		n.size += len(vals) - 1 // commas
	}
	for i, v := range vals {
		if v.n == nil {
			panic("value: no value inside a composite")
		}
		n.size = addSize(n.size, v.n.size)
		if v.n.depth >= n.depth {
			n.depth = v.n.depth + 1
		}
		if keys != nil {
			n.size = addSize(n.size, quotedSize(keys[i])+1)
		}
	}
	n.kids.Store(c)
	return Value{n}
}

// addSize adds without overflow: a chain of doubling references has sizes that
// no integer holds.
func addSize(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

func (c *children) buildIndex() {
	c.index = make(map[string]int, len(c.keys))
	for i, k := range c.keys {
		c.index[k] = i
	}
}

func (c *children) find(key string) int {
	if c.index != nil {
		if i, ok := c.index[key]; ok {
			return i
		}
		return -1
	}
	for i, k := range c.keys {
		if k == key {
			return i
		}
	}
	return -1
}

// Kind is the value's JSON type, [Invalid] for the zero Value.
func (v Value) Kind() Kind {
	if v.n == nil {
		return Invalid
	}
	return v.n.kind
}

// IsZero reports whether v is no value at all.
func (v Value) IsZero() bool { return v.n == nil }

// IsNull reports whether v is JSON null.
func (v Value) IsNull() bool { return v.Kind() == Null }

// Size is the number of bytes of the compact text. It costs nothing, also for a
// value that was composed and never written; it saturates at math.MaxInt.
func (v Value) Size() int {
	if v.n == nil {
		return 0
	}
	return v.n.size
}

// Composed reports whether v is a list or object that was made of other values
// and never was text. Looking at the parts of such a value costs nothing, and
// they may be shared with other values.
func (v Value) Composed() bool { return v.n != nil && v.n.text == "" }

// Depth is the nesting of v: 1 for a scalar or an empty list or object.
func (v Value) Depth() int {
	if v.n == nil {
		return 0
	}
	return int(v.n.depth)
}

// Text returns the characters of a string; ok is false for any other kind.
func (v Value) Text() (s string, ok bool) {
	if v.Kind() != String {
		return "", false
	}
	return unquote(v.n.text), true
}

// Bool returns a boolean; ok is false for any other kind.
func (v Value) Bool() (b, ok bool) {
	if v.Kind() != Bool {
		return false, false
	}
	return v.n.text == "true", true
}

// Number returns the literal of a number as it was written; ok is false for any
// other kind.
func (v Value) Number() (literal string, ok bool) {
	if v.Kind() != Number {
		return "", false
	}
	return v.n.text, true
}

// Int returns a number that is written as an integer and fits in 64 bits.
func (v Value) Int() (i int64, ok bool) {
	if v.Kind() != Number {
		return 0, false
	}
	i, err := strconv.ParseInt(v.n.text, 10, 64)
	return i, err == nil
}

// Len is the number of elements of a list or members of an object, else 0.
func (v Value) Len() int {
	if c := v.children(); c != nil {
		return len(c.vals)
	}
	return 0
}

// At is element i of a list or the value of member i of an object. It panics
// like a slice does when i is out of range.
func (v Value) At(i int) Value { return v.children().vals[i] }

// Key is the name of member i of an object.
func (v Value) Key(i int) string { return v.children().keys[i] }

// Get returns the member of an object by name; ok is false when there is none
// or v is no object.
func (v Value) Get(key string) (m Value, ok bool) {
	if v.Kind() != Object {
		return Value{}, false
	}
	c := v.children()
	if i := c.find(key); i >= 0 {
		return c.vals[i], true
	}
	return Value{}, false
}

// Members ranges over the members of an object in order; over nothing for any
// other kind.
func (v Value) Members() iter.Seq2[string, Value] {
	return func(yield func(string, Value) bool) {
		if v.Kind() != Object {
			return
		}
		c := v.children()
		for i, k := range c.keys {
			if !yield(k, c.vals[i]) {
				return
			}
		}
	}
}

// Elements ranges over the elements of a list in order; over nothing for any
// other kind.
func (v Value) Elements() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		if v.Kind() != List {
			return
		}
		for i, e := range v.children().vals {
			if !yield(i, e) {
				return
			}
		}
	}
}

// String is the compact JSON text. A composite that was never text is written
// anew at each call and not kept, so that a value shared by many stays small.
func (v Value) String() string {
	if v.n == nil {
		return ""
	}
	if v.n.text != "" {
		return v.n.text
	}
	return string(v.AppendTo(nil))
}

// AppendTo appends the compact JSON text to dst.
func (v Value) AppendTo(dst []byte) []byte {
	if v.n == nil {
		return dst
	}
	if v.n.text != "" {
		return append(dst, v.n.text...)
	}
	c := v.n.kids.Load()
	if v.n.kind == List {
		dst = append(dst, '[')
		for i, e := range c.vals {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.AppendTo(dst)
		}
		return append(dst, ']')
	}
	dst = append(dst, '{')
	for i, e := range c.vals {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendQuote(dst, c.keys[i])
		dst = append(dst, ':')
		dst = e.AppendTo(dst)
	}
	return append(dst, '}')
}

// WriteTo writes the compact JSON text to w without building it in memory.
func (v Value) WriteTo(w io.Writer) (int64, error) {
	if v.n == nil {
		return 0, nil
	}
	if v.n.text != "" {
		n, err := io.WriteString(w, v.n.text)
		return int64(n), err
	}
	cw := &countWriter{w: w}
	v.write(cw)
	return cw.n, cw.err
}

func (v Value) write(w *countWriter) {
	if v.n.text != "" {
		w.str(v.n.text)
		return
	}
	c := v.n.kids.Load()
	open, end := "[", "]"
	if v.n.kind == Object {
		open, end = "{", "}"
	}
	w.str(open)
	for i, e := range c.vals {
		if i > 0 {
			w.str(",")
		}
		if c.keys != nil {
			w.str(string(AppendQuote(nil, c.keys[i])))
			w.str(":")
		}
		e.write(w)
	}
	w.str(end)
}

type countWriter struct {
	w   io.Writer
	n   int64
	err error
}

func (c *countWriter) str(s string) {
	if c.err != nil {
		return
	}
	n, err := io.WriteString(c.w, s)
	c.n += int64(n)
	c.err = err
}

// MarshalJSONTo writes the value as it is: numbers and order are kept.
func (v Value) MarshalJSONTo(enc *jsontext.Encoder) error {
	if v.n == nil {
		return enc.WriteToken(jsontext.Null)
	}
	return enc.WriteValue(jsontext.Value(v.String()))
}

// UnmarshalJSONFrom reads the next value strictly.
func (v *Value) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	raw, err := dec.ReadValue()
	if err != nil {
		return err
	}
	p, err := Parse(raw)
	if err != nil {
		return err
	}
	*v = p
	return nil
}

// MarshalJSON is [Value.MarshalJSONTo] for encoding/json.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.n == nil {
		return []byte("null"), nil
	}
	return v.AppendTo(nil), nil
}

// UnmarshalJSON is [Parse] for encoding/json.
func (v *Value) UnmarshalJSON(text []byte) error {
	p, err := Parse(text)
	if err != nil {
		return err
	}
	*v = p
	return nil
}
