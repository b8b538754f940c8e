// Package scripted is a model that says what a file says: for tests, demos and
// the reproduction of a bug report.
//
//	m, err := scripted.Parse([]byte(`[
//		{"tool_calls": [{"id": "c1", "name": "clock", "arguments": {"zone": "Europe/Oslo"}}]},
//		{"content": "It is noon.", "finish_reason": "stop",
//		 "usage": {"prompt_tokens": 41, "completion_tokens": 5}}
//	]`))
//
// A file is a JSON array of replies. Arguments are an object, or the very text
// that the model should have written. A request past the end is an error.
package scripted

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/value"
	"github.com/go-json-experiment/json"
)

// A Model gives its replies in order, one to each request. A conversation that
// is resumed, so that the first request is not its first round, goes on with
// the reply of that round. It is safe for concurrent use, but conversations at
// the same time should have a model each.
type Model struct {
	mu      sync.Mutex
	replies []*model.Reply
	next    int // holding mu
}

var _ model.Model = (*Model)(nil)

// New is a model with these replies. It numbers calls without an id.
func New(replies ...*model.Reply) *Model { return &Model{replies: replies} }

// Open reads a file of replies.
func Open(path string) (*Model, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

// Parse reads an array of replies. Unknown members are an error.
func Parse(text []byte) (*Model, error) {
	doc, err := value.Parse(text)
	if err != nil {
		return nil, err
	}
	if doc.Kind() != value.List {
		return nil, fmt.Errorf("a script is an array of replies, not a %s", doc.Kind())
	}
	m := &Model{}
	for i, v := range doc.Elements() {
		r, err := parseReply(v)
		if err != nil {
			return nil, fmt.Errorf("/%d: %w", i, err)
		}
		m.replies = append(m.replies, r)
	}
	return m, nil
}

func parseReply(v value.Value) (*model.Reply, error) {
	var doc struct {
		Content *string `json:"content"`
		Calls   []struct {
			ID        string      `json:"id"`
			Name      string      `json:"name"`
			Arguments value.Value `json:"arguments"`
		} `json:"tool_calls"`
		Finish string `json:"finish_reason"`
		Usage  *struct {
			Prompt     *int `json:"prompt_tokens"`
			Completion *int `json:"completion_tokens"`
		} `json:"usage"`
	}
	if err := v.Decode(&doc, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	r := &model.Reply{Reason: doc.Finish}
	if doc.Content != nil {
		r.Text = *doc.Content
	}
	if doc.Usage != nil {
		r.Usage = model.Usage{Prompt: doc.Usage.Prompt, Completion: doc.Usage.Completion}
	}
	var ok bool
	if r.Finish, ok = reasons[doc.Finish]; !ok {
		return nil, fmt.Errorf("/finish_reason: unknown reason %q", doc.Finish)
	}
	for i, c := range doc.Calls {
		text, isText := c.Arguments.Text()
		switch {
		case c.Arguments.Kind() == value.Object:
			text = c.Arguments.String()
		case !isText && !c.Arguments.IsZero():
			return nil, fmt.Errorf("/tool_calls/%d/arguments: a %s, not an object or text", i, c.Arguments.Kind())
		}
		r.Calls = append(r.Calls, model.Call{ID: c.ID, Name: c.Name, Arguments: text})
	}
	return r, nil
}

var reasons = map[string]model.Finish{
	"": model.FinishOther, "other": model.FinishOther, "stop": model.FinishStop, "tool_calls": model.FinishCalls,
	"length": model.FinishLength, "content_filter": model.FinishFilter, "refusal": model.FinishRefusal,
}

// Ask gives the next reply.
func (m *Model) Ask(ctx context.Context, req *model.Request) (*model.Reply, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	m.mu.Lock()
	if m.next == 0 && req.Round > 1 {
		m.next = req.Round - 1
	}
	i := m.next
	m.next++
	m.mu.Unlock()
	if i >= len(m.replies) {
		return nil, model.Errorf("the script has %d replies, and this is request %d", len(m.replies), i+1)
	}
	r := *m.replies[i]
	r.Calls = append([]model.Call(nil), r.Calls...)
	r.Edits = model.FreshIDs(r.Calls, len(req.Messages))
	r.Finish = r.Finish.Cut(r.Usage, req.MaxTokens)
	if req.Progress != nil && r.Text != "" {
		req.Progress(r.Text)
	}
	return &r, nil
}
