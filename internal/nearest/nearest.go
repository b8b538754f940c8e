// Package nearest finds the names that a wrong one may have been meant for.
//
//	s := nearest.New([]string{"fetch", "search", "sum"})
//	s.Find("serch", 1, nil) // search, one edit away
package nearest

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// maxCompared is how many characters of a name are compared: names that agree
	// in 64 and differ later are near enough.
	maxCompared = 64
	// maxEdits is how many letters of a mistyped name may differ. Models take one
	// word for another more often than that, but those are not found by spelling;
	// and the time for a search grows with it.
	maxEdits = 4
	// maxWork is how many pairs of letters one Search compares, about half a
	// second: a hundred searches among ten thousand long names would take ten.
	maxWork = 100_000_000
)

// A Search looks for names in one list. It is not safe for concurrent use.
type Search struct {
	names []string
	forms []rune // of all names, one after the other; made at the first search
	ends  []int
	work  int
}

// New prepares searches among names, which must not change.
func New(names []string) *Search { return &Search{names: names} }

// A Match is a name that is near.
type Match struct {
	Index    int // in the list
	Distance int // edits: an insertion, a deletion, a change, or a swap of neighbours
}

// Spent reports that this Search has done all the work it may do: it finds
// nothing any more.
func (s *Search) Spent() bool { return s.work > maxWork }

// Find returns the n names that are nearest to name, the best first, or with n 0
// all that are at the least distance, in their order. Case is no distance, nor
// are compatibility forms. Names are near when at most a third of the letters
// differ, at most maxEdits, and something is in common. What skip says true of
// is left out; nil skips nothing.
func (s *Search) Find(name string, n int, skip func(i int) bool) []Match {
	if s.forms == nil {
		s.ends = make([]int, len(s.names))
		for i, other := range s.names {
			s.forms = appendForm(s.forms, other)
			s.ends[i] = len(s.forms)
		}
	}
	var buffer [maxCompared]rune
	want := appendForm(buffer[:0], name)
	var near []Match
	limit := maxEdits // more than that does not count
	start := 0
	for i, end := range s.ends {
		have := s.forms[start:end]
		start = end
		if s.Spent() {
			return nil
		}
		if skip != nil && skip(i) {
			continue
		}
		longest := max(len(have), len(want))
		allowed := min(max(1, longest/3), longest-1, limit)
		d := s.distance(want, have, allowed)
		if d > allowed {
			continue
		}
		if n == 0 {
			if d < limit {
				near, limit = near[:0], d
			}
			near = append(near, Match{i, d})
			continue
		}
		at := len(near)
		for at > 0 && near[at-1].Distance > d {
			at--
		}
		near = slices.Insert(near, at, Match{i, d})
		near = near[:min(len(near), n)]
		if len(near) == n {
			limit = near[n-1].Distance - 1
		}
	}
	return near
}

// appendForm appends the form in which a name is compared.
func appendForm(to []rune, name string) []rune {
	room := len(to) + maxCompared
	if len(name) > maxCompared*utf8.UTFMax {
		name = strings.ToValidUTF8(name[:maxCompared*utf8.UTFMax], "")
	}
	for _, r := range norm.NFKC.String(name) {
		if len(to) == room {
			break
		}
		to = append(to, unicode.ToLower(r))
	}
	return to
}

// distance is the number of edits between a and b; more than most is only known
// to be more.
func (s *Search) distance(a, b []rune, most int) int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	s.work++
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	var rows [3][maxCompared + 1]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	// Only the band around the diagonal can be within most; beside it stands
	// what is too much.
	for i := 1; i <= len(a); i++ {
		from, to := max(1, i-most), min(len(b), i+most)
		s.work += to - from + 1
		row[from-1] = most + 1
		if from == 1 {
			row[0] = i
		}
		least := row[from-1]
		for j := from; j <= to; j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			least = min(least, row[j])
		}
		if to < len(b) {
			row[to+1] = most + 1
		}
		if least > most {
			return most + 1
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
