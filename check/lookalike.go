package check

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// lookalike are the letters of Cyrillic, Greek and Armenian that common fonts
// draw like a Latin letter or a digit, in pairs.
var lookalike = strings.NewReplacer(
	"а", "a", "с", "c", "ԁ", "d", "е", "e", "һ", "h", "і", "i", "ј", "j", "ӏ", "l", "о", "o", "р", "p",
	"ԛ", "q", "ѕ", "s", "ԝ", "w", "х", "x", "у", "y", "ѵ", "v", "ɡ", "g", "ո", "n", "օ", "o", "ս", "u", "հ", "h",
	"А", "A", "В", "B", "С", "C", "Е", "E", "Н", "H", "І", "I", "Ј", "J", "К", "K", "М", "M", "О", "O",
	"Р", "P", "Ѕ", "S", "Т", "T", "Х", "X", "У", "Y", "З", "3", "Ԍ", "G", "Ԛ", "Q", "Ԝ", "W",
	"α", "a", "γ", "y", "ι", "i", "κ", "k", "ν", "v", "ο", "o", "ρ", "p", "τ", "t", "υ", "u", "χ", "x",
	"Α", "A", "Β", "B", "Ε", "E", "Ζ", "Z", "Η", "H", "Ι", "I", "Κ", "K", "Μ", "M", "Ν", "N", "Ο", "O",
	"Ρ", "P", "Τ", "T", "Υ", "Y", "Χ", "X",
)

// skeleton is what an id looks like: compatibility forms and lookalike letters
// as their Latin ones.
func skeleton(id string) string {
	if isASCII(id) {
		return id
	}
	return lookalike.Replace(norm.NFKC.String(id))
}

// mixesScripts reports Latin letters beside those of a script that has
// lookalikes.
func mixesScripts(id string) bool {
	latin, other := false, false
	for _, r := range id {
		latin = latin || unicode.Is(unicode.Latin, r)
		other = other || unicode.In(r, unicode.Cyrillic, unicode.Greek, unicode.Armenian)
	}
	return latin && other
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
