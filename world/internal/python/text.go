// Package python writes and compares JSON values as CPython does, because the
// worldbook format takes its ids, digests, templates and arithmetic from there
// (spec/world-reference.md §4, "Python-isms"): 25 and 25.0 stay apart, True is
// not an integer but equals 1, and a float is written as repr() writes it.
package python

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/callsheet/callsheet/value"
)

// A Style says how [Append] writes.
type Style struct {
	Sort    bool // members by name
	ASCII   bool // everything else as \uXXXX
	Compact bool // "," and ":" instead of ", " and ": "
}

// The styles that the format uses.
var (
	IDStyle     = Style{Sort: true}                // ids
	DigestStyle = Style{Sort: true, Compact: true} // artifact digests
	ConfigStyle = Style{Sort: true, ASCII: true}   // configuration digests
	LineStyle   = Style{}                          // JSON Lines and action texts
)

// Append appends v as json.dumps would write what json.loads made of it.
func Append(dst []byte, v value.Value, s Style) []byte {
	comma, colon := ", ", ": "
	if s.Compact {
		comma, colon = ",", ":"
	}
	switch v.Kind() {
	case value.Number:
		lit, _ := v.Number()
		return append(dst, Number(lit)...)
	case value.String:
		if !s.ASCII {
			return v.AppendTo(dst)
		}
		t, _ := v.Text()
		return appendASCII(dst, t)
	case value.List:
		dst = append(dst, '[')
		for i, e := range v.Elements() {
			if i > 0 {
				dst = append(dst, comma...)
			}
			dst = Append(dst, e, s)
		}
		return append(dst, ']')
	case value.Object:
		n := v.Len()
		dst = append(dst, '{')
		member := func(i, at int) {
			if i > 0 {
				dst = append(dst, comma...)
			}
			if s.ASCII {
				dst = appendASCII(dst, v.Key(at))
			} else {
				dst = value.AppendQuote(dst, v.Key(at))
			}
			dst = append(dst, colon...)
			dst = Append(dst, v.At(at), s)
		}
		if !s.Sort {
			for i := range n {
				member(i, i)
			}
			return append(dst, '}')
		}
		var few [16]int
		order := few[:0]
		for i := range n {
			order = append(order, i)
		}
		slices.SortFunc(order, func(a, b int) int { return strings.Compare(v.Key(a), v.Key(b)) })
		for i, at := range order {
			member(i, at)
		}
		return append(dst, '}')
	}
	return v.AppendTo(dst)
}

// Dumps is [Append] into a string.
func Dumps(v value.Value, s Style) string { return string(Append(nil, v, s)) }

func appendASCII(dst []byte, s string) []byte {
	for _, b := range value.AppendQuote(nil, s) {
		if b >= utf8.RuneSelf {
			return appendEscaped(dst, string(value.AppendQuote(nil, s)))
		}
	}
	return value.AppendQuote(dst, s)
}

func appendEscaped(dst []byte, quoted string) []byte {
	unit := func(u uint16) {
		const hexDigits = "0123456789abcdef"
		dst = append(dst, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
	}
	for _, r := range quoted {
		switch {
		case r < utf8.RuneSelf:
			dst = append(dst, byte(r))
		case r < 0x10000:
			unit(uint16(r))
		default:
			r -= 0x10000
			unit(uint16(0xd800 + r>>10))
			unit(uint16(0xdc00 + r&0x3ff))
		}
	}
	return dst
}

// Number writes a JSON number literal as Python would after reading it: an
// integer digit for digit, anything with a fraction or an exponent as repr() of
// a float.
func Number(literal string) string {
	if isInt(literal) {
		if literal == "-0" {
			return "0"
		}
		return literal
	}
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil && f == 0 { // ErrRange still gives ±Inf
		return literal
	}
	return Float(f)
}

func isInt(literal string) bool { return !strings.ContainsAny(literal, ".eE") }

// Float is repr() of a float.
func Float(f float64) string {
	switch {
	case f > 1.7976931348623157e308:
		return "Infinity"
	case f < -1.7976931348623157e308:
		return "-Infinity"
	case f != f:
		return "NaN"
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	exp, _ := strconv.Atoi(s[strings.IndexByte(s, 'e')+1:])
	if exp < -4 || exp >= 16 {
		return s
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// Str is str(): the characters of a string, everything else as [Repr].
func Str(v value.Value) string {
	if s, ok := v.Text(); ok {
		return s
	}
	return Repr(v)
}

// Repr is repr().
func Repr(v value.Value) string { return string(appendRepr(nil, v)) }

func appendRepr(dst []byte, v value.Value) []byte {
	switch v.Kind() {
	case value.Null:
		return append(dst, "None"...)
	case value.Bool:
		if b, _ := v.Bool(); b {
			return append(dst, "True"...)
		}
		return append(dst, "False"...)
	case value.Number:
		lit, _ := v.Number()
		switch n := Number(lit); n {
		case "Infinity":
			return append(dst, "inf"...)
		case "-Infinity":
			return append(dst, "-inf"...)
		default:
			return append(dst, n...)
		}
	case value.String:
		s, _ := v.Text()
		return append(dst, Quote(s)...)
	case value.List:
		dst = append(dst, '[')
		for i, e := range v.Elements() {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = appendRepr(dst, e)
		}
		return append(dst, ']')
	case value.Object:
		dst = append(dst, '{')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ", "...)
			}
			dst = append(append(dst, Quote(v.Key(i))...), ": "...)
			dst = appendRepr(dst, v.At(i))
		}
		return append(dst, '}')
	}
	return dst
}

// Quote is repr() of a string.
func Quote(s string) string {
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	b := []byte{q}
	for _, r := range s {
		switch {
		case r == '\\' || r == rune(q):
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case unicode.IsPrint(r):
			b = utf8.AppendRune(b, r)
		case r < 0x100:
			b = append(b, `\x`...)
			b = appendHex(b, r, 2)
		case r < 0x10000:
			b = append(b, `\u`...)
			b = appendHex(b, r, 4)
		default:
			b = append(b, `\U`...)
			b = appendHex(b, r, 8)
		}
	}
	return string(append(b, q))
}

func appendHex(dst []byte, r rune, width int) []byte {
	h := strconv.FormatInt(int64(r), 16)
	for range width - len(h) {
		dst = append(dst, '0')
	}
	return append(dst, h...)
}

// TypeName is type(x).__name__ of what json.loads makes of v.
func TypeName(v value.Value) string {
	switch v.Kind() {
	case value.Null:
		return "NoneType"
	case value.Bool:
		return "bool"
	case value.Number:
		if lit, _ := v.Number(); isInt(lit) {
			return "int"
		}
		return "float"
	case value.String:
		return "str"
	case value.List:
		return "list"
	}
	return "dict"
}

// ID is a content-derived id: the prefix, and the first 16 hex digits of the
// SHA-256 of the parts as a JSON list (spec/world-reference.md §4).
func ID(prefix string, parts ...value.Value) string {
	b := make([]byte, 0, 512)
	b = append(b, '[')
	for i, p := range parts {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = Append(b, p, IDStyle)
	}
	sum := sha256.Sum256(append(b, ']'))
	return prefix + "_" + hex.EncodeToString(sum[:8])
}

// Runes is len() of a string: code points, not bytes.
func Runes(s string) int { return utf8.RuneCountInString(s) }

// Slice is s[from:to] in code points; to beyond the end is the end.
func Slice(s string, from, to int) string {
	if len(s) <= from {
		return ""
	}
	i, n, start := 0, 0, -1
	for i < len(s) {
		if n == from {
			start = i
		}
		if n == to {
			break
		}
		_, w := utf8.DecodeRuneInString(s[i:])
		i += w
		n++
	}
	if start < 0 {
		return ""
	}
	return s[start:i]
}
