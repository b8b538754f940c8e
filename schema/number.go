package schema

import (
	"cmp"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// A decimal is a JSON number taken apart: ±0.d₁d₂… × 10^exp is never expanded,
// so that 1e400000000 costs as much as 1.
type decimal struct {
	literal string
	neg     bool
	digits  string // without zeros at either end; "" is zero
	exp     int64  // the value is digits × 10^exp
}

// maxMagnitude bounds the numbers that a schema may compare or divide: every
// digit must stand between 10^400 and 10^-400. Doubles end at 308; what lies
// beyond is more likely an attack than an amount (spec/hostile.md 17).
const maxMagnitude = 400

// parse takes a literal apart that is known to be a JSON number.
func parse(literal string) decimal {
	d := decimal{literal: literal}
	s := literal
	if s[0] == '-' {
		d.neg, s = true, s[1:]
	}
	if e := strings.IndexAny(s, "eE"); e >= 0 {
		exp, err := strconv.ParseInt(strings.TrimPrefix(s[e+1:], "+"), 10, 64)
		if err != nil {
			// Beyond 64 bits. A quarter of the range leaves room for the sums below.
			exp = math.MaxInt64 / 4
			if s[e+1] == '-' {
				exp = -exp
			}
		}
		d.exp, s = min(max(exp, -math.MaxInt64/4), math.MaxInt64/4), s[:e]
	}
	if dot := strings.IndexByte(s, '.'); dot >= 0 {
		fraction := strings.TrimRight(s[dot+1:], "0")
		s = s[:dot] + fraction
		d.exp -= int64(len(fraction))
	}
	s = strings.TrimLeft(s, "0")
	d.digits = strings.TrimRight(s, "0")
	d.exp += int64(len(s) - len(d.digits))
	if d.digits == "" {
		d.neg, d.exp = false, 0
	}
	return d
}

// isInteger reports whether a literal stands for an integer.
func isInteger(literal string) bool {
	if !strings.ContainsAny(literal, ".eE") {
		return true
	}
	return parse(literal).exp >= 0
}

// bounded reports whether arithmetic on d is cheap.
func (d decimal) bounded() bool {
	return d.exp >= -maxMagnitude && d.exp+int64(len(d.digits)) <= maxMagnitude+1
}

func (d decimal) cmp(o decimal) int {
	if d.neg != o.neg {
		if d.neg {
			return -1
		}
		return 1
	}
	var c int
	switch {
	case d.digits == "" || o.digits == "":
		c = cmp.Compare(len(d.digits), len(o.digits))
	default:
		// Digits that start at the same power of ten compare like text.
		c = cmp.Or(cmp.Compare(d.exp+int64(len(d.digits)), o.exp+int64(len(o.digits))), cmp.Compare(d.digits, o.digits))
	}
	if d.neg {
		return -c
	}
	return c
}

// multipleOf reports whether d is a multiple of o; both must be bounded and o
// not zero.
func (d decimal) multipleOf(o decimal) bool {
	low := min(d.exp, o.exp)
	return new(big.Int).Rem(d.scaled(low), o.scaled(low)).Sign() == 0
}

// scaled is the digits of d in units of 10^low.
func (d decimal) scaled(low int64) *big.Int {
	if d.digits == "" {
		return new(big.Int)
	}
	n, _ := new(big.Int).SetString(d.digits+strings.Repeat("0", int(d.exp-low)), 10)
	return n
}
