package tool_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// posting is a tool with args of every kind.
var posting = &tool.Declaration{Name: "post", Args: []tool.Arg{
	{Pattern: "/body", Role: tool.Content}, {Pattern: "/items/*/note", Role: tool.Content}, {Pattern: "/key", Role: tool.Secret},
	{Pattern: "/host", Role: tool.Host}, {Pattern: "/file", Role: tool.Path}, {Pattern: "/run", Role: tool.Program},
}}

func TestSameTargets(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"to":"ann"}`, `{"to":"ann","body":"x","key":"k","cc":null,"list":[]}`, true}, // content, secrets and nothing are no targets
		{`{"to":"ann"}`, `{"to":"bob"}`, false},
		{`{"to":"ann"}`, `{"cc":"ann"}`, false},
		{`{"to":"ann"}`, `{"to":"ann","cc":"bob"}`, false},
		{`{}`, `{"body":"x"}`, true},
		{`{}`, `{"to":"ann"}`, false},
		{`{"n":1}`, `{"n":1.0}`, true},
		{`{"n":100}`, `{"n":1e2}`, true},
		{`{"n":9007199254740993}`, `{"n":9007199254740992}`, false},
		{`{"n":1}`, `{"n":"1"}`, false},
		{`{"to":"ann@example.com"}`, `{"to":"ann@EXAMPLE.com"}`, true},
		{`{"to":"ann@example.com"}`, `{"to":"Ann Lee <ann@example.com>"}`, true},
		{`{"to":"ann@example.com"}`, `{"to":"Ann@example.com"}`, false}, // who is at a domain may have case
		{`{"to":"ann@example.com"}`, `{"to":"ann@example.org"}`, false},
		{`{"to":" Ann  Lee "}`, `{"to":"Ann\u00a0Lee"}`, true},
		{`{"to":"Zo\u00eb"}`, `{"to":"Zoe\u0308"}`, true},
		{`{"to":"GB29 NWBK 6016 1331 9268 19"}`, `{"to":"GB29NWBK60161331926819"}`, true},
		{`{"host":"Example.com"}`, `{"host":"https://example.com:443/"}`, true},
		{`{"host":"https://example.com/a#x"}`, `{"host":"HTTPS://EXAMPLE.com/a"}`, true},
		{`{"host":"https://example.com/a"}`, `{"host":"https://example.com/A"}`, false},
		{`{"host":"http://example.com/"}`, `{"host":"https://example.com/"}`, false},
		{`{"to":"https://example.com"}`, `{"to":"https://Example.com/"}`, true},
		{`{"file":"a/b.txt"}`, `{"file":"./a//c/../b.txt"}`, true},
		{`{"file":"a/b.txt"}`, `{"file":"a/B.txt"}`, false},
		{`{"file":"a b"}`, `{"file":"a  b"}`, false},
		{`{"run":"/bin/ls"}`, `{"run":"/bin/../bin/ls"}`, true},
		// Lists are sets, and one member in common is enough.
		{`{"to":["ann","bob"]}`, `{"to":["bob","ann","ann"]}`, true},
		{`{"to":["ann","bob"]}`, `{"to":["carl","bob"]}`, true},
		{`{"to":["ann"]}`, `{"to":["bob"]}`, false},
		{`{"to":["ann"]}`, `{"to":"ann"}`, true},
		{`{"to":["ann"]}`, `{"to":[]}`, false},
		{`{"to":[]}`, `{}`, true},
		{`{"to":["ann"],"cc":["bob"]}`, `{"to":["carl"],"cc":["bob"]}`, true},
		{`{"to":["ann"],"cc":["bob"]}`, `{"to":["bob"],"cc":["carl"]}`, false}, // each in its place
		{`{"to":["ann"],"from":"me"}`, `{"to":["ann"],"from":"you"}`, false},
		{`{"to":["ann"],"from":"me"}`, `{"to":["bob"],"from":"me"}`, false},
		{`{"to":"ann@example.com, bob@example.com"}`, `{"to":"bob@Example.com"}`, true},
		{`{"to":"ann@example.com, bob@example.com"}`, `{"to":["carl@example.com","bob@example.com"]}`, true},
		{`{"to":"Lee, Ann"}`, `{"to":"Lee, Bob"}`, false},
		{`{"items":[{"id":1,"qty":2,"note":"x"}]}`, `{"items":[{"qty":2.0,"id":1,"note":"y"},{"id":3}]}`, true},
		{`{"items":[{"id":1,"qty":2}]}`, `{"items":[{"id":3,"qty":2}]}`, false}, // a member is what all of it is
		{`{"items":[["a","b"]]}`, `{"items":[["b","a"]]}`, true},
		{`{"items":[["a","b"]]}`, `{"items":[["a"]]}`, false},
		{`{"deep":{"to":["ann"]}}`, `{"deep":{"to":["bob","ann"]}}`, true},
	} {
		a, b := posting.Targets(value.MustParse(c.a)), posting.Targets(value.MustParse(c.b))
		if a.Same(b) != c.want || b.Same(a) != c.want {
			t.Errorf("%s and %s: %t and %t, want %t", c.a, c.b, a.Same(b), b.Same(a), c.want)
		}
	}
}

// Whatever the args are, a call is on the same targets as itself, and two calls may
// be compared either way.
func TestSameTargetsIsSymmetric(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		leaf := rapid.OneOf(
			rapid.Map(rapid.String(), func(s string) string { return value.MustText(s).String() }), rapid.SampledFrom([]string{`1`, `1.0`, `true`, `null`, `"a@b.c, d@E.f"`, `"https://X/\u0000"`, `{}`, `[]`, `{"id":1}`}))
		draw := func(name string) value.Value {
			var list []value.Value
			for _, text := range rapid.SliceOfN(leaf, 0, 3).Draw(t, name+" list") {
				list = append(list, value.MustParse(text))
			}
			ms := []value.Member{{Key: "list", Value: value.ListOf(list...)}}
			for _, k := range []string{"to", "host", "file"} {
				ms = append(ms, value.Member{Key: k, Value: value.MustParse(leaf.Draw(t, name+" "+k))})
			}
			return value.ObjectOf(ms...)
		}
		a, b := draw("a"), draw("b")
		x, y := posting.Targets(a), posting.Targets(b)
		if !x.Same(x) || x.Same(y) != y.Same(x) {
			t.Fatalf("%s and %s: %t, %t, %t", a, b, x.Same(x), x.Same(y), y.Same(x))
		}
	})
}
