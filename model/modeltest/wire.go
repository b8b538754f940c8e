package modeltest

import (
	"fmt"
	"strings"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/value"
)

// A Said is what a provider's model said, before its server writes it down.
type Said struct {
	Text       string
	Calls      []SaidCall
	Finish     model.Finish
	Prompt     *int // nil: the server reports no such number
	Completion *int
	// Extra are members that our adapters know nothing of, written into the
	// message: what must survive a round trip.
	Extra string
}

// A SaidCall is a call as the model wrote it.
type SaidCall struct {
	ID        *string // nil: the server sends none
	Name      string
	Arguments string
}

// A Dialect writes replies as one kind of server does, and refuses requests as
// it does.
type Dialect interface {
	// Whole is the body of a response in one piece; ok is false where the
	// dialect cannot say such a thing.
	Whole(s Said) (body string, ok bool)
	// Stream is the same as an event stream.
	Stream(s Said) string
	// Refuse is the message of the 400 that the server answers, "" if it takes
	// the request.
	Refuse(body value.Value) string
	// Raw is the part of a whole response that must come back byte for byte.
	Raw(body string) string
}

// OpenAI is the dialect of chat completions.
type OpenAI struct{}

var openAIFinish = map[model.Finish]string{
	model.FinishStop: "stop", model.FinishCalls: "tool_calls", model.FinishLength: "length",
	model.FinishFilter: "content_filter", model.FinishRefusal: "stop", model.FinishOther: "other",
}

func (OpenAI) message(s Said) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{ "role":"assistant",  "content":%s`, orNull(s.Text))
	if s.Finish == model.FinishRefusal {
		b.WriteString(`,"refusal":"I will not."`)
	}
	if s.Extra != "" {
		b.WriteString("," + s.Extra)
	}
	for i, c := range s.Calls {
		b.WriteString([]string{`,"tool_calls":[`, ","}[min(i, 1)])
		b.WriteString(`{`)
		if c.ID != nil {
			fmt.Fprintf(&b, `"id":%s,`, quote(*c.ID))
		}
		fmt.Fprintf(&b, `"type":"function","function":{"name":%s,"arguments":%s}}`, quote(c.Name), quote(c.Arguments))
	}
	if len(s.Calls) > 0 {
		b.WriteString("]")
	}
	return b.String() + "}"
}

// Whole writes a response in one piece.
func (d OpenAI) Whole(s Said) (string, bool) {
	return fmt.Sprintf(`{"id":"r1","object":"chat.completion","choices":[{"index":0,"message":%s,"finish_reason":%s}]%s}`,
		d.message(s), quote(openAIFinish[s.Finish]), openAIUsage(s)), true
}

func openAIUsage(s Said) string {
	if s.Prompt == nil && s.Completion == nil {
		return ""
	}
	return fmt.Sprintf(`,"usage":{"prompt_tokens":%s,"completion_tokens":%s}`, number(s.Prompt), number(s.Completion))
}

// Stream writes an event stream.
func (d OpenAI) Stream(s Said) string {
	var b strings.Builder
	delta := func(text string) {
		fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n", text)
	}
	delta(`{"role":"assistant","content":null}`)
	if s.Extra != "" {
		delta("{" + s.Extra + "}")
	}
	if s.Finish == model.FinishRefusal {
		delta(`{"refusal":"I will not."}`)
	}
	for _, part := range halves(s.Text) {
		delta(`{"content":` + quote(part) + `}`)
	}
	for i, c := range s.Calls {
		id := ""
		if c.ID != nil {
			id = `"id":` + quote(*c.ID) + `,`
		}
		delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,%s"type":"function","function":{"name":%s,"arguments":""}}]}`, i, id, quote(c.Name)))
		for _, part := range halves(c.Arguments) {
			delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quote(part)))
		}
	}
	fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%s}]}\n\n", quote(openAIFinish[s.Finish]))
	if u := openAIUsage(s); u != "" {
		fmt.Fprintf(&b, "data: {\"choices\":[]%s}\n\n", u)
	}
	return b.String() + "data: [DONE]\n\n"
}

// Raw is the assistant's message as the response holds it.
func (OpenAI) Raw(body string) string {
	from := strings.Index(body, `{ "role"`)
	return body[from:strings.Index(body, `,"finish_reason"`)]
}

// Refuse refuses what the real servers refuse.
func (OpenAI) Refuse(body value.Value) string {
	messages, _ := body.Get("messages")
	var open []string
	for i, m := range messages.Elements() {
		if text(m, "role") == "tool" {
			if len(open) == 0 || open[0] != text(m, "tool_call_id") {
				return fmt.Sprintf("messages.%d: a tool message must answer the next of the tool_calls before it", i)
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			return fmt.Sprintf("messages.%d: an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'", i)
		}
		calls, _ := m.Get("tool_calls")
		seen := map[string]bool{}
		for _, c := range calls.Elements() {
			id := text(c, "id")
			f, _ := c.Get("function")
			if _, err := value.Parse(text(f, "arguments")); err != nil {
				return fmt.Sprintf("messages.%d: arguments are no JSON: %v", i, err)
			}
			if id == "" || seen[id] {
				return fmt.Sprintf("messages.%d: the id %q is empty or stands twice", i, id)
			}
			seen[id] = true
			open = append(open, id)
		}
		if content, _ := m.Get("content"); content.Kind() != value.String && calls.Len() == 0 && text(m, "refusal") == "" {
			return fmt.Sprintf("messages.%d: content is missing", i)
		}
	}
	return ""
}

// Anthropic is the dialect of the messages API.
type Anthropic struct{}

var anthropicStop = map[model.Finish]string{
	model.FinishStop: "end_turn", model.FinishCalls: "tool_use", model.FinishLength: "max_tokens",
	model.FinishFilter: "refusal", model.FinishRefusal: "refusal", model.FinishOther: "pause_turn",
}

func (Anthropic) content(s Said, input func(SaidCall) string) string {
	var blocks []string
	if s.Extra != "" {
		blocks = append(blocks, "{"+s.Extra+"}")
	}
	if s.Text != "" {
		blocks = append(blocks, fmt.Sprintf(`{"type":"text",  "text":%s}`, quote(s.Text)))
	}
	for _, c := range s.Calls {
		id := ""
		if c.ID != nil {
			id = `"id":` + quote(*c.ID) + `,`
		}
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use",%s"name":%s,"input":%s}`, id, quote(c.Name), input(c)))
	}
	return "[ " + strings.Join(blocks, ", ") + " ]"
}

// Whole writes a response in one piece.
func (d Anthropic) Whole(s Said) (string, bool) {
	for _, c := range s.Calls {
		if _, err := value.Parse(c.Arguments); err != nil {
			return "", false // the server parses the model's text itself
		}
	}
	content := d.content(s, func(c SaidCall) string { return c.Arguments })
	return fmt.Sprintf(`{"type":"message","role":"assistant","content":%s,"stop_reason":%s%s}`,
		content, quote(anthropicStop[s.Finish]), anthropicUsage(s)), true
}

func anthropicUsage(s Said) string {
	if s.Prompt == nil && s.Completion == nil {
		return ""
	}
	return fmt.Sprintf(`,"usage":{"input_tokens":%s,"output_tokens":%s}`, number(s.Prompt), number(s.Completion))
}

// Stream writes an event stream.
func (d Anthropic) Stream(s Said) string {
	var b strings.Builder
	event := func(kind, members string) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%s%s}\n\n", kind, quote(kind), members)
	}
	start := s
	if start.Completion != nil {
		one := 1
		start.Completion = &one
	}
	event("message_start", `,"message":{"role":"assistant","content":[]`+anthropicUsage(start)+`}`)
	event("ping", "")
	index := 0
	block := func(start string, deltas ...string) {
		event("content_block_start", fmt.Sprintf(`,"index":%d,"content_block":%s`, index, start))
		for _, d := range deltas {
			event("content_block_delta", fmt.Sprintf(`,"index":%d,"delta":%s`, index, d))
		}
		event("content_block_stop", fmt.Sprintf(`,"index":%d`, index))
		index++
	}
	if s.Extra != "" {
		block("{" + s.Extra + "}")
	}
	if s.Text != "" {
		var deltas []string
		for _, part := range halves(s.Text) {
			deltas = append(deltas, `{"type":"text_delta","text":`+quote(part)+`}`)
		}
		block(`{"type":"text","text":""}`, deltas...)
	}
	for _, c := range s.Calls {
		id := ""
		if c.ID != nil {
			id = `"id":` + quote(*c.ID) + `,`
		}
		deltas := []string{`{"type":"input_json_delta","partial_json":""}`}
		for _, part := range halves(c.Arguments) {
			deltas = append(deltas, `{"type":"input_json_delta","partial_json":`+quote(part)+`}`)
		}
		block(fmt.Sprintf(`{"type":"tool_use",%s"name":%s,"input":{}}`, id, quote(c.Name)), deltas...)
	}
	usage := ""
	if s.Completion != nil {
		usage = fmt.Sprintf(`,"usage":{"output_tokens":%d}`, *s.Completion)
	}
	event("message_delta", `,"delta":{"stop_reason":`+quote(anthropicStop[s.Finish])+`}`+usage)
	event("message_stop", "")
	return b.String()
}

// Raw is the assistant's message as the response holds it.
func (Anthropic) Raw(body string) string {
	from := strings.Index(body, `[ `)
	return body[from:strings.Index(body, `,"stop_reason"`)]
}

// Refuse refuses what the real servers refuse.
func (Anthropic) Refuse(body value.Value) string {
	thinking, _ := body.Get("thinking")
	choice, _ := body.Get("tool_choice")
	if kind := text(choice, "type"); text(thinking, "type") == "enabled" && (kind == "any" || kind == "tool") {
		return "Thinking may not be enabled when tool_choice forces tool use."
	}
	tools, _ := body.Get("tools")
	messages, _ := body.Get("messages")
	var open []string
	role := ""
	for i, m := range messages.Elements() {
		if text(m, "role") == role {
			return fmt.Sprintf("messages.%d: roles must alternate", i)
		}
		role = text(m, "role")
		content, _ := m.Get("content")
		if content.Len() == 0 {
			return fmt.Sprintf("messages.%d: all messages must have non-empty content", i)
		}
		var next []string
		for j, b := range content.Elements() {
			switch text(b, "type") {
			case "text":
				if strings.TrimSpace(text(b, "text")) == "" {
					return fmt.Sprintf("messages.%d.content.%d: text content blocks must be non-empty", i, j)
				}
			case "thinking":
				if j > 0 {
					return fmt.Sprintf("messages.%d.content.%d: thinking must come first", i, j)
				}
			case "tool_use":
				input, _ := b.Get("input")
				if id := text(b, "id"); id == "" || contains(next, id) || input.Kind() != value.Object {
					return fmt.Sprintf("messages.%d.content.%d: `tool_use` ids must be unique and input must be an object", i, j)
				}
				next = append(next, text(b, "id"))
			case "tool_result":
				if len(open) == 0 || open[0] != text(b, "tool_use_id") {
					return fmt.Sprintf("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks", i, j)
				}
				open = open[1:]
				if tools.Len() == 0 {
					return "Requests which include `tool_use` or `tool_result` blocks must define tools"
				}
			}
		}
		if len(open) > 0 {
			return fmt.Sprintf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after", i)
		}
		open = next
	}
	return ""
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// halves are the parts in which a stream sends a text.
func halves(s string) []string {
	if s == "" {
		return nil
	}
	n := len(s) / 2
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return []string{s[:n], s[n:]}
}

func text(v value.Value, key string) string {
	m, _ := v.Get(key)
	s, _ := m.Text()
	return s
}

func quote(s string) string { return value.MustText(s).String() }

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return quote(s)
}

func number(n *int) string {
	if n == nil {
		return "null"
	}
	return fmt.Sprint(*n)
}
