package anthropic

import (
	"strconv"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/internal/rawjson"
	"github.com/callsheet/callsheet/model/internal/transport"
	"github.com/callsheet/callsheet/value"
)

// encode writes the request as segments: those of messages and tools are the
// ones that earlier rounds sent.
func (m *Model) encode(req *model.Request, limit int) (body [][]byte, fallback string, err error) {
	forcing := model.ForcesByName
	if m.config.thinks() && req.Choice.Mode != model.ModeNone {
		forcing = model.ForcesNothing
	}
	tools, mode, instruction, fallback := forcing.Apply(req.Tools, req.Choice)
	head := append([]byte(`{"model":`), value.MustText(m.config.Model).String()...)
	head = strconv.AppendInt(append(head, `,"max_tokens":`...), int64(limit), 10)
	if !m.config.Thinking.IsZero() {
		head = m.config.Thinking.AppendTo(append(head, `,"thinking":`...))
	}
	if req.Progress != nil {
		head = append(head, `,"stream":true`...)
	}
	head = transport.AppendExtra(head, m.config.Extra)
	// Tools stay defined whatever the choice: the API refuses a history with
	// calls in a request without tools.
	if len(tools) > 0 {
		body = append(body, append(head, `,"tools":[`...))
		if body, err = transport.AppendTools(body, tools, Dialect, declaration); err != nil {
			return nil, "", err
		}
		head = []byte{']'}
		switch mode {
		case model.ModeAny:
			head = append(head, `,"tool_choice":{"type":"any"}`...)
		case model.ModeNone:
			head = append(head, `,"tool_choice":{"type":"none"}`...)
		case model.ModeTool:
			if head, err = rawjson.Quote(append(head, `,"tool_choice":{"type":"tool","name":`...), req.Choice.Name); err != nil {
				return nil, "", model.Errorf("the name of the forced tool: %w", err)
			}
			head = append(head, '}')
		}
	}
	body = append(body, head)

	messages := req.Messages
	if instruction != "" {
		messages = append(messages[:len(messages):len(messages)], model.User(instruction))
	}
	if body, err = appendMessages(body, messages); err != nil {
		return nil, "", err
	}
	return body, fallback, nil
}

var (
	comma     = []byte(",")
	openUser  = []byte(`{"role":"user","content":[`)
	closeUser = []byte(`]}`)
)

// appendMessages writes system texts as the system member, and neighbours of
// the user and of tools as the blocks of one user message, as the API wants:
// all results of a reply's calls come in the message after it.
func appendMessages(body [][]byte, messages []*model.Message) ([][]byte, error) {
	var system, list [][]byte
	inUser := false
	for i, msg := range messages {
		text, err := msg.Encoded(Dialect, func() ([]byte, error) { return block(msg) })
		if err != nil {
			return nil, model.Errorf("message %d: %w", i+1, err)
		}
		if msg.From == model.FromSystem {
			system = appendItem(system, text)
			continue
		}
		user := msg.From != model.FromAssistant
		switch {
		case user && inUser:
			list = append(list, comma)
		case user:
			list = appendItem(list, openUser)
		case inUser:
			list = append(list, closeUser, comma)
		case len(list) > 0:
			list = append(list, comma)
		}
		list = append(list, text)
		inUser = user
	}
	if inUser {
		list = append(list, closeUser)
	}
	if len(system) > 0 {
		body = append(append(body, []byte(`,"system":[`)), system...)
		body = append(body, []byte(`]`))
	}
	body = append(append(body, []byte(`,"messages":[`)), list...)
	return append(body, []byte(`]}`)), nil
}

func appendItem(list [][]byte, item []byte) [][]byte {
	if len(list) > 0 {
		list = append(list, comma)
	}
	return append(list, item)
}

// block is a content block of the system's, the user's or a tool's message, and
// the whole message of an assistant.
func block(m *model.Message) ([]byte, error) {
	switch m.From {
	case model.FromTool:
		text, err := rawjson.Quote([]byte(`{"type":"tool_result","tool_use_id":`), m.CallID)
		if err != nil {
			return nil, err
		}
		if text, err = rawjson.Quote(append(text, `,"content":`...), m.Text); err != nil {
			return nil, err
		}
		if m.Failed {
			text = append(text, `,"is_error":true`...)
		}
		return append(text, '}'), nil
	case model.FromAssistant:
		content, err := assistantContent(m)
		if err != nil {
			return nil, err
		}
		return append(append([]byte(`{"role":"assistant","content":`), content...), '}'), nil
	}
	text, err := rawjson.Quote([]byte(`{"type":"text","text":`), m.Text)
	return append(text, '}'), err
}

func assistantContent(m *model.Message) ([]byte, error) {
	if m.Raw != nil {
		if m.Dialect != Dialect {
			return nil, model.Errorf("its raw form is of dialect %q; a conversation stays with the kind of provider that began it", m.Dialect)
		}
		return m.Raw, nil
	}
	var blocks []value.Value
	add := func(ms ...value.Member) { blocks = append(blocks, value.ObjectOf(ms...)) }
	text := func(key, s string) (value.Member, error) {
		v, err := value.Text(s)
		return value.Member{Key: key, Value: v}, err
	}
	if m.Text != "" || len(m.Calls) == 0 {
		t, err := text("text", notBlank(m.Text))
		if err != nil {
			return nil, err
		}
		add(value.Member{Key: "type", Value: value.MustText("text")}, t)
	}
	for _, c := range m.Calls {
		id, err := text("id", c.ID)
		if err != nil {
			return nil, err
		}
		name, err := text("name", c.Name)
		if err != nil {
			return nil, err
		}
		input, err := sendable(c.Arguments)
		if err != nil {
			return nil, err
		}
		add(value.Member{Key: "type", Value: value.MustText("tool_use")}, id, name, value.Member{Key: "input", Value: input})
	}
	return []byte(value.ListOf(blocks...).String()), nil
}

// sendable is the input that goes back for arguments; the API takes nothing but
// an object.
func sendable(arguments string) (value.Value, error) {
	if arguments == "" {
		return value.ObjectOf(), nil
	}
	if v, err := value.Parse(arguments); err == nil && v.Kind() == value.Object {
		return v, nil
	}
	raw, err := value.Text(arguments)
	if err != nil {
		return value.Value{}, err
	}
	return value.ObjectOf(value.Member{Key: "_raw", Value: raw}), nil
}

func declaration(t *model.Tool) ([]byte, error) {
	text, err := rawjson.Quote([]byte(`{"name":`), t.Name)
	if err == nil && t.Description != "" {
		text, err = rawjson.Quote(append(text, `,"description":`...), t.Description)
	}
	if err != nil {
		return nil, err
	}
	return append(t.Schema().AppendTo(append(text, `,"input_schema":`...)), '}'), nil
}
