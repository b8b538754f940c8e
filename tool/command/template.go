package command

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// A Part is one element of argv, or a group of them that is left out whole when
// the args lack one of its placeholders: {"-n", "{lines}"}.
type Part struct {
	Words    []string
	Optional bool
}

// Words makes a command of elements that are always there.
func Words(words ...string) []Part {
	parts := make([]Part, len(words))
	for i, w := range words {
		parts[i] = Part{Words: []string{w}}
	}
	return parts
}

// Group is a part that is left out when one of its placeholders has no arg.
func Group(words ...string) Part { return Part{Words: words, Optional: true} }

// part is a compiled Part.
type part struct {
	words    []word
	optional bool
}

// word is a compiled element.
type word struct {
	pieces []piece
	ended  bool // after the literal "--"
	dash   bool // a value at its start may start with a dash
}

// piece is literal text or the name of a placeholder.
type piece struct {
	text string
	hole bool
}

// use is one placeholder of a command.
type use struct {
	name     string
	optional bool
}

func (p part) hasHole() bool {
	for _, w := range p.words {
		for _, piece := range w.pieces {
			if piece.hole {
				return true
			}
		}
	}
	return false
}

var errBrace = errors.New("a brace that belongs to no placeholder; write {{ or }} for a brace")

// parseTemplate cuts s into literals and placeholders.
func parseTemplate(s string) (word, error) {
	if strings.ContainsRune(s, 0) || !utf8.ValidString(s) {
		return word{}, errors.New("text with a NUL byte, or that is not valid UTF-8")
	}
	var w word
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			w.pieces = append(w.pieces, piece{text: lit.String()})
			lit.Reset()
		}
	}
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			lit.WriteString(s)
			break
		}
		lit.WriteString(s[:i])
		if s = s[i:]; len(s) > 1 && s[1] == s[0] {
			lit.WriteByte(s[0])
			s = s[2:]
			continue
		}
		end := strings.IndexByte(s, '}')
		if s[0] == '}' || end < 0 {
			return word{}, errBrace
		}
		name := s[1:end]
		if name == "" || strings.ContainsAny(name, "{ \t\r\n\"'") {
			return word{}, errBrace
		}
		flush()
		w.pieces = append(w.pieces, piece{text: name, hole: true})
		s = s[end+1:]
	}
	flush()
	return w, nil
}

// fill makes argv of args. The error is a [*tool.Failure].
func (p *program) fill(args value.Value) ([]string, error) {
	argv := make([]string, 0, len(p.argv))
	argv = append(argv, p.path)
	for _, part := range p.argv[1:] {
		if part.optional && !part.given(args) {
			continue
		}
		for _, w := range part.words {
			s, err := p.fillWord(w.pieces, args)
			if err != nil {
				return nil, err
			}
			if strings.ContainsRune(s, 0) {
				return nil, refuse("arg %q holds a NUL byte", w.name())
			}
			if len(w.pieces) > 0 && w.pieces[0].hole && !w.dash && strings.HasPrefix(s, "-") {
				return nil, refuse("arg %q starts with a dash, which the program could take for an option", w.name())
			}
			argv = append(argv, s)
		}
	}
	return argv, nil
}

func (p *program) fillStdin(args value.Value) (string, error) {
	if p.stdin == nil {
		return "", nil
	}
	return p.fillWord(p.stdin, args)
}

func (p *program) fillWord(pieces []piece, args value.Value) (string, error) {
	var b strings.Builder
	for _, piece := range pieces {
		if !piece.hole {
			b.WriteString(piece.text)
			continue
		}
		s, err := p.text(piece.text, args)
		if err != nil {
			return "", err
		}
		b.WriteString(s)
	}
	return b.String(), nil
}

// text is what stands in argv for the arg name.
func (p *program) text(name string, args value.Value) (string, error) {
	v, ok := args.Get(name)
	if !ok {
		return "", refuse("arg %q is missing, and the command needs it", name)
	}
	par := p.param[name]
	if par.JSON {
		return v.String(), nil
	}
	s, isText := v.Text()
	switch {
	case par.Path != "":
		if !isText {
			return "", refuse("arg %q must be a path, not %s", name, v.Kind())
		}
		if err := checkPath(p.Dir, s, par.Path, !p.Effects.ReadOnly); err != nil {
			return "", refuse("arg %q: %v", name, err)
		}
	case v.Kind() == value.List || v.Kind() == value.Object:
		return "", refuse("arg %q must be a scalar, not %s", name, v.Kind())
	case !isText:
		s = v.String()
	}
	return s, nil
}

func (p part) given(args value.Value) bool {
	for _, w := range p.words {
		for _, piece := range w.pieces {
			if _, ok := args.Get(piece.text); piece.hole && !ok {
				return false
			}
		}
	}
	return true
}

// name is the first placeholder of w.
func (w word) name() string {
	for _, piece := range w.pieces {
		if piece.hole {
			return piece.text
		}
	}
	return ""
}

// refuse is a failure before anything started.
func refuse(format string, args ...any) *tool.Failure {
	return &tool.Failure{Code: tool.CodeInvalidArgs, Message: fmt.Sprintf(format, args...), NotStarted: true}
}
