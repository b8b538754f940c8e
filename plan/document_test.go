package plan_test

import (
	"strings"
	"testing"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/value"
)

// What the decoder takes fits the schema, and what lacks a field fits neither.
func TestSchema(t *testing.T) {
	s, err := schema.Compile(plan.Schema())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(plan.Schema().String(), `\\p`) {
		t.Error("the schema has a Unicode class, which editors and models read as a letter p")
	}
	for text, ok := range map[string]bool{
		`[]`: true,
		`[{"id":"шаг-1","tool":"t","args":null,"after":null}]`:                               true,
		`{"steps":[{"id":"a","tool":"t","args":{"x":"$a"},"after":["b"]}],"budget":0,"n":1}`: true,
		`[{"tool":"t"}]`:                       false,
		`[{"id":"a","tool":""}]`:               false,
		`[{"id":"-a","tool":"t"}]`:             false,
		`[{"id":"a","tool":"t","after":"b"}]`:  false,
		`{"steps":[],"budget":-1}`:             false,
		`{"budget":1}`:                         false,
		`[{"id":"a","tool":"t","args":["x"]}]`: false,
	} {
		_, err := plan.Decode([]byte(text), plan.Limits{})
		if faults := s.Validate(value.MustParse(text)); (len(faults) == 0) != ok || (err == nil) != ok {
			t.Errorf("%s: schema %v, decoder %v, want ok %v", text, faults, err, ok)
		}
	}
}
