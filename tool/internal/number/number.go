// Package number reads JSON numbers into exact ratios and writes them back,
// within bounds: text as short as 1e400000000 must not become a gigabyte of
// digits (spec/hostile.md 17).
package number

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/value"
)

// MaxDigits bounds every number that is computed with, and every result, on
// either side of the point. Doubles end at 308.
const MaxDigits = 400

// maxBits is MaxDigits in bits, and a little more.
const maxBits = MaxDigits*10/3 + 1

// Parse reads the literal of a number. One beyond [MaxDigits] is an error.
func Parse(literal string) (*big.Rat, error) {
	mantissa, exponent := literal, ""
	if e := strings.IndexAny(literal, "eE"); e >= 0 {
		mantissa, exponent = literal[:e], literal[e+1:]
	}
	n := 0
	var err error
	if exponent != "" {
		n, err = strconv.Atoi(exponent)
	}
	if err == nil && max(n, -n) <= MaxDigits && len(mantissa) <= 2*MaxDigits {
		if r, ok := new(big.Rat).SetString(literal); ok && Bounded(r) {
			return r, nil
		}
	}
	return nil, fmt.Errorf("%.80s goes beyond %d digits", literal, MaxDigits)
}

// Bounded reports whether r is within [MaxDigits].
func Bounded(r *big.Rat) bool {
	return r.Num().BitLen() <= 2*maxBits && r.Denom().BitLen() <= 2*maxBits && // of a fraction with digits on both sides
		r.Num().BitLen()-r.Denom().BitLen() <= maxBits && r.Denom().BitLen()-r.Num().BitLen() <= maxBits+1
}

// Text writes r exactly when its decimals end, else as the nearest double.
func Text(r *big.Rat) (value.Value, error) {
	if !Bounded(r) {
		return value.Value{}, fmt.Errorf("the result goes beyond %d digits", MaxDigits)
	}
	if r.IsInt() {
		return value.Parse(r.Num().String())
	}
	if digits, exact := r.FloatPrec(); exact && digits <= MaxDigits {
		return value.Parse(r.FloatString(digits))
	}
	f, _ := r.Float64()
	return value.Float(f)
}
