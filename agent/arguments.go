package agent

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/value"
)

// DecodeArguments reads the arguments of a call: empty text means {}, anything
// else is one strict JSON object, without duplicate names and with nothing after
// it. Malformed arguments never become {} (spec/agent.md §3).
func DecodeArguments(text string) (value.Value, error) {
	if strings.Trim(text, " \t\r\n") == "" {
		return value.ObjectOf(), nil
	}
	v, err := value.Parse(text)
	if err != nil {
		return value.Value{}, fmt.Errorf("the arguments are not valid JSON: %w", err)
	}
	switch v.Kind() {
	case value.Object:
		return v, nil
	case value.String:
		if inner, ok := encoded(v); ok && inner.Kind() == value.Object {
			return value.Value{}, &doubleError{inner}
		}
	}
	return value.Value{}, fmt.Errorf("the arguments are a JSON %s; send an object", v.Kind())
}

// doubleError is an object that came as a string.
type doubleError struct{ inner value.Value }

func (e *doubleError) Error() string {
	return "the arguments are a string that holds JSON; send the object directly, not as text"
}

// sourceArguments reads arguments as the source does: nothing is refused.
func sourceArguments(text string) value.Value {
	if strings.Trim(text, " \t\r\n") == "" {
		return value.ObjectOf()
	}
	v, err := value.Parse(text)
	switch {
	case err != nil:
		return value.ObjectOf(value.Member{Key: "_raw", Value: plainText(text)})
	case v.Kind() != value.Object:
		return value.ObjectOf(value.Member{Key: "value", Value: v})
	}
	return v
}

// decode reads a call's arguments and looks for strings where the schema wants
// an object or a list. With coerce they are read as what they hold, and listed.
func decode(text string, schema value.Value, coerce bool) (v value.Value, coerced []string, err error) {
	v, err = DecodeArguments(text)
	var double *doubleError
	if errors.As(err, &double) && coerce {
		v, coerced, err = double.inner, []string{""}, nil
	}
	if err != nil {
		return v, nil, err
	}
	d := doubles{root: schema, coerce: coerce}
	v = d.walk(schema, v, "", 0)
	if len(d.said) > 0 {
		return v, nil, errors.New(strings.Join(d.said, "; "))
	}
	return v, append(coerced, d.coerced...), nil
}

// encoded is the object or list that a string holds as text.
func encoded(v value.Value) (value.Value, bool) {
	text, ok := v.Text()
	if !ok || !strings.ContainsAny(text, "{[") {
		return value.Value{}, false
	}
	inner, err := value.Parse(text)
	return inner, err == nil && (inner.Kind() == value.Object || inner.Kind() == value.List)
}

// doubles finds double encoding: JSON in a string where the schema has no place
// for a string.
type doubles struct {
	root    value.Value
	coerce  bool
	said    []string
	coerced []string
}

// maxSchemaDepth bounds the way through a schema that refers to itself; no
// arguments that were parsed from text nest deeper for a reason.
const maxSchemaDepth = 64

func (d *doubles) walk(schema, v value.Value, at string, depth int) value.Value {
	if depth > maxSchemaDepth || len(d.said) >= maxErrors {
		return v
	}
	schema = d.resolve(schema)
	switch v.Kind() {
	case value.String:
		kinds := kindsOf(d, schema, 0)
		if kinds == 0 || kinds.has(value.String) {
			return v
		}
		inner, ok := encoded(v)
		if !ok || !kinds.has(inner.Kind()) {
			return v
		}
		if d.coerce {
			d.coerced = append(d.coerced, at)
			return d.walk(schema, inner, at, depth+1)
		}
		d.said = append(d.said, fmt.Sprintf("property %s is a string, the schema says %s; send JSON directly, not as text", quote(strings.TrimPrefix(at, "/")), inner.Kind()))
	case value.Object:
		properties := d.member(schema, "properties", value.Object)
		if properties.Len() == 0 {
			return v
		}
		return rebuild(v, func(i int, m value.Value) value.Value {
			sub, ok := properties.Get(v.Key(i))
			if !ok {
				return m
			}
			return d.walk(sub, m, at+"/"+value.EscapePointer(v.Key(i)), depth+1)
		})
	case value.List:
		items := d.member(schema, "items", value.List)
		if items.Kind() != value.Object {
			return v
		}
		return rebuild(v, func(i int, e value.Value) value.Value {
			return d.walk(items, e, at+"/"+strconv.Itoa(i), depth+1)
		})
	}
	return v
}

// rebuild is v with each element or member replaced by what each returns for
// it, and v itself when nothing changed.
func rebuild(v value.Value, each func(int, value.Value) value.Value) value.Value {
	var changed []value.Value
	for i := range v.Len() {
		old := v.At(i)
		now := each(i, old)
		if now != old && changed == nil {
			changed = make([]value.Value, i, v.Len())
			for j := range i {
				changed[j] = v.At(j)
			}
		}
		if changed != nil {
			changed = append(changed, now)
		}
	}
	if changed == nil {
		return v
	}
	if v.Kind() == value.List {
		return value.ListOf(changed...)
	}
	ms := make([]value.Member, len(changed))
	for i, m := range changed {
		ms[i] = value.Member{Key: v.Key(i), Value: m}
	}
	return value.ObjectOf(ms...)
}

// resolve follows references inside the document.
func (d *doubles) resolve(schema value.Value) value.Value {
	for range maxSchemaDepth {
		ref, ok := schema.Get("$ref")
		if !ok {
			return schema
		}
		text, _ := ref.Text()
		target, ok := d.root.AtPointer(strings.TrimPrefix(text, "#"))
		if !strings.HasPrefix(text, "#") || !ok {
			return schema
		}
		schema = target
	}
	return schema
}

// member is a keyword of the schema, or of the first alternative that has it.
func (d *doubles) member(schema value.Value, keyword string, kind value.Kind) value.Value {
	if m, ok := schema.Get(keyword); ok {
		return m
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		list, _ := schema.Get(name)
		for _, alternative := range list.Elements() {
			alternative = d.resolve(alternative)
			if m, ok := alternative.Get(keyword); ok && kindsOf(d, alternative, 0).has(kind) {
				return m
			}
		}
	}
	return value.Value{}
}

// kinds is a set of JSON types; 0 stands for a schema that does not say.
type kinds uint16

func (k kinds) has(kind value.Kind) bool { return k&(1<<kind) != 0 }

func kindNamed(name string) kinds {
	for kind := value.Null; kind <= value.Object; kind++ {
		if kind.String() == name {
			return 1 << kind
		}
	}
	return 1 << value.Number // integer, and what is no type at all
}

// kindsOf is what a schema's type, or those of its alternatives, allow.
func kindsOf(d *doubles, schema value.Value, depth int) (k kinds) {
	if depth > maxSchemaDepth {
		return 0
	}
	t, _ := schema.Get("type")
	if name, ok := t.Text(); ok {
		return kindNamed(name)
	}
	for _, e := range t.Elements() {
		name, _ := e.Text()
		k |= kindNamed(name)
	}
	if k != 0 {
		return k
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		list, _ := schema.Get(name)
		for _, alternative := range list.Elements() {
			more := kindsOf(d, d.resolve(alternative), depth+1)
			if more == 0 {
				return 0 // one that says nothing allows everything
			}
			k |= more
		}
	}
	return k
}

// plainText is s as a value; what is not UTF-8 in it is replaced, because it is
// shown and never run.
func plainText(s string) value.Value {
	return value.MustText(strings.ToValidUTF8(s, "\uFFFD"))
}

// shown is arguments for the trace: what they are if they are JSON, else their
// text.
func shown(arguments string) value.Value {
	if v, err := value.Parse(arguments); err == nil {
		return v
	}
	return plainText(arguments)
}

// quote shows a name, or the beginning of a long one: never more than 80
// characters of what a model wrote.
func quote(s string) string { return fmt.Sprintf("%.80q", s) }
