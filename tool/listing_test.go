package tool_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/tool"
)

const listing = `{"tools": [
	{"name": "read", "title": "Read", "description": "Reads a file.",
	 "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"path": {"type": "string"}}},
	 "annotations": {"readOnlyHint": true, "openWorldHint": false}},
	{"name": "write", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}, "annotations": {"destructiveHint": false, "idempotentHint": true}},
	{"name": "pay", "inputSchema": null}
]}`

func TestReadCatalogue(t *testing.T) {
	decls, err := tool.ReadCatalogue([]byte(listing), "tools.json")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]tool.Effects{
		"read":  {ReadOnly: true},
		"write": {Idempotent: true, OpenWorld: true},
		"pay":   tool.Undeclared(),
	}
	for _, d := range decls {
		if d.Effects != want[d.Name] || d.Source != "tools.json" {
			t.Errorf("%s: got %+v, want %+v", d.Name, d.Effects, want[d.Name])
		}
	}
	if len(decls) != 3 || decls[0].Input == nil || decls[0].Description != "Reads a file." || decls[1].Output == nil || decls[2].Input != nil {
		t.Errorf("got %v", decls)
	}
	bare, err := tool.ReadCatalogue([]byte(`[{"name": "x"}]`), "f")
	if err != nil || len(bare) != 1 {
		t.Errorf("the bare list: got %v, %v", bare, err)
	}
}

func TestReadCatalogueRefuses(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`{"tools": [}`, "line 1, column 12"},
		{`5`, `is a number; write a list of tools`},
		{`{}`, "has no tools"},
		{`{"tools": {}}`, "at /tools: is an object, it must be an array"},
		{`{"tools": [], "nextCursor": "x"}`, "at /nextCursor"},
		{`[5]`, "at /0: is a number; a tool is an object"},
		{`[{}]`, "at /0: has no name"},
		{`[{"name": ""}]`, "at /0/name: is empty"},
		{`[{"name": 1}]`, "at /0/name: is a number, it must be a string"},
		{`[{"name": "x", "inputschema": {}}]`, `at /0/inputschema: the field "inputschema" is not known here; did you mean "inputSchema"?`},
		{`[{"name": "x", "annotations": {"readOnlyHint": "yes"}}]`, "at /0/annotations/readOnlyHint: is a string, it must be a boolean"},
		{`[{"name": "x", "inputSchema": {"properties": {"a": {"pattern": "("}}}}]`, "at /0/inputSchema/properties/a/pattern: the pattern"},
		{`[{"name": "x", "inputSchema": {"$ref": "https://evil.example/s.json"}}]`, "nothing is fetched"},
		{`[{"name": "x", "_meta": {"callsheet/tool": {"kyed": true}}}]`, `at /0/_meta/callsheet~1tool/kyed: the field "kyed" is not known here; did you mean "keyed"?`},
		{`[{"name": "x", "_meta": {"callsheet/tool": {"args": [{"pattern": "to", "role": "target"}]}}}]`, "args/0/pattern: \"to\" is no JSON pointer"},
		{`[{"name": "x", "_meta": {"callsheet/tool": {"args": [{"pattern": "/to", "role": "goal"}]}}}]`, "args/0/role: \"goal\" is no role"},
		{`[{"name": "x", "_meta": {"callsheet/tool": {"args": [1]}}}]`, "args/0: is a number"},
		{`[{"name": "x", "_meta": {"callsheet/tool": {"allowed": [1]}}}]`, "allowed/0: is a number"},
		{`[{"name": "x"}, {"name": "y"}, {"name": "x"}]`, `at /2/name: the name "x" is taken by the tool at /0`},
	} {
		_, err := tool.ReadCatalogue([]byte(tt.text), "tools.json")
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "tools.json: ") {
			t.Errorf("%s: got %v, want %q", tt.text, err, tt.want)
		}
	}
	_, err := tool.ReadCatalogue([]byte(`[{"name": 1}, {"nam": "x"}]`), "f")
	if err == nil || strings.Count(err.Error(), "at /") != 3 {
		t.Errorf("got %v, want three faults", err)
	}
}

// What is written is read back as it was: every definition, with what MCP has no
// place for.
func TestListingIsReadBack(t *testing.T) {
	decls, err := tool.ReadCatalogue([]byte(listing), "tools.json")
	if err != nil {
		t.Fatal(err)
	}
	decls[1].Effects.Keyed = true
	decls[1].Args = []tool.Arg{{Pattern: "/to", Role: tool.Secret}, {Pattern: "/*/x~1y", Role: tool.Neutral}}
	decls[2].Allowed = []string{"extra", ""}
	back, err := tool.ReadCatalogue([]byte(tool.Listing(decls).String()), "tools.json")
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range decls {
		if got, want := back[i].Definition().String(), d.Definition().String(); got != want {
			t.Errorf("read back: got  %s\nwant %s", got, want)
		}
	}
}

func FuzzReadCatalogue(f *testing.F) {
	f.Add([]byte(listing))
	f.Add([]byte(`[{"name": "x", "inputSchema": {"$ref": "#"}}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		decls, err := tool.ReadCatalogue(text, "f")
		if err != nil {
			return
		}
		if _, err := tool.NewCatalogue(decls...); err != nil {
			t.Errorf("a file that was read makes no catalogue: %v", err)
		}
		back, err := tool.ReadCatalogue([]byte(tool.Listing(decls).String()), "f")
		if err != nil {
			t.Fatalf("what was written of it is not read: %v", err)
		}
		for i, d := range decls {
			if d.Digest() != back[i].Digest() {
				t.Errorf("got  %s\nwant %s", back[i].Definition(), d.Definition())
			}
		}
	})
}

func ExampleReadCatalogue() {
	decls, err := tool.ReadCatalogue([]byte(`{"tools": [{"name": "read", "annotations": {"readOnlyHint": true}}]}`), "tools.json")
	if err != nil {
		panic(err)
	}
	c, err := tool.NewCatalogue(decls...)
	if err != nil {
		panic(err)
	}
	fmt.Println(c.Get("read").Effects.ReadOnly, c.Nearest("raed", 1))
	// Output: true [read]
}
