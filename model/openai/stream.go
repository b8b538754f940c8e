package openai

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/internal/rawjson"
	"github.com/callsheet/callsheet/model/internal/transport"
	"github.com/callsheet/callsheet/value"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// chunk is as much of one event as the adapter reads.
type chunk struct {
	Choices []struct {
		Index  int            `json:"index"`
		Delta  jsontext.Value `json:"delta"`
		Finish string         `json:"finish_reason"`
	} `json:"choices"`
	Usage jsontext.Value `json:"usage"`
	Error jsontext.Value `json:"error"`
}

// readStream puts the deltas of a stream together to the message that they are
// parts of, with every member that they carry, and reports its text on the way.
func readStream(progress func(string)) func(io.Reader, int, int) (*model.Reply, error) {
	return func(body io.Reader, round, limit int) (*model.Reply, error) {
		message := &merged{members: map[string]*merged{}, names: []string{"role"}}
		message.members["role"] = &merged{whole: value.MustText("assistant")}
		var finish string
		var usage jsontext.Value
		begun := false
		err := transport.Events(body, func(data []byte) (bool, error) {
			if string(data) == "[DONE]" {
				return true, nil
			}
			var c chunk
			if err := json.Unmarshal(data, &c, rawjson.Lenient); err != nil {
				return false, err
			}
			if c.Error != nil && c.Error.Kind() != 'n' {
				return false, noChoice(c.Error)
			}
			if c.Usage.Kind() == '{' {
				usage = c.Usage.Clone() // of the last chunk, whose choices are empty
			}
			for _, choice := range c.Choices {
				if choice.Index != 0 {
					continue
				}
				begun = true
				if choice.Finish != "" {
					finish = choice.Finish
				}
				if choice.Delta.Kind() != '{' {
					continue
				}
				delta, err := value.Parse([]byte(choice.Delta))
				if err != nil {
					return false, err
				}
				if err := message.merge("", delta); err != nil {
					return false, err
				}
				if text, ok := delta.Get("content"); ok {
					if s, _ := text.Text(); s != "" {
						progress(s)
					}
				}
			}
			return false, nil
		})
		// Some servers end without [DONE]; what has a finish reason is whole.
		if err != nil && !(err == io.ErrUnexpectedEOF && finish != "") {
			return nil, err
		}
		if !begun {
			return nil, noChoice(nil)
		}
		return reply([]byte(message.value().String()), finish, usage, round, limit)
	}
}

// merged is a value that arrives in parts: text is put together, objects are
// merged by name, the elements of a list by their "index", and anything else is
// replaced.
type merged struct {
	whole   value.Value
	text    *strings.Builder
	names   []string
	members map[string]*merged
	list    []*merged
	isList  bool
}

// once are the members whose text comes whole, and from some servers with every
// delta.
var once = []string{"id", "type", "role", "name"}

// maxParts bounds the elements of one list of a streamed message: far above the
// calls of any reply, and low enough that an index cannot make us allocate.
const maxParts = 10_000

func (m *merged) merge(name string, delta value.Value) error {
	switch delta.Kind() {
	case value.String:
		s, _ := delta.Text()
		if slices.Contains(once, name) {
			if s != "" || m.whole.IsZero() {
				m.whole = delta
			}
			return nil
		}
		if m.text == nil {
			m.text = &strings.Builder{}
		}
		m.text.WriteString(s)
	case value.Object:
		if m.members == nil {
			m.members = map[string]*merged{}
		}
		for key, v := range delta.Members() {
			if key == "index" && name == "[]" {
				continue
			}
			child := m.members[key]
			if child == nil {
				child = &merged{}
				m.members[key] = child
				m.names = append(m.names, key)
			}
			if err := child.merge(key, v); err != nil {
				return err
			}
		}
	case value.List:
		m.isList = true
		for i, v := range delta.Elements() {
			at := len(m.list)
			if index, ok := v.Get("index"); ok {
				n, ok := index.Int()
				if !ok || n < 0 || n >= maxParts {
					return fmt.Errorf("a delta has the index %.20s", index)
				}
				at = int(n)
			} else if name == "tool_calls" {
				at = i // a server that leaves the index out sends whole lists
			}
			for len(m.list) <= at {
				m.list = append(m.list, &merged{})
			}
			if err := m.list[at].merge("[]", v); err != nil {
				return err
			}
		}
	case value.Null:
		if m.whole.IsZero() {
			m.whole = delta
		}
	default:
		m.whole = delta
	}
	return nil
}

func (m *merged) value() value.Value {
	switch {
	case m.text != nil:
		return value.MustText(m.text.String())
	case m.members != nil:
		ms := make([]value.Member, len(m.names))
		for i, name := range m.names {
			ms[i] = value.Member{Key: name, Value: m.members[name].value()}
		}
		return value.ObjectOf(ms...)
	case m.isList:
		vs := make([]value.Value, 0, len(m.list))
		for _, e := range m.list {
			if v := e.value(); !v.IsNull() {
				vs = append(vs, v) // an index that was left out is no element
			}
		}
		return value.ListOf(vs...)
	case m.whole.IsZero():
		return value.NullValue()
	}
	return m.whole
}
