package plan

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/value"
)

const drawn = `[
	{"id": "find", "tool": "search", "args": {"query": "go"}},
	{"id": "read", "tool": "fetch", "args": {"doc": "$find.0"}},
	{"id": "also", "tool": "fetch", "args": {"doc": "$find.1"}, "after": ["read"]},
	{"id": "odd", "tool": "a\"]\n<b>\u202e", "args": {"x": "$odd"}, "after": ["gh\u200bost"]}
]`

func TestText(t *testing.T) {
	want := `wave 1
  find  search
wave 2
  read  fetch              ← find
wave 3
  also  fetch              ← find, read
never
  odd   a"]\u{a}<b>\u{202e}  ← odd, gh\u{200b}ost?
`
	want = strings.ReplaceAll(want, "fetch              ←", "fetch"+strings.Repeat(" ", len(`a"]\u{a}<b>\u{202e}`)-len("fetch"))+"  ←")
	if diff := cmp.Diff(want, decode(t, drawn).Text()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

func TestMermaid(t *testing.T) {
	want := `flowchart LR
  subgraph w0["wave 1"]
    n0["find<br/>search"]
  end
  subgraph w1["wave 2"]
    n1["read<br/>fetch"]
  end
  subgraph w2["wave 3"]
    n2["also<br/>fetch"]
  end
  subgraph w3["never"]
    n3["odd<br/>a#34;#93;#92;u#123;a#125;#60;b#62;#92;u#123;202e#125;"]
  end
  n0 --> n1
  n0 --> n2
  n1 -.-> n2
  n3 --> n3
  x0(["gh#92;u#123;200b#125;ost?"]) -.-> n3
`
	if diff := cmp.Diff(want, decode(t, drawn).Mermaid()); diff != "" {
		t.Errorf("mermaid (-want +got):\n%s", diff)
	}
}

func TestHostile042_DrawingsHoldNoControlCharacters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tool := rapid.StringN(1, -1, -1).Draw(t, "tool")
		p, err := Decode([]byte(`[{"id":"a","tool":`+value.MustText(tool).String()+`,"after":[`+value.MustText(tool).String()+`]}]`), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{p.Text(), p.Mermaid()} {
			for _, r := range strings.ReplaceAll(text, "\n", "") {
				if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
					t.Errorf("the drawing of %q holds %U:\n%s", tool, r, text)
				}
			}
			if n := strings.Count(text, "\n"); n != 2 && n != 5 {
				t.Errorf("the drawing of %q has %d lines", tool, n)
			}
		}
	})
}

func TestWhatIsNotDrawnIsEscaped(t *testing.T) {
	// Letters and marks of ids too: a Hangul filler and a variation selector.
	p := decode(t, `[{"id": "a\u3164", "tool": "t\u034f"}, {"id": "b\ufe0f", "tool": "u", "after": ["a\u3164"]}]`)
	want := "wave 1\n  a\\u{3164}  t\\u{34f}\nwave 2\n  b\\u{fe0f}  u         ← a\\u{3164}\n"
	if diff := cmp.Diff(want, p.Text()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if drawing := p.Mermaid(); strings.ContainsAny(drawing, "\u3164\ufe0f\u034f") {
		t.Errorf("not escaped in %q", drawing)
	}
}
