package schema_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/value"
)

func faults(list []schema.Fault) string {
	var out []string
	for _, f := range list {
		out = append(out, f.String())
	}
	return strings.Join(out, "\n")
}

func TestMessages(t *testing.T) {
	for _, tt := range []struct{ schema, value, want string }{
		{`{"type":"object"}`, `"{}"`, `the value is a string, the schema says object; send JSON directly, not text`},
		{`{"properties":{"l":{"type":"array"}}}`, `{"l":"a, b"}`, `/l: property "l" is a string, the schema says array; send JSON directly, not text`},
		{`{"properties":{"n":{"type":"integer"}}}`, `{"n":"5"}`, `/n: property "n" is a string, the schema says integer; send JSON directly, not text`},
		{`{"properties":{"n":{"type":"integer"}}}`, `{"n":"five"}`, `/n: property "n" is a string, the schema says integer`},
		{`{"items":{"type":["string","null"]}}`, `["a",null,1.5]`, `/2: item 2 is the number 1.5, the schema says string or null`},
		{`{"required":["a","b"]}`, `{}`, "missing property \"a\"\nmissing property \"b\""},
		{`{"properties":{"a":{}},"additionalProperties":false}`, `{"b":1}`, `/b: property "b" is not declared; the schema has "a"`},
		{`{"enum":["c","f",1]}`, `"k"`, `the value is "k", the schema allows "c", "f", 1`},
		{`{"const":{"a":1}}`, `{"a":2}`, `the value is an object, the schema says {"a":1}`},
		{`{"minimum":1,"maximum":3}`, `5`, `the value is 5, the most is 3`},
		{`{"exclusiveMinimum":0.1}`, `0.1`, `the value is 0.1, it must be above 0.1`},
		{`{"exclusiveMaximum":1e2}`, `100`, `the value is 100, it must be below 100`},
		{`{"multipleOf":0.01}`, `1.005`, `the value is 1.005, it must be a multiple of 0.01`},
		{`{"minLength":2,"pattern":"^a"}`, `"é"`, "the value has 1 characters, the least is 2\nthe value is \"é\", which does not match the pattern \"^a\""},
		{`{"uniqueItems":true}`, `[1,2,1.0]`, `the value has equal items at 0 and 2`},
		{`{"contains":{"type":"string"}}`, `[1]`, `the value has 0 items that fit contains, the least is 1`},
		{`{"not":{"type":"null"}}`, `null`, `the value fits a schema that it must not fit`},
		{`{"propertyNames":{"maxLength":2}}`, `{"abc":1}`, `/abc: the name "abc" has 3 characters, the most is 2`},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `missing property "b", which "a" asks for`},
		{`{"anyOf":[{"type":"integer"},{"type":"null"}]}`, `"x"`, `the value is a string, the schema says integer or null`},
		{`{"oneOf":[{"properties":{"k":{"const":"a"},"n":{"type":"integer"}}},{"properties":{"k":{"const":"b"},"m":{"type":"integer"}}}]}`, `{"k":"b","n":"x","m":"y"}`,
			"the value fits none of the 2 alternatives of oneOf; the nearest is number 2\n/m: property \"m\" is a string, the schema says integer"},
		{`{"oneOf":[{"type":"integer"},{"minimum":2}]}`, `3`, `the value fits 2 of the alternatives of oneOf, it must fit one`},
		{`{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`, `missing property "b"`},
		{`{"allOf":[{"$ref":"#/$defs/x"},{"$ref":"#/$defs/x"}],"$defs":{"x":{"type":"string"}}}`, `1`, `the value is the number 1, the schema says string`},
		{`{"properties":{"a":{}},"unevaluatedProperties":false}`, `{"b":1}`, `/b: property "b" is not declared by the schema`},
		{`false`, `1`, `the value is not allowed here`},
		{`{"properties":{"a/b~":{"type":"null"}}}`, `{"a/b~":1}`, `/a~1b~0: property "a/b~" is the number 1, the schema says null`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","format":"date"}`, `"x"`, `the value is "x", which is no date`},
		{`{"format":"date"}`, `"x"`, ``}, // an annotation in 2020-12
	} {
		s := schema.MustCompile(tt.schema)
		if got := faults(s.Validate(value.MustParse(tt.value))); got != tt.want {
			t.Errorf("%s of %s: got\n%s, want\n%s", tt.schema, tt.value, got, tt.want)
		}
	}
}

func TestKeywordPointsIntoTheSchema(t *testing.T) {
	s := schema.MustCompile(`{"properties":{"a":{"$ref":"#/$defs/x~1y"},"b":{"items":{"minimum":3}}},"$defs":{"x/y":{"type":"string"}}}`)
	var got []string
	for _, f := range s.Validate(value.MustParse(`{"b":[1],"a":1}`)) {
		got = append(got, f.Pointer+" "+f.Keyword)
		if _, ok := s.Value().AtPointer(f.Keyword); !ok {
			t.Errorf("%s is not in the schema", f.Keyword)
		}
	}
	if want := "/a /$defs/x~1y/type, /b/0 /properties/b/items/minimum"; strings.Join(got, ", ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestMessagesAreShort(t *testing.T) {
	long := strings.Repeat("é", 1000)
	for _, s := range []string{`{"const":1}`, `{"enum":["a"]}`, `{"pattern":"^a"}`, `{"type":"array"}`, `{"$schema":"http://json-schema.org/draft-07/schema#","format":"uri"}`} {
		for _, f := range schema.MustCompile(s).Validate(value.MustText(long)) {
			if n := utf8.RuneCountInString(f.Message); n > 200 {
				t.Errorf("%s: %d characters", s, n)
			}
		}
	}
	many := value.MustParse(`[` + strings.Repeat("1,", 1000) + `1]`)
	if got := len(schema.MustCompile(`{"items":{"type":"string"}}`).Validate(many)); got != schema.MaxFaults {
		t.Errorf("%d faults, want %d", got, schema.MaxFaults)
	}
}

func TestNilSchema(t *testing.T) {
	var s *schema.Schema
	v := value.MustParse(`{"a":1}`)
	if s.Validate(v) != nil || !s.Fits(v) || s.Undeclared(v) != nil || !s.Open() || s.Names() != nil || !s.Value().IsZero() || s.FitsWithHoles(v, nil) != nil {
		t.Error("a nil schema says something")
	}
	if sub, p := s.At("x.y"); sub != nil || p != schema.Possible {
		t.Errorf("At: %v, %v", sub, p)
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, tt := range []struct{ schema, pointer, want string }{
		{`3`, "", "got number"},
		{`{"type":"strin"}`, "/type", "must be one of"},
		{`{"properties":{"a":{"required":"x"}}}`, "/properties/a/required", "got string, want array"},
		{`{"properties":{"a":{"pattern":"("}}}`, "/properties/a/pattern", "does not compile as RE2"},
		{`{"patternProperties":{"(":{}}}`, "/patternProperties", "does not compile as RE2"},
		{`{"$ref":"#/$defs/nope"}`, "", "not found"},
		{`{"$schema":"http://example.org/mine"}`, "", "nothing is fetched"},
		{`{"enum":[1e401]}`, "/enum/0", "beyond 400 digits"},
	} {
		_, err := schema.Compile(value.MustParse(tt.schema))
		var fault *schema.CompileError
		if !errors.As(err, &fault) || fault.Pointer != tt.pointer || !strings.Contains(fault.Message, tt.want) {
			t.Errorf("%s: got %v, want at %q: %s", tt.schema, err, tt.pointer, tt.want)
		}
	}
}

func TestHostile017_Numbers(t *testing.T) {
	for _, tt := range []struct {
		schema, value string
		fits          bool
	}{
		{`{"type":"integer"}`, `1.0`, true},
		{`{"type":"integer"}`, `1E2`, true},
		{`{"type":"integer"}`, `-0`, true},
		{`{"type":"integer"}`, `10e-1`, true},
		{`{"type":"integer"}`, `1.5`, false},
		{`{"type":"integer"}`, `1e-1`, false},
		{`{"type":"integer"}`, `9007199254740993`, true},
		{`{"type":"integer"}`, `1e400000000`, true}, // nothing to compute
		{`{"type":"integer"}`, `1e-400000000`, false},
		{`{"type":"integer"}`, `0e-99999999999999999999`, true},
		{`{"const":9007199254740993}`, `9007199254740992`, false},
		{`{"const":9007199254740993}`, `9007199254740993.0`, true},
		{`{"enum":[100]}`, `1e2`, true},
		{`{"maximum":9007199254740992}`, `9007199254740993`, false},
		{`{"minimum":1e400}`, `1e400`, true},
		{`{"minimum":0}`, `1e400000000`, false}, // refused, not expanded
		{`{"minimum":0}`, `1e99999999999999999999`, false},
		{`{"maximum":1}`, `1e-400000000`, false},
		{`{"multipleOf":0.1}`, `1e400000000`, false},
		{`{"multipleOf":0.1}`, `0.3`, true},
		{`{"multipleOf":1e-400}`, `1e400`, true},
		{`{"multipleOf":3}`, `-9`, true},
		{`{"multipleOf":3}`, `0`, true},
		{`{"uniqueItems":true}`, `[1e400000000,1e399999999]`, true},
		{`{"uniqueItems":true}`, `[100,1e2]`, false},
		{`{"exclusiveMaximum":-0.5}`, `-0.50`, false},
		{`{"exclusiveMaximum":-0.5}`, `-0.51`, true},
	} {
		s := schema.MustCompile(tt.schema)
		if got := s.Fits(value.MustParse(tt.value)); got != tt.fits {
			t.Errorf("%s of %s: got %v, want %v; %v", tt.schema, tt.value, got, tt.fits, s.Validate(value.MustParse(tt.value)))
		}
	}
	digits := value.MustParse(strings.Repeat("9", 1<<20))
	if got := schema.MustCompile(`{"multipleOf":7}`).Validate(digits); len(got) != 1 || len(got[0].Message) > 200 {
		t.Errorf("a million digits: got %v", got)
	}
	if _, err := schema.Compile(value.MustParse(`{"minimum":1e400000000}`)); err == nil {
		t.Error("a bound of 1e400000000 compiles")
	}
}

func TestHostile022_Schemas(t *testing.T) {
	for _, doc := range []string{
		`{"$ref":"http://127.0.0.1:1/s.json"}`, `{"$ref":"file:///etc/passwd"}`, `{"$ref":"other.json"}`, `{"$id":"http://example.org/a","$ref":"b"}`,
		`{"properties":{"a":{"$ref":"//example.org/x"}}}`, `{"$schema":"http://127.0.0.1:1/meta"}`,
	} {
		if _, err := schema.Compile(value.MustParse(doc)); err == nil || !strings.Contains(err.Error(), "nothing is fetched") {
			t.Errorf("%s: got %v", doc, err)
		}
	}
	for _, doc := range []string{
		`{"$ref":"#"}`, `{"allOf":[{"$ref":"#"}]}`, `{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`,
	} {
		if _, err := schema.Compile(value.MustParse(doc)); err == nil || !strings.Contains(err.Error(), "leads back to itself") {
			t.Errorf("%s: got %v", doc, err)
		}
	}
	for _, doc := range []string{
		`{"pattern":"(a+)+$(?=x)"}`, `{"pattern":"(a)\\1"}`, `{"pattern":"((a{1000}){1000}){1000}"}`,
		strings.Repeat(`{"items":`, 200) + `{}` + strings.Repeat(`}`, 200),
		`{"enum":[` + strings.Repeat(`{},`, 5000) + `{}]}`,
		`{"allOf":[` + strings.Repeat(`{"pattern":"(a?){900}"},`, 100) + `{}]}`,
		`{"description":"` + strings.Repeat("x", 2<<20) + `"}`,
	} {
		if _, err := schema.Compile(value.MustParse(doc)); err == nil {
			t.Errorf("%.60s compiles", doc)
		}
	}

	// A recursive schema is fine as long as it goes into the value.
	tree := schema.MustCompile(`{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}`)
	deep := value.MustParse(strings.Repeat(`{"next":`, 5000) + `{"x":1}` + strings.Repeat(`}`, 5000))
	if got := tree.Validate(deep); len(got) != 1 || !strings.HasSuffix(got[0].Pointer, "/next/x") {
		t.Errorf("a deep value: got %d faults", len(got))
	}

	// Every level doubles the work; what is spent is bounded by the value's size.
	double := schema.MustCompile(`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[
		{"required":["z"],"properties":{"n":{"$ref":"#/$defs/a"}}},
		{"required":["y"],"properties":{"n":{"$ref":"#/$defs/a"}}}]}}}`)
	got := double.Validate(value.MustParse(strings.Repeat(`{"n":`, 60) + `{}` + strings.Repeat(`}`, 60)))
	if len(got) != 1 || !strings.Contains(got[0].Message, "too much work") {
		t.Errorf("exponential work: got %v", got)
	}
	slow := schema.MustCompile(`{"items":{"pattern":"(x+x+)+y|(a?){300}b"}}`)
	text := `"` + strings.Repeat("x", 1<<14) + `"`
	got = slow.Validate(value.MustParse(`[` + strings.Repeat(text+",", 30) + text + `]`))
	if len(got) != 1 || !strings.Contains(got[0].Message, "too much work") {
		t.Errorf("a pattern of 600 states over 500 KB: got %v", got)
	}
}

func TestHostile021_Undeclared(t *testing.T) {
	args := value.MustParse(`{"a":1,"bcc":2,"x-y":3}`)
	for _, tt := range []struct{ schema, want string }{
		{`{}`, ""},
		{`{"type":"object"}`, ""},
		{`{"required":["a"]}`, ""},
		{`{"properties":{}}`, ""},
		{`{"properties":{"a":{}}}`, "bcc x-y"},
		{`{"properties":{"a":{}},"required":["bcc"]}`, "x-y"},
		{`{"properties":{"a":{}},"patternProperties":{"^x-":{}}}`, "bcc"},
		{`{"patternProperties":{"^x-":{}}}`, "a bcc"},
		{`{"properties":{"a":{}},"additionalProperties":true}`, ""},
		{`{"properties":{"a":{}},"additionalProperties":{"type":"string"}}`, ""},
		{`{"properties":{"a":{}},"additionalProperties":false}`, ""}, // Validate says it
		{`{"properties":{"a":{}},"unevaluatedProperties":{}}`, ""},
		{`{"$ref":"#/$defs/m","$defs":{"m":{"properties":{"a":{},"bcc":{}}}}}`, "x-y"},
		{`{"allOf":[{"properties":{"a":{}}},{"$ref":"#/$defs/m"}],"$defs":{"m":{"properties":{"bcc":{}}}}}`, "x-y"},
		{`{"anyOf":[{"properties":{"a":{}}},{"properties":{"bcc":{}}}]}`, "x-y"},
		{`{"oneOf":[{"required":["a"],"properties":{"a":{}}},{"required":["q"],"properties":{"q":{}}}]}`, "bcc x-y"},
		{`{"if":{"properties":{"a":{"const":1}}},"then":{"properties":{"bcc":{}}},"else":{"properties":{"x-y":{}}}}`, ""},
		{`{"not":{"properties":{"bcc":{"const":9}}},"properties":{"a":{}}}`, "bcc x-y"},
		{`{"properties":{"a":{"properties":{"bcc":{}}}}}`, "bcc x-y"},
		// A branch decides only for args that fit it.
		{`{"anyOf":[{"properties":{"a":{"const":9}},"additionalProperties":true},{"properties":{"a":{}}}]}`, "bcc x-y"},
		{`{"anyOf":[{"properties":{"a":{"const":1}},"additionalProperties":true},{"properties":{"a":{}}}]}`, ""},
		{`{"properties":{"a":{}},"if":{"properties":{"a":{"const":1}}},"then":{"additionalProperties":true}}`, ""},
		{`{"properties":{"a":{}},"if":{"properties":{"a":{"const":2}}},"then":{"additionalProperties":true}}`, "bcc x-y"},
	} {
		if got := strings.Join(schema.MustCompile(tt.schema).Undeclared(args), " "); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.schema, got, tt.want)
		}
	}
}

func TestOpen(t *testing.T) {
	for text, want := range map[string]bool{
		`true`: true, `{}`: true, `{"type":"object"}`: true, `{"allOf":[{"minProperties":1}]}`: true, `{"required":["a"]}`: true,
		`{"properties":{"a":{}}}`: false, `{"additionalProperties":true}`: false, `{"anyOf":[{"patternProperties":{"a":{}}}]}`: false,
	} {
		if got := schema.MustCompile(text).Open(); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	s := schema.MustCompile(`{"properties":{"a":{"type":"integer"}}}`)
	done := make(chan int)
	for range 8 {
		go func() {
			v := value.MustParse(`{"a":"x","b":1}`)
			done <- len(s.Validate(v)) + len(s.Undeclared(v))
		}()
	}
	for range 8 {
		if got := <-done; got != 2 {
			t.Errorf("got %d faults, want 2", got)
		}
	}
}

func ExampleSchema_Validate() {
	s, err := schema.Compile(value.MustParse(`{
		"type": "object",
		"properties": {"to": {"type": "array", "items": {"type": "string"}}, "n": {"type": "integer"}},
		"required": ["to"]
	}`))
	if err != nil {
		panic(err)
	}
	for _, f := range s.Validate(value.MustParse(`{"to": "[\"a\"]", "n": 1.5}`)) {
		fmt.Println(f)
	}
	// Output:
	// /n: property "n" is the number 1.5, the schema says integer
	// /to: property "to" is a string, the schema says array; send JSON directly, not text
}

func ExampleFor() {
	type Args struct {
		To string `json:"to" jsonschema:"who gets it"`
		N  *int   `json:"n,omitempty"`
	}
	s, err := schema.For[Args]()
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Value())
	fmt.Println(s.Validate(value.MustParse(`{"n": null}`)))
	// Output:
	// {"type":"object","properties":{"to":{"type":"string","description":"who gets it"},"n":{"type":["null","integer"]}},"required":["to"],"additionalProperties":false}
	// [missing property "to"]
}

var benchmarkSchema = `{"type":"object","properties":{"items":{"type":"array","items":{"type":"object",
	"properties":{"id":{"type":"integer"},"name":{"type":"string","maxLength":100},"tags":{"type":"array","items":{"type":"string"}}},
	"required":["id","name"]}}},"required":["items"]}`

func BenchmarkValidate(b *testing.B) {
	s := schema.MustCompile(benchmarkSchema)
	for _, n := range []int{1, 1000} {
		one := `{"id":9007199254740993,"name":"a name","tags":["x","y"]}`
		v := value.MustParse(`{"items":[` + strings.Repeat(one+",", n-1) + one + `]}`)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(v.Size()))
			for b.Loop() {
				if !s.Fits(v) {
					b.Fatal("it fits")
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	doc := value.MustParse(benchmarkSchema)
	for b.Loop() {
		if _, err := schema.Compile(doc); err != nil {
			b.Fatal(err)
		}
	}
}
