package check_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/value"
)

const propertyTools = `[
	{"name": "search", "inputSchema": {"type": "object", "required": ["query"], "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}}, "outputSchema": {"type": "object", "additionalProperties": false, "properties": {"total": {"type": "integer"}, "text": {"type": "string"}}}},
	{"name": "fetch", "inputSchema": {"type": "object", "additionalProperties": false, "properties": {"doc": {"type": "string"}}}},
	{"name": "put", "inputSchema": {"type": "object", "properties": {"doc": {"type": "object", "properties": {"a": {"type": "string"}}}, "query": {"type": "array", "items": {"type": "string"}}}}},
	{"name": "open", "inputSchema": {"type": "object"}},
	{"name": "plain"}]`

// faulty draws a document with faults of every kind: of structure now and then,
// of meaning mostly.
func faulty(t *rapid.T) string {
	ids := []string{"n0", "n1", "n2", "n3", "a.b", "a", "step-1", "ж"}
	text := rapid.OneOf(
		rapid.SampledFrom([]string{"plain", "$$n1", "$5 off", "<node-1>", "#E2", "${1}", "{{n1.x}}", "the $n1 here", "$nope", "$n9.total", "$N1", "$[0]", "%{step_1_output%}", "$a.bc", "$stp-1.x", "${ghost}", "$n1[0]", "$n0['total'].x", "$n77", "${n1.x} on", `{"a": "$n1"}`, `["b", 1]`}),
		rapid.Map(rapid.SampledFrom(ids), func(id string) string { return "$" + id }),
		rapid.Map(rapid.SampledFrom(ids), func(id string) string { return "$" + id + ".total" }),
	)
	rare := func(label string) bool { return rapid.IntRange(0, 40).Draw(t, label) == 0 }
	var steps []string
	for i := range rapid.IntRange(0, 6).Draw(t, "steps") {
		id := ids[i]
		if rare("another id") {
			id = rapid.SampledFrom([]string{"n0", "N1", "n1", "ж1", "a b"}).Draw(t, "id")
		}
		fields := []string{`"id":` + value.MustText(id).String()}
		if rare("no id") {
			fields = nil
		}
		name := "tool"
		if rare("another key") {
			name = rapid.SampledFrom([]string{"Tool", "name", "tool_name"}).Draw(t, "tool as")
		}
		fields = append(fields, fmt.Sprintf("%q:%q", name, rapid.SampledFrom([]string{"plain", "plain", "search", "fetch", "put", "open", "serch", "nope"}).Draw(t, "tool")))
		var args []string
		for _, arg := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"query", "limit", "doc", "bcc", "k/~"}), 0, 3, rapid.ID).Draw(t, "args") {
			v := value.MustText(text.Draw(t, "text")).String()
			if rapid.Bool().Draw(t, "nested") {
				v = fmt.Sprintf(`{"deep":[1,%s,%s]}`, v, value.MustText(text.Draw(t, "text")))
			}
			args = append(args, fmt.Sprintf("%q:%s", arg, v))
		}
		object := "{" + strings.Join(args, ",") + "}"
		switch {
		case rare("args by another name"):
			name := rapid.SampledFrom([]string{"arguments", "params", "input", "parameters"}).Draw(t, "args as")
			fields = append(fields, fmt.Sprintf("%q:%s", name, rapid.SampledFrom([]string{object, value.MustText(object).String(), "7"}).Draw(t, "args")))
		case rare("args as text"):
			fields = append(fields, `"args":`+value.MustText(object).String())
		default:
			fields = append(fields, `"args":`+object)
		}
		var after []string
		for _, id := range rapid.SliceOfN(rapid.SampledFrom(append(ids, "ghost", "n8", "$n1")), 0, 3).Draw(t, "after") {
			after = append(after, value.MustText(id).String())
		}
		switch {
		case rare("after is text"):
			fields = append(fields, `"after":"n0"`)
		case len(after) > 0:
			fields = append(fields, `"after":[`+strings.Join(after, ",")+`]`)
		}
		if rare("after by another name") {
			name := rapid.SampledFrom([]string{"depends_on", "dependsOn", "dependencies"}).Draw(t, "after as")
			fields = append(fields, fmt.Sprintf("%q:%s", name, rapid.SampledFrom([]string{`["n0"]`, `"n0"`, `["n0",1]`, `{}`}).Draw(t, "ids")))
		}
		if rare("unknown field") {
			fields = append(fields, `"polcy":1`)
		}
		steps = append(steps, "{"+strings.Join(fields, ", ")+"}")
	}
	doc := "[" + strings.Join(steps, ",\n ") + "]"
	if rapid.Bool().Draw(t, "object") {
		doc = fmt.Sprintf(`{"budget":%d,"steps":%s}`, rapid.IntRange(0, 20).Draw(t, "budget"), doc)
	}
	return doc
}

// finding is what makes two diagnostics of two documents the same one: an
// advice may move what it is about.
func finding(d check.Diagnostic) string { return d.Code + " " + d.Step + " " + d.Message }

func TestEveryAdviceRemovesItsFinding(t *testing.T) {
	o := check.Options{Catalogue: catalogue(t, []byte(propertyTools))}
	rapid.Check(t, func(t *rapid.T) {
		text := faulty(t)
		_, r := check.Text([]byte(text), o)
		before := make(map[string]int)
		for _, d := range r.Diagnostics {
			before[finding(d)]++
		}
		for _, d := range r.Diagnostics {
			if len(d.Advice) == 0 {
				continue
			}
			doc, err := d.Advice.Apply(value.MustParse(text))
			if err != nil {
				t.Fatalf("%s\n%s: %v", text, d, err)
			}
			_, then := check.Text([]byte(doc.String()), o)
			after := 0
			for _, e := range then.Diagnostics {
				if finding(e) == finding(d) {
					after++
				}
			}
			if after >= before[finding(d)] {
				t.Fatalf("%s\nthe advice of %s gives\n%s\nwith %v", text, d, doc, then.Diagnostics)
			}
		}
	})
}

func TestEveryReportIsSound(t *testing.T) {
	o := check.Options{Catalogue: catalogue(t, []byte(propertyTools))}
	rapid.Check(t, func(t *rapid.T) {
		text := faulty(t)
		p, r := check.Text([]byte(text), o)
		if _, again := check.Text([]byte(text), o); !cmp.Equal(told(r), told(again)) {
			t.Errorf("%s\ntwo checks differ (-first +second):\n%s", text, cmp.Diff(told(r), told(again)))
		}
		errors, at := 0, check.Diagnostic{}
		for _, d := range r.Diagnostics {
			if d.Severity == check.Error {
				errors++
			}
			if d.Line < at.Line || d.Line == at.Line && d.Column < at.Column {
				t.Errorf("%s\n%s stands after %s", text, d, at)
			}
			if _, ok := value.MustParse(text).AtPointer(d.Pointer); !ok {
				t.Errorf("%s\n%s points to nothing: %s", text, d, d.Pointer)
			}
			at = d
		}
		if r.OK != (errors == 0) {
			t.Errorf("%s\nok is %v with %d errors", text, r.OK, errors)
		}
		if p == nil {
			return
		}
		// Every step is in a wave or never runs.
		in := make(map[string]bool)
		for _, w := range r.Waves {
			for _, id := range w {
				in[id] = true
			}
		}
		for _, s := range p.Steps {
			never := false
			for _, d := range r.Diagnostics {
				never = never || d.Code == check.NeverRuns && d.Step == s.ID
			}
			if in[s.ID] == never {
				t.Errorf("%s\nstep %s: in a wave %v, never runs %v", text, s.ID, in[s.ID], never)
			}
		}
		if r.Calls.Min > r.Calls.Max {
			t.Errorf("%s\nfrom %d to %d calls", text, r.Calls.Min, r.Calls.Max)
		}
	})
}

func TestFixNeverMakesWorse(t *testing.T) {
	o := check.Options{Catalogue: catalogue(t, []byte(propertyTools))}
	rapid.Check(t, func(t *rapid.T) {
		text := faulty(t)
		_, was := check.Text([]byte(text), o)
		f := check.Fix([]byte(text), o)
		if f.Report.Count(check.Error) > was.Count(check.Error) {
			t.Errorf("%s\nhad %d errors, fixed it has %d:\n%s\n%s", text, was.Count(check.Error), f.Report.Count(check.Error), f.Text, told(f.Report))
		}
		if _, is := check.Text(f.Text, o); told(is) != told(f.Report) {
			t.Errorf("%s\nthe report is of another text", text)
		}
		if len(f.Changes) == 0 && string(f.Text) != text {
			t.Errorf("%s\nno changes, and another text:\n%s", text, f.Text)
		}
	})
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{
		`[]`, `{"steps":[{"id":"a","tool":"search","args":{"query":"$a.x"},"after":["b","b"]}],"budget":0}`,
		`[{"id":"a","tool":"t","args":{"x":"${b} $a {{a}} #E1 <node-0>"}},{"id":"b","tool":"fetch","args":{"doc":"%{a%}"}}]`,
		`[{"id":"ѕ1","Tool":"t","after":"x"}]`, `[{"id":"a","tool":"t","args":{"x":"$aa.b.c"}},{"id":"a.b","tool":"t","args":{"x":"#E1[0].x"}}]`,
	} {
		f.Add(seed)
	}
	o := check.Options{Catalogue: catalogue(f, []byte(propertyTools))}
	f.Fuzz(func(t *testing.T, text string) {
		p, r := check.Text([]byte(text), o)
		if p == nil && r.OK {
			t.Errorf("%q is refused and ok", text)
		}
		for _, d := range r.Diagnostics {
			if d.Line < 1 || d.Column < 1 || d.Message == "" {
				t.Errorf("%q: %+v", text, d)
			}
			if len(d.Advice) > 0 {
				if _, err := d.Advice.Apply(value.MustParse(text)); err != nil {
					t.Errorf("%q: the advice of %s: %v", text, d, err)
				}
			}
		}
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if fixed := check.Fix([]byte(text), o); fixed.Report.Count(check.Error) > r.Count(check.Error) {
			t.Errorf("%q: fixed to %q", text, fixed.Text)
		}
	})
}
