package agent

import (
	"slices"
	"unicode/utf8"

	"github.com/callsheet/callsheet/model"
)

// A Redactor takes secrets out of text. gate.Vault is one.
type Redactor interface {
	RedactText(s string) string
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
	for i := range own.Calls {
		c := &own.Calls[i]
		for _, s := range []*string{&c.ID, &c.ProviderID, &c.Name, &c.Arguments} {
			text(s)
		}
	}
	if own.Raw != nil {
		raw := string(own.Raw)
		if text(&raw); raw != string(own.Raw) {
			own.Raw = []byte(raw)
		}
	}
	if changed {
		own.Edits = append(own.Edits, "secrets were taken out")
	}
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
