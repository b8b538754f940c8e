package agent

import (
	"slices"
	"unicode/utf8"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/value"
)

// A Redactor takes secrets out of text and JSON. gate.Vault is one.
type Redactor interface {
	RedactText(s string) string
	// Redact is v with the secrets in its strings, names and numbers replaced, v
	// itself without one.
	Redact(v value.Value) value.Value
	// Longest is the number of bytes of the longest text that stands for a
	// secret: that much of a text which still goes on is kept back.
	Longest() int
}

// clean is a reply without secrets in what it says and asks for, so that none is
// recorded, shown, or sent back to the model. A reply that holds none stays byte
// for byte as it is.
func clean(own *model.Reply, r Redactor) {
	changed := false
	text := func(s *string) {
		if out := r.RedactText(*s); out != *s {
			*s, changed = out, true
		}
	}
	text(&own.Text)
	text(&own.Reason)
	own.Fallbacks = slices.Clone(own.Fallbacks)
	for _, list := range [][]string{own.Edits, own.Fallbacks} {
		for i := range list {
			text(&list[i])
		}
	}
	arguments := map[string]string{} // that were changed: a raw message has them as text
	for i := range own.Calls {
		c := &own.Calls[i]
		for _, s := range []*string{&c.ID, &c.ProviderID, &c.Name} {
			text(s)
		}
		if out := cleanJSON(c.Arguments, r.Redact, r); out != c.Arguments {
			arguments[c.Arguments] = out
			c.Arguments, changed = out, true
		}
	}
	if raw := string(own.Raw); own.Raw != nil {
		out := cleanJSON(raw, func(v value.Value) value.Value { return r.Redact(replaced(v, arguments)) }, r)
		if out != raw {
			own.Raw, changed = []byte(out), true
		}
	}
	if changed {
		own.Edits = append(own.Edits, "secrets were taken out")
	}
}

// cleanJSON is s without secrets: JSON stays JSON, and in it a secret is found
// however its characters are escaped. What is not JSON is redacted as text.
func cleanJSON(s string, redact func(value.Value) value.Value, r Redactor) string {
	v, err := value.Parse(s)
	if err != nil {
		return r.RedactText(s)
	}
	if out := redact(v); out != v {
		return out.String()
	}
	return s
}

// replaced is v with the strings in with replaced, also in its parts.
func replaced(v value.Value, with map[string]string) value.Value {
	if text, ok := v.Text(); ok {
		if out, ok := with[text]; ok {
			return value.MustText(out)
		}
		return v
	}
	return rebuild(v, func(_ int, part value.Value) value.Value { return replaced(part, with) })
}

// stream tells a text that arrives in pieces, without secrets. It keeps back what
// may be the beginning of one.
type stream struct {
	redact Redactor // nil: there are no secrets
	kept   string
	tell   func(text string)
}

func (s *stream) take(text string) {
	if s.redact == nil {
		s.tell(text)
		return
	}
	s.kept = s.redact.RedactText(s.kept + text)
	n := len(s.kept) - s.redact.Longest()
	for n > 0 && n < len(s.kept) && !utf8.RuneStart(s.kept[n]) {
		n--
	}
	if n > 0 {
		s.tell(s.kept[:n])
		s.kept = s.kept[n:]
	}
}

// end tells what was kept back.
func (s *stream) end() {
	if s.kept != "" {
		s.tell(s.kept)
		s.kept = ""
	}
}
