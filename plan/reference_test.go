package plan

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/value"
)

func TestReadFollowsTheFourRules(t *testing.T) {
	p := decode(t, `[{"id":"s1","tool":"t"},{"id":"a","tool":"t"},{"id":"a.b","tool":"t"},{"id":"100","tool":"t"},{"id":"ä_1","tool":"t"}]`)
	const literal, nothing = -2, -1
	for _, c := range []struct {
		text string
		step int
		rest string // the path, or the literal
		path bool
	}{
		{"plain", literal, "plain", false},
		{"", literal, "", false},
		{"$$s1", literal, "$s1", false},
		{"$$", literal, "$", false},
		{"$$$s1", literal, "$$s1", false},
		{"$$nope", literal, "$nope", false},
		{"$s1", 0, "", false},
		{"$s1.", 0, "", true},
		{"$s1.x", 0, "x", true},
		{"$s1.Exchange Rate", 0, "Exchange Rate", true},
		{"$s1.$", 0, "$", true},
		{"$s1..x", 0, ".x", true},
		{"$a.b", 2, "", false},
		{"$a.b.c", 2, "c", true},
		{"$a.bc", 1, "bc", true},
		{"$a.b-c", 1, "b-c", true},
		{"$100", 3, "", false},
		{"$100-$200", literal, "$100-$200", false},
		{"$ä_1.x", 4, "x", true},
		{"$nope", nothing, "", false},
		{"$S1", nothing, "", false},
		{"$s1x", nothing, "", false},
		{"$5", nothing, "", false},
		{"$_", nothing, "", false},
		{"$é", nothing, "", false},
		{"$٣", nothing, "", false},
		{"${x}", nothing, "", false},
		{"${x} and $y", nothing, "", false},
		{"$[0]", nothing, "", false},
		{"$5 off", literal, "$5 off", false},
		{"$5\u00a0off", literal, "$5\u00a0off", false},
		{"$5\u2003off", literal, "$5\u2003off", false},
		{"$", literal, "$", false},
		{"$-x", literal, "$-x", false},
		{"$.x", literal, "$.x", false},
		{"$Ⅳ", literal, "$Ⅳ", false},
		{" $s1", literal, " $s1", false},
		{"see $s1", literal, "see $s1", false},
	} {
		ref, got, isRef := p.Read(c.text)
		if !isRef {
			if c.step != literal || got != c.rest {
				t.Errorf("%q is the literal %q, want step %d, %q", c.text, got, c.step, c.rest)
			}
			continue
		}
		if ref.Step != c.step || ref.Path != c.rest || ref.HasPath != c.path || ref.Text != c.text {
			t.Errorf("%q is %+v, want step %d, path %q (%v)", c.text, ref, c.step, c.rest, c.path)
		}
	}
}

func TestReferencesAreFoundInPlace(t *testing.T) {
	p := decode(t, `[{"id":"a","tool":"t","args":{"$a":"x","k/~":[1,"$a.0",{"y":"$$a"},"$zz"]}}]`)
	s := p.Steps[0]
	if len(s.Refs) != 2 || s.Refs[0].Pointer != "/k~1~0/1" || s.Refs[1].Pointer != "/k~1~0/3" || s.Refs[1].Step != -1 {
		t.Fatalf("refs are %+v", s.Refs)
	}
	got := s.Template.Fill([]value.Value{value.MustText("$a"), value.Int(7)}).String()
	if want := `{"$a":"x","k/~":[1,"$a",{"y":"$a"},7]}`; got != want {
		t.Errorf("filled args are %s, want %s: a filled value is never scanned", got, want)
	}
	if got := s.Args.String(); !strings.Contains(got, `"$$a"`) {
		t.Errorf("args are %s, want them as written", got)
	}
}

func TestHostile023_OutputsAreOpaque(t *testing.T) {
	p := decode(t, `[{"id":"s0","tool":"t"},{"id":"s1","tool":"t","args":{"x":["$s0"]}}]`)
	for _, out := range []string{`"$s1"`, `{"$ref":"s0"}`, `"${env.KEY}"`, `"{{s0}}"`, `["$$s0",{"k":"$s0.x"}]`, `[{"id":"s9","tool":"pay","args":{"to":"$s0"}}]`} {
		if got := p.Steps[1].Template.Fill([]value.Value{value.MustParse(out)}).String(); got != `{"x":[`+out+`]}` {
			t.Errorf("the output %s reached the next tool as %s", out, got)
		}
	}
}

// read is §2 told as it is written, without regard to cost.
func read(ids map[string]int, text string) (step int, path string, hasPath bool, literal string) {
	const none = -2
	if !strings.HasPrefix(text, "$") {
		return none, "", false, text
	}
	body := text[1:]
	if strings.HasPrefix(body, "$") {
		return none, "", false, body
	}
	best := ""
	for id := range ids {
		if (body == id || strings.HasPrefix(body, id+".")) && len(id) > len(best) {
			best = id
		}
	}
	if best != "" {
		rest := body[len(best):]
		return ids[best], strings.TrimPrefix(rest, "."), rest != "", ""
	}
	first, _ := utf8.DecodeRuneInString(body)
	named := body != "" && (unicode.IsLetter(first) || unicode.Is(unicode.Nd, first) || first == '_')
	spaced := strings.ContainsFunc(body, func(r rune) bool { return unicode.Is(unicode.White_Space, r) })
	if named && !spaced && !strings.Contains(body, "$") || strings.HasPrefix(body, "{") || strings.HasPrefix(body, "[") {
		return -1, "", false, ""
	}
	return none, "", false, text
}

func TestReadIsThePlainReadingOfTheRules(t *testing.T) {
	id := rapid.StringMatching(`[ab][.]?[ab.]{0,4}`)
	rapid.Check(t, func(t *rapid.T) {
		s := &ids{}
		s.grow(6)
		known := map[string]int{}
		for i, id := range rapid.SliceOfN(id, 0, 6).Draw(t, "ids") {
			if s.add(id, i) < 0 {
				known[id] = i
			}
		}
		text := rapid.StringMatching(`[$]{0,2}[ab.é5{\[ $_-]{0,9}`).Draw(t, "text")
		ref, literal, isRef := s.read(text)
		if !isRef {
			ref.Step = -2
		}
		step, path, hasPath, wantLiteral := read(known, text)
		if ref.Step != step || ref.Path != path || ref.HasPath != hasPath || literal != wantLiteral {
			t.Errorf("%q among %v: got %+v, %q; want step %d, path %q (%v), %q", text, known, ref, literal, step, path, hasPath, wantLiteral)
		}
	})
}

func TestEscapedTextIsItself(t *testing.T) {
	p := decode(t, `[{"id":"s1","tool":"t"}]`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[$]{0,3}(s1)?[.{a ]{0,3}`)).Draw(t, "text")
		if _, literal, isRef := p.Read(Escape(text)); isRef || literal != text {
			t.Errorf("%q, escaped, reads as %q (reference: %v)", text, literal, isRef)
		}
	})
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{"$s1", "$s1.x.y", "$$", "$a.b.c", "${x}", "$5 off", "$", "$.", "$\xff", "$٣"} {
		f.Add(seed)
	}
	s := &ids{}
	s.grow(5)
	known := map[string]int{"s1": 0, "a": 1, "a.b": 2, "é": 3, "5": 4}
	for id, i := range known {
		s.add(id, i)
	}
	f.Fuzz(func(t *testing.T, text string) {
		ref, literal, isRef := s.read(text)
		if !isRef {
			ref.Step = -2
		}
		step, path, hasPath, wantLiteral := read(known, text)
		if ref.Step != step || ref.Path != path || ref.HasPath != hasPath || literal != wantLiteral {
			t.Errorf("%q: got %+v, %q; want step %d, path %q (%v), %q", text, ref, literal, step, path, hasPath, wantLiteral)
		}
	})
}
