package policy

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/callsheet/callsheet/value"
)

// missing is the error of a field that args do not have.
type missing struct{ name string }

func (m *missing) Error() string { return fmt.Sprintf("no field %q", m.name) }

// missingFact is the error of something that the history does not have: the call
// asks (spec/policy.md, Rules).
type missingFact struct{ what string }

func (m *missingFact) Error() string { return "the history has no " + m.what }

// toCEL is a JSON value as rules see it. fact says that it comes from the
// history, where what is missing is a missing fact. A number that is not exact
// is an error and not a value.
func toCEL(v value.Value, sh *shape, fact bool) ref.Val {
	switch v.Kind() {
	case value.Null:
		return types.NullValue
	case value.Bool:
		b, _ := v.Bool()
		return types.Bool(b)
	case value.String:
		s, _ := v.Text()
		return types.String(s)
	case value.Number:
		text, _ := v.Number()
		return toNumber(text, sh.number)
	case value.List:
		elem := sh.elem
		if elem == nil {
			elem = dynShape
		}
		list := make([]ref.Val, v.Len())
		for i, e := range v.Elements() {
			list[i] = toCEL(e, elem, fact)
			if types.IsError(list[i]) {
				return list[i]
			}
		}
		return types.NewRefValList(adapter{}, list)
	case value.Object:
		return &object{json: v, shape: sh, fact: fact}
	}
	return types.NewErr("no value")
}

// maxExact is 2^53: at and above it a double stands for more than one integer.
const maxExact = 1 << 53

// toNumber reads a JSON number exactly or refuses. An int must be one and fit in
// 64 bits (1.0 and 1e2 are ints, as JSON Schema says). A double must be below
// 2^53 and the shortest double that means it must be written with its digits, so
// that 0.1 and 98.70 are fine and 9007199254740993 or 0.1000000000000000055 are
// not: two of those would compare equal though they differ.
func toNumber(text string, kind numberKind) ref.Val {
	if kind != doubleNumber {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return types.Int(i)
		}
	}
	if f, ok := shortDecimal(text); ok && kind == doubleNumber {
		return types.Double(f)
	}
	r, ok := parseNumber(text)
	if !ok {
		return inexact(text)
	}
	if kind != doubleNumber && r.IsInt() {
		if !r.Num().IsInt64() {
			return inexact(text)
		}
		return types.Int(r.Num().Int64())
	}
	if kind == intNumber {
		return types.NewErr("%s is not an integer", clip(text))
	}
	f, ok := exactDouble(r)
	if !ok {
		return inexact(text)
	}
	return types.Double(f)
}

// shortDecimal reads a number of at most 15 characters without an exponent:
// every decimal of so few digits is what its double is written as.
func shortDecimal(text string) (float64, bool) {
	if len(text) > 15 || strings.ContainsAny(text, "eE") {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}

// exactDouble is the double that r is written as.
func exactDouble(r *big.Rat) (float64, bool) {
	f, _ := r.Float64()
	if math.Abs(f) >= maxExact {
		return 0, false
	}
	back, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return f, ok && back.Cmp(r) == 0
}

func inexact(text string) ref.Val {
	return types.NewErr("the number %s is exact neither as a 64-bit integer nor as a double, so it is not compared", clip(text))
}

// maxClip is how much of a value an error or a decision shows.
const maxClip = 80

func clip(s string) string {
	if len(s) <= maxClip {
		return s
	}
	return strings.ToValidUTF8(s[:maxClip], "") + "…"
}

// object is a JSON object in a rule: a record where the schema declares its
// members, else a map that gives its members as they are asked for.
//
// It is no traits.Mapper, though it is a map: through a Mapper's Find an absent
// member of the history could not be told from one that has() only asks about.
type object struct {
	json  value.Value
	shape *shape
	fact  bool
}

var (
	_ traits.Indexer     = (*object)(nil)
	_ traits.FieldTester = (*object)(nil)
	_ traits.Container   = (*object)(nil)
	_ traits.Iterable    = (*object)(nil)
	_ traits.Sizer       = (*object)(nil)
)

func (o *object) member(idx ref.Val) (value.Value, string, bool) {
	name, ok := idx.(types.String)
	if !ok {
		return value.Value{}, fmt.Sprint(idx.Value()), false
	}
	m, ok := o.json.Get(string(name))
	return m, string(name), ok
}

// Get is the member of that name.
func (o *object) Get(idx ref.Val) ref.Val {
	m, name, ok := o.member(idx)
	switch {
	case ok:
		return toCEL(m, dynShape, o.fact)
	case o.fact:
		return types.WrapErr(&missingFact{fmt.Sprintf("field %q in that output", clip(name))})
	}
	return types.WrapErr(&missing{clip(name)})
}

// IsSet reports whether there is such a member; a null is none.
func (o *object) IsSet(idx ref.Val) ref.Val {
	m, _, ok := o.member(idx)
	return types.Bool(ok && !m.IsNull())
}

// Contains is "name in object".
func (o *object) Contains(idx ref.Val) ref.Val {
	_, _, ok := o.member(idx)
	return types.Bool(ok)
}

// Iterator ranges over the names.
func (o *object) Iterator() traits.Iterator {
	names := make([]ref.Val, o.json.Len())
	for i := range names {
		names[i] = types.String(o.json.Key(i))
	}
	return types.NewRefValList(adapter{}, names).Iterator()
}

// Size is the number of members.
func (o *object) Size() ref.Val { return types.Int(o.json.Len()) }

// Equal refuses: objects are compared field by field, so that no number in them
// is compared wrong.
func (o *object) Equal(ref.Val) ref.Val {
	return types.NewErr("objects are not compared as a whole; compare their fields")
}

// ConvertToNative refuses: rules keep their values.
func (o *object) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("no conversion of an object to %v", t)
}

// ConvertToType refuses all but the identity.
func (o *object) ConvertToType(t ref.Type) ref.Val {
	return types.NewErr("no conversion of an object to %s", t.TypeName())
}

// Type is the record or a map.
func (o *object) Type() ref.Type {
	if o.shape.record != nil {
		return o.shape.record.cel
	}
	return mapType
}

var mapType = types.NewMapType(types.StringType, types.DynType)

// Value is the object itself: the getters of records take it.
func (o *object) Value() any { return o }

// handle is a Go value of ours as a record, read through the record's getters.
type handle struct {
	record *record
	value  any
}

func (h *handle) Equal(ref.Val) ref.Val {
	return types.NewErr("a %s is not compared as a whole; compare its fields", h.record.name)
}
func (h *handle) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("no conversion of a %s to %v", h.record.name, t)
}
func (h *handle) ConvertToType(t ref.Type) ref.Val {
	return types.NewErr("no conversion of a %s to %s", h.record.name, t.TypeName())
}
func (h *handle) Type() ref.Type { return h.record.cel }
func (h *handle) Value() any     { return h.value }

// Get reads a field where the type was not known when the rule was compiled.
func (h *handle) Get(idx ref.Val) ref.Val {
	name, _ := idx.(types.String)
	f, ok := h.record.fields[string(name)]
	if !ok {
		return types.WrapErr(&missing{string(name)})
	}
	v, err := f.get(h.value)
	if err != nil {
		return types.WrapErr(err)
	}
	return adapter{}.NativeToValue(v)
}

// IsSet reports whether the field has a value.
func (h *handle) IsSet(idx ref.Val) ref.Val {
	name, _ := idx.(types.String)
	f, ok := h.record.fields[string(name)]
	return types.Bool(ok && f.isSet(h.value))
}

// adapter turns what our getters return into CEL values.
type adapter struct{}

func (adapter) NativeToValue(v any) ref.Val {
	if r, ok := v.(ref.Val); ok {
		return r
	}
	return types.DefaultTypeAdapter.NativeToValue(v)
}
