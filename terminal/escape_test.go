package terminal

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/tool"
)

func TestHostile042_Escape(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain text, ünïcode 漢字 🎉", "plain text, ünïcode 漢字 🎉"},
		{"\x1b]0;title\x07", `\x1b]0;title\x07`},
		{"\x1b]52;c;aGk=\x1b\\", `\x1b]52;c;aGk=\x1b\`},
		{"\x1b[2J", `\x1b[2J`},
		{"ok\rFAILED", `ok\rFAILED`},
		{"a\nb\tc", `a\nb\tc`},
		{"\u009b31m", `\u009b31m`},
		{"\x7f", `\x7f`},
		{"abc\u202efdp.exe", `abc\u202efdp.exe`},
		{"\u2066x\u2069", `\u2066x\u2069`},
		{"zero\u200bwidth\ufeff\u00ad", `zero\u200bwidth\ufeff\u00ad`},
		{"\u2028\u2029", `\u2028\u2029`},
		{"a\ufe0f\U000e0041", `a\ufe0f\U000e0041`},
		{"a\u00a0b\u3164\u2800", `a\u00a0b\u3164\u2800`},
		{"bad \xff\xc3", `bad \xff\xc3`},
		{"\ufffd", "\ufffd"},
	} {
		if got := Escape(c.in); got != c.want {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
}

// No text, however made, leaves a character that moves the cursor, turns the
// direction, or cannot be seen.
func TestHostile042_EscapeLeavesNothingHidden(t *testing.T) {
	risky := rapid.SampledFrom([]rune{0, 7, 8, 0x1b, '\r', '\n', 0x7f, 0x85, 0x9b, 0x200b, 0x200d, 0x202e, 0x2066, 0x2069, 0xfeff, 0xad, 0xfe0f, 0xe0061, 0xe000, 0x2028, 'x'})
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.StringOf(risky), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "s")
		got := Escape(s)
		if !utf8.ValidString(got) {
			t.Fatalf("%q: %q is not UTF-8", s, got)
		}
		for _, r := range got {
			if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Bidi_Control) {
				t.Fatalf("%q: %q has %U", s, got, r)
			}
		}
		if again := Escape(got); again != got {
			t.Fatalf("escaping twice changes %q to %q", got, again)
		}
		width := rapid.IntRange(0, 40).Draw(t, "width")
		if fit := Fit(got, width); Width(fit) > width {
			t.Fatalf("Fit(%q, %d) is %d wide", got, width, Width(fit))
		}
	})
}

func TestFitCountsCells(t *testing.T) {
	for _, c := range []struct {
		in    string
		width int
		want  string
	}{
		{"abcdef", 6, "abcdef"}, {"abcdef", 5, "abcd…"}, {"漢字漢字", 8, "漢字漢字"}, {"漢字漢字", 7, "漢字漢…"},
		{"漢字漢字", 6, "漢字…"}, {"e\u0301e\u0301e\u0301", 2, "e\u0301…"}, {"abc", 0, ""}, {"🎉🎉", 3, "🎉…"},
	} {
		if got := Fit(c.in, c.width); got != c.want {
			t.Errorf("Fit(%q, %d): got %q, want %q", c.in, c.width, got, c.want)
		}
	}
}

func BenchmarkEscapePlain(b *testing.B) {
	s := strings.Repeat("plain text ", 100)
	b.SetBytes(int64(len(s)))
	for b.Loop() {
		Escape(s)
	}
}

func TestLineEscapesArgumentsOfEveryType(t *testing.T) {
	var b strings.Builder
	New(&b, 0, 0).Line("%s %v %v", tool.Role("a\x1b[2J"), []string{"b\r"}, struct{ S string }{"c\u202e"})
	if got, want := b.String(), "a\\x1b[2J [b\\r] {c\\u202e}\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
