package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// Escape makes text that a tool or a model wrote safe to show on one line:
// control characters, bidirectional and zero-width ones, every other character
// that is not drawn, and bytes that are not UTF-8 are written as escapes
// (spec/hostile.md 42, 66). What is left is drawn where it stands and moves
// nothing. A backslash stays one, so the result is to be looked at and not to
// be read back.
func Escape(s string) string {
	clean := 0
	for clean < len(s) && s[clean] >= ' ' && s[clean] < 0x7f {
		clean++
	}
	if clean == len(s) {
		return s
	}
	var b strings.Builder
	b.WriteString(s[:clean])
	for i := clean; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case !hidden(r):
			b.WriteRune(r)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += n
	}
	return b.String()
}

// hidden reports whether r is not drawn, or changes how others are: controls,
// formats (which are the bidirectional and zero-width ones), separators of lines
// and paragraphs, private and unassigned ranges of planes that fonts leave
// blank, and what Unicode says may be ignored, variation selectors among it.
func hidden(r rune) bool {
	switch {
	case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Cs):
		return true
	case unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector):
		return true
	case unicode.Is(unicode.Zs, r):
		return r != ' ' && r != '\u3000' // wide and narrow spaces are taken for the plain one
	case r == '\u2800': // a braille pattern without dots
		return true
	}
	return !unicode.IsGraphic(r)
}

// Width is the number of cells that s takes on a terminal.
func Width(s string) int { return ansi.StringWidth(s) }

// Fit cuts s to width cells, with an ellipsis where something is missing. It
// cuts between the characters that a reader sees.
func Fit(s string, width int) string {
	if width < 1 {
		return ""
	}
	return ansi.Truncate(s, width, "…")
}
