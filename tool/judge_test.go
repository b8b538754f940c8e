package tool_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

func TestCheckArgs(t *testing.T) {
	mail := `{"type":"object","properties":{"to":{"type":"array","items":{"type":"string"}},"n":{"type":"integer"}},"required":["to"]}`
	for _, tt := range []struct {
		name, schema, allowed, args, want string
	}{
		{"no schema", "", "", `{"bcc":1}`, ""},
		{"fits", mail, "", `{"to":["a"],"n":1.0}`, ""},
		{"text for a list", mail, "", `{"to":"[\"a\"]"}`, `/to: property "to" is a string, the schema says array; send JSON directly, not text`},
		{"every fault", mail, "", `{"to":[1],"n":"x","bcc":2}`,
			`/bcc: the tool declares no arg "bcc"; it has "n", "to"; /n: property "n" is a string, the schema says integer; /to/0: item 0 is the number 1, the schema says string`},
		{"misspelt", mail, "", `{"too":[]}`, `/too: the tool declares no arg "too"; did you mean "to"?; missing property "to"`},
		{"allowed by the configuration", mail, "bcc", `{"to":[],"bcc":1}`, ""},
	} {
		d := &tool.Declaration{Name: "t"}
		if tt.schema != "" {
			d.Input = schema.MustCompile(tt.schema)
		}
		if tt.allowed != "" {
			d.Allowed = []string{tt.allowed}
		}
		got := ""
		if f := d.CheckArgs(value.MustParse(tt.args)); f != nil {
			got = f.Message
			if f.Code != tool.CodeInvalidArgs || f.Retryable {
				t.Errorf("%s: got %+v", tt.name, f)
			}
		}
		if got != tt.want {
			t.Errorf("%s: got\n%s, want\n%s", tt.name, got, tt.want)
		}
	}
}

func TestHostile021_GhostArgs(t *testing.T) {
	args := value.MustParse(`{"to":"a","bcc":"attacker"}`)
	for _, tt := range []struct {
		schema string
		ghost  bool
	}{
		{`{"properties":{"to":{}}}`, true},
		{`{"properties":{"to":{}},"additionalProperties":false}`, true},
		{`{"properties":{"to":{}},"additionalProperties":true}`, false},
		{`{"properties":{"to":{}},"unevaluatedProperties":true}`, false},
		{`{"type":"object"}`, false},
	} {
		d := &tool.Declaration{Name: "send", Input: schema.MustCompile(tt.schema)}
		if f := d.CheckArgs(args); (f != nil) != tt.ghost || f != nil && !strings.Contains(f.Message, `"bcc"`) {
			t.Errorf("%s: got %v, want refused %v", tt.schema, f, tt.ghost)
		}
	}
}

func TestCheckOutput(t *testing.T) {
	d := &tool.Declaration{Output: schema.MustCompile(`{"type":"object"}`), MaxOutput: 20}
	for _, tt := range []struct {
		out  value.Value
		code string
	}{
		{value.MustParse(`{}`), ""},
		{value.MustParse(`{"a":"12345678901234567890"}`), tool.CodeOutputTooLarge},
		{value.MustParse(`"x"`), tool.CodeInvalidOutput},
		{value.Value{}, tool.CodeInvalidOutput},
	} {
		code := ""
		if f := d.CheckOutput(tt.out); f != nil {
			code = f.Code
		}
		if code != tt.code {
			t.Errorf("%v: got %q, want %q", tt.out, code, tt.code)
		}
	}
	if f := new(tool.Declaration).CheckOutput(value.MustText(strings.Repeat("x", tool.DefaultMaxOutput))); f == nil || f.Code != tool.CodeOutputTooLarge {
		t.Errorf("the default cap: got %v", f)
	}
}

// A failure's message stays short, however many faults there are.
func TestCheckArgsMessageIsBounded(t *testing.T) {
	d := &tool.Declaration{Input: schema.MustCompile(`{"properties":{"a":{"items":{"type":"string"}}},"additionalProperties":false}`)}
	args := value.MustParse(`{"a":[` + strings.Repeat("1,", 10_000) + `1],"` + strings.Repeat("é", 10_000) + `":1}`)
	f := d.CheckArgs(args)
	if f == nil || len(f.Message) > tool.MaxMessage+len("…") {
		t.Fatalf("got %d bytes", len(f.Message))
	}
}

func BenchmarkCheckArgs(b *testing.B) {
	d := &tool.Declaration{Input: schema.MustCompile(`{"type":"object","properties":{"to":{"type":"array","items":{"type":"string"}},"n":{"type":"integer","minimum":1}},"required":["to"]}`)}
	args := value.MustParse(`{"to":["a@example.org","b@example.org"],"n":12}`)
	args.Get("to")
	b.ReportAllocs()
	for b.Loop() {
		if f := d.CheckArgs(args); f != nil {
			b.Fatal(f)
		}
	}
}

func TestManyUndeclaredArgsAreCounted(t *testing.T) {
	d := &tool.Declaration{Name: "t", Input: schema.MustCompile(`{"properties":{"to":{}}}`)}
	var args []value.Member
	for i := range 50_000 {
		args = append(args, value.Member{Key: fmt.Sprint("ghost", i), Value: value.Int(1)})
	}
	f := d.CheckArgs(value.ObjectOf(args...))
	if f == nil || strings.Count(f.Message, "declares no arg") != 10 || !strings.HasSuffix(f.Message, "; and 49990 more that it does not declare") {
		t.Errorf("got %v, want ten names and how many more", f)
	}
}

func TestRolesOfAFunctionAreOfItsArgs(t *testing.T) {
	type in struct {
		To string `json:"to"`
	}
	send := func(_ context.Context, in in) (string, error) { return in.To, nil }
	_, err := tool.Func("send", "", send, tool.Options{Args: []tool.Arg{{Pattern: "/too", Role: tool.Content}}})
	if want := `args: tool "send" has no arg /too; there is /to; did you mean /to?`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	_, err = tool.ReadCatalogue([]byte(`{"tools":[{"name":"send","inputSchema":{"type":"object","properties":{"to":{}}},"_meta":{"callsheet/tool":{"args":[{"pattern":"/too","role":"content"}]}}}]}`), "f")
	if err == nil || !strings.Contains(err.Error(), `did you mean /to?`) || !strings.Contains(err.Error(), "/args/0/pattern") {
		t.Errorf("a catalogue: %v", err)
	}
}
