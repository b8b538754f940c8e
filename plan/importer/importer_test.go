package importer_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/plan/importer"
	"github.com/callsheet/callsheet/value"
)

func TestImport(t *testing.T) {
	for _, c := range []struct{ name, format, text, want string }{
		{"references", "nestful", `[{"name":"multiply","label":"$var_1","arguments":{"arg_0":49,"arg_1":1.0}},{"name":"divide","label":"$var_2","arguments":{"arg_0":"$var_1.result$","arg_1":["$var_1$","$var_1.items[0].id$","$var_1[2]$"]}}]`,
			`[{"id":"var_1","tool":"multiply","args":{"arg_0":49,"arg_1":1.0}},{"id":"var_2","tool":"divide","args":{"arg_0":"$var_1.result","arg_1":["$var_1","$var_1.items.0.id","$var_1.2"]}}]`},
		{"literals", "nestful", `[{"name":"t","label":"$a","arguments":{"x":"$a","y":"$5 off","z":"$5$","p":"costs $5","$a$":"$","q":"${x}"}}]`,
			`[{"id":"a","tool":"t","args":{"x":"$$a","y":"$$5 off","z":"$$5$","p":"costs $5","$a$":"$$","q":"$${x}"}}]`},
		{"without labels", "nestful", `[{"name":"t","arguments":{}},{"name":"t","label":"$call_1","arguments":{}},{"name":"t","label":null,"arguments":{}}]`,
			`[{"id":"call_2","tool":"t","args":{}},{"id":"call_1","tool":"t","args":{}},{"id":"call_3","tool":"t","args":{}}]`},
		{"a sample", "nestful", `{"sample_id":"x","output":"[{\"name\":\"t\",\"label\":\"$a\",\"arguments\":{}}]"}`,
			`[{"id":"a","tool":"t","args":{}}]`},
		{"nothing", "nestful", `[]`, `[]`},
		{"the longest label", "nestful", `[{"name":"t","label":"$a","arguments":{}},{"name":"t","label":"$a.b","arguments":{"x":"$a.b.c$","y":"$a.c$"}}]`,
			`[{"id":"a","tool":"t","args":{}},{"id":"a.b","tool":"t","args":{"x":"$a.b.c","y":"$a.c"}}]`},

		{"a message", "openai", `{"role":"assistant","content":null,"tool_calls":[{"id":"call_A1","type":"function","function":{"name":"search","arguments":"{\"query\": \"$5\", \"n\": 9007199254740993}"}},{"id":"call_B2","type":"function","function":{"name":"now","arguments":""}}]}`,
			`[{"id":"call_A1","tool":"search","args":{"query":"$$5","n":9007199254740993}},{"id":"call_B2","tool":"now","args":{}}]`},
		{"a response", "openai", `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{"x":["$call_1"]}}}]},"finish_reason":"tool_calls"}]}`,
			`[{"id":"a","tool":"f","args":{"x":["$$call_1"]}}]`},
		{"messages", "openai", `[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}]`,
			`[{"id":"call_1","tool":"f","args":{}}]`},
		{"ids that are none of ours", "openai", `{"messages":[{"role":"assistant","tool_calls":[{"id":"functions.f:0","function":{"name":"f","arguments":"{}"}},{"id":"","function":{"name":"f","arguments":"{}"}}]}]}`,
			`[{"id":"call_1","tool":"f","args":{}},{"id":"call_2","tool":"f","args":{}}]`},
	} {
		t.Run(c.format+" "+c.name, func(t *testing.T) {
			got, err := importer.Import(c.format, []byte(c.text), plan.Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, value.MustParse(string(got)).String()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.text, diff)
			}
		})
	}
}

func TestImportRefuses(t *testing.T) {
	call := func(args string) string { return `[{"name":"t","label":"$a","arguments":` + args + `}]` }
	openai := func(call string) string { return `{"role":"assistant","tool_calls":[` + call + `]}` }
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	for _, c := range []struct{ format, text, at, message string }{
		{"nestful", `{`, "", "line 1, column 2"},
		{"nestful", `{"a":1,"a":2}`, "/a", "twice"},
		{"nestful", `3`, "", "a list of calls"},
		{"nestful", `{"output":"[1"}`, "/output", "not JSON"},
		{"nestful", `{"output":[1]}`, "/output/0", "object"},
		{"nestful", `[{"label":"$a","arguments":{}}]`, "/0", `no "name"`},
		{"nestful", `[{"name":"","arguments":{}}]`, "/0/name", "empty"},
		{"nestful", `[{"name":"t","label":"$a b","arguments":{}}]`, "/0/label", "letters"},
		{"nestful", `[{"name":"t","label":3,"arguments":{}}]`, "/0/label", "empty"},
		{"nestful", `[{"name":"t","label":"$a"}]`, "/0", "arguments"},
		{"nestful", `[{"name":"t","label":"$a","arguments":{}},{"name":"t","label":"$A","arguments":{}}]`, "/1", "also that of /0"},
		{"nestful", call(`{"x":["$b.result$"]}`), "/0/arguments/x/0", "no call has"},
		{"nestful", call(`{"x/y":"sum of $a.result$"}`), "/0/arguments/x~1y", "whole string"},
		{"nestful", call(`{"x":"$a..b$"}`), "/0/arguments/x", "path"},
		{"nestful", call(`{"x":"$a[01]$"}`), "/0/arguments/x", "path"},
		{"nestful", call(`{"x":` + deep + `}`), "/0", "deep"},
		{"openai", `"hi"`, "", "object"},
		{"openai", `[]`, "", "no messages"},
		{"openai", `{"choices":[]}`, "/choices", "one choice"},
		{"openai", `{"choices":[{}]}`, "/choices/0", "no message"},
		{"openai", `{"role":"user","tool_calls":[]}`, "/role", "assistant"},
		{"openai", `{"role":"assistant","content":"done"}`, "", "no tool calls"},
		{"openai", `[{"role":"tool"}]`, "/0/role", "assistant"},
		{"openai", openai(`3`), "/tool_calls/0", "object"},
		{"openai", openai(`{"type":"custom"}`), "/tool_calls/0/type", "functions"},
		{"openai", openai(`{"id":"a"}`), "/tool_calls/0", `no "function"`},
		{"openai", openai(`{"function":{"name":"f"}}`), "/tool_calls/0/function", "arguments"},
		{"openai", openai(`{"function":{"name":"f","arguments":"{"}}`), "/tool_calls/0/function/arguments", "not JSON"},
		{"openai", openai(`{"function":{"name":"f","arguments":"{\"a\":1,\"a\":2}"}}`), "/tool_calls/0/function/arguments", "twice"},
		{"openai", openai(`{"function":{"name":"f","arguments":"[]"}}`), "/tool_calls/0/function/arguments", "object"},
		{"openai", openai(`{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"a","function":{"name":"f","arguments":"{}"}}`), "/tool_calls/1", "also that of"},
	} {
		doc, err := importer.Import(c.format, []byte(c.text), plan.Limits{})
		var refused *importer.Error
		if !errors.As(err, &refused) || doc != nil {
			t.Errorf("%s %s: got %q, %v; want it refused", c.format, c.text, doc, err)
			continue
		}
		if refused.Pointer != c.at || refused.Format != c.format || !strings.Contains(refused.Message, c.message) {
			t.Errorf("%s %s: refused %q at %q, want %q at %q", c.format, c.text, refused.Message, refused.Pointer, c.message, c.at)
		}
	}
	if _, err := importer.Import("yaml", nil, plan.Limits{}); err == nil || !strings.Contains(err.Error(), "nestful, openai") {
		t.Errorf("an unknown format: %v", err)
	}
	two := `[{"name":"f","label":"$a","arguments":{}},{"name":"f","label":"$b","arguments":{}}]`
	for limits, want := range map[plan.Limits]string{{Bytes: 10}: "at most 10 are read", {Steps: 1}: "makes no plan", {Depth: -1}: "Limits.Depth is -1"} {
		if doc, err := importer.Import("nestful", []byte(two), limits); doc != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: got %q, %v; want %q", limits, doc, err, want)
		}
	}
}

// The gold plans of NESTFUL, written back in its own format, are imported as the
// plans that they were converted to.
func TestNestfulDataComesBack(t *testing.T) {
	text, err := os.ReadFile("../../testdata/nestful/plans.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range lines {
		doc, _ := value.MustParse(line).Get("plan")
		want, err := plan.Decode([]byte(doc.String()), plan.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		var calls []value.Value
		for _, s := range want.Steps {
			fill := make([]value.Value, len(s.Refs))
			for i, r := range s.Refs {
				fill[i] = value.MustText(r.Text + "$")
			}
			calls = append(calls, value.ObjectOf(
				value.Member{Key: "name", Value: value.MustText(s.Tool)},
				value.Member{Key: "label", Value: value.MustText("$" + s.ID)},
				value.Member{Key: "arguments", Value: s.Template.Fill(fill)}))
		}
		list := value.ListOf(calls...).String()
		back, err := importer.Import("nestful", []byte(list), plan.Limits{})
		if err != nil {
			t.Errorf("%s: %v", list, err)
			continue
		}
		if got, err := plan.Decode(back, plan.Limits{}); err != nil || got.Digest() != want.Digest() {
			t.Errorf("%s\nbecame %s\nwant   %s (%v)", list, back, doc, err)
		}
	}
	if len(lines) != 216 {
		t.Errorf("%d plans, want 216", len(lines))
	}
}

// Whatever the args of a tool call are, the plan resolves to just these.
func TestOpenAIArgsAreThemselves(t *testing.T) {
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[$]{0,3}(call_1)?[.{ x]{0,3}`))
	rapid.Check(t, func(t *rapid.T) {
		args := value.ObjectOf(
			value.Member{Key: "a", Value: value.MustText(text.Draw(t, "a"))},
			value.Member{Key: text.Draw(t, "key") + "b", Value: value.ListOf(value.MustText(text.Draw(t, "b")), value.Int(1))},
		)
		message := fmt.Sprintf(`{"tool_calls":[{"function":{"name":"f","arguments":%s}}]}`, value.MustText(args.String()))
		doc, err := importer.Import("openai", []byte(message), plan.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := plan.Decode(doc, plan.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		s := p.Steps[0]
		if len(s.Refs) > 0 || s.Template.Fill(nil).String() != args.String() {
			t.Errorf("%s became %s, which resolves to %s", args, doc, s.Template.Fill(nil))
		}
	})
}

func FuzzImport(f *testing.F) {
	for _, seed := range []string{
		`[{"name":"t","label":"$a","arguments":{"x":"$a.b[0]$","y":"$a"}}]`, `{"output":"[]"}`,
		`{"choices":[{"message":{"tool_calls":[{"id":"x","function":{"name":"f","arguments":"{\"a\":\"$x\"}"}}]}}]}`,
		`[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":""}}]}]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, format := range importer.Formats() {
			doc, err := importer.Import(format.Name, []byte(text), plan.Limits{})
			if err != nil {
				var refused *importer.Error
				if !errors.As(err, &refused) || refused.Message == "" {
					t.Errorf("%s %q: %v", format.Name, text, err)
				}
				continue
			}
			p, err := plan.Decode(doc, plan.Limits{})
			if err != nil {
				t.Fatalf("%s %q became %q: %v", format.Name, text, doc, err)
			}
			for _, s := range p.Steps {
				for _, r := range s.Refs {
					if r.Step < 0 || format.Name == "openai" {
						t.Errorf("%s %q became %q, with the reference %q", format.Name, text, doc, r.Text)
					}
				}
			}
		}
	})
}
