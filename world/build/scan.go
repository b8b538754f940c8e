package build

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/internal/python"
)

// A piece is part of an observation: text, or a slot that holds a number or the
// text of an argument.
type piece struct {
	text string
	slot bool
	args []string // the arguments that are written like this
}

// minArgument is the shortest text of an argument that is looked for: a single
// letter is everywhere.
const minArgument = 2

// scan takes an observation apart. An argument is found where its text stands
// between things that are no part of a word, and the longest that fits wins.
func scan(text string, a world.Action) []piece {
	type arg struct{ name, text string }
	var args []arg
	for k, v := range a.Arguments.Members() {
		if v.Kind() != value.String && v.Kind() != value.Number {
			continue
		}
		if s := python.Str(v); len(s) >= minArgument || v.Kind() == value.Number {
			args = append(args, arg{k, s})
		}
	}
	slices.SortStableFunc(args, func(a, b arg) int { return cmp.Compare(len(b.text), len(a.text)) })
	var out []piece
	literal := 0
	flush := func(to int) {
		if to > literal {
			out = append(out, piece{text: text[literal:to]})
		}
	}
	for i := 0; i < len(text); {
		found := ""
		if boundary(text, i) {
			for _, a := range args {
				if strings.HasPrefix(text[i:], a.text) && boundary(text, i+len(a.text)) {
					found = a.text
					break
				}
			}
			if n := number(text[i:]); n > len(found) && boundary(text, i+n) {
				found = text[i : i+n]
			}
		}
		if found == "" {
			_, w := utf8.DecodeRuneInString(text[i:])
			i += w
			continue
		}
		flush(i)
		p := piece{text: found, slot: true}
		for _, a := range args {
			if a.text == found {
				p.args = append(p.args, a.name)
			}
		}
		slices.Sort(p.args)
		out = append(out, p)
		i += len(found)
		literal = i
	}
	flush(len(text))
	return out
}

// boundary reports whether position i is not inside a word.
func boundary(s string, i int) bool {
	if i == 0 || i == len(s) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(s[:i])
	after, _ := utf8.DecodeRuneInString(s[i:])
	return !(word(before) && word(after))
}

func word(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// number is the length of the JSON number at the beginning of s, 0 without one.
func number(s string) int {
	i := 0
	if strings.HasPrefix(s, "-") {
		i++
	}
	digits := func() int {
		from := i
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i - from
	}
	from := i
	if n := digits(); n == 0 || n > 1 && s[from] == '0' {
		return 0
	}
	whole := i
	if i < len(s) && s[i] == '.' {
		i++
		if digits() == 0 {
			return whole
		}
	}
	return i
}

// label is the name of the quantity whose value follows a text: its last word.
func label(text string) string {
	end := len(text)
	for end > 0 {
		r, w := utf8.DecodeLastRuneInString(text[:end])
		if word(r) {
			break
		}
		end -= w
	}
	start := end
	for start > 0 {
		r, w := utf8.DecodeLastRuneInString(text[:start])
		if !word(r) {
			break
		}
		start -= w
	}
	name := strings.ToLower(text[start:end])
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return ""
	}
	for i := range len(name) {
		if c := name[i]; !(c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9') {
			return ""
		}
	}
	return name
}
