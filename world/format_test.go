package world

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/value"
)

func Example() {
	var r Rule
	err := r.UnmarshalJSON([]byte(`{"id":"deposit","action_type":"deposit","description":"",
		"effects":[{"op":"increment","path":"world[\"balance\"]","value":{"$action_arg":"amount"}}]}`))
	fmt.Println(r.Effects[0].Path, r.Confidence, err)
	// Output: world.balance 1 <nil>
}

func TestDocumentsKeepWhatTheyHold(t *testing.T) {
	const text = `{"id": "r", "action_type": "a", "description": "d", "priority": 0, "conditions": [{"left": {"path": "world.x", "action_arg": null, "literal": null}, "op": "eq", "right": {"path": null, "action_arg": null, "literal": 9007199254740993}}], "effects": [{"op": "schedule", "path": "world.x", "value": {"b": 1, "a": 1.0}, "delay_steps": 3}], "outcome": "failure", "renderer": "default", "observation_template": null, "confidence": 1.0, "status": "supported", "provenance": [], "counterexamples": [], "scope": {"b": "True", "a": "[1]"}}` + "\n"
	rules, err := ReadLines[Rule]([]byte(strings.Replace(text, `{"b": "True", "a": "[1]"}`, `{"b": true, "a": [1]}`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := WriteLines(&b, rules); err != nil || b.String() != text {
		t.Errorf("%v\n got %s\nwant %s", err, b.String(), text)
	}
}

func TestDocumentsRefuseWhatTheyDoNotKnow(t *testing.T) {
	for text, want := range map[string]string{
		`{"id":"r","action_type":"a","description":"","x":1}`:                                                           `line 1: there is no member "x"`,
		`{"id":"r","action_type":"a"}`:                                                                                  "line 1: a rule needs description",
		`{"id":"r","action_type":"a","description":"","outcome":"maybe"}`:                                               `outcome "maybe"`,
		`{"id":"r","action_type":"a","description":"","confidence":1.5}`:                                                "confidence 1.5",
		`{"id":"r","action_type":"a","description":"","effects":[{"op":"zap","path":"world.x"}]}`:                       `op "zap"`,
		`{"id":"r","action_type":"a","description":"","effects":[{"op":"set","path":"nowhere.x"}]}`:                     "must start with world",
		`{"id":"r","action_type":"a","description":"","effects":[{"op":"set","path":"world.x","delay_steps":-1}]}`:      "delay_steps",
		`{"id":"r","action_type":"a","description":"","conditions":[{"left":{"path":"a","action_arg":"b"},"op":"eq"}]}`: "not both",
		`{"id":"r","action_type":"a","description":"","conditions":[{"op":"eq"}]}`:                                      "needs a left operand",
		`{"id":"r","action_type":"a","description":"","conditions":[{"left":{},"op":"eq","any":[]}]}`:                   "either left and op",
		`{"id":"r","id":"s","action_type":"a","description":""}`:                                                        "duplicate",
		`{"id":"r","action_type":"a","description":"","priority":1.5}`:                                                  "line 1: /priority: it must be an integer of 64 bits, not 1.5",
		`{"id":"r","action_type":"a","description":"","effects":{}}`:                                                    "line 1: /effects: it must be a list, not an object",
		`{"id":"r","action_type":"a","description":"","effects":[{"op":"set","path":"world.x","y":1}]}`:                 `line 1: /effects/0: there is no member "y"`,
		`{"id":"r" "action_type":"a"}`:                                                                                  "line 1: ",
		"{\n\"id\":\"r\",\n\"action_type\":1}":                                                                          "line 3",
	} {
		var r Rule
		if err := Decode([]byte(text), &r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want …%s…", text, err, want)
		}
	}
}

func TestTypes(t *testing.T) {
	for _, c := range []struct {
		typ  Type
		v    string
		want bool
	}{{IntegerType, "1", true}, {IntegerType, "1.0", false}, {IntegerType, "true", false}, {NumberType, "1", true}, {NumberType, "true", false},
		{BooleanType, "true", true}, {ObjectType, "{}", true}, {ArrayType, "[]", true}, {StringType, "null", false}, {AnyType, "null", true}} {
		if got := c.typ.Fits(value.MustParse(c.v)); got != c.want {
			t.Errorf("%s fits %s: %v", c.v, c.typ, got)
		}
	}
}

func FuzzRule(f *testing.F) {
	f.Add([]byte(`{"id":"r","action_type":"a","description":"","conditions":[{"all":[{"not":{"left":{},"op":"eq"}}]}],"scope":{"a":1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var r Rule
		if Decode(text, &r) != nil {
			return
		}
		out, err := AppendDocument(nil, &r)
		if err != nil {
			t.Fatal(err)
		}
		var again Rule
		if err := Decode(out, &again); err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, out)
		}
		twice, err := AppendDocument(nil, &again)
		if err != nil || string(out) != string(twice) {
			t.Fatalf("%v\n%s\n%s", err, out, twice)
		}
	})
}
