package python

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/value"
)

// MaxDigits bounds the integers that arithmetic takes (spec/hostile.md 17): no
// amount, count or id is longer, and a product of longer ones is an attack.
const MaxDigits = 400

// number is an int or a float; True and False are ints here, as in Python.
type number struct {
	isInt bool
	small bool // i is valid, big is not
	i     int64
	big   *big.Int
	f     float64
}

func numberOf(v value.Value) (number, bool) {
	switch v.Kind() {
	case value.Bool:
		n := number{isInt: true, small: true}
		if b, _ := v.Bool(); b {
			n.i = 1
		}
		return n, true
	case value.Number:
		lit, _ := v.Number()
		if !isInt(lit) {
			f, _ := strconv.ParseFloat(lit, 64)
			return number{f: f}, true
		}
		if i, err := strconv.ParseInt(lit, 10, 64); err == nil {
			return number{isInt: true, small: true, i: i}, true
		}
		if len(lit) > MaxDigits {
			return number{}, false
		}
		b, ok := new(big.Int).SetString(lit, 10)
		return number{isInt: true, big: b}, ok
	}
	return number{}, false
}

func (n number) bigInt() *big.Int {
	if n.small {
		return big.NewInt(n.i)
	}
	return n.big
}

func (n number) float() float64 {
	switch {
	case !n.isInt:
		return n.f
	case n.small:
		return float64(n.i)
	}
	f, _ := new(big.Float).SetInt(n.big).Float64()
	return f
}

// compare is exact also between an int and a float.
func (n number) compare(m number) int {
	switch {
	case n.isInt && m.isInt:
		if n.small && m.small {
			return cmp(n.i, m.i)
		}
		return n.bigInt().Cmp(m.bigInt())
	case !n.isInt && !m.isInt:
		return cmp(n.f, m.f)
	case n.isInt:
		return -m.compare(n)
	}
	if math.IsInf(n.f, 0) {
		return cmp(n.f, 0)
	}
	const exact = 1 << 53
	if m.small && m.i > -exact && m.i < exact {
		return cmp(n.f, float64(m.i))
	}
	return new(big.Float).SetFloat64(n.f).Cmp(new(big.Float).SetInt(m.bigInt()))
}

func cmp[T int64 | float64](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// Equal is ==: numbers by value, True equal to 1, everything else by kind.
func Equal(a, b value.Value) bool {
	switch a.Kind() {
	case value.Bool, value.Number:
		x, ok := numberOf(a)
		y, ok2 := numberOf(b)
		if !ok || !ok2 {
			return a.Kind() == b.Kind() && a.String() == b.String()
		}
		return x.compare(y) == 0
	}
	if a.Kind() != b.Kind() || a.Len() != b.Len() {
		return false
	}
	switch a.Kind() {
	case value.List:
		for i, e := range a.Elements() {
			if !Equal(e, b.At(i)) {
				return false
			}
		}
		return true
	case value.Object:
		for k, m := range a.Members() {
			o, ok := b.Get(k)
			if !ok || !Equal(m, o) {
				return false
			}
		}
		return true
	}
	return a.String() == b.String()
}

// Compare orders numbers, strings by code point, and lists element by element;
// ok is false where Python raises TypeError.
func Compare(a, b value.Value) (order int, ok bool) {
	if x, isNum := numberOf(a); isNum {
		y, isNum := numberOf(b)
		if !isNum {
			return 0, false
		}
		return x.compare(y), true
	}
	if a.Kind() != b.Kind() {
		return 0, false
	}
	switch a.Kind() {
	case value.String:
		s, _ := a.Text()
		t, _ := b.Text()
		return strings.Compare(s, t), true
	case value.List:
		for i, e := range a.Elements() {
			if i >= b.Len() {
				return 1, true
			}
			if !Equal(e, b.At(i)) {
				return Compare(e, b.At(i))
			}
		}
		if a.Len() < b.Len() {
			return -1, true
		}
		return 0, true
	}
	return 0, false
}

var errNotFinite = errors.New("the result is not a finite number")

// Add is a + b: numbers are added, strings and lists joined.
func Add(a, b value.Value) (value.Value, error) {
	if a.Kind() == b.Kind() {
		switch a.Kind() {
		case value.String:
			s, _ := a.Text()
			t, _ := b.Text()
			return value.Text(s + t)
		case value.List:
			vs := make([]value.Value, 0, a.Len()+b.Len())
			for _, l := range []value.Value{a, b} {
				for _, e := range l.Elements() {
					vs = append(vs, e)
				}
			}
			return value.ListOf(vs...), nil
		}
	}
	return arith(a, b, "+")
}

// Sub is a - b.
func Sub(a, b value.Value) (value.Value, error) { return arith(a, b, "-") }

func arith(a, b value.Value, op string) (value.Value, error) {
	x, ok := numberOf(a)
	y, ok2 := numberOf(b)
	if !ok || !ok2 {
		return value.Value{}, fmt.Errorf("unsupported operand type(s) for %s: '%s' and '%s'", op, TypeName(a), TypeName(b))
	}
	if x.isInt && y.isInt {
		if x.small && y.small {
			s := x.i + y.i
			overflow := (s > x.i) != (y.i > 0)
			if op == "-" {
				s = x.i - y.i
				overflow = (s < x.i) != (y.i > 0)
			}
			if !overflow || y.i == 0 {
				return value.Int(s), nil
			}
		}
		r := new(big.Int)
		if op == "-" {
			r.Sub(x.bigInt(), y.bigInt())
		} else {
			r.Add(x.bigInt(), y.bigInt())
		}
		return value.Parse(r.String())
	}
	f := x.float() + y.float()
	if op == "-" {
		f = x.float() - y.float()
	}
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return value.Value{}, errNotFinite
	}
	return value.Parse(Float(f))
}

// IsFraction reports whether v is a float in Python: a number written with a
// point or an exponent.
func IsFraction(v value.Value) bool {
	lit, ok := v.Number()
	return ok && !isInt(lit)
}

// CanonicalNumber is one text for every literal of one value: 1, 1.0 and 1e0
// are "1", and 9007199254740993 is not 9007199254740992.0. Exponents that would
// make a text of more than [MaxDigits] digits keep their literal.
func CanonicalNumber(literal string) string {
	mantissa, exp, _ := strings.Cut(strings.ToLower(literal), "e")
	e := 0
	if exp != "" {
		var err error
		if e, err = strconv.Atoi(exp); err != nil || e > MaxDigits || e < -MaxDigits {
			return literal
		}
	}
	neg := strings.HasPrefix(mantissa, "-")
	whole, frac, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	digits := strings.TrimLeft(whole+frac, "0")
	e -= len(frac)
	trimmed := strings.TrimRight(digits, "0")
	e += len(digits) - len(trimmed)
	if trimmed == "" {
		return "0"
	}
	sign := ""
	if neg {
		sign = "-"
	}
	if e >= 0 && e+len(trimmed) <= MaxDigits {
		return sign + trimmed + strings.Repeat("0", e)
	}
	return fmt.Sprintf("%s%se%d", sign, trimmed, e)
}
