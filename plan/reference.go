package plan

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Ref is a reference in a step's args. It is also the provenance of what the
// resolved args hold at Pointer; everything that is not below the pointer of
// some Ref is a literal of the plan.
type Ref struct {
	Pointer string // RFC 6901, relative to args
	Text    string // as written, with the $
	Step    int    // index of the producing step; -1: meant as a reference, but to nothing (bad_reference)
	Path    string // what follows the id and its dot; see HasPath
	HasPath bool   // "$s1." has the path "", "$s1" has none
}

// Read reads one string of a plan's args by the four rules of spec/plan.md §2.
// For a reference isRef is true, and ref has all but the pointer; otherwise
// literal is what the string stands for.
func (p *Plan) Read(text string) (ref Ref, literal string, isRef bool) {
	return p.ids.read(text)
}

func (s *ids) read(text string) (ref Ref, literal string, isRef bool) {
	if text == "" || text[0] != '$' {
		return Ref{}, text, false
	}
	body := text[1:]
	if strings.HasPrefix(body, "$") {
		return Ref{}, body, false
	}
	if step, end := s.longestAt(body); step >= 0 {
		ref = Ref{Text: text, Step: step}
		if end < len(body) {
			ref.Path, ref.HasPath = body[end+1:], true
		}
		return ref, "", true
	}
	if meant(body) {
		return Ref{Text: text, Step: -1}, "", true
	}
	return Ref{}, text, false
}

// longestAt finds the longest known id that body starts with and that ends at
// its end or at a dot. It cuts at dots from the right, and looks no further
// than the longest id goes: a body of a million dots costs no more than a few.
func (s *ids) longestAt(body string) (step, end int) {
	end = len(body)
	for {
		if end > s.longest {
			end = strings.LastIndexByte(body[:min(len(body), s.longest+1)], '.')
		}
		if end < 0 {
			return -1, 0
		}
		if step = s.index(body[:end]); step >= 0 {
			return step, end
		}
		end = strings.LastIndexByte(body[:end], '.')
	}
}

// meant reports whether a body that names no step was meant as a reference
// (rule 3).
func meant(body string) bool {
	if body == "" {
		return false
	}
	if body[0] == '{' || body[0] == '[' {
		return true
	}
	r, _ := utf8.DecodeRuneInString(body)
	if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
		return false
	}
	return strings.IndexFunc(body, func(r rune) bool { return r == '$' || unicode.IsSpace(r) }) < 0
}

// Escape writes text so that a plan reads it as exactly this text and never as
// a reference.
func Escape(text string) string {
	if strings.HasPrefix(text, "$") {
		return "$" + text
	}
	return text
}
