package agent

import (
	"strings"
	"time"

	"github.com/callsheet/callsheet/value"
	"github.com/go-json-experiment/json/jsontext"
)

// A Record is the trace of one call, whatever became of it (spec/agent.md §4).
type Record struct {
	Round     int
	Step      string      // ROUND.N
	Tool      string      // the contract's name of a submission, whatever the model called it
	Arguments value.Value // clipped, or in short; no value where they do not matter
	Error     string      // "" when there was none
	Before    int         // what was left of the tool budget; below 0 when it was overshot
	After     int
	Start     time.Time
	Duration  time.Duration
	Again     int      // calls that were made again because their outcome was lost
	SameAs    string   // the step whose result this call shares
	Coerced   []string // pointers of what came as a string and was read as JSON

	source bool // only tool, arguments and error are shown
}

// Value is the record as JSON.
func (r *Record) Value() value.Value {
	var ms []value.Member
	add := func(key string, v value.Value) { ms = append(ms, value.Member{Key: key, Value: v}) }
	text := func(s string) value.Value { return value.MustText(strings.ToValidUTF8(s, "\uFFFD")) }
	if !r.source {
		add("round", value.Int(int64(r.Round)))
		add("step", text(r.Step))
	}
	add("tool", text(r.Tool))
	if !r.Arguments.IsZero() {
		add("arguments", r.Arguments)
	}
	if r.Error != "" {
		add("error", text(r.Error))
	}
	if r.source {
		return value.ObjectOf(ms...)
	}
	add("budget_before", value.Int(int64(r.Before)))
	add("budget_after", value.Int(int64(r.After)))
	add("start", text(r.Start.UTC().Format(time.RFC3339Nano)))
	add("duration_ms", value.Int(r.Duration.Milliseconds()))
	if r.Again > 0 {
		add("again", value.Int(int64(r.Again)))
	}
	if r.SameAs != "" {
		add("same_as", text(r.SameAs))
	}
	if len(r.Coerced) > 0 {
		vs := make([]value.Value, len(r.Coerced))
		for i, p := range r.Coerced {
			vs[i] = text(p)
		}
		add("coerced", value.ListOf(vs...))
	}
	return value.ObjectOf(ms...)
}

// MarshalJSONTo writes [Record.Value].
func (r *Record) MarshalJSONTo(enc *jsontext.Encoder) error { return r.Value().MarshalJSONTo(enc) }

// clipped is how many characters of a string the trace keeps.
const clipped = 200

// Clip shortens every string in v to n characters, with a note of how many were
// cut. Names and everything that is no string stay.
func Clip(v value.Value, n int) value.Value {
	if v.Size() <= n {
		return v
	}
	switch v.Kind() {
	case value.String:
		text, _ := v.Text()
		if short := clipText(text, n); len(short) != len(text) {
			return value.MustText(short)
		}
	case value.List:
		vs := make([]value.Value, 0, v.Len())
		for _, e := range v.Elements() {
			vs = append(vs, Clip(e, n))
		}
		return value.ListOf(vs...)
	case value.Object:
		ms := make([]value.Member, 0, v.Len())
		for key, m := range v.Members() {
			ms = append(ms, value.Member{Key: key, Value: Clip(m, n)})
		}
		return value.ObjectOf(ms...)
	}
	return v
}
