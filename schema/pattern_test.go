package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/value"
)

func TestReach(t *testing.T) {
	s := schema.MustCompile(`{"type":"object","required":["must"],"properties":{
		"to":{"type":"string"},
		"list":{"anyOf":[{"type":"array","items":{"$ref":"#/$defs/person"}},{"type":"null"}]},
		"pair":{"type":"array","prefixItems":[{"type":"string"},{"type":"object","properties":{"n":{}}}],"items":false},
		"any":{"type":"object"},
		"more":{"type":"object","properties":{"a":{}},"additionalProperties":{"type":"object","properties":{"deep":{}}}},
		"closed":{"type":"object","properties":{"a":{"type":"integer"}},"additionalProperties":false},
		"named":{"type":"object","properties":{"a":{}},"patternProperties":{"^x-":{"type":"string"}}},
		"a/b":{"type":"object","properties":{"c":{}}},
		"either":{"oneOf":[{"type":"object","properties":{"l":{}}},{"type":"object","properties":{"r":{}}}]}},
		"$defs":{"person":{"type":"object","properties":{"name":{"type":"string"},"friend":{"$ref":"#/$defs/person"}}}}}`)
	for _, c := range []struct{ pattern, want string }{
		{"/to", "1"}, {"/must", "1"}, {"/*", "1"}, {"/tp", "0 a/b any closed either list more must named pair to"},
		{"/to/x", "1"}, {"/to/*", "1"},
		{"/list/*/name", "3"}, {"/list/7/friend/friend/name", "5"}, {"/list/*/nmae", "2 friend name"}, {"/list/name", "1"},
		{"/*/*/name", "3"}, {"/*/*/*/*/*/*/*", "7"},
		{"/pair/1/n", "3"}, {"/pair/*/n", "3"}, {"/pair/2", "1"}, {"/pair/0/n", "2"},
		{"/any/x/y", "3"}, {"/must/x", "2"},
		{"/more/b/deep", "3"}, {"/more/b/dep", "2 deep"},
		{"/closed/b", "1 a"}, {"/closed/*", "2"},
		{"/named/x-1", "2"}, {"/named/x-1/y", "2"}, {"/named/y", "1 a"}, {"/named/*", "2"},
		{"/a~1b/c", "2"}, {"/a~1b/d", "1 c"},
		{"/either/r", "2"}, {"/either/x", "1 l r"},
	} {
		reached, names := s.Reach(strings.Split(c.pattern[1:], "/"))
		if got := strings.TrimSpace(fmt.Sprint(reached, " ", strings.Join(names, " "))); got != c.want {
			t.Errorf("%s: got %s, want %s", c.pattern, got, c.want)
		}
	}
	for _, open := range []*schema.Schema{nil, schema.MustCompile(`{}`), schema.MustCompile(`{"type":"object"}`)} {
		if n, _ := open.Reach([]string{"a", "*"}); n != 2 {
			t.Errorf("what says nothing reaches %d of 2", n)
		}
	}
}

// Whatever args fit a closed schema, the pointer of each of their leaves is
// reached, and so is the pattern that has * in the place of each token.
func TestReachFindsWhatFits(t *testing.T) {
	s := schema.MustCompile(`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","additionalProperties":false,"properties":{
		"a":{"type":"integer"},"l":{"type":"array","items":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/n"}]}},"o":{"$ref":"#/$defs/n"}}}}}`)
	rapid.Check(t, func(t *rapid.T) {
		var draw func(depth int) value.Value
		draw = func(depth int) value.Value {
			var ms []value.Member
			if rapid.Bool().Draw(t, "a") {
				ms = append(ms, value.Member{Key: "a", Value: value.Int(1)})
			}
			if depth > 0 {
				ms = append(ms, value.Member{Key: "l", Value: value.ListOf(value.MustText("x"), draw(depth-1))}, value.Member{Key: "o", Value: draw(depth - 1)})
			}
			return value.ObjectOf(ms...)
		}
		v := draw(rapid.IntRange(0, 3).Draw(t, "depth"))
		if !s.Fits(v) {
			t.Fatalf("%s does not fit", v)
		}
		var walk func(v value.Value, tokens, stars []string)
		walk = func(v value.Value, tokens, stars []string) {
			for _, path := range [][]string{tokens, stars} {
				if n, _ := s.Reach(path); n != len(path) {
					t.Fatalf("of %v only %d are reached", path, n)
				}
			}
			for k, m := range v.Members() {
				walk(m, append(tokens[:len(tokens):len(tokens)], k), append(stars, "*"))
			}
			for i, e := range v.Elements() {
				walk(e, append(tokens[:len(tokens):len(tokens)], fmt.Sprint(i)), append(stars, "*"))
			}
		}
		walk(v, nil, nil)
	})
}
