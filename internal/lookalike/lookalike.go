// Package lookalike knows what characters are drawn alike:
//
//	lookalike.Skeleton("pаypal") // "paypal", although its first a is Cyrillic
//	lookalike.Scripts("pаypal")  // Latin and Cyrillic
//	lookalike.Hidden('\u200b')   // true: it has no width
package lookalike

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// drawn are the letters beyond ASCII that common fonts draw like a letter or a
// digit of it, in pairs. They stand after NFKC.
var drawn = strings.NewReplacer(
	// Cyrillic
	"а", "a", "с", "c", "ԁ", "d", "е", "e", "һ", "h", "і", "i", "ј", "j", "ӏ", "l", "о", "o", "р", "p",
	"ԛ", "q", "ѕ", "s", "у", "y", "ѵ", "v", "ԝ", "w", "х", "x",
	"А", "A", "В", "B", "С", "C", "Е", "E", "Ԍ", "G", "Н", "H", "І", "I", "Ӏ", "I", "Ј", "J", "К", "K", "М", "M", "О", "O",
	"Р", "P", "Ԛ", "Q", "Ѕ", "S", "Т", "T", "У", "Y", "Ԝ", "W", "Х", "X", "З", "3",
	// Greek
	"α", "a", "ε", "e", "γ", "y", "ι", "i", "κ", "k", "ν", "v", "ο", "o", "ρ", "p", "τ", "t", "υ", "u", "χ", "x",
	"Α", "A", "Β", "B", "Ε", "E", "Ζ", "Z", "Η", "H", "Ι", "I", "Κ", "K", "Μ", "M", "Ν", "N", "Ο", "O",
	"Ρ", "P", "Τ", "T", "Υ", "Y", "Χ", "X",
	// Armenian, and Latin letters that stand beside the alphabet
	"հ", "h", "ո", "n", "օ", "o", "ս", "u", "ɑ", "a", "ɡ", "g", "ı", "i",
)

// Skeleton is what s looks like, its compatibility forms and look-alike letters
// put into ASCII and what is not drawn left out: two names with one skeleton are
// taken for each other.
func Skeleton(s string) string {
	if ASCII(s) {
		return s
	}
	return strings.Map(func(r rune) rune {
		if Hidden(r) {
			return -1
		}
		return r
	}, drawn.Replace(norm.NFKC.String(s)))
}

// Hidden reports whether r is not drawn, or changes how others are, whatever its
// type, some letters and marks among it: controls, formats (which are the
// bidirectional and zero-width ones), separators of lines and paragraphs, spaces
// that are not the plain one, private and unassigned ranges that fonts leave
// blank, and what Unicode says may be ignored, variation selectors among it.
func Hidden(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return r < ' ' || r == 0x7f
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs):
		return true
	case unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return true
	case unicode.Is(unicode.Zs, r):
		return r != '\u3000' // wide enough to be seen; the others are taken for the plain one
	case r == '\u2800': // a braille pattern without dots
		return true
	}
	return !unicode.IsGraphic(r)
}

// HoldsHidden reports whether some character of s is [Hidden].
func HoldsHidden(s string) bool { return strings.IndexFunc(s, Hidden) >= 0 }

// ASCII reports whether s has no character beyond ASCII.
func ASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// confusable are the scripts whose letters pass for one another.
var confusable = []string{"Latin", "Cyrillic", "Greek", "Armenian", "Cherokee", "Coptic"}

// Scripts names the scripts in s whose letters pass for one another. Where there
// are several, s may not be what it looks like.
func Scripts(s string) []string {
	var found []string
	for _, name := range confusable {
		if strings.IndexFunc(s, func(r rune) bool { return unicode.Is(unicode.Scripts[name], r) }) >= 0 {
			found = append(found, name)
		}
	}
	return found
}
