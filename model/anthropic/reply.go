package anthropic

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/internal/rawjson"
	"github.com/callsheet/callsheet/value"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// response is as much of a message as the adapter reads.
type response struct {
	Content    jsontext.Value `json:"content"`
	StopReason string         `json:"stop_reason"`
	Usage      usage          `json:"usage"`
}

// usage counts what was read from and written to the provider's cache as part
// of the prompt: it was sent and paid for.
type usage struct {
	Input   *int `json:"input_tokens"`
	Written *int `json:"cache_creation_input_tokens"`
	Cached  *int `json:"cache_read_input_tokens"`
	Output  *int `json:"output_tokens"`
}

func (u usage) tokens() model.Usage {
	t := model.Usage{Completion: u.Output}
	if u.Input != nil {
		sum := *u.Input
		for _, n := range []*int{u.Written, u.Cached} {
			if n != nil {
				sum += *n
			}
		}
		t.Prompt = &sum
	}
	return t
}

func readWhole(body io.Reader, round, limit int) (*model.Reply, error) {
	var r response
	if err := json.UnmarshalRead(body, &r, rawjson.Lenient); err != nil {
		return nil, err
	}
	if r.Content.Kind() != '[' {
		return nil, fmt.Errorf("the response holds no list of content")
	}
	return reply(&r, nil, round, limit)
}

// reply makes a reply of a response. partial holds, by the index of their
// block, the arguments of calls that came in parts.
func reply(resp *response, partial map[int]string, round, limit int) (*model.Reply, error) {
	var blocks []struct {
		Type  string         `json:"type"`
		Text  *string        `json:"text"`
		ID    jsontext.Value `json:"id"`
		Name  string         `json:"name"`
		Input jsontext.Value `json:"input"`
	}
	if err := json.Unmarshal(resp.Content, &blocks, rawjson.Lenient); err != nil {
		return nil, fmt.Errorf("the content of the reply: %w", err)
	}
	r := &model.Reply{Raw: resp.Content, Dialect: Dialect, Reason: resp.StopReason, Usage: resp.Usage.tokens()}
	r.Finish = finishOf(resp.StopReason).Cut(r.Usage, limit)
	replace, insert := map[string]string{}, map[string]string{}
	var texts, edits []string
	var at []int // the block of each call
	for i, b := range blocks {
		switch b.Type {
		case "text":
			if b.Text == nil {
				continue
			}
			texts = append(texts, *b.Text)
			if back := notBlank(*b.Text); back != *b.Text {
				replace[fmt.Sprintf("/%d/text", i)] = value.MustText(back).String()
				edits = append(edits, fmt.Sprintf("the empty text of block %d goes back as %q", i+1, back))
			}
		case "tool_use":
			c := model.Call{Name: b.Name, ID: rawjson.Text(b.ID)}
			if text, ok := partial[i]; ok {
				c.Arguments = text
			} else if b.Input.Kind() != 'n' {
				c.Arguments = string(b.Input)
			}
			if text, ok := partial[i]; ok && !isObject(text) || !ok && b.Input.Kind() != '{' {
				back, err := sendable(c.Arguments)
				if err != nil {
					return nil, fmt.Errorf("the arguments of a call: %w", err)
				}
				if b.Input == nil {
					insert[fmt.Sprintf("/%d", i)] = `"input":` + back.String()
				} else if !ok {
					replace[fmt.Sprintf("/%d/input", i)] = back.String()
				}
				edits = append(edits, fmt.Sprintf("the arguments of call %d were no JSON object and go back as %.40s", len(r.Calls)+1, back))
			}
			r.Calls = append(r.Calls, c)
			at = append(at, i)
		}
	}
	r.Text = strings.Join(texts, "")
	r.Edits = append(model.FreshIDs(r.Calls, round), edits...)
	for n, c := range r.Calls {
		id := value.MustText(c.ID).String()
		switch sent := blocks[at[n]].ID; {
		case sent == nil:
			member := `"id":` + id
			if other := insert[fmt.Sprintf("/%d", at[n])]; other != "" {
				member += "," + other // its input
			}
			insert[fmt.Sprintf("/%d", at[n])] = member
		case rawjson.Text(sent) != c.ID:
			replace[fmt.Sprintf("/%d/id", at[n])] = id
		}
	}
	if len(blocks) == 0 {
		r.Raw = []byte(`[{"type":"text","text":"` + blank + `"}]`)
		r.Edits = append(r.Edits, "a message without content goes back as "+strconv.Quote(blank))
		return r, nil
	}
	if len(replace)+len(insert) > 0 {
		raw, err := rawjson.Edit(r.Raw, replace, insert)
		if err != nil {
			return nil, fmt.Errorf("the content of the reply: %w", err)
		}
		r.Raw = raw
	}
	return r, nil
}

// blank stands where the API sent no text and would not take none back.
const blank = "(empty)"

func notBlank(s string) string {
	if strings.TrimSpace(s) == "" {
		return blank
	}
	return s
}

func isObject(text string) bool {
	v, err := value.Parse(text)
	return err == nil && v.Kind() == value.Object
}

func finishOf(reason string) model.Finish {
	switch reason {
	case "end_turn", "stop_sequence":
		return model.FinishStop
	case "tool_use":
		return model.FinishCalls
	case "max_tokens", "model_context_window_exceeded":
		return model.FinishLength
	case "refusal":
		return model.FinishRefusal
	}
	return model.FinishOther
}
