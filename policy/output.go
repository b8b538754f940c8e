package policy

import (
	"strconv"

	"github.com/callsheet/callsheet/value"
)

// An Output declares the labels of what a tool returns, by pointer pattern. A
// pattern speaks of what it names and everything below it. What no Trusted
// pattern names is untrusted, and an Untrusted pattern wins over a Trusted one.
type Output struct {
	Trusted   []string
	Untrusted []string
	Secret    []string
	// UntrustedText makes every string untrusted, also where Trusted speaks of
	// it: numbers, booleans and null remain.
	UntrustedText bool

	at     span
	places map[string]span // of the patterns
}

// outputLabels is a compiled Output. The nil one declares nothing.
type outputLabels struct {
	trusted, untrusted, secret []pattern
	untrustedText              bool
}

// relate is the closest relation of some pattern to the pointer: above before
// inside before apart.
func relate(ps []pattern, pointer string) relation {
	best := apart
	for _, p := range ps {
		switch p.to(pointer) {
		case above:
			return above
		case inside:
			best = inside
		}
	}
	return best
}

// declared is the label of everything at and below the pointer as far as the
// declarations alone tell; mixed says that parts differ, or that the kind of a
// leaf matters, and then the label is the worst that they can have.
func (o *outputLabels) declared(pointer string) (l Label, mixed bool) {
	l.Integrity = Untrusted
	if o == nil {
		return l, false
	}
	switch relate(o.secret, pointer) {
	case above:
		l.Secret = true
	case inside:
		l.Secret, mixed = true, true
	}
	bad, good := relate(o.untrusted, pointer), relate(o.trusted, pointer)
	switch {
	case bad == above || good == apart:
	case good == inside || bad == inside || o.untrustedText:
		mixed = true
	default:
		l.Integrity = Trusted
	}
	return l, mixed
}

// label is the label of the value v that stands at the pointer in an output: of
// the leaf itself, or the join of all leaves below. Only what was asked for is
// looked at, only where the declarations differ below the pointer, and no
// further than the first part that makes the join as bad as it can be.
func (o *outputLabels) label(v value.Value, pointer string) Label {
	l, mixed := o.declared(pointer)
	if !mixed {
		return l
	}
	worst := l
	switch v.Kind() {
	case value.List, value.Object:
		l = Label{Integrity: Trusted}
		at := append(make([]byte, 0, len(pointer)+32), pointer...)
		for i := range v.Len() {
			at = append(at[:len(pointer)], '/')
			if v.Kind() == value.List {
				at = strconv.AppendInt(at, int64(i), 10)
			} else {
				at = append(at, value.EscapePointer(v.Key(i))...)
			}
			l = l.Join(o.label(v.At(i), string(at)))
			if !worst.Worse(l) {
				break
			}
		}
		return l
	}
	// A leaf: patterns that reach below it name nothing.
	l = Label{Integrity: Untrusted, Secret: relate(o.secret, pointer) == above}
	if relate(o.trusted, pointer) == above && relate(o.untrusted, pointer) != above &&
		!(o.untrustedText && v.Kind() == value.String) {
		l.Integrity = Trusted
	}
	return l
}
