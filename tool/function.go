package tool

import (
	"context"
	"encoding"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"time"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/value"
	"github.com/go-json-experiment/json"
)

// Options are what a typed function cannot say by its type. The zero value is
// a tool that declares nothing, with inferred schemas and the default limits.
type Options struct {
	Effects *Effects       // nil: Undeclared(), the worst
	Args    []Arg          // roles; what none matches is a Target
	Input   *schema.Schema // nil: inferred from In
	Output  *schema.Schema // nil: inferred from Out
	Source  string         // "": "go"

	Attempts  int           // 0: DefaultAttempts
	Delay     time.Duration // before a retry; 0: none
	Deadline  time.Duration // 0: DefaultDeadline
	MaxOutput int           // bytes; 0: DefaultMaxOutput
}

// Func makes a tool of a Go function. Over the raw door, which is a [Tool] with
// a [Handler] of one's own that takes and gives values as they are, it adds:
//
//   - schemas inferred from In and Out by [schema.For]: wrong args never reach
//     fn, wrong plans are found before the run, and a model is told what to send;
//   - strict decoding: exact names, no unknown ones, numbers that do not fit
//     their Go type refused (code "invalid_args") instead of rounded. 5.0 is the
//     integer 5, as JSON Schema says;
//   - exact encoding: an int64 keeps its digits. A result that is not JSON, such
//     as NaN, is a failure with code "tool_error", not a panic.
//
// In is what args can be, which are an object: a struct, a map with strings for
// keys, [value.Value] for any args, a type that reads its own JSON, or a pointer to
// one of these. Out may be anything that JSON
// can hold. fn fails by returning an error: see [Handler] for what becomes of
// it, [Retryable] and [Errorf] for how to say more.
//
// The error is about In or Out, a type without a JSON form or one that no args fit;
// about a role for an arg that the schema does not have; or about a nil fn.
func Func[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts Options) (Tool, error) {
	d := Declaration{
		Name: name, Description: description, Input: opts.Input, Output: opts.Output, Effects: Undeclared(),
		Args: opts.Args, Source: opts.Source, Attempts: opts.Attempts, Delay: opts.Delay, Deadline: opts.Deadline,
		MaxOutput: opts.MaxOutput,
	}
	if opts.Effects != nil {
		d.Effects = *opts.Effects
	}
	if d.Source == "" {
		d.Source = "go"
	}
	if fn == nil {
		return Tool{}, fmt.Errorf("tool %q: the function is nil", name)
	}
	if t := reflect.TypeFor[In](); !takesObject(t) {
		return Tool{}, fmt.Errorf("tool %q: input: args are an object, and %v is not read from one; take a struct", name, t)
	}
	var err error
	if d.Input == nil {
		if d.Input, err = schema.For[In](); err != nil {
			return Tool{}, fmt.Errorf("tool %q: input: %w", name, err)
		}
	}
	if d.Output == nil {
		if d.Output, err = schema.For[Out](); err != nil {
			return Tool{}, fmt.Errorf("tool %q: output: %w", name, err)
		}
	}
	for _, a := range d.Args {
		if wrong := d.MisnamedArg(a.Pattern); wrong != "" {
			return Tool{}, fmt.Errorf("args: %s", wrong)
		}
	}
	return Tool{d, func(ctx context.Context, call *Call) (value.Value, error) {
		var in In
		if err := decode(call.Args, &in); err != nil {
			return value.Value{}, &Failure{Code: CodeInvalidArgs, Message: err.Error(), NotStarted: true}
		}
		out, err := fn(ctx, in)
		if f := AsFailure(err); f != nil { // a nil *Failure in err is none
			return value.Value{}, f
		}
		v, err := value.Of(out)
		if err != nil {
			return value.Value{}, Errorf("the result cannot be written as JSON: %v", err)
		}
		return v, nil
	}}, nil
}

// takesObject reports whether a Go type can be read from a JSON object.
func takesObject(t reflect.Type) bool {
	for _, own := range []reflect.Type{reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[json.UnmarshalerFrom](), reflect.TypeFor[encoding.TextUnmarshaler]()} {
		if reflect.PointerTo(t).Implements(own) {
			return own != reflect.TypeFor[encoding.TextUnmarshaler]()
		}
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Interface:
		return true
	case reflect.Map:
		return t.Key().Kind() == reflect.String
	case reflect.Pointer:
		return takesObject(t.Elem())
	}
	return false
}

// decode stores args strictly. Integers that are written with a point or an
// exponent are tried as digits when they do not decode as they are.
func decode(args value.Value, into any) error {
	err := args.Decode(into, json.RejectUnknownMembers(true))
	if err == nil {
		return nil
	}
	if plain, perr := value.Parse(appendDigits(nil, args)); perr == nil && plain.Decode(into, json.RejectUnknownMembers(true)) == nil {
		return nil
	}
	return err
}

// appendDigits appends the text of v with 5.0 and 1E2 written as 5 and 100.
func appendDigits(dst []byte, v value.Value) []byte {
	switch v.Kind() {
	case value.Number:
		const most = 40 // characters; no Go integer needs more
		literal, _ := v.Number()
		if len(literal) > most || !strings.ContainsAny(literal, ".eE") {
			break
		}
		// 256 bits hold every digit that 40 characters can have.
		f, _, err := big.ParseFloat(literal, 10, 256, big.ToNearestEven)
		if err == nil && f.IsInt() && f.MantExp(nil) <= 64 {
			n, _ := f.Int(nil)
			return n.Append(dst, 10)
		}
	case value.List:
		dst = append(dst, '[')
		for i, e := range v.Elements() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendDigits(dst, e)
		}
		return append(dst, ']')
	case value.Object:
		dst = append(dst, '{')
		first := true
		for k, m := range v.Members() {
			if !first {
				dst = append(dst, ',')
			}
			first = false
			dst = appendDigits(append(value.AppendQuote(dst, k), ':'), m)
		}
		return append(dst, '}')
	}
	return v.AppendTo(dst)
}
