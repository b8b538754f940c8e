package terminal

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"github.com/callsheet/callsheet/internal/lookalike"
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
		case !lookalike.Hidden(r):
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
