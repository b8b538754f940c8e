package anthropic

import (
	"errors"
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

// event is as much of one event as the adapter reads.
type event struct {
	Type    string         `json:"type"`
	Index   int            `json:"index"`
	Block   value.Value    `json:"content_block"`
	Delta   value.Value    `json:"delta"`
	Usage   usage          `json:"usage"`
	Error   jsontext.Value `json:"error"`
	Message struct {
		Usage usage `json:"usage"`
	} `json:"message"`
}

// maxBlocks bounds the content blocks of one streamed message.
const maxBlocks = 10_000

// readStream puts a stream of events together to the message that it is. Every
// member of a block is kept; the text of deltas is appended to the member that
// the delta's own type names.
func readStream(progress func(string)) func(io.Reader, int, int) (*model.Reply, error) {
	return func(body io.Reader, round, limit int) (*model.Reply, error) {
		var s stream
		err := transport.Events(body, func(data []byte) (bool, error) {
			var e event
			if err := json.Unmarshal(data, &e, rawjson.Lenient); err != nil {
				return false, err
			}
			return s.take(&e, progress)
		})
		if err != nil {
			return nil, err
		}
		return s.reply(round, limit)
	}
}

type stream struct {
	blocks []*part
	resp   response
}

type part struct {
	block   value.Value
	appends map[string]*strings.Builder // by member
	lists   map[string][]value.Value    // citations
	input   *strings.Builder
}

func (s *stream) take(e *event, progress func(string)) (done bool, err error) {
	switch e.Type {
	case "message_start":
		s.resp.Usage = e.Message.Usage
	case "content_block_start":
		if e.Index != len(s.blocks) || e.Index >= maxBlocks || e.Block.Kind() != value.Object {
			return false, fmt.Errorf("block %d of the stream begins out of order", e.Index)
		}
		s.blocks = append(s.blocks, &part{block: e.Block, appends: map[string]*strings.Builder{}, lists: map[string][]value.Value{}})
		if kind, _ := e.Block.Get("type"); value.Equal(kind, value.MustText("tool_use")) {
			s.blocks[e.Index].input = &strings.Builder{}
		}
	case "content_block_delta":
		if e.Index < 0 || e.Index >= len(s.blocks) {
			return false, fmt.Errorf("a delta is for block %d, which has not begun", e.Index)
		}
		return false, s.blocks[e.Index].take(e.Delta, progress)
	case "message_delta":
		if reason, ok := e.Delta.Get("stop_reason"); ok {
			s.resp.StopReason, _ = reason.Text()
		}
		s.resp.Usage.add(e.Usage)
	case "message_stop":
		return true, nil
	case "error":
		code, message := transport.Explanation([]byte(`{"error":` + string(e.Error) + `}`))
		err := model.Errorf("the stream ended with an error: %s", message)
		err.Code = code
		if slices.Contains([]string{"overloaded_error", "api_error", "rate_limit_error"}, code) {
			err.Kind = model.Transient
		}
		return false, err
	}
	return false, nil
}

func (p *part) take(delta value.Value, progress func(string)) error {
	for name, v := range delta.Members() {
		text, isText := v.Text()
		switch {
		case name == "type":
		case name == "partial_json" && p.input != nil:
			p.input.WriteString(text)
		case name == "citation":
			p.lists["citations"] = append(p.lists["citations"], v)
		case isText:
			if p.appends[name] == nil {
				p.appends[name] = &strings.Builder{}
			}
			p.appends[name].WriteString(text)
			if name == "text" && text != "" {
				progress(text)
			}
		default:
			return fmt.Errorf("a delta holds %q, which is no text", name)
		}
	}
	return nil
}

// add takes the sums that the end of a stream reports over those of its start.
func (u *usage) add(later usage) {
	for _, n := range []struct {
		to   **int
		from *int
	}{
		{&u.Input, later.Input}, {&u.Written, later.Written}, {&u.Cached, later.Cached}, {&u.Output, later.Output},
	} {
		if n.from != nil {
			*n.to = n.from
		}
	}
}

func (s *stream) reply(round, limit int) (*model.Reply, error) {
	partial := map[int]string{}
	blocks := make([]value.Value, len(s.blocks))
	for i, p := range s.blocks {
		members := map[string]value.Value{}
		for name, b := range p.appends {
			start, _ := p.block.Get(name)
			head, _ := start.Text()
			members[name] = value.MustText(head + b.String())
		}
		for name, list := range p.lists {
			members[name] = value.ListOf(list...)
		}
		if p.input != nil && p.input.Len() > 0 {
			partial[i] = p.input.String()
			input, err := sendable(partial[i])
			if err != nil {
				return nil, err
			}
			members["input"] = input
		}
		blocks[i] = with(p.block, members)
	}
	if s.resp.StopReason == "" {
		return nil, errors.New("the stream ended without a reason")
	}
	s.resp.Content = jsontext.Value(value.ListOf(blocks...).String())
	return reply(&s.resp, partial, round, limit)
}

// with is the object v with members replaced or added.
func with(v value.Value, members map[string]value.Value) value.Value {
	var ms []value.Member
	for name, old := range v.Members() {
		if now, ok := members[name]; ok {
			old = now
			delete(members, name)
		}
		ms = append(ms, value.Member{Key: name, Value: old})
	}
	rest := make([]string, 0, len(members))
	for name := range members {
		rest = append(rest, name)
	}
	slices.Sort(rest)
	for _, name := range rest {
		ms = append(ms, value.Member{Key: name, Value: members[name]})
	}
	return value.ObjectOf(ms...)
}
