package schema_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/value"
	"pgregory.net/rapid"
)

func TestHostile014_At(t *testing.T) {
	for _, tt := range []struct {
		schema, path string
		want         schema.Presence
		is, isNot    string // a value that fits what is found, and one that does not
	}{
		{`{}`, "a.b", schema.Possible, `1`, ``},
		{`{"properties":{"a":{"type":"integer"}}}`, "a", schema.Known, `1`, `"x"`},
		{`{"type":"object","properties":{"a":{"type":"integer"}}}`, "a.b", schema.Unlikely, ``, ``},
		{`{"type":"object","properties":{"a":{}}}`, "b", schema.Possible, `1`, ``},
		{`{"type":"object","properties":{"a":{}},"additionalProperties":false}`, "b", schema.Impossible, ``, ``},
		{`{"type":"object","properties":{"a":{}},"unevaluatedProperties":false}`, "b", schema.Impossible, ``, ``},
		{`{"allOf":[{"properties":{"a":{"type":"null"}}}],"unevaluatedProperties":false}`, "a", schema.Known, `null`, `1`},
		{`{"type":"object","additionalProperties":{"type":"null"}}`, "b", schema.Known, `null`, `1`},
		{`{"type":"object","patternProperties":{"^x":{"type":"null"}},"additionalProperties":false}`, "x1", schema.Known, `null`, `1`},
		{`{"type":"object","patternProperties":{"^x":{"type":"null"}},"additionalProperties":false}`, "y", schema.Impossible, ``, ``},
		{`{"type":"string"}`, "x", schema.Impossible, ``, ``},
		{`{"type":"array","items":{"type":"string"}}`, "0", schema.Known, `"x"`, `1`},
		{`{"type":"array","items":{"type":"string"}}`, "01", schema.Impossible, ``, ``},
		{`{"type":"array","items":{"type":"string"}}`, "name", schema.Impossible, ``, ``},
		{`{"type":"array","prefixItems":[{"type":"null"}],"items":false}`, "0", schema.Known, `null`, `1`},
		{`{"type":"array","prefixItems":[{"type":"null"}],"items":false}`, "1", schema.Impossible, ``, ``},
		{`{"type":"array","maxItems":2}`, "2", schema.Impossible, ``, ``},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","type":"array","items":[{"type":"null"}],"additionalItems":{"type":"string"}}`, "1", schema.Known, `"x"`, `null`},
		{`{"properties":{"l":{"type":"array","items":{"properties":{"id":{"type":"string"}}}}}}`, "l.3.id", schema.Known, `"x"`, `1`},
		{`{"$ref":"#/$defs/t","$defs":{"t":{"type":"object","properties":{"next":{"$ref":"#/$defs/t"},"v":{"type":"null"}},"additionalProperties":false}}}`, "next.next.v", schema.Known, `null`, `1`},
		{`{"anyOf":[{"type":"object","properties":{"a":{"type":"null"}}},{"type":"string"}]}`, "a", schema.Known, `null`, `1`},
		{`{"anyOf":[{"type":"number"},{"type":"string"}]}`, "a", schema.Impossible, ``, ``},
		{`{"oneOf":[{"properties":{"a":{"type":"null"}}},{"properties":{"a":{"type":"string"}}}]}`, "a", schema.Known, `"x"`, `1`},
		{`{"allOf":[{"properties":{"a":{"type":["null","string"]}}},{"properties":{"a":{"type":["string","number"]}}}]}`, "a", schema.Known, `"x"`, `null`},
		{`{"allOf":[{"properties":{"a":{"type":"null"}}},{"properties":{"a":{"type":"string"}}}]}`, "a", schema.Impossible, ``, ``},
		{`{"properties":{"a":false}}`, "a", schema.Impossible, ``, ``},
		{`{"if":{"properties":{"k":{"const":1}}},"then":{"properties":{"a":{"type":"null"}}},"else":{"properties":{"a":{"type":"string"}}}}`, "a", schema.Known, `null`, `1`},
		{`{"enum":[{"a":1},{"a":2,"b":3}]}`, "a", schema.Known, `2`, `3`},
		{`{"enum":[{"a":1},{"a":2,"b":3}]}`, "c", schema.Impossible, ``, ``},
		{`{"const":[["x"]]}`, "0.0", schema.Known, `"x"`, `"y"`},
		// Keys that hold dots.
		{`{"properties":{"a":{"type":"integer"}},"additionalProperties":false}`, "a.b", schema.Impossible, ``, ``},
		{`{"properties":{"a":{"type":"integer"}},"additionalProperties":true}`, "a.b", schema.Possible, ``, ``},
		{`{"properties":{"a":{"type":"integer"}},"additionalProperties":{"type":"null"}}`, "a.b", schema.Possible, ``, ``},
		{`{"properties":{"a":{"type":"integer"}},"unevaluatedProperties":{"type":"null"}}`, "a.b", schema.Possible, ``, ``},
		{`{"properties":{"a":{"type":"integer"}},"required":["a.b"]}`, "a.b", schema.Possible, ``, ``},
		{`{"properties":{"a":{"type":"integer"}},"maxProperties":0}`, "a.b", schema.Impossible, ``, ``},
		{`{"properties":{"x":{"type":"object","properties":{"a":{"type":"integer"}}}},"additionalProperties":false}`, "x.a.b", schema.Unlikely, ``, ``},
		{`{"properties":{"a.b":{"type":"null"}},"additionalProperties":false}`, "a.b", schema.Known, `null`, `1`},
		{`{"properties":{"a":{"type":"object","properties":{"b":{"type":"string"}}},"a.b":{"type":"null"}}}`, "a.b", schema.Known, `null`, `1`},
		{`{"properties":{"Exchange Rate":{"type":"number"}}}`, "Exchange Rate", schema.Known, `1`, `"x"`},
		{`{"properties":{"items":{"type":"array"}}}`, "items.foo", schema.Unlikely, ``, ``},
	} {
		sub, got := schema.MustCompile(tt.schema).At(tt.path)
		if got != tt.want || (sub != nil) != (got == schema.Known) {
			t.Errorf("%s at %s: got %v, %v; want %v", tt.schema, tt.path, sub, got, tt.want)
			continue
		}
		if tt.is != "" && !sub.Fits(value.MustParse(tt.is)) {
			t.Errorf("%s at %s: %s does not fit", tt.schema, tt.path, tt.is)
		}
		if tt.isNot != "" && sub.Fits(value.MustParse(tt.isNot)) {
			t.Errorf("%s at %s: %s fits", tt.schema, tt.path, tt.isNot)
		}
	}
}

func TestHostile015_FitsWithHoles(t *testing.T) {
	send := `{"type":"object","properties":{"n":{"type":"integer","minimum":1},"to":{"type":"array","items":{"type":"string"}},
		"unit":{"enum":["c","f"]},"who":{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}},"required":["n"]}`
	for _, tt := range []struct{ name, schema, args, holes, want string }{
		{"nothing known", send, `{"n":"$a","to":"$b"}`, `{"/n":null,"/to":null}`, ``},
		{"text where an integer is wanted", send, `{"n":"$a"}`, `{"/n":{"type":"string"}}`, `/n: property "n" is a reference to a string, the schema says integer`},
		{"a number may be an integer", send, `{"n":"$a"}`, `{"/n":{"type":"number"}}`, ``},
		{"one of its types may fit", send, `{"n":"$a"}`, `{"/n":{"type":["string","integer"]}}`, ``},
		{"inside a list", send, `{"n":1,"to":["a","$b"]}`, `{"/to/1":{"type":"object"}}`, `/to/1: item 1 is a reference to an object, the schema says string`},
		{"literals beside holes", send, `{"n":"$a","to":[1]}`, `{"/n":null}`, `/to/0: item 0 is the number 1, the schema says string`},
		{"missing beside holes", send, `{"to":"$b"}`, `{"/to":null}`, `missing property "n"`},
		{"a list of values none of which fits", send, `{"n":1,"unit":"$u"}`, `{"/unit":{"enum":["k","r"]}}`, `/unit: property "unit" is a reference to one of "k", "r", none of which fits`},
		{"a list of values one of which fits", send, `{"n":1,"unit":"$u"}`, `{"/unit":{"enum":["k","c"]}}`, ``},
		{"a part of an object", send, `{"n":1,"who":"$w"}`, `{"/who":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}}`,
			`/who/id: property "id" is a reference to a string, the schema says integer`},
		{"a part that may be missing", send, `{"n":1,"who":"$w"}`, `{"/who":{"type":"object","properties":{"id":{"type":"string"}}}}`, ``},
		{"a part that cannot be there", send, `{"n":1,"who":"$w"}`, `{"/who":{"type":"object","properties":{"x":{}},"additionalProperties":false}}`,
			`/who: missing property "id" in what the reference stands for`},
		{"a list that may be empty", send, `{"n":1,"to":"$l"}`, `{"/to":{"type":"array","items":{"type":"integer"}}}`, ``},
		{"a list that is not empty", send, `{"n":1,"to":"$l"}`, `{"/to":{"type":"array","items":{"type":"integer"},"minItems":1}}`,
			`/to/0: item 0 is a reference to an integer, the schema says string`},
		{"a condition on a hole", `{"if":{"properties":{"k":{"const":"a"}}},"then":{"required":["x"]},"else":{"required":["y"]}}`, `{"k":"$k","x":1}`, `{"/k":null}`, ``},
		{"both branches fail", `{"if":{"properties":{"k":{"const":"a"}}},"then":{"required":["x"]},"else":{"required":["y"]}}`, `{"k":"$k"}`, `{"/k":null}`, `missing property "x"`},
		{"anyOf over a hole", `{"properties":{"k":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`, `{"k":"$k"}`, `{"/k":{"type":"string"}}`,
			"/k: property \"k\" fits none of the 2 alternatives of anyOf; the nearest is number 1\n/k: property \"k\" is a reference to a string, the schema says integer"},
		{"oneOf may come down to one", `{"properties":{"k":{"oneOf":[{"minimum":1},{"maximum":5}]}}}`, `{"k":"$k"}`, `{"/k":{"type":"integer"}}`, ``},
		{"not", `{"properties":{"k":{"not":{"type":"string"}}}}`, `{"k":"$k"}`, `{"/k":{"type":"string"}}`, `/k: property "k" fits a schema that it must not fit`},
		{"equal literals beside a hole", `{"uniqueItems":true}`, `["$a",1,1.0]`, `{"/0":null}`, `the value has equal items at 1 and 2`},
		{"a hole may be unique", `{"uniqueItems":true}`, `["$a","$a"]`, `{"/0":null,"/1":null}`, ``},
		{"const with a hole inside", `{"const":{"a":[1]}}`, `{"a":["$x"]}`, `{"/a/0":null}`, ``},
		{"const of another shape", `{"const":{"a":[1]}}`, `{"b":"$x","c":1}`, `{"/b":null}`, `the value is an object, the schema says {"a":[1]}`},
		{"contains may be filled", `{"contains":{"type":"integer"}}`, `["$x"]`, `{"/0":null}`, ``},
		{"contains cannot be filled", `{"contains":{"type":"integer"}}`, `["$x"]`, `{"/0":{"type":"string"}}`, `the value has 0 items that fit contains, the least is 1`},
		{"unevaluated after a maybe", `{"anyOf":[{"properties":{"k":{"const":1},"x":{}}},{"properties":{"k":{}}}],"unevaluatedProperties":false}`, `{"k":"$k","x":1}`, `{"/k":null}`, ``},
		{"through a $ref", `{"properties":{"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer"}}}`, `{"n":"$a"}`, `{"/n":{"$ref":"#/$defs/s","$defs":{"s":{"type":"string"}}}}`,
			`/n: property "n" is a reference to a string, the schema says integer`},
		{"no schema fits the hole", send, `{"n":"$a"}`, `{"/n":false}`, ``}, // the producer can never be ok
	} {
		holes := make(map[string]*schema.Schema)
		for at, doc := range value.MustParse(tt.holes).Members() {
			if holes[at] = nil; !doc.IsNull() {
				holes[at] = schema.MustCompile(doc.String())
			}
		}
		if got := faults(schema.MustCompile(tt.schema).FitsWithHoles(value.MustParse(tt.args), holes)); got != tt.want {
			t.Errorf("%s: got\n%s, want\n%s", tt.name, got, tt.want)
		}
	}
}

// scalars are few, so that generated values meet generated schemas often.
var scalars = []string{`null`, `true`, `0`, `1`, `1.0`, `2.5`, `"a"`, `"b"`, `""`}

func genValue(t *rapid.T, depth int) string {
	if depth == 0 || rapid.IntRange(0, 2).Draw(t, "kind") == 0 {
		return rapid.SampledFrom(scalars).Draw(t, "scalar")
	}
	n := rapid.IntRange(0, 3).Draw(t, "n")
	var parts []string
	if rapid.Bool().Draw(t, "list") {
		for range n {
			parts = append(parts, genValue(t, depth-1))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	for i := range n {
		parts = append(parts, fmt.Sprintf("%q:%s", string(rune('a'+i)), genValue(t, depth-1)))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func genSchema(t *rapid.T, depth int) string {
	sub := func() string { return genSchema(t, depth-1) }
	name := func() string { return rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "name") }
	kinds := 8
	if depth > 0 {
		kinds = 22
	}
	one := func() string {
		switch rapid.IntRange(0, kinds-1).Draw(t, "keyword") {
		case 0, 1:
			return `"type":` + rapid.SampledFrom([]string{`"integer"`, `"number"`, `"string"`, `"object"`, `"array"`, `["null","boolean"]`, `["object","string"]`, `["array","object"]`}).Draw(t, "type")
		case 2:
			return `"enum":[` + genValue(t, 1) + `,` + genValue(t, 1) + `]`
		case 3:
			return `"minimum":1`
		case 4:
			return `"maxLength":0`
		case 5:
			return fmt.Sprintf(`"minItems":%d`, rapid.IntRange(0, 2).Draw(t, "n"))
		case 6:
			return `"required":["` + name() + `"]`
		case 7:
			return `"uniqueItems":true`
		case 8, 9:
			return `"properties":{"` + name() + `":` + sub() + `,"d":` + sub() + `}`
		case 10:
			return `"items":` + sub()
		case 11:
			return `"prefixItems":[` + sub() + `]`
		case 12:
			return `"additionalProperties":` + rapid.SampledFrom([]string{"false", "true", sub()}).Draw(t, "additional")
		case 13:
			return `"patternProperties":{"^[ab]$":` + sub() + `}`
		case 14:
			return `"allOf":[` + sub() + `,` + sub() + `]`
		case 15:
			return `"anyOf":[` + sub() + `,` + sub() + `]`
		case 16:
			return `"oneOf":[` + sub() + `,` + sub() + `]`
		case 17:
			return `"not":` + sub()
		case 18:
			return `"if":` + sub() + `,"then":` + sub() + `,"else":` + sub()
		case 19:
			return `"contains":` + sub()
		case 20:
			return `"unevaluatedProperties":` + rapid.SampledFrom([]string{"false", sub()}).Draw(t, "unevaluated")
		default:
			return `"unevaluatedItems":` + rapid.SampledFrom([]string{"false", sub()}).Draw(t, "unevaluated")
		}
	}
	parts := map[string]string{}
	for range rapid.IntRange(0, 3).Draw(t, "keywords") {
		k := one()
		parts[k[:strings.IndexByte(k, ':')]] = k
	}
	var list []string
	for _, p := range parts {
		list = append(list, p)
	}
	return "{" + strings.Join(list, ",") + "}"
}

// paths lists every path into v that Lookup resolves, with the pointer.
func paths(v value.Value, path, pointer string, visit func(path, pointer string, v value.Value)) {
	join := func(part string) string { return strings.TrimPrefix(path+"."+part, ".") }
	for k, m := range v.Members() {
		visit(join(k), pointer+"/"+k, m)
		paths(m, join(k), pointer+"/"+k, visit)
	}
	for i, e := range v.Elements() {
		visit(join(strconv.Itoa(i)), fmt.Sprintf("%s/%d", pointer, i), e)
		paths(e, join(strconv.Itoa(i)), fmt.Sprintf("%s/%d", pointer, i), visit)
	}
}

// A path that some value has is possible in every schema that the value fits,
// and what is found there fits what At says.
func TestAtIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schema.MustCompile(genSchema(t, 3))
		v := value.MustParse(genValue(t, 3))
		if !s.Fits(v) {
			return
		}
		paths(v, "", "", func(path, _ string, part value.Value) {
			sub, p := s.At(path)
			if p == schema.Impossible || p == schema.Unlikely {
				t.Fatalf("%v fits %v and has %s, which At calls %v", v, s.Value(), path, p)
			}
			if p == schema.Known && !sub.Fits(part) {
				t.Fatalf("%v fits %v, but %v at %s does not fit what At says: %v", v, s.Value(), part, path, sub.Validate(part))
			}
		})
	})
}

// If filling the holes can make args fit, nothing is certainly wrong; the other
// way round, what is said with no hole is what Validate says.
func TestHolesAreSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schema.MustCompile(genSchema(t, 3))
		full := value.MustParse(genValue(t, 3))
		if !s.Fits(full) {
			return
		}
		holes := make(map[string]*schema.Schema)
		open := full
		paths(full, "", "", func(_, pointer string, part value.Value) {
			if _, ok := open.AtPointer(pointer); !ok || rapid.IntRange(0, 2).Draw(t, "hole") > 0 {
				return
			}
			var of *schema.Schema
			if from := schema.MustCompile(genSchema(t, 2)); from.Fits(part) {
				of = from
			}
			holes[pointer] = of
			open = replace(open, pointer[1:], value.MustText("$hole"))
		})
		if got := s.FitsWithHoles(open, holes); len(got) > 0 {
			t.Fatalf("%v fits %v, but %v with holes %v does not: %v", full, s.Value(), open, holes, got)
		}
	})
}

// replace puts with at a pointer into v.
func replace(v value.Value, pointer string, with value.Value) value.Value {
	token, rest, more := strings.Cut(pointer, "/")
	put := func(old value.Value) value.Value {
		if more {
			return replace(old, rest, with)
		}
		return with
	}
	var members []value.Member
	for k, m := range v.Members() {
		if k == token {
			m = put(m)
		}
		members = append(members, value.Member{Key: k, Value: m})
	}
	if v.Kind() == value.Object {
		return value.ObjectOf(members...)
	}
	var items []value.Value
	for i, e := range v.Elements() {
		if strconv.Itoa(i) == token {
			e = put(e)
		}
		items = append(items, e)
	}
	return value.ListOf(items...)
}

func ExampleSchema_At() {
	output := schema.MustCompile(`{"type": "object", "properties": {"items": {"type": "array", "items": {"type": "string"}}}, "additionalProperties": false}`)
	for _, path := range []string{"items.0", "itms.0"} {
		sub, presence := output.At(path)
		fmt.Println(presence, sub.Fits(value.MustText("x")))
	}
	// Output:
	// known true
	// impossible true
}

func ExampleSchema_FitsWithHoles() {
	input := schema.MustCompile(`{"properties": {"n": {"type": "integer"}}}`)
	produced := schema.MustCompile(`{"type": "string"}`)
	for _, f := range input.FitsWithHoles(value.MustParse(`{"n": "$s1.name"}`), map[string]*schema.Schema{"/n": produced}) {
		fmt.Println(f)
	}
	// Output: /n: property "n" is a reference to a string, the schema says integer
}
