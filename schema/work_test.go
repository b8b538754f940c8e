package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/value"
)

func each(n int, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(format, "#", fmt.Sprint(i))
	}
	return strings.Join(parts, ",")
}

// What takes time is paid for, whoever wrote the schema (spec/hostile.md 22). The
// least that each case costs is what it would take to do it naively a hundredth
// as fast as a subschema is applied; the most holds whatever the schema.
func TestHostile022_WorkIsPaidFor(t *testing.T) {
	long := strings.Repeat("7", 1<<16)
	for name, c := range map[string]struct {
		schema, value string
		least         int
	}{
		"long numbers":  {`{"anyOf":[` + each(100, `{"minimum":1e#,"type":"integer"}`) + `,{"maximum":0}]}`, `-` + long + `.5`, 100 * len(long) / 64},
		"required":      {`{"items":{"required":[` + each(1000, `"r#"`) + `]}}`, `[` + each(100, `{}`) + `]`, 100 * 1000},
		"deep equality": {`{"items":{"enum":[["` + long + `"]]}}`, `[` + each(10, `["`+long+`"]`) + `]`, 10 * len(long) / 64},
		"unique items":  {`{"allOf":[` + each(50, `{"uniqueItems":true,"minItems":#}`) + `]}`, `[` + each(1000, `"item #"`) + `]`, 50 * 10_000 / 64},
		"patterns":      {`{"patternProperties":{` + each(50, `"^(a|b|c#){30}$":{}`) + `}}`, `{` + each(100, `"aaaaaaaaaaaaaaa#":1`) + `}`, 100 * 50},
		"unevaluated":   {`{"allOf":[` + each(50, `{"properties":{"p#":{}},"additionalProperties":true}`) + `],"unevaluatedProperties":false}`, `{` + each(1000, `"p#":1`) + `}`, 50 * 1000},
		"exponential":   {`{"$ref":"#/$defs/n","$defs":{"n":{"type":"array","anyOf":[{"items":{"$ref":"#/$defs/n"},"minItems":1},{"items":{"$ref":"#/$defs/n"},"maxItems":1}]}}}`, strings.Repeat("[", 60) + "1" + strings.Repeat("]", 60), 1 << 17},
	} {
		v := value.MustParse(c.value)
		w := schema.NewWork(1 << 30)
		w.FitsWithHoles(schema.MustCompile(c.schema), v, nil)
		spent := 1<<30 - w.Left()
		if spent < c.least {
			t.Errorf("%s: %d units, want at least %d", name, spent, c.least)
		}
		if most := 1<<17 + 4*v.Size(); spent > most {
			t.Errorf("%s: %d units, want at most %d", name, spent, most)
		}
	}
}

// A long enum costs no more than a short one: its values are looked up.
func TestHostile022_EnumsAreLookedUp(t *testing.T) {
	list := value.MustParse(`[` + each(1000, `"v#",#.0,[#],{"a":#}`) + `]`)
	for _, n := range []int{1000, 4000} {
		s := schema.MustCompile(`{"items":{"enum":[` + each(n, `"v#",#,[#.0],{"a":#}`) + `]}}`)
		w := schema.NewWork(1 << 30)
		if faults := w.FitsWithHoles(s, list, nil); len(faults) > 0 {
			t.Fatalf("%d values: %v", n, faults)
		}
		if spent := 1<<30 - w.Left(); spent > 20_000 {
			t.Errorf("an enum of 4×%d values takes %d units for a list of 4000", n, spent)
		}
	}
}

func TestHostile022_PathsAreBounded(t *testing.T) {
	dag := `{"$ref":"#/$defs/d0","$defs":{"d40":{"properties":{"z":{"type":"string"}}},`
	for i := range 40 {
		dag += fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	loop := `{"$defs":{"n":{"anyOf":[{"properties":{"a":{"$ref":"#/$defs/n"}}},{"additionalProperties":{"$ref":"#/$defs/n"}}]}},"$ref":"#/$defs/n"}`
	for name, c := range map[string]struct{ schema, path string }{
		"a graph of references": {strings.TrimSuffix(dag, ",") + `}}`, "z.a.b"},
		"a long path":           {loop, strings.Repeat("a.", 1<<20) + "a"},
		"a long enum":           {`{"enum":[` + each(30_000, `["v#"]`) + `]}`, "0"},
		"patterns":              {`{"patternProperties":{` + each(50, `"^(a|b|c#){30}$":{}`) + `}}`, strings.Repeat("a", 1<<16) + ".b"},
	} {
		w := schema.NewWork(1 << 30)
		_, p := w.At(schema.MustCompile(c.schema), c.path)
		if spent := 1<<30 - w.Left(); spent > 1<<14 || p != schema.Possible || !w.Over() {
			t.Errorf("%s: %v after %d units, over %v; want that nothing is known after %d at most", name, p, spent, w.Over(), 1<<14)
		}
	}
}

// When the work for many questions is used up nothing more is said, and that is
// told.
func TestWorkRunsOut(t *testing.T) {
	s := schema.MustCompile(`{"properties":{"n":{"type":"integer"}}}`)
	args := value.MustParse(`{"n":"x","m":1}`)
	w := schema.NewWork(1000)
	asked := 0
	for ; !w.Over(); asked++ {
		if asked > 1000 {
			t.Fatal("questions are free")
		}
		n := len(w.FitsWithHoles(s, args, nil)) + len(w.Undeclared(s, args))
		if _, p := w.At(s, "n"); !w.Over() && (n != 2 || p != schema.Known) {
			t.Fatalf("with %d units left: %d findings, %v; want 2, known", w.Left(), n, p)
		}
	}
	if f, u := w.FitsWithHoles(s, args, nil), w.Undeclared(s, args); asked < 10 || f != nil || u != nil {
		t.Errorf("after %d rounds: %v, %v; want nothing", asked, f, u)
	}
	if _, p := w.At(s, "n.x"); p != schema.Possible || w.Left() != 0 {
		t.Errorf("a path is %v with %d units left, want possible with none", p, w.Left())
	}
}
