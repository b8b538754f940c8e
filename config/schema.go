package config

import (
	"reflect"

	"github.com/callsheet/callsheet/value"
)

// Schema is the JSON Schema (2020-12) of the file, for editors. It is made of
// the types that the reader itself goes by.
func Schema() value.Value {
	root := schemaOf(reflect.TypeFor[Config]())
	members := []value.Member{
		{Key: "$schema", Value: value.MustText("https://json-schema.org/draft/2020-12/schema")},
		{Key: "title", Value: value.MustText(FileName)},
	}
	for k, v := range root.Members() {
		members = append(members, value.Member{Key: k, Value: v})
	}
	return value.ObjectOf(members...)
}

func schemaOf(t reflect.Type) value.Value {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == reflect.TypeFor[value.Value]() {
		return value.ObjectOf()
	}
	switch x := reflect.New(t).Interface().(type) {
	case settable:
		return value.MustParse(x.schema())
	case keyed:
		return typed("object", value.Member{Key: "additionalProperties", Value: schemaOf(x.element())})
	case choice:
		var vs []value.Value
		for _, c := range x.choices() {
			vs = append(vs, value.MustText(c))
		}
		return value.ObjectOf(value.Member{Key: "enum", Value: value.ListOf(vs...)})
	}
	switch t.Kind() {
	case reflect.Struct:
		var props []value.Member
		for _, f := range fieldsOf(t) {
			members := []value.Member{{Key: "description", Value: value.MustText(f.doc)}}
			for k, v := range schemaOf(f.typ).Members() {
				members = append(members, value.Member{Key: k, Value: v})
			}
			props = append(props, value.Member{Key: f.key, Value: value.ObjectOf(members...)})
		}
		return typed("object",
			value.Member{Key: "properties", Value: value.ObjectOf(props...)},
			value.Member{Key: "additionalProperties", Value: value.BoolValue(false)})
	case reflect.Slice:
		return typed("array", value.Member{Key: "items", Value: schemaOf(t.Elem())})
	case reflect.String:
		return typed("string")
	case reflect.Bool:
		return typed("boolean")
	case reflect.Int:
		return typed("integer", value.Member{Key: "minimum", Value: value.Int(0)})
	}
	panic("config: no schema for " + t.String())
}

func typed(name string, more ...value.Member) value.Value {
	return value.ObjectOf(append([]value.Member{{Key: "type", Value: value.MustText(name)}}, more...)...)
}
