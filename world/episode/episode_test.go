package episode

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestLedgerIDs(t *testing.T) {
	rec, err := Read(t.Context(), []string{"testdata/ledger_trace.txt"}, Options{})
	if err != nil || len(rec.Faults) > 0 {
		t.Fatal(err, rec.Faults)
	}
	got := []string{rec.Sources[0].ID, rec.Episodes[0].ID}
	for _, e := range rec.Episodes[0].Events {
		got = append(got, e.ID)
	}
	for _, s := range rec.Slices {
		got = append(got, s.ID)
	}
	want := []string{"src_a02cca05aadb94dfc481eab590d8443b027c724188264e7e6868c0540ad424d9", "ep_f7ca7eb6c2d0d270",
		"evt_948d3863a7859a65", "evt_caff87113fad5bfa", "evt_6a35fe7331715d71", "evt_ab4dec817329eed3", "evt_d75ca89100337fdc", "evt_b1d3292b7b161f31",
		"tr_fdaae2861b24cf4b", "tr_7fc6d53440c0ba6e"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	a, ok := ReadAction(rec.Slices[0].ActionOf(&rec.Episodes[0]))
	if !ok || a.Type != "deposit" || a.Arguments.String() != `{"amount":20}` {
		t.Errorf("action = %+v, %v", a, ok)
	}
}

// The ids were worked out in Python from the format's recipe.
func TestIDsOfDocuments(t *testing.T) {
	eps, err := Parse("x.json", []byte(`[{"id":7,"role":"assistant","content":"é😀\u2028","x":[1.0,1E2,9007199254740993,true,null]},{"z":1,"a":{"c":2,"b":0.1}}]`))
	if err != nil {
		t.Fatal(err)
	}
	got := []string{eps[0].ID, eps[0].Events[0].ID, eps[0].Events[1].ID}
	if d := cmp.Diff([]string{"ep_336d5c3ad2ba660d", "evt_8541c106f24e7438", "evt_cb65fd9f00ae947b"}, got); d != "" {
		t.Error(d)
	}
}

// shape is an episode in short: actor/kind of each event, then for each slice
// its alignment, the indexes of its results, and what is ambiguous.
func shape(e *Episode) string {
	var b strings.Builder
	at := map[string]int{}
	for i, ev := range e.Events {
		at[ev.ID] = i
		fmt.Fprintf(&b, "%s/%s ", ev.Actor, ev.Kind)
	}
	for _, s := range Segment(e, MaxHistory) {
		b.WriteString("| ")
		fmt.Fprintf(&b, "%d %s", at[s.Actions[0]], s.Alignment)
		for _, r := range s.Results {
			fmt.Fprintf(&b, " %d", at[r])
		}
		if len(s.Concurrent) > 0 {
			b.WriteString(" with")
			for _, c := range s.Concurrent {
				fmt.Fprintf(&b, " %d", at[c])
			}
		}
		b.WriteString(" ")
	}
	return strings.TrimSpace(b.String())
}

func TestFormatsAndPairing(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"a.txt", "hello\nworld", "unknown/message"},
		{"a.txt", "USER : hi\nAction: {\"type\":\"a\"}\nmore\nError: no\n", "user/message agent/action unknown/error | 1 sequential 2"},
		{"pair.json", `{"action":{"type":"a"},"observation":"ok"}`, "agent/action environment/observation | 0 sequential 1"},
		{"list.json", `[{"action":"a","tool_result":1},{"action":"b"}]`, "agent/action environment/observation unknown/action | 0 sequential 1 | 2 ambiguous"},
		{"openai.json", `{"messages":[{"role":"user","content":"go"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"a","arguments":"{}"}},{"id":"2","function":{"name":"b","arguments":"{\"x\":1}"}}]},{"role":"tool","tool_call_id":"2","content":"two"},{"role":"tool","tool_call_id":"1","content":"one"}]}`,
			"user/message agent/action agent/action tool/observation tool/observation | 1 correlated 4 with 2 | 2 correlated 3 with 1"},
		{"noids.json", `[{"role":"assistant","tool_calls":[{"name":"a"},{"name":"b"}]},{"role":"tool","content":"?"}]`,
			"agent/action agent/action tool/observation | 0 ambiguous | 1 ambiguous"},
		{"dup.json", `[{"kind":"action","call_id":"1","content":1},{"kind":"action","call_id":"1","content":2},{"kind":"result","call_id":"1","content":3}]`,
			"unknown/action unknown/action unknown/observation | 0 ambiguous | 1 ambiguous with 0"},
		{"lines.jsonl", "{\"role\":\"agent\",\"content\":\"tool: x\",\"episode_id\":1}\n\n{\"role\":\"environment\",\"content\":\"y\",\"episode_id\":1}\n", "agent/action environment/observation | 0 sequential 1"},
		{"mcp.jsonl", `{"time":"2026-01-02T03:04:05Z","direction":"out","message":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}}
{"message":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"x"}}}
{"message":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"p":"a"}}}}
{"message":{"jsonrpc":"2.0","id":"1","result":{"content":[]}}}
{"message":{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"A"}],"isError":true}}}`,
			"unknown/meta unknown/meta agent/action tool/observation tool/error | 2 correlated 4"},
	} {
		eps, err := Parse(c.name, []byte(c.in))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := shape(&eps[0]); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestABadFileIsNamedWithItsLineAndTheOthersGoOn(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{"a.jsonl": "{\"role\":\"user\",\"content\":\"x\"}\n{\"a\":1,\"a\":2}\n", "b.json": "{\"messages\":\n[1,", "c.txt": "User: ok\nx\xff",
		"d.txt": "Action: a\nObservation: b", "e.json": `{"events":"no"}`}
	var names []string
	for name, text := range files {
		names = append(names, filepath.Join(dir, name))
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	names = append(names, filepath.Join(dir, "none.txt"), dir)
	slices.Sort(names)
	var last Progress
	rec, err := Read(t.Context(), names, Options{Progress: func(p Progress) { last = p }})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range rec.Faults {
		rel, _ := filepath.Rel(dir, f.File)
		got = append(got, fmt.Sprintf("%s:%d", rel, f.Line))
	}
	if d := cmp.Diff([]string{".:0", "a.jsonl:2", "b.json:2", "c.txt:2", "e.json:0", "none.txt:0"}, got); d != "" {
		t.Errorf("faults (-want +got):\n%s", d)
	}
	if len(rec.Episodes) != 1 || len(rec.Slices) != 1 || last.Files != len(names) || last.Transitions != 1 {
		t.Errorf("episodes %d, slices %d, progress %+v", len(rec.Episodes), len(rec.Slices), last)
	}
}

func TestHostile093_SecretsAreRedactedOnTheWayIn(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "t.json")
	text := `[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"login","arguments":"{\"password\":\"hun\\\"ter2\"}"}}]},{"role":"tool","tool_call_id":"1","content":"hello hun\"ter2, key sk-abc123"}]`
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	catalogue, err := tool.NewCatalogue(&tool.Declaration{Name: "login", Args: []tool.Arg{{Pattern: "/password", Role: tool.Secret}}})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := Read(t.Context(), []string{name}, Options{
		Redact:  []*regexp.Regexp{regexp.MustCompile(`sk-[a-z0-9]+`)},
		Secrets: Secrets(catalogue),
	})
	if err != nil || len(rec.Faults) > 0 {
		t.Fatal(err, rec.Faults)
	}
	var all strings.Builder
	all.WriteString(rec.Sources[0].Text)
	if err := world.WriteLines(&all, rec.Episodes); err != nil {
		t.Fatal(err)
	}
	for _, canary := range []string{"hun", "ter2", "sk-abc"} {
		if strings.Contains(all.String(), canary) {
			t.Errorf("%q is still there: %s", canary, all.String())
		}
	}
	if got := rec.Sources[0].ID; got != SourceID([]byte(rec.Sources[0].Text)) {
		t.Errorf("source id %s is not that of the redacted text", got)
	}
}

type exported map[string]string

func (x exported) Export(_ context.Context, yield func(string, value.Value) error) error {
	for name, text := range x {
		if err := yield(name, value.MustParse(text)); err != nil {
			return err
		}
	}
	return nil
}

func TestAShortSecretRefusesTheFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "t.txt")
	if err := os.WriteFile(name, []byte(`Action: {"type":"login","arguments":{"pin":{"a":[123]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	catalogue, err := tool.NewCatalogue(&tool.Declaration{Name: "login", Args: []tool.Arg{{Pattern: "/pin", Role: tool.Secret}}})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := Read(t.Context(), []string{name}, Options{Secrets: Secrets(catalogue)})
	if err != nil || len(rec.Faults) != 1 || len(rec.Episodes) != 0 || strings.Contains(rec.Faults[0].Reason, "123") {
		t.Errorf("got %+v, %v", rec, err)
	}
}

func TestReadFromAnExporter(t *testing.T) {
	rec, err := ReadFrom(t.Context(), exported{"run-1": `{"events":[{"action":{"type":"a"},"observation":"b"}]}`}, Options{})
	if err != nil || len(rec.Episodes) != 1 || len(rec.Slices) != 1 {
		t.Fatalf("got %+v, %v", rec, err)
	}
}

func TestEpisodesAreReadBackAsWritten(t *testing.T) {
	eps, err := Parse("x.json", []byte(`[{"role":"agent","kind":"action","content":{"n":9007199254740993,"f":1.0},"timestamp":1700000000},{"role":"tool","content":"é"}]`))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := world.WriteLines(&b, eps); err != nil {
		t.Fatal(err)
	}
	again, err := world.ReadLines[Episode]([]byte(b.String()))
	if err != nil {
		t.Fatal(err)
	}
	var c strings.Builder
	if err := world.WriteLines(&c, again); err != nil || b.String() != c.String() {
		t.Errorf("%v\n%s\n%s", err, b.String(), c.String())
	}
	if !strings.Contains(b.String(), `"n": 9007199254740993, "f": 1.0`) || !strings.Contains(b.String(), "2023-11-14T22:13:20Z") {
		t.Error(b.String())
	}
}

// Each result belongs to at most one action unless two actions carry the same
// call id, and never to one that came after it.
func TestPairingNeverGuesses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var items []string
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			id := rapid.SampledFrom([]string{"", `,"call_id":"1"`, `,"call_id":"2"`, `,"call_id":3`}).Draw(t, "id")
			kind := rapid.SampledFrom([]string{"action", "observation", "message"}).Draw(t, "kind")
			items = append(items, fmt.Sprintf(`{"kind":%q,"content":"c"%s}`, kind, id))
		}
		eps, err := Parse("x.json", []byte(`{"events":[`+strings.Join(items, ",")+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		at := map[string]int{}
		for i, e := range eps[0].Events {
			at[e.ID] = i
		}
		owner := map[string]string{}
		for _, s := range Segment(&eps[0], 3) {
			for _, r := range s.Results {
				if owner[r] != "" {
					t.Fatalf("%s belongs to %s and %s", r, owner[r], s.ID)
				}
				owner[r] = s.ID
				if at[r] <= at[s.Actions[0]] {
					t.Fatalf("a result before its action")
				}
			}
			if (len(s.Results) == 0) != (s.Alignment == Ambiguous) || len(s.Ambiguities) == 0 && s.Alignment == Ambiguous {
				t.Fatalf("alignment %s with %d results", s.Alignment, len(s.Results))
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"Action: a\nObservation: b", `[{"tool_calls":[{"id":1}]}]`, `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, "{}\n[]\n1", `{"episodes":[[],null]}`} {
		f.Add("a.txt", []byte(s))
		f.Add("a.json", []byte(s))
		f.Add("a.jsonl", []byte(s))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		eps, err := Parse(name, data)
		if err != nil {
			if _, ok := err.(*Fault); !ok {
				t.Fatalf("error of type %T", err)
			}
			return
		}
		for i := range eps {
			for _, s := range Segment(&eps[i], 2) {
				ReadAction(s.ActionOf(&eps[i]))
			}
		}
	})
}

func trace(size int) []byte {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, `{"role":"assistant","content":null,"episode_id":"e%d","tool_calls":[{"id":"c%d","type":"function","function":{"name":"get_order_details","arguments":"{\"order_id\":\"#W%d\"}"}}]}`+"\n", i/20, i, i)
		fmt.Fprintf(&b, `{"role":"tool","episode_id":"e%d","tool_call_id":"c%d","content":%q}`+"\n", i/20, i, strings.Repeat(fmt.Sprintf("order %d is on its way to the customer; ", i), 30))
	}
	return []byte(b.String())
}

func BenchmarkRead(b *testing.B) {
	name := filepath.Join(b.TempDir(), "t.jsonl")
	data := trace(32 << 20)
	if err := os.WriteFile(name, data, 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		rec, err := Read(context.Background(), []string{name}, Options{})
		if err != nil || len(rec.Faults) > 0 {
			b.Fatal(err, rec.Faults)
		}
	}
}
