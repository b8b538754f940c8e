package anthropic

import (
	"strings"
	"testing"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/modeltest"
	"github.com/callsheet/callsheet/value"
)

// A call without id and input gets both, and nothing else is touched.
func TestCallWithoutItsParts(t *testing.T) {
	r, err := readWhole(strings.NewReader(`{"content":[ {"type":"tool_use","name":"x"} ]}`), 2, 64)
	if err != nil {
		t.Fatal(err)
	}
	if want := `[ {"id":"call_2_1","input":{},"type":"tool_use","name":"x"} ]`; string(r.Raw) != want || len(r.Edits) != 2 {
		t.Errorf("got %s (%q), want %s", r.Raw, r.Edits, want)
	}
}

// Whatever the API sends, it is an error or a reply whose content can go back.
func FuzzReply(f *testing.F) {
	for _, s := range []string{
		`{"content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1}}`,
		`{"content":[{"type":"tool_use","name":"x"},{"type":"tool_use","id":null,"name":"x","input":null},{"type":"tool_use","id":"a","input":{}}]}`,
		`{"content":[]}`, `{"content":[{"type":"text","text":" "}]}`, `{"content":[1]}`,
		"data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"x\",\"input\":{}}}\n\n" +
			"data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"partial_json\":\"{\"}}\n\n" +
			"data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for way, read := range map[string]func() (*model.Reply, error){
			"whole":  func() (*model.Reply, error) { return readWhole(strings.NewReader(body), 2, 64) },
			"stream": func() (*model.Reply, error) { return readStream(func(string) {})(strings.NewReader(body), 2, 64) },
		} {
			r, err := read()
			if err != nil {
				continue
			}
			modeltest.CheckReply(t, way, r)
			if v, err := value.Parse(r.Raw); err == nil && (v.Kind() != value.List || v.Len() == 0) {
				t.Errorf("%s: goes back as %s", way, r.Raw)
			}
		}
	})
}
