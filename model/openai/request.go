package openai

import (
	"cmp"
	"strconv"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/internal/rawjson"
	"github.com/callsheet/callsheet/model/internal/transport"
	"github.com/callsheet/callsheet/value"
)

// encode writes the request as segments: those of messages and tools are the
// ones that earlier rounds sent.
func (m *Model) encode(req *model.Request, forcing model.Forcing) (body [][]byte, fallback string, err error) {
	tools, mode, instruction, fallback := forcing.Apply(req.Tools, req.Choice)
	last := len(req.Messages)
	body = make([][]byte, 0, 2*(last+len(tools))+2)
	head := append([]byte(`{"model":`), value.MustText(m.config.Model).String()...)
	body = append(body, append(head, `,"messages":[`...))
	comma := []byte(",")
	for i, msg := range req.Messages {
		text, err := msg.Encoded(Dialect, func() ([]byte, error) { return message(msg) })
		if err != nil {
			return nil, "", model.Errorf("message %d: %w", i+1, err)
		}
		if i > 0 {
			body = append(body, comma)
		}
		body = append(body, text)
	}
	var tail []byte
	if instruction != "" {
		text, err := message(model.User(instruction))
		if err != nil {
			return nil, "", model.Errorf("the name of the forced tool: %w", err)
		}
		if last > 0 {
			tail = append(tail, ',')
		}
		tail = append(tail, text...)
	}
	tail = append(tail, ']')
	if len(tools) > 0 {
		body = append(body, append(tail, `,"tools":[`...))
		if body, err = transport.AppendTools(body, tools, Dialect, declaration); err != nil {
			return nil, "", err
		}
		tail = []byte{']'}
		switch mode {
		case model.ModeAny:
			tail = append(tail, `,"tool_choice":"required"`...)
		case model.ModeNone:
			tail = append(tail, `,"tool_choice":"none"`...)
		case model.ModeTool:
			tail = append(tail, `,"tool_choice":{"type":"function","function":{"name":`...)
			if tail, err = rawjson.Quote(tail, req.Choice.Name); err != nil {
				return nil, "", model.Errorf("the name of the forced tool: %w", err)
			}
			tail = append(tail, "}}"...)
		}
	}
	if limit := cmp.Or(req.MaxTokens, m.config.MaxTokens); limit > 0 {
		tail = append(tail, `,"`+cmp.Or(m.config.MaxTokensField, "max_tokens")+`":`...)
		tail = strconv.AppendInt(tail, int64(limit), 10)
	}
	if req.Progress != nil {
		// Without include_usage a stream says nothing of what it cost.
		tail = append(tail, `,"stream":true,"stream_options":{"include_usage":true}`...)
	}
	tail = transport.AppendExtra(tail, m.config.Extra)
	return append(body, append(tail, '}')), fallback, nil
}

func message(m *model.Message) ([]byte, error) {
	if m.Raw != nil {
		if m.Dialect != Dialect {
			return nil, model.Errorf("its raw form is of dialect %q; a conversation stays with the kind of provider that began it", m.Dialect)
		}
		return m.Raw, nil
	}
	text, err := rawjson.Quote([]byte(`{"role":"`+m.From.String()+`","content":`), m.Text)
	if err != nil {
		return nil, err
	}
	if m.From == model.FromTool {
		if text, err = rawjson.Quote(append(text, `,"tool_call_id":`...), m.CallID); err != nil {
			return nil, err
		}
	}
	for i, c := range m.Calls {
		sep := `,"tool_calls":[`
		if i > 0 {
			sep = ","
		}
		for _, part := range []struct{ lead, s string }{
			{sep + `{"id":`, c.ID}, {`,"type":"function","function":{"name":`, c.Name}, {`,"arguments":`, sendable(c.Arguments)},
		} {
			if text, err = rawjson.Quote(append(text, part.lead...), part.s); err != nil {
				return nil, err
			}
		}
		text = append(text, "}}"...)
	}
	if len(m.Calls) > 0 {
		text = append(text, ']')
	}
	return append(text, '}'), nil
}

// sendable is what goes back for arguments: servers read the history's
// arguments as JSON and answer 400, or fail, when they are not.
func sendable(arguments string) string {
	switch {
	case isBlank(arguments):
		return "{}"
	case rawjson.Valid(arguments):
		return arguments
	}
	text, err := rawjson.Quote([]byte(`{"_raw":`), arguments)
	if err != nil {
		return "{}" // not UTF-8, which no reply that was read holds
	}
	return string(append(text, '}'))
}

func isBlank(s string) bool {
	for i := range len(s) {
		switch s[i] {
		case ' ', '\t', '\r', '\n':
		default:
			return false
		}
	}
	return true
}

func declaration(t *model.Tool) ([]byte, error) {
	text, err := rawjson.Quote([]byte(`{"type":"function","function":{"name":`), t.Name)
	if err == nil && t.Description != "" {
		text, err = rawjson.Quote(append(text, `,"description":`...), t.Description)
	}
	if err != nil {
		return nil, err
	}
	return append(t.Schema().AppendTo(append(text, `,"parameters":`...)), "}}"...), nil
}
