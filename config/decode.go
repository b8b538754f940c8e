package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// The decoder and the JSON Schema of the file are both driven by the types of
// this package, so that they cannot disagree: a field has the tag `yaml` for
// its key and `doc` for its description; a type may implement one of these.
type (
	// settable reads itself from a scalar or a composite of its own form.
	settable interface {
		set(v value.Value) error
		schema() string // JSON text of its JSON Schema
	}
	// choice is a text with a closed list of values.
	choice interface{ choices() []string }
	// hinted says what to write where a mapping is wanted, when something else
	// stands there that must not be shown.
	hinted interface{ hint() string }
	// keyed is an ordered map, [Map].
	keyed interface {
		add(name string) reflect.Value
		element() reflect.Type
	}
)

// An Entry is one name and value of a [Map].
type Entry[T any] struct {
	Name  string
	Value T
}

// A Map keeps its entries in the order of the file.
type Map[T any] []*Entry[T]

// Get returns the value of name, nil if there is none.
func (m Map[T]) Get(name string) *T {
	for _, e := range m {
		if e.Name == name {
			return &e.Value
		}
	}
	return nil
}

func (m *Map[T]) add(name string) reflect.Value {
	e := &Entry[T]{Name: name}
	*m = append(*m, e)
	return reflect.ValueOf(&e.Value).Elem()
}

func (m *Map[T]) element() reflect.Type { return reflect.TypeFor[T]() }

// decode stores v in dst, which is addressable, and lists every fault.
func (d *document) decode(dst reflect.Value, v value.Value, pointer string) {
	if dst.Type() == reflect.TypeFor[value.Value]() {
		dst.Set(reflect.ValueOf(v))
		return
	}
	if v.IsNull() {
		d.fault(pointer, "%s is empty; give it a value or remove the key", last(pointer))
		return
	}
	switch x := dst.Addr().Interface().(type) {
	case settable:
		if err := x.set(v); err != nil {
			d.fault(pointer, "%s: %v", last(pointer), err)
		}
		return
	case keyed:
		if !d.is(v, value.Object, pointer) {
			return
		}
		for name, m := range v.Members() {
			d.decode(x.add(name), m, pointer+"/"+value.EscapePointer(name))
		}
		return
	}
	switch dst.Kind() {
	case reflect.Pointer:
		dst.Set(reflect.New(dst.Type().Elem()))
		d.decode(dst.Elem(), v, pointer)
	case reflect.Struct:
		d.decodeStruct(dst, v, pointer)
	case reflect.Slice:
		if !d.is(v, value.List, pointer) {
			return
		}
		dst.Set(reflect.MakeSlice(dst.Type(), v.Len(), v.Len()))
		for i, e := range v.Elements() {
			d.decode(dst.Index(i), e, fmt.Sprintf("%s/%d", pointer, i))
		}
	case reflect.String:
		if !d.is(v, value.String, pointer) {
			return
		}
		s, _ := v.Text()
		dst.SetString(s)
		if c, ok := dst.Interface().(choice); ok && !slices.Contains(c.choices(), s) {
			d.fault(pointer, "%s is %q; use %s", last(pointer), s, oneOf(c.choices()))
		}
	case reflect.Bool:
		if d.is(v, value.Bool, pointer) {
			b, _ := v.Bool()
			dst.SetBool(b)
		}
	case reflect.Int:
		i, ok := v.Int()
		if !ok || i < 0 {
			d.fault(pointer, "%s must be a whole number of at least 0, not %s", last(pointer), shown(v))
			return
		}
		dst.SetInt(i)
	default:
		panic("config: no decoder for " + dst.Type().String())
	}
}

func (d *document) decodeStruct(dst reflect.Value, v value.Value, pointer string) {
	if h, ok := dst.Interface().(hinted); ok && v.Kind() != value.Object {
		d.fault(pointer, "%s: %s", last(pointer), h.hint())
		return
	}
	if !d.is(v, value.Object, pointer) {
		return
	}
	fields := fieldsOf(dst.Type())
	for name, m := range v.Members() {
		at := pointer + "/" + value.EscapePointer(name)
		f, ok := fields.get(name)
		if !ok {
			d.faultKey(at, "unknown key %s; %s", name, fields.advice(name))
			continue
		}
		d.decode(dst.FieldByIndex(f.index), m, at)
	}
}

func (d *document) is(v value.Value, want value.Kind, pointer string) bool {
	if v.Kind() == want {
		return true
	}
	advice := ""
	if want == value.String {
		advice = "; put it in quotes"
	}
	d.fault(pointer, "%s must be %s, not %s%s", last(pointer), kindWords[want], shown(v), advice)
	return false
}

var kindWords = map[value.Kind]string{
	value.String: "text", value.Bool: "true or false", value.List: "a list", value.Object: "a mapping",
}

// shown is a value in a message: a scalar as it is, a composite by its kind.
func shown(v value.Value) string {
	switch v.Kind() {
	case value.List:
		return "a list"
	case value.Object:
		return "a mapping"
	}
	s := v.String()
	if len(s) > 60 {
		return "a long text"
	}
	return s
}

// last is the key that a pointer names.
func last(pointer string) string {
	if pointer == "" {
		return "the file"
	}
	return value.UnescapePointer(pointer[strings.LastIndexByte(pointer, '/')+1:])
}

// field is one key of a struct.
type field struct {
	key, doc string
	index    []int
	typ      reflect.Type
}

type fields []field

// fieldsOf lists the keys of a struct, those of embedded structs among them.
func fieldsOf(t reflect.Type) fields {
	var fs fields
	for _, f := range reflect.VisibleFields(t) {
		if key := f.Tag.Get("yaml"); key != "" {
			fs = append(fs, field{key, f.Tag.Get("doc"), f.Index, f.Type})
		}
	}
	return fs
}

func (fs fields) get(key string) (field, bool) {
	for _, f := range fs {
		if f.key == key {
			return f, true
		}
	}
	return field{}, false
}

// advice names the key that was probably meant, else all.
func (fs fields) advice(key string) string {
	keys := make([]string, len(fs))
	for i, f := range fs {
		keys[i] = f.key
	}
	return didYouMean(key, keys)
}

// didYouMean names what is nearest to a name, else all of a short list.
func didYouMean(name string, known []string) string {
	if near := tool.Nearest(name, known, 1); len(near) > 0 {
		return fmt.Sprintf("did you mean %s?", near[0])
	}
	if len(known) == 0 {
		return "there are none"
	}
	const most = 12
	more := ""
	if len(known) > most {
		more = fmt.Sprintf(" and %d more", len(known)-most)
		known = known[:most]
	}
	return "there are " + strings.Join(known, ", ") + more
}

func oneOf(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}
