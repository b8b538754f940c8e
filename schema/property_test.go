package schema_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/value"
)

func TestProperties(t *testing.T) {
	s, err := schema.Compile(value.MustParse(`{
		"type": "object",
		"properties": {
			"to": {"$ref": "#/$defs/address"},
			"tags": {"type": ["array", "null"]},
			"kind": {"enum": ["a", 1]},
			"free": true
		},
		"required": ["to"],
		"allOf": [{"properties": {"size": {"type": "integer"}}, "required": ["size"]}],
		"anyOf": [{"properties": {"dry": {"type": "boolean"}}, "required": ["dry"]}, {}],
		"$defs": {"address": {"type": "string"}}
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []schema.Property{
		{Name: "dry", Types: "any"}, {Name: "free", Types: "any"}, {Name: "kind", Types: "string or integer"},
		{Name: "size", Types: "integer", Required: true}, {Name: "tags", Types: "array or null"}, {Name: "to", Types: "string", Required: true},
	}
	if diff := cmp.Diff(want, s.Properties()); diff != "" {
		t.Error(diff)
	}
	var none *schema.Schema
	if got := none.Properties(); got != nil {
		t.Errorf("of no schema: %v", got)
	}
}
