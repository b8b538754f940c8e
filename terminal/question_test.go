package terminal

import (
	"strings"
	"testing"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

func ask(t *testing.T, args string, full bool) (shown string, hidden int) {
	t.Helper()
	var b strings.Builder
	d := &tool.Declaration{Name: "send", Args: []tool.Arg{{Pattern: "/to", Role: tool.Target}, {Pattern: "/body", Role: tool.Content}, {Pattern: "/*", Role: tool.Neutral}}}
	hidden = New(&b, 80, 24).Question(Question{Step: "s1", Tool: "send", Decl: d, Args: value.MustParse(args)}, full)
	return b.String(), hidden
}

func TestHostile066_AnApprovalCannotDeceive(t *testing.T) {
	long := strings.Repeat("x", 50_000)
	shown, hidden := ask(t, `{"body":"`+long+`","note":"ok","to":"me@exаmple.com"}`, false)
	if hidden != 50_000+2-maxShown {
		t.Errorf("%d bytes are said not to be shown, want %d", hidden, 50_002-maxShown)
	}
	if to, body := strings.Index(shown, "/to"), strings.Index(shown, "/body"); to < 0 || body < to {
		t.Errorf("the target does not come first:\n%s", shown)
	}
	if !strings.Contains(shown, "xn--exmple-4nf.com") || !strings.Contains(shown, "mixes letters of Latin and Cyrillic") {
		t.Errorf("the look-alike host is not pointed out:\n%s", shown)
	}
	if full, hidden := ask(t, `{"body":"`+long+`"}`, true); hidden != 0 || !strings.Contains(strings.ReplaceAll(full, "\n", ""), long) {
		t.Errorf("asked for everything, %d bytes are hidden", hidden)
	}
	// A target is never cut, and nothing moves the cursor or the order of text.
	shown, hidden = ask(t, `{"to":"`+long+`\u202e\u200b\u001b[2J"}`, false)
	if hidden != 0 || strings.ContainsAny(shown, "\u202e\u200b\x1b") {
		t.Errorf("a target hides %d bytes, or its control characters are not escaped", hidden)
	}
}
