package schema

import (
	"slices"
	"strconv"

	"github.com/callsheet/callsheet/value"
)

// equal compares as JSON Schema does: numbers by their value.
func (e *evaluation) equal(v, want value.Value) verdict {
	if v.Kind() != want.Kind() {
		return fails
	}
	switch v.Kind() {
	case value.List, value.Object:
		if v.Len() != want.Len() {
			return fails
		}
		if e.holes != nil && e.open() {
			return maybe
		}
		e.spend((v.Size() + want.Size()) / bytesPerWork)
		return truth(slices.Equal(normal(nil, v), normal(nil, want)))
	case value.Number:
		a, _ := v.Number()
		b, _ := want.Number()
		return truth(a == b || parse(a).equal(parse(b)))
	case value.String:
		// Both texts were written with minimal escapes, so that equal strings
		// have equal text.
		return truth(v.String() == want.String())
	}
	return truth(v.String() == want.String())
}

func truth(b bool) verdict {
	if b {
		return fits
	}
	return fails
}

// normal appends a text that two values share exactly if JSON Schema calls them
// equal.
func normal(dst []byte, v value.Value) []byte {
	switch v.Kind() {
	case value.Number:
		literal, _ := v.Number()
		d := parse(literal)
		if d.neg {
			dst = append(dst, '-')
		}
		dst = append(append(dst, d.digits...), 'e')
		return strconv.AppendInt(dst, d.exp, 10)
	case value.List:
		dst = append(dst, '[')
		for _, item := range v.Elements() {
			dst = append(normal(dst, item), ',')
		}
		return append(dst, ']')
	case value.Object:
		keys := make([]string, 0, v.Len())
		for k := range v.Members() {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		dst = append(dst, '{')
		for _, k := range keys {
			m, _ := v.Get(k)
			dst = append(normal(append(value.AppendQuote(dst, k), ':'), m), ',')
		}
		return append(dst, '}')
	}
	return v.AppendTo(dst)
}
