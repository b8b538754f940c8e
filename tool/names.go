package tool

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

const (
	// maxCompared is how much of a name is compared: names that agree in 64
	// characters and differ later are near enough.
	maxCompared = 64
	// maxCandidates bounds one search; a plan of 10,000 steps has as many ids.
	maxCandidates = 10_000
)

// Nearest returns up to n of the names that name may be a misspelling of, the
// best first: those within a third of its length in edits (one at least), where
// an edit inserts, drops or replaces a character or swaps two neighbours, and a
// change of case is half of one. A name that starts or ends with all of it, or
// the other way round, is near too. The work is bounded by the number of names.
func Nearest(name string, among []string, n int) []string {
	type candidate struct {
		name     string
		distance int
	}
	if n <= 0 {
		return nil
	}
	var wantBuffer, haveBuffer [maxCompared]rune
	want := clipRunes(name, &wantBuffer)
	near := make([]candidate, 0, n+1) // the best so far, in order
	widest := max(1, len(want)/3) * 2
	limit := widest
	for _, other := range among[:min(len(among), maxCandidates)] {
		if other == name {
			continue
		}
		have := clipRunes(other, &haveBuffer)
		d := distance(want, have, limit)
		if d > limit && limit == widest && contains(name, other) {
			d = limit
		}
		if d > limit {
			continue
		}
		at := len(near)
		for at > 0 && near[at-1].distance > d {
			at--
		}
		near = slices.Insert(near, at, candidate{other, d})
		if len(near) > n {
			near = near[:n]
		}
		if len(near) == n {
			// From here on only what is better than the last one counts.
			limit = near[n-1].distance - 1
		}
	}
	out := make([]string, len(near))
	for i, c := range near {
		out[i] = c.name
	}
	return out
}

// clipRunes is the part of a name that is compared.
func clipRunes(s string, buffer *[maxCompared]rune) []rune {
	n := 0
	for _, r := range s {
		if n == maxCompared {
			break
		}
		buffer[n] = r
		n++
	}
	return buffer[:n]
}

// contains reports whether the longer name starts or ends with the shorter one,
// which has to have four characters to mean anything.
func contains(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return len(a) >= 4 && (strings.EqualFold(a, b[:len(a)]) || strings.EqualFold(a, b[len(b)-len(a):]))
}

// distance counts half edits between a and b, and stops counting beyond limit.
func distance(a, b []rune, limit int) int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if d := 2 * (len(a) - len(b)); d > limit || -d > limit {
		return limit + 1
	}
	var rows [3][maxCompared + 1]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = 2 * j
	}
	band := limit / 2 // further off the diagonal every path costs more
	for i, x := range a {
		from, to := max(0, i-band), min(len(b), i+band+1)
		row[from] = limit + 1
		if from == 0 {
			row[0] = 2 * (i + 1)
		}
		least := row[from]
		for j := from; j < to; j++ {
			y := b[j]
			change := 2
			if x == y {
				change = 0
			} else if unicode.ToLower(x) == unicode.ToLower(y) {
				change = 1
			}
			d := min(last[j]+change, row[j]+2, last[j+1]+2)
			if i > 0 && j > 0 && x == b[j-1] && y == a[i-1] {
				d = min(d, before[j-1]+2)
			}
			row[j+1] = d
			least = min(least, d)
		}
		if to < len(b) {
			row[to+1] = limit + 1
		}
		if least > limit {
			return limit + 1
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// drawnAs maps characters to the one that they are most easily taken for, after
// NFKC. Only what is drawn alike in common fonts is here.
var drawnAs = map[rune]rune{
	'I': 'l', '1': 'l', '|': 'l', 'O': 'o', '0': 'o',
	// Cyrillic
	'а': 'a', 'с': 'c', 'ԁ': 'd', 'е': 'e', 'һ': 'h', 'і': 'i', 'ј': 'j', 'ӏ': 'l', 'о': 'o', 'р': 'p', 'ԛ': 'q', 'ѕ': 's',
	'у': 'y', 'ѵ': 'v', 'ԝ': 'w', 'х': 'x', 'А': 'a', 'В': 'b', 'С': 'c', 'Е': 'e', 'Н': 'h', 'І': 'l', 'Ј': 'j', 'К': 'k',
	'М': 'm', 'О': 'o', 'Р': 'p', 'Ѕ': 's', 'Т': 't', 'У': 'y', 'Х': 'x', 'Ӏ': 'l',
	// Greek
	'α': 'a', 'ε': 'e', 'ι': 'i', 'κ': 'k', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'υ': 'u', 'χ': 'x', 'Α': 'a', 'Β': 'b', 'Ε': 'e',
	'Ζ': 'z', 'Η': 'h', 'Ι': 'l', 'Κ': 'k', 'Μ': 'm', 'Ν': 'n', 'Ο': 'o', 'Ρ': 'p', 'Τ': 't', 'Υ': 'y', 'Χ': 'x',
	// Armenian, and Latin letters that stand beside the alphabet
	'օ': 'o', 'ս': 'u', 'ո': 'n', 'հ': 'h', 'ɑ': 'a', 'ɡ': 'g', 'ı': 'i',
}

// skeleton is what a name looks like: two names with one skeleton are taken for
// each other.
func skeleton(name string) string {
	var b strings.Builder
	for _, r := range norm.NFKC.String(name) {
		if to, ok := drawnAs[r]; ok {
			r = to
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}
