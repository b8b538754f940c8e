package tool

import (
	"strings"

	"github.com/callsheet/callsheet/internal/lookalike"
	"github.com/callsheet/callsheet/internal/nearest"
)

// maxCandidates bounds one search for near names; a plan of 10,000 steps has as
// many ids.
const maxCandidates = 10_000

// Nearest returns up to n of the names that name may be a misspelling of, the
// best first: those of which at most a third of the letters differ (one at
// least), four at most, where a swap of two neighbours counts once and case not
// at all. Last come the names that start or end with all of it, or the other way
// round. The work is bounded by the number of names.
func Nearest(name string, among []string, n int) []string {
	if n <= 0 {
		return nil
	}
	among = among[:min(len(among), maxCandidates)]
	var near []string
	seen := make(map[int]bool, n)
	for _, m := range nearest.New(among).Find(name, n, func(i int) bool { return among[i] == name }) {
		near = append(near, among[m.Index])
		seen[m.Index] = true
	}
	for i := 0; i < len(among) && len(near) < n; i++ {
		if among[i] != name && !seen[i] && contains(name, among[i]) {
			near = append(near, among[i])
		}
	}
	return near
}

// contains reports whether the longer name starts or ends with the shorter one,
// which has to have four characters to mean anything.
func contains(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	return len(a) >= 4 && (strings.EqualFold(a, b[:len(a)]) || strings.EqualFold(a, b[len(b)-len(a):]))
}

// drawnAs are the characters of ASCII that are drawn alike.
var drawnAs = strings.NewReplacer("I", "l", "1", "l", "|", "l", "O", "o", "0", "o")

// skeleton is what a name looks like, whatever its case: two names with one
// skeleton are taken for each other.
func skeleton(name string) string {
	return strings.ToLower(drawnAs.Replace(lookalike.Skeleton(name)))
}
