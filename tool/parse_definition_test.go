package tool_test

import (
	"testing"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/arith"
	"github.com/callsheet/callsheet/tool/demo"
	"github.com/callsheet/callsheet/value"
)

func TestADefinitionIsReadBack(t *testing.T) {
	for _, tl := range append(demo.New(), arith.New()...) {
		d := tl.Declaration
		d.Args = append(d.Args, tool.Arg{Pattern: "/a/*", Role: tool.Secret})
		d.Allowed = []string{"extra"}
		d.Effects.Keyed = true
		again, err := tool.ParseDefinition(d.Definition())
		if err != nil {
			t.Errorf("%s: %v", d.Name, err)
			continue
		}
		if again.Digest() != d.Digest() {
			t.Errorf("%s: the digest is another after reading", d.Name)
		}
	}
	if _, err := tool.ParseDefinition(value.MustParse(`{"name":"x","more":1}`)); err == nil {
		t.Error("what is no definition was read as one")
	}
}

func TestSecretsAreRedacted(t *testing.T) {
	d := tool.Declaration{Name: "t", Args: []tool.Arg{{Pattern: "/a/*/key", Role: tool.Secret}, {Pattern: "/b", Role: tool.Secret}}}
	for _, c := range []struct{ args, want string }{
		{`{"a":[{"key":"s","n":1}],"b":{"deep":["s"]},"c":"s"}`, `{"a":[{"key":{"$redacted":"secret"},"n":1}],"b":{"$redacted":"secret"},"c":"s"}`},
		{`{"b":{"$secret":"name"}}`, `{"b":{"$secret":"name"}}`},
		{`{"c":{"key":"x"}}`, `{"c":{"key":"x"}}`},
	} {
		if got := d.Redact(value.MustParse(c.args)).String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.args, got, c.want)
		}
	}
}
