package openai

import (
	"strings"
	"testing"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/modeltest"
	"github.com/callsheet/callsheet/value"
)

// A round sends the bytes that the rounds before it made: the cost of a long
// conversation is what it adds.
func TestMessagesAreWrittenOnce(t *testing.T) {
	m, err := New(Config{Model: "test-1"})
	if err != nil {
		t.Fatal(err)
	}
	req := &model.Request{Messages: []*model.Message{model.System("S"), model.User("U")}, Tools: []*model.Tool{{Name: "submit"}}}
	first, _, err := m.encode(req, model.ForcesByName)
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, model.User("more"))
	second, _, err := m.encode(req, model.ForcesByName)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{1, 3} { // 0 is the head, 2 a comma
		if &first[i][0] != &second[i][0] {
			t.Errorf("segment %d was written again: %s", i, second[i])
		}
	}
}

// Whatever a server sends, it is an error or a reply whose message can go back.
func FuzzReply(f *testing.F) {
	for _, s := range []string{
		`{"choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`,
		`{"choices":[{"message":{"tool_calls":[{"function":{"name":"x","arguments":"{"}},{"id":null,"function":{"name":"x"}},{"id":"a","function":{"arguments":{}}}]}}]}`,
		`{"choices":[{"message":{"content":[{"type":"text","text":"a"}],"content":null}}]}`, `{"error":{"code":429}}`, `{"choices":[{}]}`,
		"data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":1,\"id\":\"a\",\"function\":{\"name\":\"x\",\"arguments\":\"{}\"}}]}}]}\n\ndata: [DONE]\n\n",
		"data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: {\"choices\":[],\"usage\":{}}\n\n",
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
			raw, err := message(r.Message())
			if err != nil {
				t.Errorf("%s: %v", way, err)
			}
			if v, err := value.Parse(raw); err == nil && v.Kind() != value.Object {
				t.Errorf("%s: goes back as %s", way, raw)
			}
		}
	})
}
