// Package arith has the twenty arithmetic tools that the plans of NESTFUL use.
//
//	set, err := tool.NewSet(arith.New()...)
//	// multiply {"arg_0": 49, "arg_1": 16} → {"result": 784}
//
// Arguments are taken in order: by number when all are called arg_0, arg_1, …,
// else as they stand in the args, whatever their names. Integers are computed
// exactly, at any size up to 400 digits; 2.0 and 1E2 are integers. As soon as
// something else is involved, the computation is IEEE 754's in double precision,
// as in the language that the gold answers come from. A number or a result
// beyond that is a tool error, and so are division by zero and what is not
// defined.
package arith

import (
	"context"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/internal/number"
	"github.com/callsheet/callsheet/value"
)

// New makes the twenty tools. They are read-only and their args neutral.
func New() []tool.Tool {
	out := make([]tool.Tool, 0, len(operations))
	for _, op := range operations {
		out = append(out, op.tool())
	}
	return out
}

// An operation is one tool: exact is used when every argument is an integer,
// double when one is not. A double result that is not finite is an error.
type operation struct {
	name        string
	description string
	args        int
	exact       func(a, b *big.Int) (*big.Rat, error)
	double      func(a, b float64) (float64, error)
}

var operations = []operation{
	{"add", "arg_0 + arg_1", 2, exactly((*big.Int).Add), always(func(a, b float64) float64 { return a + b })},
	{"subtract", "arg_0 - arg_1", 2, exactly((*big.Int).Sub), always(func(a, b float64) float64 { return a - b })},
	{"multiply", "arg_0 × arg_1", 2, exactly((*big.Int).Mul), always(func(a, b float64) float64 { return a * b })},
	{"divide", "arg_0 / arg_1", 2, ratio, quotient},
	{"speed", "The speed of a distance arg_0 in a time arg_1", 2, ratio, quotient},
	{"inverse", "1 / arg_0", 1,
		func(a, _ *big.Int) (*big.Rat, error) { return ratio(big.NewInt(1), a) },
		func(a, _ float64) (float64, error) { return quotient(1, a) }},
	{"negate", "-arg_0", 1,
		exactly(func(z, a, _ *big.Int) *big.Int { return z.Neg(a) }),
		always(func(a, _ float64) float64 { return -a })},
	{"floor", "The largest integer that is not above arg_0", 1,
		exactly(func(z, a, _ *big.Int) *big.Int { return z.Set(a) }),
		always(func(a, _ float64) float64 { return math.Floor(a) })},
	{"reminder", "The remainder of arg_0 / arg_1, with the sign of arg_1", 2, modulo, func(a, b float64) (float64, error) {
		if b == 0 {
			return 0, errZero
		}
		r := math.Mod(a, b)
		if r != 0 && (r < 0) != (b < 0) {
			r += b
		}
		return r, nil
	}},
	{"power", "arg_0 to the power of arg_1", 2, power, func(a, b float64) (float64, error) {
		if a == 0 && b < 0 {
			return 0, errZero
		}
		return math.Pow(a, b), nil
	}},
	{"sqrt", "The integer square root of arg_0: the largest integer whose square is not above it", 1,
		func(a, _ *big.Int) (*big.Rat, error) {
			if a.Sign() < 0 {
				return nil, errNegative
			}
			return new(big.Rat).SetInt(new(big.Int).Sqrt(a)), nil
		},
		func(a, _ float64) (float64, error) {
			if a < 0 {
				return 0, errNegative
			}
			return math.Floor(math.Sqrt(a)), nil
		}},
	{"gcd", "The greatest common divisor of two integers", 2,
		exactly(func(z, a, b *big.Int) *big.Int { return z.GCD(nil, nil, new(big.Int).Abs(a), new(big.Int).Abs(b)) }), nil},
	{"lcm", "The least common multiple of two integers", 2,
		exactly(func(z, a, b *big.Int) *big.Int {
			if a.Sign() == 0 || b.Sign() == 0 {
				return z
			}
			z.GCD(nil, nil, new(big.Int).Abs(a), new(big.Int).Abs(b))
			return z.Abs(z.Mul(z.Quo(a, z), b))
		}), nil},
	{"factorial", "The factorial of arg_0", 1, factorial, nil},
	{"choose", "How many ways there are to choose arg_1 of arg_0", 2, choose, nil},
	{"square_area", "The area of a square with the edge arg_0", 1,
		exactly(func(z, a, _ *big.Int) *big.Int { return z.Mul(a, a) }),
		always(func(a, _ float64) float64 { return a * a })},
	{"square_perimeter", "The perimeter of a square with the edge arg_0", 1,
		exactly(func(z, a, _ *big.Int) *big.Int { return z.Lsh(a, 2) }),
		always(func(a, _ float64) float64 { return 4 * a })},
	{"square_edge_by_area", "The edge of a square with the area arg_0", 1,
		func(a, _ *big.Int) (*big.Rat, error) {
			if a.Sign() < 0 {
				return nil, errNegative
			}
			root := new(big.Int).Sqrt(a)
			if new(big.Int).Mul(root, root).Cmp(a) == 0 {
				return new(big.Rat).SetInt(root), nil
			}
			f, _ := new(big.Float).SetInt(a).Float64()
			return fromDouble(math.Sqrt(f))
		},
		func(a, _ float64) (float64, error) {
			if a < 0 {
				return 0, errNegative
			}
			return math.Sqrt(a), nil
		}},
	{"rectangle_area", "The area of a rectangle with the edges arg_0 and arg_1", 2,
		exactly((*big.Int).Mul), always(func(a, b float64) float64 { return a * b })},
	{"circle_area", "The area of a circle with the radius arg_0", 1,
		func(a, _ *big.Int) (*big.Rat, error) {
			f, _ := new(big.Float).SetInt(a).Float64()
			return fromDouble(math.Pi * f * f)
		},
		always(func(a, _ float64) float64 { return math.Pi * a * a })},
}

var (
	errZero     = tool.Errorf("division by zero")
	errNegative = tool.Errorf("the number is negative, and its root is not real")
	errTooLarge = tool.Errorf("the result goes beyond %d digits", number.MaxDigits)
	errFinite   = tool.Errorf("the result is not a finite number")
)

// maxBits is a cheap bound on results, checked before they are computed.
const maxBits = number.MaxDigits*10/3 + 1

func (op *operation) tool() tool.Tool {
	names := []string{"arg_0", "arg_1"}[:op.args]
	properties := make([]value.Member, op.args)
	num := value.MustParse(`{"type":"number"}`)
	for i, name := range names {
		properties[i] = value.Member{Key: name, Value: num}
	}
	input, err := schema.Compile(value.ObjectOf(
		value.Member{Key: "type", Value: value.MustText("object")},
		value.Member{Key: "properties", Value: value.ObjectOf(properties...)},
		// Some plans name the arguments in their own way.
		value.Member{Key: "additionalProperties", Value: num},
		value.Member{Key: "minProperties", Value: value.Int(int64(op.args))},
		value.Member{Key: "maxProperties", Value: value.Int(int64(op.args))}))
	if err != nil {
		panic(err) // the schema above is wrong
	}
	return tool.Tool{
		Declaration: tool.Declaration{
			Name: op.name, Description: op.description, Source: "arith",
			Input:   input,
			Output:  schema.MustCompile(`{"type":"object","properties":{"result":{"type":"number"}},"required":["result"],"additionalProperties":false}`),
			Effects: tool.Effects{ReadOnly: true, Idempotent: true},
			Args:    []tool.Arg{{Pattern: "/*", Role: tool.Neutral}},
		},
		Handler: func(_ context.Context, call *tool.Call) (value.Value, error) { return op.call(call.Args) },
	}
}

func (op *operation) call(args value.Value) (value.Value, error) {
	operands, err := op.operands(args)
	if err != nil {
		return value.Value{}, err
	}
	whole := true
	for _, r := range operands {
		whole = whole && r.IsInt()
	}
	var result *big.Rat
	switch {
	case whole:
		ints := [2]*big.Int{new(big.Int), new(big.Int)}
		for i, r := range operands {
			ints[i] = r.Num()
		}
		result, err = op.exact(ints[0], ints[1])
	case op.double == nil:
		return value.Value{}, tool.Errorf("%s is defined for integers only", op.name)
	default:
		var doubles [2]float64
		for i, r := range operands {
			doubles[i], _ = r.Float64()
		}
		var f float64
		if f, err = op.double(doubles[0], doubles[1]); err == nil {
			if math.IsNaN(f) || math.IsInf(f, 0) {
				return value.Value{}, errFinite
			}
			if f != math.Trunc(f) {
				v, err := value.Float(f)
				return answer(v), err
			}
			result, err = fromDouble(f)
		}
	}
	if err != nil {
		return value.Value{}, err
	}
	v, err := number.Text(result)
	if err != nil {
		return value.Value{}, tool.Errorf("%v", err)
	}
	return answer(v), nil
}

func answer(v value.Value) value.Value {
	return value.ObjectOf(value.Member{Key: "result", Value: v})
}

// operands are the arguments in order.
func (op *operation) operands(args value.Value) ([]*big.Rat, error) {
	if args.Len() != op.args {
		return nil, tool.Errorf("%s takes %s, not %d", op.name, count.Of(op.args, "argument"), args.Len())
	}
	type operand struct {
		place int
		name  string
		value value.Value
	}
	var list []operand
	numbered := true
	for name, v := range args.Members() {
		digits, ok := strings.CutPrefix(name, "arg_")
		place, err := strconv.Atoi(digits)
		numbered = numbered && ok && err == nil
		list = append(list, operand{place, name, v})
	}
	if numbered {
		slices.SortStableFunc(list, func(a, b operand) int { return a.place - b.place })
	}
	out := make([]*big.Rat, len(list))
	for i, o := range list {
		literal, ok := o.value.Number()
		if !ok {
			return nil, tool.Errorf("the argument %.80q is a %s; it must be a number", o.name, o.value.Kind())
		}
		var err error
		if out[i], err = number.Parse(literal); err != nil {
			return nil, tool.Errorf("the argument %.80q: %v", o.name, err)
		}
	}
	return out, nil
}

// exactly makes an operation of a method of big.Int.
func exactly(f func(z, a, b *big.Int) *big.Int) func(a, b *big.Int) (*big.Rat, error) {
	return func(a, b *big.Int) (*big.Rat, error) { return new(big.Rat).SetInt(f(new(big.Int), a, b)), nil }
}

func always(f func(a, b float64) float64) func(a, b float64) (float64, error) {
	return func(a, b float64) (float64, error) { return f(a, b), nil }
}

func ratio(a, b *big.Int) (*big.Rat, error) {
	if b.Sign() == 0 {
		return nil, errZero
	}
	return new(big.Rat).SetFrac(a, b), nil
}

func quotient(a, b float64) (float64, error) {
	if b == 0 {
		return 0, errZero
	}
	return a / b, nil
}

// modulo has the sign of the divisor.
func modulo(a, b *big.Int) (*big.Rat, error) {
	if b.Sign() == 0 {
		return nil, errZero
	}
	r := new(big.Int).Rem(a, b)
	if r.Sign() != 0 && r.Sign() != b.Sign() {
		r.Add(r, b)
	}
	return new(big.Rat).SetInt(r), nil
}

func power(a, b *big.Int) (*big.Rat, error) {
	n := new(big.Int).Abs(b)
	switch {
	case a.Sign() == 0 && b.Sign() < 0:
		return nil, errZero
	case a.BitLen() <= 1 && a.Sign() <= 0 || a.IsInt64() && a.Int64() == 1: // -1, 0 and 1 stay small at any power
		n.SetInt64(2 - int64(n.Bit(0)))
		if b.Sign() == 0 {
			n.SetInt64(0)
		}
	case n.BitLen() > 31 || n.Int64()*int64(a.BitLen()-1) > maxBits:
		return nil, errTooLarge
	}
	p := new(big.Int).Exp(a, n, nil)
	if b.Sign() < 0 {
		return new(big.Rat).SetFrac(big.NewInt(1), p), nil
	}
	return new(big.Rat).SetInt(p), nil
}

func factorial(a, _ *big.Int) (*big.Rat, error) {
	switch {
	case a.Sign() < 0:
		return nil, tool.Errorf("the factorial of a negative number is not defined")
	case a.BitLen() > 10: // 1024! has 2640 digits
		return nil, errTooLarge
	}
	return new(big.Rat).SetInt(new(big.Int).MulRange(1, a.Int64())), nil
}

func choose(n, k *big.Int) (*big.Rat, error) {
	if n.Sign() < 0 || k.Sign() < 0 {
		return nil, tool.Errorf("choosing is not defined for negative numbers")
	}
	if k.Cmp(n) > 0 {
		return new(big.Rat), nil
	}
	if rest := new(big.Int).Sub(n, k); rest.Cmp(k) < 0 {
		k = rest
	}
	// There are at least 2^k ways.
	if !k.IsInt64() || k.Int64() > maxBits {
		return nil, errTooLarge
	}
	ways := big.NewInt(1)
	for i := int64(1); i <= k.Int64(); i++ {
		factor := new(big.Int).Sub(n, big.NewInt(i-1))
		ways.Quo(ways.Mul(ways, factor), big.NewInt(i))
		if ways.BitLen() > maxBits+1 {
			return nil, errTooLarge
		}
	}
	return new(big.Rat).SetInt(ways), nil
}

// fromDouble is the decimal that a double is written as.
func fromDouble(f float64) (*big.Rat, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, errFinite
	}
	r, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	if !ok {
		return nil, errFinite
	}
	return r, nil
}
