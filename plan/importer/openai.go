package importer

import (
	"strconv"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/value"
)

// openAI reads the tool calls of an assistant message of the chat completions
// API, given as it is, inside a response, or at the end of a list of messages.
// They are parallel: none waits for another, and no text is a reference.
func openAI(doc value.Value) ([]call, error) {
	message, at, err := lastMessage(doc)
	if err != nil {
		return nil, err
	}
	if role, ok := message.Get("role"); ok {
		if r, _ := role.Text(); r != "assistant" {
			return nil, refuse(at+"/role", "the message is not the assistant's")
		}
	}
	list, _ := message.Get("tool_calls")
	at += "/tool_calls"
	if list.Kind() != value.List || list.Len() == 0 {
		return nil, refuse(at[:len(at)-len("/tool_calls")], "the message has no tool calls")
	}
	calls := make([]call, list.Len())
	for i, e := range list.Elements() {
		if calls[i], err = toolCall(e, at+"/"+strconv.Itoa(i)); err != nil {
			return nil, err
		}
	}
	return calls, name(calls, "call_")
}

// lastMessage finds the message in whatever holds it.
func lastMessage(doc value.Value) (message value.Value, at string, err error) {
	if choices, ok := doc.Get("choices"); ok {
		if choices.Kind() != value.List || choices.Len() != 1 {
			return doc, "", refuse("/choices", "the response must have one choice, it has %d", choices.Len())
		}
		m, ok := choices.At(0).Get("message")
		if !ok || m.Kind() != value.Object {
			return doc, "", refuse("/choices/0", "there is no message")
		}
		return m, "/choices/0/message", nil
	}
	if messages, ok := doc.Get("messages"); ok {
		doc, at = messages, "/messages"
	}
	if doc.Kind() == value.List {
		if doc.Len() == 0 {
			return doc, "", refuse(at, "there are no messages")
		}
		at += "/" + strconv.Itoa(doc.Len()-1)
		doc = doc.At(doc.Len() - 1)
	}
	if doc.Kind() != value.Object {
		return doc, "", refuse(at, "a message must be an object, not %s", doc.Kind())
	}
	return doc, at, nil
}

func toolCall(e value.Value, at string) (c call, err error) {
	c.at = at
	if e.Kind() != value.Object {
		return c, refuse(at, "a tool call must be an object, not %s", e.Kind())
	}
	if kind, ok := e.Get("type"); ok {
		if k, _ := kind.Text(); k != "function" {
			return c, refuse(at+"/type", "only calls of functions can be imported")
		}
	}
	if id, ok := e.Get("id"); ok {
		// Nothing refers to the id, so one that is none of ours is given up.
		if text, _ := id.Text(); plan.CheckID(text) == "" {
			c.id = text
		}
	}
	function, ok := e.Get("function")
	if !ok || function.Kind() != value.Object {
		return c, refuse(at, `there is no "function"`)
	}
	at += "/function"
	if c.tool, err = member(function, at, "name"); err != nil {
		return c, err
	}
	args, ok := function.Get("arguments")
	at += "/arguments"
	switch text, isText := args.Text(); {
	case !ok:
		return c, refuse(c.at+"/function", `there are no "arguments"`)
	case isText && text == "":
		args = value.ObjectOf() // how several servers write none
	case isText:
		if args, err = value.Parse(text); err != nil {
			return c, refuse(at, "the text is not JSON: %v", err)
		}
	}
	if args.Kind() != value.Object {
		return c, refuse(at, "the arguments must be an object, not %s", args.Kind())
	}
	c.args, err = texts(args, at, literal)
	return c, err
}
