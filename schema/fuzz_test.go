package schema_test

import (
	"strings"
	"testing"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/value"
)

// Whatever the schema and the value, nothing panics, the faults agree with Fits,
// and they point into the value.
func FuzzValidate(f *testing.F) {
	for _, seed := range [][2]string{
		{benchmarkSchema, `{"items":[{"id":1,"name":"x","tags":[]}]}`},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"type":"null"},{"items":{"$ref":"#/$defs/a"}}]}}}`, `[[null],[1]]`},
		{`{"$id":"http://x/y","$dynamicAnchor":"n","properties":{"c":{"$dynamicRef":"#n"}},"unevaluatedProperties":false}`, `{"c":{"c":{"d":1}}}`},
		{`{"minimum":-1e400,"multipleOf":0.01,"maximum":1e-400}`, `1e400000000`},
		{`{"pattern":"^(a+)+$","format":"email","$schema":"http://json-schema.org/draft-07/schema#"}`, `"aaaaaaaaaaaaaaaaaaaaaaaa!"`},
		{`{"if":{"required":["a"]},"then":{"dependentSchemas":{"a":{"minProperties":2}}},"oneOf":[true,false]}`, `{"a":1}`},
		{`{"$schema":"https://json-schema.org/draft/2019-09/schema","$recursiveAnchor":true,"items":{"$recursiveRef":"#"}}`, `[[[]]]`},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"null"}],"additionalItems":false,"dependencies":{"a":["b"]}}`, `[null,1]`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, doc, text string) {
		if len(doc) > 1<<12 || len(text) > 1<<12 {
			return
		}
		d, err := value.Parse(doc)
		if err != nil {
			return
		}
		s, err := schema.Compile(d)
		if err != nil {
			return
		}
		v, err := value.Parse(text)
		if err != nil {
			return
		}
		faults := s.Validate(v)
		if s.Fits(v) != (len(faults) == 0) {
			t.Errorf("Fits says %v, the faults are %v", s.Fits(v), faults)
		}
		for _, fault := range faults {
			if _, ok := v.AtPointer(fault.Pointer); !ok || strings.TrimSpace(fault.Message) == "" {
				t.Errorf("the fault %+v has no place in %v", fault, v)
			}
		}
		s.Undeclared(v)
		s.At(text)
		s.FitsWithHoles(v, map[string]*schema.Schema{"": s, "/a": nil, "/0": s})
	})
}
