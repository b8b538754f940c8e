package episode

import (
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/internal/python"
)

// ReadAction reads the typed action out of an action event: an object that
// names it by type, name, tool or function, with its arguments as an object or
// as JSON text, or that object as text. ok is false for anything else; it is
// not guessed from prose.
func ReadAction(e *Event) (a world.Action, ok bool) {
	a, ok = readAction(e.Content, 0)
	if ok {
		a.Raw = e.Content
	}
	return a, ok
}

// maxWrapped is how often an action may be wrapped: {"function":{…}} in text is
// two.
const maxWrapped = 4

func readAction(v value.Value, depth int) (a world.Action, ok bool) {
	if depth > maxWrapped {
		return a, false
	}
	if s, isText := v.Text(); isText {
		s = strings.TrimSpace(s)
		if word, rest, found := strings.Cut(s, ":"); found {
			switch strings.ToLower(strings.TrimSpace(word)) {
			case "action", "tool", "command":
				s = strings.TrimSpace(rest)
			}
		}
		if strings.HasPrefix(s, "{") {
			if inner, err := value.Parse(s); err == nil {
				return readAction(inner, depth+1)
			}
			return a, false
		}
		if isName(s) {
			return world.Action{Type: s, Arguments: world.NoArguments()}, true
		}
		return a, false
	}
	if v.Kind() != value.Object {
		return a, false
	}
	if f, found := v.Get("function"); found && f.Kind() == value.Object {
		return readAction(f, depth+1)
	}
	for _, k := range [...]string{"type", "name", "tool", "action"} {
		m, found := v.Get(k)
		if !found {
			continue
		}
		if m.Kind() == value.Object {
			return readAction(m, depth+1)
		}
		name, isText := m.Text()
		if !isText || name == "" || k == "type" && name == "function" {
			continue
		}
		a = world.Action{Type: name, Arguments: world.NoArguments()}
		for _, k := range [...]string{"arguments", "args", "input", "parameters", "params"} {
			args, found := v.Get(k)
			if !found || args.IsNull() {
				continue
			}
			if s, isText := args.Text(); isText {
				if strings.TrimSpace(s) == "" {
					return a, true
				}
				var err error
				if args, err = value.Parse(s); err != nil {
					return a, false
				}
			}
			if args.Kind() != value.Object {
				return a, false
			}
			a.Arguments = args
			break
		}
		return a, true
	}
	return a, false
}

// isName tells a bare action name from prose.
func isName(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for _, r := range s {
		if r <= ' ' || r == ':' || r == '"' || r == '{' || r == '(' {
			return false
		}
	}
	return true
}

// ResultText is the text of a result as the environment printed it: a string
// as it is, a message's or an MCP result's text parts joined, anything else as
// compact JSON.
func ResultText(e *Event) string {
	if s, ok := textParts(e.Content); ok {
		return s
	}
	if c, ok := e.Content.Get("content"); ok && e.IsMCP() {
		if s, ok := textParts(c); ok {
			return s
		}
	}
	return e.Content.String()
}

// Outcome is what the recording says became of the call that an event is the
// result of: an error failed; the result of an MCP client's log is a success if it
// is none, and so is one that is marked "is_error": false in its metadata, as
// those of Callsheet's own runs are. A message with a text says neither.
func (e *Event) Outcome() world.Outcome {
	if e.Kind == Error {
		return world.Failed
	}
	if marked, ok := e.Meta(IsError); ok && python.Equal(marked, value.BoolValue(false)) || e.IsMCP() && e.Kind == Observation {
		return world.Success
	}
	return world.Unknown
}

// IsError is the metadata of a result that says whether the call failed.
const IsError = "is_error"

// textParts reads a string, or a list of nothing but {"type":"text"} parts.
func textParts(v value.Value) (string, bool) {
	if s, ok := v.Text(); ok {
		return s, true
	}
	if v.Kind() != value.List || v.Len() == 0 {
		return "", false
	}
	var b strings.Builder
	for i, p := range v.Elements() {
		kind, _ := p.Get("type")
		text, _ := p.Get("text")
		k, _ := kind.Text()
		s, ok := text.Text()
		if k != "text" || !ok {
			return "", false
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(s)
	}
	return b.String(), true
}
