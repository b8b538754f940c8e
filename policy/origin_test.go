package policy

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/value"
)

// anyValue draws JSON whose keys hold dots, digits and slashes.
func anyValue(t *rapid.T, depth int) value.Value {
	switch kind := rapid.IntRange(0, 4).Draw(t, "kind"); {
	case depth == 0 || kind < 2:
		return value.Int(int64(kind))
	case kind == 2:
		out := make([]value.Value, rapid.IntRange(0, 3).Draw(t, "n"))
		for i := range out {
			out[i] = anyValue(t, depth-1)
		}
		return value.ListOf(out...)
	}
	keys := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "a.b", "0", "a/b", "b.0.a", ""}), 0, 4, rapid.ID[string]).Draw(t, "keys")
	out := make([]value.Member, len(keys))
	for i, k := range keys {
		out[i] = value.Member{Key: k, Value: anyValue(t, depth-1)}
	}
	return value.ObjectOf(out...)
}

// The label of a reference is that of the leaf which the reference takes: the
// pointer that is labelled and the path that is looked up name the same.
func TestPointersAreThoseOfReferences(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyValue(t, 4)
		path := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "0", "1", "", "a/b"}), 1, 5).Draw(t, "path"), ".")
		want, err := v.Lookup(path)
		pointer, got, ok := pointerOf(v, path)
		if ok != (err == nil) {
			t.Fatalf("%s of %s: a pointer %t, a value %v", path, v, ok, err)
		}
		if !ok {
			return
		}
		at, found := v.AtPointer(pointer)
		if !found || got != want || !value.Equal(at, want) {
			t.Fatalf("%s of %s: pointer %q names %s, want %s", path, v, pointer, at, want)
		}
	})
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, pointer string
		want             relation
	}{
		{"", "", above}, {"", "/a/b", above}, {"/a", "", inside}, {"/a", "/a", above}, {"/a", "/a/b", above}, {"/a", "/ab", apart},
		{"/*/id", "/3/id", above}, {"/*/id", "/3", inside}, {"/*/id", "/3/name", apart}, {"/*/id", "/3/id/x", above}, {"/a~1b", "/a~1b", above},
	} {
		p, err := parsePattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.to(c.pointer); got != c.want {
			t.Errorf("%q to %q: got %d, want %d", c.pattern, c.pointer, got, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"base":"deny","rules":[{"id":"a","effect":"ask","tools":["*"],"when":"true"}]}`)
	f.Add(`"default"`)
	f.Add(`{"tests":[{"tool":"x","want":"ask","labels":{"/a":"user"},"history":[{}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := value.Parse(text)
		if err != nil {
			return
		}
		doc, err := Read(v, func(string) (int, int) { return 1, 1 })
		if err != nil {
			if e, ok := AsError(err); !ok || len(e.Faults) == 0 || e.Faults[0].Line != 1 {
				t.Fatalf("%s: %v is no *Error with a place", text, err)
			}
			return
		}
		if again, err := Read(v, nil); err != nil || again.Digest() != doc.Digest() {
			t.Fatalf("%s: read again it is another policy: %v", text, err)
		}
	})
}
