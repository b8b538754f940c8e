package plan

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/value"
)

func decode(t testing.TB, text string) *Plan {
	t.Helper()
	p, err := Decode([]byte(text), Limits{})
	if err != nil {
		t.Fatalf("Decode(%.200s) = %v, want a plan", text, err)
	}
	return p
}

// faults are the faults that refuse text, none when it is a plan.
func faults(t testing.TB, text string) []Fault {
	t.Helper()
	p, err := Decode([]byte(text), Limits{})
	var e *Error
	switch {
	case err == nil:
		return nil
	case p != nil:
		t.Fatalf("Decode(%.200s) gave a plan and an error", text)
	case !errors.As(err, &e) || len(e.Faults) == 0:
		t.Fatalf("Decode(%.200s) = %#v, want an *Error with faults", text, err)
	}
	return e.Faults
}

func brief(fs []Fault) string {
	var b strings.Builder
	for _, f := range fs {
		fmt.Fprintf(&b, "%d:%d %s %s %s: %s\n", f.Line, f.Column, f.Code, f.Pointer, f.Step, f.Message)
	}
	return b.String()
}

func TestDecodeReadsBothForms(t *testing.T) {
	list := decode(t, `[{"id":"s1","tool":"search","args":{"n":1.0}},{"id":"s2","tool":"fetch","args":null,"after":["s1","s1"]}]`)
	object := decode(t, `{"name":"n","budget":10,"steps":[{"tool":"search","args":{"n":1.0},"id":"s1"},{"id":"s2","tool":"fetch","after":["s1"]}]}`)
	for _, p := range []*Plan{list, object} {
		if len(p.Steps) != 2 || p.Steps[0].ID != "s1" || p.Steps[1].Tool != "fetch" {
			t.Fatalf("steps are %+v", p.Steps)
		}
		if got := p.Steps[0].Args.String(); got != `{"n":1.0}` {
			t.Errorf("args are %s, want them as written", got)
		}
		if got := p.Steps[1].Args.String(); got != `{}` {
			t.Errorf("absent and null args are %s, want {}", got)
		}
		if diff := cmp.Diff([]string{"s1"}, p.Steps[1].After); diff != "" {
			t.Errorf("after without repeats (-want +got):\n%s", diff)
		}
	}
	if object.Name != "n" || object.Budget == nil || *object.Budget != 10 || list.Budget != nil {
		t.Errorf("name %q, budgets %v and %v", object.Name, object.Budget, list.Budget)
	}
	if empty := decode(t, `[]`); len(empty.Steps) != 0 {
		t.Errorf("an empty plan has %d steps", len(empty.Steps))
	}
}

func TestDigestIsOfTheMeaning(t *testing.T) {
	base := decode(t, `[{"id":"a","tool":"t","args":{"x":1,"y":2}}]`).Digest()
	for _, same := range []string{
		`{"steps":[{"tool":"t","id":"a","args":{"y":2,"x":1}}]}`,
		`[{"id":"a","tool":"t","args":{"x":1,"y":2},"after":null,"why":"because"}]`,
	} {
		if decode(t, same).Digest() != base {
			t.Errorf("%s has another digest", same)
		}
	}
	for _, other := range []string{
		`[{"id":"a","tool":"t","args":{"x":1.0,"y":2}}]`,
		`[{"id":"a","tool":"t","args":{"x":1,"y":2},"after":["b"]}]`,
		`{"budget":1,"steps":[{"id":"a","tool":"t","args":{"x":1,"y":2}}]}`,
		`{"name":"n","steps":[{"id":"a","tool":"t","args":{"x":1,"y":2}}]}`,
	} {
		if decode(t, other).Digest() == base {
			t.Errorf("%s has the same digest", other)
		}
	}
}

func TestDecodeListsEveryFaultOfStructure(t *testing.T) {
	got := brief(faults(t, `{
  "budget": 1.5,
  "steps": [
    {"id": "a", "tool": ""},
    {"id": "a", "tool": 3, "after": "a"},
    7,
    {"ID": "b", "tool": "t", "args": []},
    {"id": "c", "tool": "t", "after": ["a", 1], "when": "$a"}
  ],
  "name": null
}`))
	want := `2:13 bad_document /budget : budget must be a whole number of calls up to 9223372036854775807, written without a fraction or an exponent, not 1.5
4:25 bad_document /steps/0/tool a: the tool of step "a" must not be empty
5:12 duplicate_id /steps/1/id a: two steps have the id "a"; rename one
5:25 bad_document /steps/1/tool a: the tool of step "a" must be a string, not a number
5:37 bad_document /steps/1/after a: after of step "a" must be a list of ids; write ["a"]
6:5 bad_document /steps/2 : a step must be an object, not a number
7:5 bad_document /steps/3 : step 4 has no "id"
7:12 bad_document /steps/3/ID : the field is written "id", not "ID"
7:38 bad_document /steps/3/args : the args of step 4 must be an object, not an array
8:45 bad_document /steps/4/after/1 c: after of step "c" lists ids of steps, not a number
8:57 bad_document /steps/4/when c: the field "when" is reserved and not supported yet, so the plan is refused rather than run without it
10:11 bad_document /name : name must be a string, not null
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	if n := len(faults(t, "["+strings.Repeat("1,", 500)+"1]")); n != MaxFaults {
		t.Errorf("%d faults are listed, want %d", n, MaxFaults)
	}
}

func TestDecodeRefusesOtherDocuments(t *testing.T) {
	for text, want := range map[string]string{
		`3`:                         "1:1 bad_document  : a plan is a list of steps, or an object with \"steps\", not a number\n",
		`{}`:                        "1:1 bad_document  : a plan that is an object needs \"steps\", a list of steps\n",
		`{"steps":{}}`:              "1:10 bad_document /steps : steps must be a list, not an object\n",
		`{"Steps":[],"steps":[]}`:   "1:10 bad_document /Steps : the field is written \"steps\", not \"Steps\"\n",
		``:                          "1:1 bad_document  : the text ends before the value does\n",
		"[\n  {\"id\": \"a\",}\n]":  "2:14 bad_document /0 : ",
		`[{"id":"a","tool":"t"}] 4`: "1:25 bad_document  : text after the end of the value\n",
	} {
		if got := brief(faults(t, text)); !strings.HasPrefix(got, want) || got == "" {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestReservedFieldsRefuseOnlyInSteps(t *testing.T) {
	for _, field := range []string{"when", "for_each", "foreach", "if", "unless", "retry", "timeout", "Retry", "IF"} {
		fs := faults(t, `[{"id":"a","tool":"t","`+field+`":1}]`)
		if len(fs) != 1 || fs[0].Code != CodeBadDocument || fs[0].Pointer != "/0/"+field {
			t.Errorf("%s: %s", field, brief(fs))
		}
	}
	p := decode(t, `{"timeout":3,"steps":[]}`)
	if len(p.Warnings) != 1 || p.Warnings[0].Code != CodeUnknownField || p.Warnings[0].Pointer != "/timeout" {
		t.Errorf("warnings of an unknown top-level key: %s", brief(p.Warnings))
	}
}

func TestHostile001_BytesAreBoundedBeforeDecoding(t *testing.T) {
	doc := []byte("[" + strings.Repeat(`{"id":"s","tool":"t","args":{}},`, 36<<20/32) + "{}]")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := Decode(doc, Limits{})
	runtime.ReadMemStats(&after)
	var e *Error
	if !errors.As(err, &e) || e.Faults[0].Code != CodeTooLarge {
		t.Fatalf("Decode of %d bytes = %v, want too_large", len(doc), err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("refusing took %d bytes of heap", n)
	}
}

func TestHostile002_TooManySteps(t *testing.T) {
	text := func(n int) string {
		var b strings.Builder
		b.WriteByte('[')
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"id":"s%d","tool":"t"}`, i)
		}
		return b.String() + "]"
	}
	if fs := faults(t, text(10_001)); len(fs) != 1 || fs[0].Code != CodeTooManySteps {
		t.Errorf("10 001 steps: %s", brief(fs))
	}
	if p := decode(t, text(10_000)); len(p.Steps) != 10_000 {
		t.Errorf("%d steps, want 10 000", len(p.Steps))
	}
}

func TestHostile003_TooDeep(t *testing.T) {
	// The list, the step and its args are three levels.
	nested := func(n int) string {
		return `[{"id":"a","tool":"t","args":{"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}}]`
	}
	if p := decode(t, nested(61)); len(p.Steps) != 1 {
		t.Error("64 levels are refused")
	}
	for _, n := range []int{62, 9_998, 10_001, 1_000_000} {
		fs := faults(t, nested(n))
		if len(fs) != 1 || fs[0].Code != CodeTooDeep || fs[0].Line != 1 || fs[0].Column != 35+61 || !strings.HasPrefix(fs[0].Pointer, "/0/args/x/0/0/0") {
			t.Errorf("%d levels: %.300s", n+3, brief(fs))
		}
	}
	if fs := faults(t, `[{"id":"]]]]"},x`+strings.Repeat("[", 100)); fs[0].Code != CodeBadDocument || fs[0].Column != 16 {
		t.Errorf("a fault before the depth: %s", brief(fs))
	}
}

func TestHostile005_DuplicateKeys(t *testing.T) {
	for text, at := range map[string]string{
		`[{"id":"a","tool":"read","tool":"pay"}]`:              "/0/tool",
		`[{"id":"a","tool":"t","args":{"x":[{"k":1,"k":2}]}}]`: "/0/args/x/0/k",
		`[{"id":"a","tool":"t","t\u006fol":"pay"}]`:            "/0/tool",
		`{"steps":[],"steps":[]}`:                              "/steps",
	} {
		fs := faults(t, text)
		if len(fs) != 1 || fs[0].Code != CodeDuplicateKey || fs[0].Pointer != at || fs[0].Column < 2 {
			t.Errorf("%s: %s", text, brief(fs))
		}
	}
}

func TestHostile006_KeysAreExact(t *testing.T) {
	for _, text := range []string{
		`[{"id":"a","tool":"read","TOOL":"send_money","Tool":"pay"}]`,
		`[{"id":"a","Tool":"pay"}]`,
		`[{"id":"a","tool":"t","Args":{}}]`,
		`[{"id":"a","tool":"t","argſ":{}}]`,
		`[{"id":"a","tool":"t","AFTER":[]}]`,
	} {
		for _, f := range faults(t, text) {
			if f.Code != CodeBadDocument {
				t.Errorf("%s: %s", text, brief([]Fault{f}))
			}
		}
		if len(faults(t, text)) == 0 {
			t.Errorf("%s is a plan", text)
		}
	}
}

func TestHostile007_UnknownFieldsAreWithoutEffect(t *testing.T) {
	p := decode(t, `[{"id":"a","tool":"t","polcy":"open","approved":true}]`)
	if got := brief(p.Warnings); got != `1:31 unknown_field /0/polcy a: the field "polcy" is not known and has no effect
1:49 unknown_field /0/approved a: the field "approved" is not known and has no effect
` {
		t.Errorf("warnings:\n%s", got)
	}
	if p.Digest() != decode(t, `[{"id":"a","tool":"t"}]`).Digest() {
		t.Error("an unknown field has an effect on the digest")
	}
}

func TestHostile008_OneValueAndNothingElse(t *testing.T) {
	for _, text := range []string{"[] []", "[]x", "\xef\xbb\xbf[]", "[]\x00", "\x00[]", "[]\n{}"} {
		if fs := faults(t, text); len(fs) != 1 || fs[0].Code != CodeBadDocument {
			t.Errorf("%q: %s", text, brief(fs))
		}
	}
}

func TestHostile009_InvalidUTF8(t *testing.T) {
	for _, text := range []string{
		"[{\"id\":\"a\",\"tool\":\"t\",\"args\":{\"x\":\"\xff\"}}]",
		"[{\"id\":\"a\",\"tool\":\"t\",\"args\":{\"\xc0\xaf\":1}}]",
		`[{"id":"a","tool":"t","args":{"x":"\ud800"}}]`,
		`[{"id":"a","tool":"t","args":{"x":"\udc00\ud800"}}]`,
	} {
		if fs := faults(t, text); len(fs) != 1 || fs[0].Code != CodeBadDocument || fs[0].Column < 30 {
			t.Errorf("%q: %s", text, brief(fs))
		}
	}
}

func TestHostile010_Ids(t *testing.T) {
	for _, id := range []string{"", strings.Repeat("a", 65), "a b", "a\n", "$s1", "-x", ".", "..", ".a", "a\u202e", "a\u200b", "a\x00", "a/b", "a:b", "½", "\u0301a", "Ⅳ"} {
		text := `[{"id":` + value.MustText(id).String() + `,"tool":"t"}]`
		if fs := faults(t, text); len(fs) != 1 || fs[0].Code != CodeBadDocument || fs[0].Pointer != "/0/id" {
			t.Errorf("%q: %s", id, brief(fs))
		}
	}
	for _, id := range []string{"__proto__", "constructor", "0", "a.b.c", "a-", "_", "schritt_ä", "шаг", "步骤1", "a\u0301", "١", strings.Repeat("é", 64)} {
		text := `[{"id":` + value.MustText(id).String() + `,"tool":"t"}]`
		if p := decode(t, text); p.Steps[0].ID != id || p.Index(id) != 0 {
			t.Errorf("%q became %q", id, p.Steps[0].ID)
		}
	}
}

func TestHostile011_IdsEqualAfterFolding(t *testing.T) {
	for _, pair := range [][2]string{{"a", "A"}, {"A", "a"}, {"Ab", "aB"}, {"ﬁx", "fix"}, {"é", "e\u0301"}, {"straße", "STRASSE"}, {"s1", "ｓ１"}, {"Σ", "ς"}, {"Ꭰ", "ꭰ"}} {
		fs := faults(t, fmt.Sprintf(`[{"id":%q,"tool":"t"},{"id":%q,"tool":"t"}]`, pair[0], pair[1]))
		if len(fs) != 1 || fs[0].Code != CodeDuplicateID || fs[0].Pointer != "/1/id" || !strings.Contains(fs[0].Message, "NFKC") {
			t.Errorf("%q: %s", pair, brief(fs))
		}
	}
	if p := decode(t, `[{"id":"s1","tool":"t"},{"id":"ѕ1","tool":"t"}]`); len(p.Steps) != 2 {
		t.Error("ids that only look alike are two ids")
	}
}

func TestHostile012_DuplicateIds(t *testing.T) {
	fs := faults(t, `[{"id":"a","tool":"t"},{"id":"b","tool":"t"},{"id":"a","tool":"t"}]`)
	if len(fs) != 1 || fs[0].Code != CodeDuplicateID || fs[0].Pointer != "/2/id" {
		t.Error(brief(fs))
	}
}

func TestHostile017_NumbersAreExact(t *testing.T) {
	args := `{"a":9007199254740993,"b":1e400,"c":-0,"d":1E2,"e":0.10,"f":1e400000000}`
	if got := decode(t, `[{"id":"a","tool":"t","args":`+args+`}]`).Steps[0].Args.String(); got != args {
		t.Errorf("args are %s, want %s", got, args)
	}
}

func TestHostile018_NaNIsNoNumber(t *testing.T) {
	for _, n := range []string{"NaN", "Infinity", "-Infinity", "nan", "1.", "01", "+1", ".5", "0x1"} {
		if fs := faults(t, `[{"id":"a","tool":"t","args":{"n":`+n+`}}]`); len(fs) != 1 || fs[0].Code != CodeBadDocument {
			t.Errorf("%s: %s", n, brief(fs))
		}
	}
}

func TestHostile047_Budgets(t *testing.T) {
	for _, b := range []string{"-5", "-1e3", "1.5", "10.0", "1e1", "9223372036854775808", "1e400", `"10"`, "null", "true"} {
		fs := faults(t, `{"steps":[],"budget":`+b+`}`)
		if len(fs) != 1 || fs[0].Code != CodeBadDocument || fs[0].Pointer != "/budget" {
			t.Errorf("budget %s: %s", b, brief(fs))
		}
	}
	if p := decode(t, `{"steps":[],"budget":0}`); *p.Budget != 0 {
		t.Errorf("budget 0 is %d", *p.Budget)
	}
	if p := decode(t, `{"steps":[],"budget":9223372036854775807}`); *p.Budget != 9223372036854775807 {
		t.Errorf("the largest budget is %d", *p.Budget)
	}
}

func TestFoldIsItsOwnFold(t *testing.T) {
	for r := rune(0); r <= 0x10FFFF; r++ {
		if CheckID("a"+string(r)) != "" {
			continue // never in an id
		}
		if once := Fold(string(r)); Fold(once) != once {
			t.Errorf("Fold(%U) = %+q, and its fold is %+q", r, once, Fold(once))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		once := Fold(rapid.String().Draw(t, "id"))
		if Fold(once) != once {
			t.Errorf("%+q folds to %+q", once, Fold(once))
		}
	})
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`[]`, `{"steps":[],"name":"n","budget":3}`, `[{"id":"s1","tool":"t","args":{"x":"$s1.a"},"after":["s2"]}]`,
		`[{"id":"a","tool":"t","args":{"x":["$$","$nope","${x}","$5 off"]}},{"id":"A","tool":"t"}]`,
		`[{"Id":1}]`, `{"steps":[{"when":1}]}`, "[\xff]", `[[[[]]]]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		limits := Limits{Bytes: 4096, Steps: 8, Depth: 6}
		p, err := Decode(text, limits)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || len(e.Faults) == 0 || len(e.Faults) > MaxFaults || p != nil {
				t.Fatalf("Decode(%q) = %v, %#v", text, p, err)
			}
			for _, f := range e.Faults {
				if f.Line < 1 || f.Column < 1 || f.Code == "" || f.Message == "" {
					t.Errorf("Decode(%q): %+v", text, f)
				}
			}
			return
		}
		if len(text) > limits.Bytes || len(p.Steps) > limits.Steps {
			t.Errorf("Decode(%q) passed its limits", text)
		}
		for i, s := range p.Steps {
			if CheckID(s.ID) != "" || s.Tool == "" || s.Args.Kind() != value.Object || p.Index(s.ID) != i || s.Template.Holes() != len(s.Refs) {
				t.Errorf("Decode(%q): step %d is %+v", text, i, s)
			}
		}
	})
}

func TestMistakesOfModelsAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"```json\n[]\n```":                        "1:1 a code fence (```) stands around the JSON; send the JSON alone",
		"[]\n```":                                 "2:1 a code fence (```) stands around the JSON; send the JSON alone",
		"Here it is:\n```json\n[]\n```\n":         "1:1 text and a code fence (```) stand around the JSON; send the JSON alone",
		`[{"id": "a", "tool": "t"},]`:             `1:27 a comma stands before the closing "]"; take it out`,
		"[{\"id\": \"a\", \"tool\": \"t\" ,\n }]": `2:2 a comma stands before the closing "}"; take it out`,
		`[,]`: `1:2 invalid character ',' at start of value`,
	} {
		f := faults(t, text)[0]
		if got := fmt.Sprintf("%d:%d %s", f.Line, f.Column, f.Message); got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
}

func TestMeantField(t *testing.T) {
	for name, want := range map[string]string{
		"depends_on": "after", "dependsOn": "after", "dependencies": "after", "arguments": "args", "params": "args",
		"input": "args", "parameters": "args", "name": "tool", "tool_name": "tool", "toolName": "tool", "note": "", "after": "",
	} {
		if got := MeantField(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestNegativeLimitsAreNamed(t *testing.T) {
	for want, l := range map[string]Limits{"Limits.Bytes is -1": {Bytes: -1}, "Limits.Steps is -2": {Steps: -2}, "Limits.Depth is -3": {Depth: -3}} {
		p, err := Decode([]byte(`[]`), l)
		if p != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %v, want %q", l, err, want)
		}
	}
}

// One long name over many references would make their pointers square: a plan
// within the limit of its text that comes to gigabytes is refused before they are
// made.
func TestLongNamesOverManyStringsAreRefused(t *testing.T) {
	text := func(name, refs int) string {
		return `[{"id":"a","tool":"t"},{"id":"b","tool":"t","args":{"` + strings.Repeat("k", name) + `":["$a"` + strings.Repeat(`,"$a"`, refs-1) + `]}}]`
	}
	for _, c := range []struct {
		name, refs int
		fits       bool
	}{{20, 100_000, true}, {1 << 20, 50, true}, {1 << 20, 200_000, false}, {1000, 100_000, false}} {
		p, err := Decode([]byte(text(c.name, c.refs)), Limits{})
		var refused *Error
		switch {
		case c.fits && (err != nil || len(p.Steps[1].Refs) != c.refs):
			t.Errorf("%d references below %d bytes: %v", c.refs, c.name, err)
		case !c.fits && (!errors.As(err, &refused) || refused.Faults[0].Code != CodeTooLarge || refused.Faults[0].Pointer != "/1/args"):
			t.Errorf("%d references below %d bytes: got %v, want too_large at /1/args", c.refs, c.name, err)
		}
	}
}
