package episode

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/world"
)

// A secret may be spelled in many ways; what a recording says must hold none, and
// what is not secret stays.
func TestHostile093_HoweverASecretIsSpelled(t *testing.T) {
	catalogue, err := tool.NewCatalogue(&tool.Declaration{Name: "login", Args: []tool.Arg{{Pattern: "/p", Role: tool.Secret}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, file, text, secret string }{
		{"escapes of all but ASCII", "a.jsonl", `{"action":{"type":"login","arguments":{"p":"p\u00e4ssw\u00f6rd-9"}},"observation":"hello p\u00e4ssw\u00f6rd-9"}`, "pässwörd-9"},
		{"a slash", "a.jsonl", `{"action":{"type":"login","arguments":{"p":"ab\/cd-secret"}},"observation":"hello ab/cd-secret"}`, "ab/cd-secret"},
		{"one escape only where it comes back", "a.jsonl", `{"action":{"type":"login","arguments":{"p":"hunter2secret"}},"observation":"hello hunter2s\u0065cret"}`, "hunter2secret"},
		{"JSON inside JSON", "a.json", `[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"login","arguments":"{\"p\":\"hunter2\\u003csecret\"}"}}]},{"role":"tool","tool_call_id":"1","content":"hello {\"p\":\"hunter2\\u003csecret\"}"}]`, "hunter2<secret"},
		{"base64", "a.jsonl", `{"action":{"type":"login","arguments":{"p":"hunter2secret"}},"observation":"hello ` + base64.StdEncoding.EncodeToString([]byte("hunter2secret")) + `"}`, base64.RawStdEncoding.EncodeToString([]byte("hunter2secret"))[:12]},
		{"a number", "a.jsonl", `{"action":{"type":"login","arguments":{"p":48151623}},"observation":{"hello":48151623}}`, "48151623"},
		{"text with roles", "a.txt", "Action: {\"type\":\"login\",\"arguments\":{\"p\":\"p\\u00e4ssw\\u00f6rd-9\"}}\nObservation: hello p\\u00e4ssw\\u00f6rd-9 and \"p\\u00e4ssw\\u00f6rd-9\"\n", "pässwörd-9"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), tt.file)
			if err := os.WriteFile(file, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, o := range []Options{{Secrets: Secrets(catalogue)}, {Redact: []*regexp.Regexp{regexp.MustCompile(regexp.QuoteMeta(tt.secret))}}} {
				rec, err := Read(t.Context(), []string{file}, o)
				if err != nil || len(rec.Faults) > 0 || len(rec.Slices) != 1 {
					t.Fatal(err, rec.Faults, len(rec.Slices))
				}
				var all strings.Builder
				all.WriteString(rec.Sources[0].Text)
				if err := world.WriteLines(&all, rec.Episodes); err != nil {
					t.Fatal(err)
				}
				if strings.Contains(all.String(), tt.secret) {
					t.Errorf("the secret is still there: %s", all.String())
				}
				if !strings.Contains(all.String(), "hello") || !strings.Contains(all.String(), Redacted) {
					t.Errorf("nothing is there any more, or nothing was redacted: %s", all.String())
				}
			}
		})
	}
}

// What a mask does not touch stays as it is, byte for byte.
func TestRedactingLeavesTheRest(t *testing.T) {
	m := byValue([]string{"hunter2secret"})
	for _, text := range []string{`{"a":"\u00e4\/","n":[1e5,-0.0, 12],"s":"He said \"no\"\n"}`, `{"a":`, `"`, `"\`, "\"a\nb\"", `{"k":"\ud800"}`, ""} {
		for _, name := range []string{"x.json", "x.txt"} {
			if got := string(m.redact(name, []byte(text))); got != text {
				t.Errorf("%s %s became %s", name, text, got)
			}
		}
	}
	if got := string(m.redact("x.json", []byte(`{"a" : "\u00e4 hunter2s\u0065cret" , "b":"\u00e4"}`))); got != `{"a" : "ä [redacted]" , "b":"\u00e4"}` {
		t.Errorf("got %s", got)
	}
}
