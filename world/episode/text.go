package episode

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
)

// fromText reads role-prefixed text: a line such as "Action: …" opens a block,
// other lines continue it.
func fromText(text, source string) Episode {
	e := Episode{ID: world.ID("ep", value.MustText(source), value.Int(0)), SourceID: source, Metadata: value.ObjectOf()}
	id := value.MustText(e.ID)
	label := "unknown"
	var block []string
	flush := func() {
		body := strings.TrimFunc(strings.Join(block, "\n"), isSpace)
		block = block[:0]
		if body == "" {
			return
		}
		ev := Event{Kind: Message, Actor: actorOf(label), Content: value.MustText(body), Metadata: value.ObjectOf(), RawPayload: value.NullValue()}
		switch label {
		case "action":
			ev.Kind, ev.Actor = Action, Agent
		case "observation", "environment", "tool":
			ev.Kind = Observation
		case "error":
			ev.Kind = Error
		}
		ev.ID = world.ID("evt", id, value.Int(int64(len(e.Events))), value.MustText(label), ev.Content)
		e.Events = append(e.Events, ev)
	}
	for rest := text; rest != ""; {
		var line string
		line, rest = cutLine(rest)
		if l, body, ok := prefix(line); ok {
			flush()
			label = l
			block = append(block, body)
		} else {
			block = append(block, line)
		}
	}
	flush()
	if len(e.Events) == 0 {
		e.Events = []Event{{ID: world.ID("evt", id, value.Int(0)), Actor: NoActor, Kind: Message, Content: value.MustText(text),
			Metadata: value.ObjectOf(), RawPayload: value.NullValue()}}
	}
	return e
}

var labels = [...]string{"user", "human", "assistant", "agent", "action", "observation", "environment", "tool", "system", "error"}

// prefix splits "Label : body".
func prefix(line string) (label, body string, ok bool) {
	for _, l := range labels {
		if len(line) <= len(l) || !strings.EqualFold(line[:len(l)], l) {
			continue
		}
		rest := strings.TrimLeftFunc(line[len(l):], isSpace)
		if !strings.HasPrefix(rest, ":") {
			return "", "", false
		}
		return l, strings.TrimLeftFunc(rest[1:], isSpace), true
	}
	return "", "", false
}

// isSpace is what the format strips: Unicode space and the four separators.
func isSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

// cutLine cuts at every line boundary that the format knows, of which "\n" is
// one; ids depend on it.
func cutLine(s string) (line, rest string) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\r' && i+1 < len(s) && s[i+1] == '\n':
			return s[:i], s[i+2:]
		case c >= '\n' && c <= '\r', c >= 0x1c && c <= 0x1e:
			return s[:i], s[i+1:]
		case c == 0xc2 || c == 0xe2:
			if r, w := utf8.DecodeRuneInString(s[i:]); r == '\u0085' || r == '\u2028' || r == '\u2029' {
				return s[:i], s[i+w:]
			}
		}
	}
	return s, ""
}
