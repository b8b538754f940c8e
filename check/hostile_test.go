package check_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/tool"
)

// found checks a plan and fails unless it has the codes, each with its severity.
func found(t *testing.T, text string, o check.Options, want ...string) *check.Report {
	t.Helper()
	_, r := check.Text([]byte(text), o)
	for _, w := range want {
		code, severity, _ := strings.Cut(w, " ")
		n := 0
		for _, d := range r.Diagnostics {
			if d.Code == code && string(d.Severity) == severity {
				n++
			}
		}
		if n == 0 {
			t.Errorf("%s: no %s with severity %s\n%s", text, code, severity, told(r))
		}
	}
	return r
}

func TestHostile004_ABillionLaughsIsOneCallEach(t *testing.T) {
	steps := []string{`{"id":"s0","tool":"plain","args":{"x":"lol"}}`}
	for i := 1; i <= 30; i++ {
		steps = append(steps, fmt.Sprintf(`{"id":"s%d","tool":"plain","args":{"x":["$s%d","$s%d"]}}`, i, i-1, i-1))
	}
	_, r := check.Text([]byte("["+strings.Join(steps, ",")+"]"), check.Options{Catalogue: catalogue(t, []byte(propertyTools))})
	if !r.OK || r.Calls.Min != 31 || len(r.Waves) != 31 {
		t.Errorf("%s", told(r))
	}
}

func TestHostile007_UnknownFieldsAreErrorsUnderStrict(t *testing.T) {
	text := `[{"id":"a","tool":"t","approved":true}]`
	if r := found(t, text, check.Options{}, "unknown_field warning"); !r.OK {
		t.Errorf("a warning makes the plan unsound: %s", told(r))
	}
	if r := found(t, text, check.Options{Strict: true}, "unknown_field error"); r.OK {
		t.Error("an unknown field passes under strict")
	}
}

func TestHostile011_LookalikeIds(t *testing.T) {
	found(t, `[{"id":"s1","tool":"t"},{"id":"ѕ1","tool":"t"}]`, check.Options{}, "lookalike_id warning")
	found(t, `[{"id":"pаypal","tool":"t"}]`, check.Options{}, "lookalike_id warning")
	for _, r := range "\u034f\u115f\u1160\u17b4\u180b\u3164\ufe0f\uffa0\U000e0100" { // letters and marks that are not drawn
		found(t, fmt.Sprintf(`[{"id":"s","tool":"t"},{"id":"s%c","tool":"t"}]`, r), check.Options{}, "lookalike_id warning")
		found(t, fmt.Sprintf(`[{"id":"s%c","tool":"t"}]`, r), check.Options{}, "lookalike_id warning")
	}
	for _, sound := range []string{`[{"id":"шаг_один","tool":"t"}]`, `[{"id":"schluß","tool":"t"}]`, `[{"id":"第1步","tool":"t"}]`} {
		_, r := check.Text([]byte(sound), check.Options{Catalogue: catalogue(t, []byte(`[{"name":"t"}]`))})
		if len(r.Diagnostics) > 0 {
			t.Errorf("%s: %s", sound, told(r))
		}
	}
}

func TestHostile013_BadReferences(t *testing.T) {
	found(t, `[{"id":"a","tool":"t","args":{"x":"$ghost"}}]`, check.Options{}, "unknown_reference error")
	found(t, `[{"id":"a","tool":"t","args":{"x":"$a"}}]`, check.Options{}, "self_reference error", "cycle error", "never_runs error")
	found(t, `[{"id":"a","tool":"t","args":{"x":"$b"}},{"id":"b","tool":"t","after":["a"]}]`, check.Options{}, "cycle error")
	found(t, `[{"id":"a","tool":"t","after":["ghost"]}]`, check.Options{}, "unknown_dependency error", "never_runs error")
	if r := found(t, `[{"id":"a","tool":"t","args":{"x":"$b"}},{"id":"b","tool":"t"}]`, check.Options{}); !r.OK {
		t.Errorf("a later step in the file is a fault: %s", told(r))
	}
}

func TestHostile014_ImpossiblePath(t *testing.T) {
	o := check.Options{Catalogue: catalogue(t, []byte(propertyTools))}
	found(t, `[{"id":"a","tool":"search","args":{"query":"x"}},{"id":"b","tool":"plain","args":{"x":"$a.nope"}}]`, o, "impossible_path error")
	if r := found(t, `[{"id":"a","tool":"plain"},{"id":"b","tool":"plain","args":{"x":"$a.nope"}}]`, o); !r.OK {
		t.Errorf("nothing is declared and yet it is impossible: %s", told(r))
	}
}

func TestHostile015_ReferenceOfAnotherType(t *testing.T) {
	o := check.Options{Catalogue: catalogue(t, []byte(propertyTools))}
	found(t, `[{"id":"a","tool":"search","args":{"query":"x"}},{"id":"b","tool":"search","args":{"query":"y","limit":"$a.text"}}]`, o, "invalid_args error")
	if r := found(t, `[{"id":"a","tool":"search","args":{"query":"x"}},{"id":"b","tool":"search","args":{"query":"$a.text","limit":"$a.total"}}]`, o); !r.OK {
		t.Errorf("fitting references are refused: %s", told(r))
	}
}

func TestHostile019_UnknownToolNamesTheNearest(t *testing.T) {
	o := check.Options{Catalogue: catalogue(t, []byte(propertyTools))}
	r := found(t, `[{"id":"a","tool":"serach"}]`, o, "unknown_tool error")
	if d := r.Diagnostics[0]; !strings.Contains(d.Message, `"search"`) || len(d.Advice) != 1 {
		t.Errorf("%s, with advice %v", d, d.Advice)
	}
}

func TestHostile021_GhostArgs(t *testing.T) {
	o := check.Options{Catalogue: catalogue(t, []byte(propertyTools))}
	text := `[{"id":"a","tool":"search","args":{"query":"x","bcc":"eve"}}]`
	if r := found(t, text, o, "invalid_args error"); r.Diagnostics[0].Pointer != "/0/args/bcc" {
		t.Errorf("the finding is about %s", r.Diagnostics[0].Pointer)
	}
	allowed := *o.Catalogue.Get("search")
	allowed.Allowed = []string{"bcc"}
	c, err := tool.NewCatalogue(&allowed)
	if err != nil {
		t.Fatal(err)
	}
	if r := found(t, text, check.Options{Catalogue: c}); !r.OK {
		t.Errorf("an arg that the configuration allows is refused: %s", told(r))
	}
}

func TestHostile048_TheWorstCaseAgainstTheBudget(t *testing.T) {
	text := `{"budget":3,"steps":[{"id":"a","tool":"t"},{"id":"b","tool":"t"}]}`
	if r := found(t, text, check.Options{}, "over_budget warning"); !r.OK || r.Calls.Max != 4 {
		t.Errorf("%s", told(r))
	}
	if r := found(t, text, check.Options{Strict: true}, "over_budget error"); r.OK {
		t.Error("the worst case passes under strict")
	}
	enough := 4
	if _, r := check.Text([]byte(text), check.Options{Budget: &enough, Strict: true}); !r.OK {
		t.Errorf("a budget that is enough: %s", told(r))
	}
	most := &tool.Declaration{Name: "t", Attempts: math.MaxInt}
	c, err := tool.NewCatalogue(most)
	if err != nil {
		t.Fatal(err)
	}
	if _, r := check.Text([]byte(text), check.Options{Catalogue: c}); r.Calls.Max != math.MaxInt {
		t.Errorf("the worst case is %d, want it saturated", r.Calls.Max)
	}
}

func TestPolicyFindingsJoinTheOthers(t *testing.T) {
	o := check.Options{Policy: func(p *plan.Plan) []check.Diagnostic {
		return []check.Diagnostic{{Code: check.Denied, Severity: check.Error, Step: "a", Pointer: p.Pointer(0) + "/args/to", Message: "no"}}
	}}
	r := found(t, "[{\"id\":\"a\",\"tool\":\"t\",\"args\":\n{\"to\":\"eve\"}},{\"id\":\"b\",\"tool\":\"t\",\"args\":{\"x\":\"$a\"}}]", o, "denied error", "never_runs error")
	for _, d := range r.Diagnostics {
		if d.Code == check.Denied && (d.Line != 2 || d.Column != 7) {
			t.Errorf("the place of %s is wrong", d)
		}
	}
}

func TestFindingsAreBounded(t *testing.T) {
	var steps []string
	for i := range 6000 {
		steps = append(steps, fmt.Sprintf(`{"id":"s%d","tool":"t","args":{"x":"$nope","y":"$nope"}}`, i))
	}
	_, r := check.Text([]byte("["+strings.Join(steps, ",")+"]"), check.Options{})
	last := 0
	for _, d := range r.Diagnostics {
		if d.Code == check.TooManyFindings {
			last++
		}
	}
	if len(r.Diagnostics) != check.MaxDiagnostics+1 || last != 1 || r.OK {
		t.Errorf("%d findings, %d of them about the rest", len(r.Diagnostics), last)
	}
}

// A plan of ten thousand steps against schemas that each take all the work that
// one question may take: the plan is judged as far as the work for a plan goes,
// and the report says so. What is asked again is remembered.
func TestHostile022_SchemasDoNotHoldUpTheCheck(t *testing.T) {
	loop := `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","anyOf":[{"properties":{"a":{"$ref":"#/$defs/n"}},"minProperties":1},{"properties":{"a":{"$ref":"#/$defs/n"}},"maxProperties":1}]}}}`
	tools := `[{"name":"p","outputSchema":` + loop + `},{"name":"q","inputSchema":` + loop + `},{"name":"r"}]`
	plan := func(step string) string {
		steps := make([]string, 9999)
		for i := range steps {
			steps[i] = strings.ReplaceAll(step, "#", fmt.Sprint(i))
		}
		return `[{"id":"p","tool":"p","args":{}},` + strings.Join(steps, ",") + `]`
	}
	o := check.Options{Catalogue: catalogue(t, []byte(tools))}
	deep := strings.Repeat(`{"a":`, 40) + `"$p.b"` + strings.Repeat("}", 40)
	if r := found(t, plan(`{"id":"s#","tool":"q","args":`+deep+`}`), o, "too_much_work warning"); !r.OK {
		t.Errorf("what was not judged is an error: %s", told(r)[:500])
	}
	if r := found(t, plan(`{"id":"s#","tool":"r","args":{"x":"$p`+strings.Repeat(".a", 20)+`"}}`), o); r.Count(check.Warning) > 1 {
		t.Errorf("one path of ten thousand steps: %s", told(r)[:500])
	}
}

// A key that holds a dot makes a path possible that looks like one through a
// scalar. It is certain only where the schema allows no such key.
func TestImpossibleIsCertain(t *testing.T) {
	for output, want := range map[string]string{
		`{"properties":{"a":{"type":"integer"}},"additionalProperties":false}`:          "error",
		`{"properties":{"a":{"type":"integer"}}}`:                                       "warning",
		`{"properties":{"a":{"type":"integer"}},"additionalProperties":true}`:           "",
		`{"properties":{"a":{"type":"integer"}},"required":["a.b"]}`:                    "",
		`{"properties":{"a":{"type":"integer"}},"patternProperties":{"\\.":{}}}`:        "",
		`{"properties":{"a":{"type":"integer"},"a.b":{}},"additionalProperties":false}`: "",
	} {
		o := check.Options{Catalogue: catalogue(t, []byte(`[{"name":"p","outputSchema":`+output+`}]`))}
		_, r := check.Text([]byte(`[{"id":"p","tool":"p"},{"id":"q","tool":"p","args":{"x":"$p.a.b"}}]`), o)
		got := ""
		for _, d := range r.Diagnostics {
			if d.Code == check.ImpossiblePath {
				got = string(d.Severity)
			}
		}
		if got != want || r.OK != (want != "error") {
			t.Errorf("%s: got %q, want %q\n%s", output, got, want, told(r))
		}
	}
}
