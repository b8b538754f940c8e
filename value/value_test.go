package value

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseKeepsWhatWasWritten(t *testing.T) {
	for in, want := range map[string]string{
		` { "b" : 1 , "a" : [ 1.0 , 1E2, -0, 9007199254740993, 1e400 ] } `: `{"b":1,"a":[1.0,1E2,-0,9007199254740993,1e400]}`,
		`"\u0041\/\n\u00e9"`: `"A/\né"`,
		`"<&>"`:              `"<&>"`,
		`[]`:                 `[]`,
		`true`:               `true`,
	} {
		v, err := Parse(in)
		if err != nil {
			t.Errorf("Parse(%s): %v", in, err)
		} else if v.String() != want {
			t.Errorf("Parse(%s) = %s, want %s", in, v, want)
		}
	}
}

func TestParseRefusesWithAPlace(t *testing.T) {
	for _, c := range []struct {
		in        string
		line, col int
		reason    string
	}{
		{"{\"a\":1,\n \"a\":2}", 2, 2, "twice"},
		{"[1] [2]", 1, 5, "after the end"},
		{"[1", 1, 3, "ends before"},
		{"", 1, 1, "ends before"},
		{"\"\xff\"", 1, 2, "UTF-8"},
		{`"\ud800"`, 1, 2, "surrogate"},
		{"\xef\xbb\xbf{}", 1, 1, "byte order mark"},
		{"[NaN]", 1, 2, "invalid"},
		{"[1]\x00", 1, 4, "after the end"},
	} {
		_, err := Parse(c.in)
		e, ok := err.(*SyntaxError)
		if !ok {
			t.Errorf("Parse(%q): got %v, want a *SyntaxError", c.in, err)
			continue
		}
		if e.Line != c.line || e.Column != c.col || !strings.Contains(e.Reason, c.reason) {
			t.Errorf("Parse(%q): got %v, want line %d, column %d: …%s…", c.in, e, c.line, c.col, c.reason)
		}
	}
}

func TestLookup(t *testing.T) {
	v := MustParse(`{"a":{"b.c":1,"b":{"c":2,"d":3}},"l":[10,{"x":null}],"Exchange Rate":1.5,"":{"":4},"t":"{\"a\":1}"}`)
	for path, want := range map[string]string{
		"a.b.c": "1", "a.b.d": "3", "l.0": "10", "l.1.x": "null", "Exchange Rate": "1.5", "": `{"":4}`, ".": "4",
	} {
		got, err := v.Lookup(path)
		if err != nil || got.String() != want {
			t.Errorf("Lookup(%q) = %v, %v; want %s", path, got, err, want)
		}
	}
	for path, reason := range map[string]string{
		"z": "no key", "l.00": "no key", "l.2": "outside", "l.-1": "no key", "l.٣": "no key", "l.0.x": "no parts",
		"t.a": "looks like JSON", "l.99999999999999999999": "outside", "a.": "no key",
	} {
		_, err := v.Lookup(path)
		if e, ok := err.(*PathError); !ok || !strings.Contains(e.Reason, reason) {
			t.Errorf("Lookup(%q): got %v, want …%s…", path, err, reason)
		}
	}
}

func TestDigestSortsKeysAndKeepsNumbers(t *testing.T) {
	a, b := MustParse(`{"b":1,"a":{"d":[1.0],"c":2}}`), MustParse(`{"a":{"c":2,"d":[1.0]},"b":1}`)
	if a.Digest() != b.Digest() || !Equal(a, b) {
		t.Error("the order of keys changed the digest")
	}
	if MustParse(`1`).Digest() == MustParse(`1.0`).Digest() {
		t.Error("1 and 1.0 have one digest")
	}
	if got, want := a.Canonical(), `{"a":{"c":2,"d":[1.0]},"b":1}`; got != want {
		t.Errorf("Canonical() = %s, want %s", got, want)
	}
	if got := (Value{}).Canonical(); got != "" {
		t.Errorf("no value: Canonical() = %q, want nothing", got)
	}
}

func TestFloatRefusesWhatJSONCannotWrite(t *testing.T) {
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if v, err := Float(f); err == nil {
			t.Errorf("Float(%v) = %v, want an error", f, v)
		}
	}
}

func TestTemplateOfDoublingStaysFlat(t *testing.T) {
	tpl := NewTemplate(MustParse(`{"x":["$p","$p"]}`), func(string, string) Answer { return Answer{Hole: true} })
	v := MustText(strings.Repeat("a", 1000))
	for range 200 {
		fill := []Value{v, v}
		if got, want := tpl.Size(fill), tpl.Fill(fill).Size(); got != want {
			t.Fatalf("Size = %d, the filled value says %d", got, want)
		}
		v = tpl.Fill(fill)
	}
	if v.Size() != math.MaxInt {
		t.Errorf("size of 2^200 copies = %d, want it saturated", v.Size())
	}
}

// anyJSON draws a JSON text with the white space and escapes that writers use.
func anyJSON(depth int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		kinds := 4
		if depth > 0 {
			kinds = 6
		}
		switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
		case 0:
			return rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "word")
		case 1:
			return rapid.SampledFrom([]string{"0", "-0", "1.0", "1E2", "9007199254740993", "1e400", "-12.50"}).Draw(t, "number")
		case 2, 3:
			return textOf(t)
		case 4:
			return "[ " + strings.Join(rapid.SliceOfN(anyJSON(depth-1), 0, 4).Draw(t, "list"), " ,") + "]"
		default:
			var b strings.Builder
			seen := map[string]bool{}
			for range rapid.IntRange(0, 16).Draw(t, "members") {
				k := textOf(t)
				if seen[k] {
					continue
				}
				seen[k] = true
				if b.Len() > 0 {
					b.WriteString(",\n")
				}
				b.WriteString(k + " : " + anyJSON(depth-1).Draw(t, "member"))
			}
			return "{" + b.String() + "}"
		}
	})
}

func textOf(t *rapid.T) string {
	b, _ := json.Marshal(rapid.SampledFrom([]string{"", "a", "b.c", "é", "\\", "\"", "\n", "\x01", "$s1", "]", "}", "\\\\\"", "k/~"}).Draw(t, "text"))
	return string(b)
}

// rebuild makes the same value out of parts, so that nothing in it is text.
func rebuild(v Value) Value {
	switch v.Kind() {
	case List:
		var vs []Value
		for _, e := range v.Elements() {
			vs = append(vs, rebuild(e))
		}
		return ListOf(vs...)
	case Object:
		var ms []Member
		for k, m := range v.Members() {
			ms = append(ms, Member{k, rebuild(m)})
		}
		return ObjectOf(ms...)
	}
	return v
}

func TestAValueOfPartsIsTheValueOfItsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyJSON(4).Draw(t, "json")
		v, err := Parse(text)
		if err != nil {
			t.Fatalf("Parse(%s): %v", text, err)
		}
		r := rebuild(v)
		if r.String() != v.String() || r.Size() != v.Size() || r.Depth() != v.Depth() || r.Digest() != v.Digest() || !Equal(r, v) {
			t.Fatalf("rebuilt %s (size %d, depth %d), parsed %s (size %d, depth %d)", r, r.Size(), r.Depth(), v, v.Size(), v.Depth())
		}
		if len(v.String()) != v.Size() {
			t.Fatalf("Size() = %d, text has %d bytes", v.Size(), len(v.String()))
		}
		var b strings.Builder
		if _, err := r.WriteTo(&b); err != nil || b.String() != v.String() {
			t.Fatalf("WriteTo wrote %s, %v; want %s", b.String(), err, v)
		}
		again, err := Parse(v.String())
		if err != nil || again.String() != v.String() {
			t.Fatalf("parsing %s again: %s, %v", v, again, err)
		}
	})
}

func TestTemplateFillsLikeTextWould(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := MustParse(anyJSON(4).Draw(t, "json"))
		put := MustParse(anyJSON(2).Draw(t, "put"))
		tpl := NewTemplate(v, func(_, s string) Answer { return Answer{Hole: s == "$s1"} })
		fill := make([]Value, tpl.Holes())
		for i := range fill {
			fill[i] = put
		}
		got := tpl.Fill(fill)
		want := substitute(v, put)
		if got.String() != want.String() || got.Size() != len(want.String()) || tpl.Size(fill) != got.Size() || got.Depth() != want.Depth() {
			t.Fatalf("Fill = %s (size %d, foreseen %d, depth %d), want %s", got, got.Size(), tpl.Size(fill), got.Depth(), want)
		}
	})
}

func substitute(v, put Value) Value {
	switch v.Kind() {
	case String:
		if s, _ := v.Text(); s == "$s1" {
			return put
		}
	case List:
		var vs []Value
		for _, e := range v.Elements() {
			vs = append(vs, substitute(e, put))
		}
		return ListOf(vs...)
	case Object:
		var ms []Member
		for k, m := range v.Members() {
			ms = append(ms, Member{k, substitute(m, put)})
		}
		return ObjectOf(ms...)
	}
	return v
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,"\u00e9"]}`, `"\ud83d\ude00"`, "[1", `{"a":1,"a":2}`, "1e400", `"\\"`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := Parse(text)
		if err != nil {
			if _, ok := err.(*SyntaxError); !ok {
				t.Fatalf("Parse(%q): %T is no *SyntaxError", text, err)
			}
			return
		}
		if r := rebuild(v); r.String() != v.String() || r.Size() != len(v.String()) {
			t.Fatalf("Parse(%q): rebuilt %s, want %s", text, r, v)
		}
	})
}

func FuzzLookup(f *testing.F) {
	f.Add([]byte(`{"a":{"b.c":[1]}}`), "a.b.c.0")
	f.Fuzz(func(t *testing.T, text []byte, path string) {
		v, err := Parse(text)
		if err != nil {
			return
		}
		got, err := v.Lookup(path)
		if (err == nil) == got.IsZero() {
			t.Fatalf("Lookup(%q) in %s = %v, %v: want a value or an error", path, v, got, err)
		}
	})
}

func TestObjectOfRefusesADuplicate(t *testing.T) {
	for _, n := range []int{2, 40} { // below and above where members get a map
		ms := make([]Member, n)
		for i := range ms {
			ms[i] = Member{Key: string(rune('a' + i%(n-1))), Value: NullValue()}
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("an object of %d members with a duplicate was made", n)
				}
			}()
			ObjectOf(ms...)
		}()
	}
}

func TestComposed(t *testing.T) {
	text := MustParse(`{"a":[1]}`)
	for name, c := range map[string]struct {
		v    Value
		want bool
	}{
		"no value":      {Value{}, false},
		"scalar":        {Int(1), false},
		"text":          {text, false},
		"part of text":  {text.At(0), false},
		"list of text":  {ListOf(text), true},
		"object":        {ObjectOf(Member{"a", text}), true},
		"part of those": {ListOf(text).At(0), false},
	} {
		if got := c.v.Composed(); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
