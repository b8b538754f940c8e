package model

import (
	"fmt"
	"strconv"

	"github.com/callsheet/callsheet/value"
)

// A Reply is what the model answered.
type Reply struct {
	Text  string
	Calls []Call
	// Raw is the assistant's message as the provider sent it, in Dialect; nil
	// where there is no provider. Edits lists what had to be changed in it.
	Raw     []byte
	Dialect string

	Finish Finish
	Reason string // the provider's own word for Finish
	Usage  Usage

	// Fallbacks are the capabilities that the provider lacked, as sentences.
	Fallbacks []string
	// Edits are the changes without which Raw could not be sent back, as
	// sentences.
	Edits []string
}

// A Call is one call that the model asks for.
type Call struct {
	ID         string // not empty, and unique in its reply; an answer names it
	ProviderID string // what the provider sent where ID had to be another
	Name       string
	Arguments  string // as the model wrote them: nothing promises that this is JSON
}

// Message is the reply as an entry of the transcript.
func (r *Reply) Message() *Message {
	return &Message{From: FromAssistant, Text: r.Text, Calls: r.Calls, Raw: r.Raw, Dialect: r.Dialect}
}

// Finish is why a reply ended.
type Finish uint8

// The reasons. Only the last three withhold execution; none grants it.
const (
	FinishOther   Finish = iota // unknown, or not reported
	FinishStop                  // the model was done
	FinishCalls                 // the model waits for its calls
	FinishLength                // cut at the token limit
	FinishFilter                // cut by a content filter
	FinishRefusal               // the model refused
)

var finishes = [...]string{"other", "stop", "calls", "length", "filter", "refusal"}

// String is the reason in one word.
func (f Finish) String() string { return finishes[f] }

// Withheld reports whether nothing of the reply may run.
func (f Finish) Withheld() bool { return f >= FinishLength }

// Cut is the finish of a reply with this usage to a request that was bounded by
// limit tokens (0: not bounded). Some servers report a reply that they cut as
// "tool_calls"; one that used up exactly what it was given was cut too.
func (f Finish) Cut(u Usage, limit int) Finish {
	if limit > 0 && u.Completion != nil && *u.Completion == limit && !f.Withheld() {
		return FinishLength
	}
	return f
}

// Usage is what one reply cost. nil is a number that was not reported, which is
// not 0.
type Usage struct {
	Prompt     *int // tokens
	Completion *int // tokens
}

// FreshIDs gives a new id to every call whose own is empty or stands earlier in
// calls, and lists what it did. The new ids hold round, so that a caller that
// passes the length of the transcript gets ids that no earlier message has.
func FreshIDs(calls []Call, round int) (edits []string) {
	if distinct(calls) {
		return nil
	}
	seen := make(map[string]bool, len(calls))
	for _, c := range calls {
		seen[c.ID] = true // a fresh id must not be one that comes later
	}
	used := make(map[string]bool, len(calls))
	for i := range calls {
		c := &calls[i]
		if c.ID != "" && !used[c.ID] {
			used[c.ID] = true
			continue
		}
		fresh := "call_" + strconv.Itoa(round) + "_" + strconv.Itoa(i+1)
		for seen[fresh] {
			fresh += "x"
		}
		seen[fresh] = true
		if c.ID == "" {
			edits = append(edits, fmt.Sprintf("call %d had no id and got %q", i+1, fresh))
		} else {
			edits = append(edits, fmt.Sprintf("call %d had the id %.80q of an earlier call and got %q", i+1, c.ID, fresh))
		}
		c.ProviderID, c.ID = c.ID, fresh
		used[fresh] = true
	}
	return edits
}

// distinct is the usual case: every id is there, and there once.
func distinct(calls []Call) bool {
	const few = 8 // below it comparing is cheaper than a map
	if len(calls) > few {
		return false
	}
	for i, c := range calls {
		if c.ID == "" {
			return false
		}
		for _, d := range calls[:i] {
			if d.ID == c.ID {
				return false
			}
		}
	}
	return true
}

// Value is the reply as JSON, for a journal or a cassette. Raw is kept as a
// string, so that not one byte of it can change. It fails on text that is not
// UTF-8.
func (r *Reply) Value() (value.Value, error) {
	calls := make([]value.Value, len(r.Calls))
	for i, c := range r.Calls {
		for _, s := range []string{c.ID, c.ProviderID, c.Name, c.Arguments} {
			if _, err := value.Text(s); err != nil {
				return value.Value{}, fmt.Errorf("call %d of a reply: %w", i+1, err)
			}
		}
		ms := []value.Member{{Key: "id", Value: value.MustText(c.ID)}}
		if c.ProviderID != "" {
			ms = append(ms, value.Member{Key: "provider_id", Value: value.MustText(c.ProviderID)})
		}
		calls[i] = value.ObjectOf(append(ms, value.Member{Key: "name", Value: value.MustText(c.Name)}, value.Member{Key: "arguments", Value: value.MustText(c.Arguments)})...)
	}
	var ms []value.Member
	for _, m := range []struct{ key, text string }{
		{"text", r.Text}, {"raw", string(r.Raw)}, {"dialect", r.Dialect}, {"reason", r.Reason},
	} {
		v, err := value.Text(m.text)
		if err != nil {
			return value.Value{}, fmt.Errorf("%s of a reply: %w", m.key, err)
		}
		if m.text != "" {
			ms = append(ms, value.Member{Key: m.key, Value: v})
		}
	}
	if len(calls) > 0 {
		ms = append(ms, value.Member{Key: "calls", Value: value.ListOf(calls...)})
	}
	ms = append(ms, value.Member{Key: "finish", Value: value.MustText(r.Finish.String())})
	if r.Usage.Prompt != nil {
		ms = append(ms, value.Member{Key: "prompt_tokens", Value: value.Int(int64(*r.Usage.Prompt))})
	}
	if r.Usage.Completion != nil {
		ms = append(ms, value.Member{Key: "completion_tokens", Value: value.Int(int64(*r.Usage.Completion))})
	}
	for _, l := range []struct {
		key  string
		list []string
	}{{"fallbacks", r.Fallbacks}, {"edits", r.Edits}} {
		if len(l.list) == 0 {
			continue
		}
		v, err := value.Of(l.list)
		if err != nil {
			return value.Value{}, fmt.Errorf("%s of a reply: %w", l.key, err)
		}
		ms = append(ms, value.Member{Key: l.key, Value: v})
	}
	return value.ObjectOf(ms...), nil
}

// ParseReply reads what [Reply.Value] wrote. Unknown members are an error.
func ParseReply(v value.Value) (*Reply, error) {
	var doc struct {
		Text    string `json:"text"`
		Raw     string `json:"raw"`
		Dialect string `json:"dialect"`
		Reason  string `json:"reason"`
		Calls   []struct {
			ID         string `json:"id"`
			ProviderID string `json:"provider_id"`
			Name       string `json:"name"`
			Arguments  string `json:"arguments"`
		} `json:"calls"`
		Finish     string   `json:"finish"`
		Prompt     *int     `json:"prompt_tokens"`
		Completion *int     `json:"completion_tokens"`
		Fallbacks  []string `json:"fallbacks"`
		Edits      []string `json:"edits"`
	}
	if err := v.Decode(&doc, strict); err != nil {
		return nil, fmt.Errorf("a stored reply: %w", err)
	}
	r := &Reply{
		Text: doc.Text, Dialect: doc.Dialect, Reason: doc.Reason,
		Usage: Usage{doc.Prompt, doc.Completion}, Fallbacks: doc.Fallbacks, Edits: doc.Edits,
	}
	if doc.Raw != "" {
		r.Raw = []byte(doc.Raw)
	}
	for _, c := range doc.Calls {
		r.Calls = append(r.Calls, Call(c))
	}
	for f, name := range finishes {
		if name == doc.Finish {
			r.Finish = Finish(f)
			return r, nil
		}
	}
	return nil, fmt.Errorf("a stored reply: unknown finish %.80q", doc.Finish)
}
