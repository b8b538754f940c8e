package plan

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// MaxID is how many code points an id may have (spec/plan.md §1).
const MaxID = 64

// ids finds steps by id. Its zero value is empty and must grow before it is added to.
type ids struct {
	exact   map[string]int
	folded  map[string]int // by folded id, only of ids that folding changes
	longest int            // bytes of the longest id
}

// index is the step with exactly this id, -1 if there is none.
func (s *ids) index(id string) int {
	if i, ok := s.exact[id]; ok {
		return i
	}
	return -1
}

// grow makes room for n ids.
func (s *ids) grow(n int) { s.exact, s.folded = make(map[string]int, n), make(map[string]int) }

// add gives the id to a step. It returns the step that already has an id equal
// after folding, or -1.
func (s *ids) add(id string, step int) (taken int) {
	// Folding twice changes nothing more, so an id that is its own folded form
	// is found in exact, and every other one in folded.
	key := Fold(id)
	if i, ok := s.exact[key]; ok {
		return i
	}
	if i, ok := s.folded[key]; ok {
		return i
	}
	s.exact[id] = step
	if key != id {
		s.folded[key] = step
	}
	s.longest = max(s.longest, len(id))
	return -1
}

// Fold is the form in which two ids must differ: NFKC and full case folding,
// composed again because folding can undo it (spec/plan.md §1).
func Fold(id string) string {
	ascii, lower := true, true
	for i := range len(id) {
		ascii = ascii && id[i] < utf8.RuneSelf
		lower = lower && (id[i] < 'A' || id[i] > 'Z')
	}
	switch {
	case ascii && lower:
		return id
	case ascii:
		return strings.ToLower(id)
	}
	id = strings.Map(foldCherokee, cases.Fold().String(norm.NFKC.String(id)))
	return norm.NFKC.String(id)
}

// foldCherokee takes Cherokee letters to capitals, which is how Unicode folds
// them; cases.Fold swaps them instead, so that it never brings the two together.
func foldCherokee(r rune) rune {
	switch {
	case 0xAB70 <= r && r <= 0xABBF:
		return r - 0xAB70 + 0x13A0
	case 0x13F8 <= r && r <= 0x13FD:
		return r - 8
	}
	return r
}

// CheckID says what is wrong with an id, "" when nothing is (spec/plan.md §1).
func CheckID(id string) string {
	if id == "" {
		return "an id must not be empty"
	}
	n := 0
	for i, r := range id {
		n++
		switch {
		case r == '_', unicode.IsLetter(r), unicode.Is(unicode.Nd, r):
		case i == 0:
			return fmt.Sprintf("an id starts with a letter, a digit or _, not with %q", r)
		case r == '-', r == '.', unicode.IsMark(r):
		default:
			return fmt.Sprintf("an id has letters, marks, digits, _, - and . only, not %q", r)
		}
	}
	if n > MaxID {
		return fmt.Sprintf("an id has at most %d characters, not %d", MaxID, n)
	}
	return ""
}
