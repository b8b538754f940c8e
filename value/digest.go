package value

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// A Digest is the SHA-256 of a value's canonical text: the compact text with
// the members of every object sorted by code point and every number as it was
// written, so that 1 and 1.0 differ and 9007199254740993 is not rounded
// (spec/plan.md §5).
type Digest [sha256.Size]byte

// String is the digest in lower-case hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes the digest in lower-case hex.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Digest returns the value's digest. It is computed once for each part that is
// asked for and kept with it.
func (v Value) Digest() Digest {
	if v.n == nil {
		return Digest{}
	}
	if d := v.n.digest.Load(); d != nil {
		return *d
	}
	h := sha256.New()
	w := bufio.NewWriterSize(h, hashBuffer)
	v.canonical(w)
	w.Flush()
	var d Digest
	h.Sum(d[:0])
	v.n.digest.Store(&d)
	return d
}

// Canonical is the text over which the digest is taken, "" for no value.
func (v Value) Canonical() string {
	if v.n == nil {
		return ""
	}
	var b strings.Builder
	w := bufio.NewWriterSize(&b, hashBuffer)
	v.canonical(w)
	w.Flush()
	return b.String()
}

// hashBuffer is what a hash is fed at once: some of its blocks, so that no
// bracket is a call of its own, and small enough for the many small values.
const hashBuffer = 512

// canonical writes the canonical text; neither a hash nor a builder gives an
// error.
func (v Value) canonical(w *bufio.Writer) {
	switch v.n.kind {
	case List:
		w.WriteByte('[')
		for i, e := range v.children().vals {
			if i > 0 {
				w.WriteByte(',')
			}
			e.canonical(w)
		}
		w.WriteByte(']')
	case Object:
		c := v.children()
		var few [16]int
		order := few[:0]
		for i := range c.keys {
			order = append(order, i)
		}
		slices.SortFunc(order, func(a, b int) int { return strings.Compare(c.keys[a], c.keys[b]) })
		w.WriteByte('{')
		for i, k := range order {
			if i > 0 {
				w.WriteByte(',')
			}
			w.Write(AppendQuote(w.AvailableBuffer(), c.keys[k]))
			w.WriteByte(':')
			c.vals[k].canonical(w)
		}
		w.WriteByte('}')
	default:
		w.WriteString(v.n.text)
	}
}

// Same reports whether a and b are one and the same value, not only equal: it
// costs a comparison of pointers.
func Same(a, b Value) bool { return a.n == b.n }

// Equal reports whether a and b have the same canonical text.
func Equal(a, b Value) bool {
	if a.n == b.n {
		return true
	}
	if a.Kind() != b.Kind() || a.n.size != b.n.size {
		return false
	}
	if a.n.text != "" && a.n.text == b.n.text {
		return true
	}
	switch a.Kind() {
	case List:
		if a.Len() != b.Len() {
			return false
		}
		for i, e := range a.Elements() {
			if !Equal(e, b.At(i)) {
				return false
			}
		}
		return true
	case Object:
		if a.Len() != b.Len() {
			return false
		}
		for k, m := range a.Members() {
			if o, ok := b.Get(k); !ok || !Equal(m, o) {
				return false
			}
		}
		return true
	}
	return false
}

// ParseDigest reads a digest in lower-case hex.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	if len(s) != hex.EncodedLen(len(d)) || strings.ToLower(s) != s {
		return d, fmt.Errorf("%q is not a digest in lower-case hex", s)
	}
	_, err := hex.Decode(d[:], []byte(s))
	return d, err
}
