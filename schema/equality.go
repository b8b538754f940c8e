package schema

import (
	"slices"
	"strconv"

	"github.com/callsheet/callsheet/value"
)

// among judges whether v is one of n's enum, numbers being compared by their
// value.
func (e *evaluation) among(n *node, v value.Value) verdict {
	if k := v.Kind(); (k == value.List || k == value.Object) && e.holes != nil && e.open() {
		e.spend(len(n.enum) / itemsPerWork)
		return min(maybe, truth(slices.ContainsFunc(n.enum, func(want value.Value) bool {
			return want.Kind() == k && want.Len() == v.Len()
		})))
	}
	var room [64]byte
	return truth(e.meter.spend(v.Size()/normalPerWork) && n.listed[string(normal(room[:0], v))])
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
