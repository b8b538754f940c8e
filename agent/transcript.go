package agent

import (
	"fmt"
	"unicode/utf8"

	"github.com/callsheet/callsheet/model"
)

// CheckTranscript reports a transcript that a provider would refuse: every call
// is answered exactly once, right after its assistant message, in order, by id
// (spec/agent.md §3). The error is a [*TranscriptError].
func CheckTranscript(messages []*model.Message) error {
	var c checker
	return c.check(messages)
}

// checker checks a transcript that grows: each message once.
type checker struct {
	checked int
	open    []model.Call // calls still to be answered
}

func (c *checker) check(messages []*model.Message) error {
	for ; c.checked < len(messages); c.checked++ {
		if reason := c.next(messages[c.checked]); reason != "" {
			return &TranscriptError{c.checked, reason}
		}
	}
	if len(c.open) > 0 {
		return &TranscriptError{len(messages), fmt.Sprintf("call %q is not answered", c.open[0].ID)}
	}
	return nil
}

func (c *checker) next(m *model.Message) string {
	if m.From == model.FromTool {
		switch {
		case len(c.open) == 0:
			return fmt.Sprintf("it answers %q, and no call is open", m.CallID)
		case m.CallID != c.open[0].ID:
			return fmt.Sprintf("it answers %q, and the next open call is %q", m.CallID, c.open[0].ID)
		}
		c.open = c.open[1:]
		return ""
	}
	if len(c.open) > 0 {
		return fmt.Sprintf("call %q is not answered before it", c.open[0].ID)
	}
	if m.From != model.FromAssistant || len(m.Calls) == 0 {
		return ""
	}
	if call := odd(m.Calls); call != nil {
		return fmt.Sprintf("the id %q is empty or stands twice", call.ID)
	}
	c.open = m.Calls
	return ""
}

// odd is the first call whose id is empty or stands earlier.
func odd(calls []model.Call) *model.Call {
	if len(calls) == 1 && calls[0].ID != "" {
		return nil
	}
	seen := make(map[string]bool, len(calls))
	for i := range calls {
		if id := calls[i].ID; id == "" || seen[id] {
			return &calls[i]
		}
		seen[calls[i].ID] = true
	}
	return nil
}

// transcript is what is sent: it is only appended to, except that results are
// shortened.
type transcript struct {
	messages []*model.Message
	size     int // bytes
	checker  checker
	oldest   int // messages before it are not worth shortening any more
	last     int // index of the last assistant message
}

func (t *transcript) append(m *model.Message) {
	if m.From == model.FromAssistant {
		t.last = len(t.messages)
	}
	t.messages = append(t.messages, m)
	t.size += m.Size()
}

// keep is how many characters of a shortened result are left: what the result
// was about, not what it said.
const keep = 200

// shorten cuts the oldest results until the transcript is a quarter below
// limit, so that the next rounds leave it, and a provider's cache of its
// beginning, alone. Answers to the last reply are never cut: nobody has read
// them. It returns how many were cut.
func (t *transcript) shorten(limit int) (cut int) {
	if limit == 0 || t.size <= limit {
		return 0
	}
	own := false
	for ; t.oldest < t.last && t.size > limit/4*3; t.oldest++ {
		m := t.messages[t.oldest]
		if m.From != model.FromTool {
			continue
		}
		text := clipText(m.Text, keep)
		if len(text) >= len(m.Text) {
			continue
		}
		if !own { // a model may hold on to what it was sent
			t.messages = append([]*model.Message(nil), t.messages...)
			own = true
		}
		short := &model.Message{From: m.From, Text: text, CallID: m.CallID, Tool: m.Tool, Failed: m.Failed}
		t.size += short.Size() - m.Size()
		t.messages[t.oldest] = short
		cut++
	}
	return cut
}

// clipText keeps n characters of text and says how many it cut.
func clipText(text string, n int) string {
	if len(text) <= n {
		return text
	}
	at := 0
	for range n {
		if at == len(text) {
			return text
		}
		_, w := utf8.DecodeRuneInString(text[at:])
		at += w
	}
	if at == len(text) {
		return text
	}
	return fmt.Sprintf("%s\n... [truncated %d characters]", text[:at], utf8.RuneCountInString(text[at:]))
}
