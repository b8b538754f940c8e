package python

import (
	"math/big"
	"testing"

	"github.com/callsheet/callsheet/value"
	"pgregory.net/rapid"
)

func TestNumbersAreWrittenAsReprWritesThem(t *testing.T) {
	for in, want := range map[string]string{
		"25": "25", "25.0": "25.0", "1E2": "100.0", "-0": "0", "-0.0": "-0.0", "1e16": "1e+16", "1e15": "1000000000000000.0",
		"0.0001": "0.0001", "0.00001": "1e-05", "9007199254740993": "9007199254740993", "0.1": "0.1", "1.10": "1.1", "1e400": "Infinity",
		"1e-400": "0.0",
	} {
		if got := Number(in); got != want {
			t.Errorf("Number(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestStrAndRepr(t *testing.T) {
	for in, want := range map[string]string{
		`"a"`: "a", `true`: "True", `null`: "None", `100.0`: "100.0", `25`: "25",
		`["a", 1, {"b": "it's", "c": "\"'"}]`: `['a', 1, {'b': "it's", 'c': '"\''}]`,
		`["\n\u0001é\u200b"]`:                 `['\n\x01é\u200b']`,
	} {
		if got := Str(value.MustParse(in)); got != want {
			t.Errorf("Str(%s) = %s, want %s", in, got, want)
		}
	}
}

func TestDumpsStyles(t *testing.T) {
	v := value.MustParse(`{"b":[1,2.50],"a":"é😀"}`)
	for style, want := range map[Style]string{
		IDStyle:     `{"a": "é😀", "b": [1, 2.5]}`,
		DigestStyle: `{"a":"é😀","b":[1,2.5]}`,
		ConfigStyle: `{"a": "\u00e9\ud83d\ude00", "b": [1, 2.5]}`,
		LineStyle:   `{"b": [1, 2.5], "a": "é😀"}`,
	} {
		if got := Dumps(v, style); got != want {
			t.Errorf("Dumps(%+v) = %s, want %s", style, got, want)
		}
	}
}

func TestEqualAndCompareAcrossTypes(t *testing.T) {
	for _, c := range []struct {
		a, b  string
		equal bool
		order int
		ok    bool
	}{
		{"100", "100.0", true, 0, true}, {"true", "1", true, 0, true}, {"false", "0.0", true, 0, true},
		{"9007199254740993", "9007199254740992.0", false, 1, true}, {`"a"`, `"b"`, false, -1, true},
		{`"1"`, "1", false, 0, false}, {"null", "null", true, 0, false}, {"[1,2]", "[1.0,3]", false, -1, true},
		{`{"a":1,"b":2}`, `{"b":2.0,"a":1}`, true, 0, false}, {"1e400", "1e999", true, 0, true},
	} {
		a, b := value.MustParse(c.a), value.MustParse(c.b)
		if got := Equal(a, b); got != c.equal {
			t.Errorf("Equal(%s, %s) = %v", a, b, got)
		}
		if order, ok := Compare(a, b); order != c.order || ok != c.ok {
			t.Errorf("Compare(%s, %s) = %d, %v; want %d, %v", a, b, order, ok, c.order, c.ok)
		}
	}
}

func TestHostile017_ArithmeticIsExactOrRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Int64().Draw(t, "a"), rapid.Int64().Draw(t, "b")
		want := new(big.Int).Add(big.NewInt(a), big.NewInt(b)).String()
		got, err := Add(value.Int(a), value.Int(b))
		if err != nil || got.String() != want {
			t.Fatalf("%d + %d = %v, %v; want %s", a, b, got, err, want)
		}
		want = new(big.Int).Sub(big.NewInt(a), big.NewInt(b)).String()
		if got, err = Sub(value.Int(a), value.Int(b)); err != nil || got.String() != want {
			t.Fatalf("%d - %d = %v, %v; want %s", a, b, got, err, want)
		}
	})
	for _, c := range [][3]string{{"100.0", "5", "105.0"}, {"0.1", "0.2", "0.30000000000000004"}, {`"a"`, `"b"`, `"ab"`}, {"[1]", "[2]", "[1,2]"}, {"true", "1", "2"}} {
		got, err := Add(value.MustParse(c[0]), value.MustParse(c[1]))
		if err != nil || got.String() != c[2] {
			t.Errorf("%s + %s = %v, %v; want %s", c[0], c[1], got, err, c[2])
		}
	}
	big := value.MustParse("1e308")
	if got, err := Add(big, big); err == nil {
		t.Errorf("1e308 + 1e308 = %v, want an error", got)
	}
	if _, err := Sub(value.MustText("a"), value.MustText("b")); err == nil {
		t.Error("strings were subtracted")
	}
}

func TestSliceCountsCodePoints(t *testing.T) {
	for _, c := range []struct {
		from, to int
		want     string
	}{{0, 2, "é😀"}, {1, 3, "😀x"}, {2, 99, "x"}, {3, 4, ""}, {9, 10, ""}} {
		if got := Slice("é😀x", c.from, c.to); got != c.want {
			t.Errorf("Slice(%d, %d) = %q, want %q", c.from, c.to, got, c.want)
		}
	}
}

func TestAnIDIsAFunctionOfItsParts(t *testing.T) {
	src := value.MustText("src_a02cca05aadb94dfc481eab590d8443b027c724188264e7e6868c0540ad424d9")
	if got, want := ID("ep", src, value.Int(0)), "ep_f7ca7eb6c2d0d270"; got != want {
		t.Errorf("ID = %s, want %s", got, want)
	}
}

func TestCanonicalNumber(t *testing.T) {
	for in, want := range map[string]string{"1": "1", "1.0": "1", "1e0": "1", "10e-1": "1", "100": "100", "1E2": "100", "-0.0": "0", "0.50": "5e-1",
		"9007199254740993": "9007199254740993", "9007199254740992.0": "9007199254740992", "1e400": "1e400", "1e99999": "1e99999"} {
		if got := CanonicalNumber(in); got != want {
			t.Errorf("CanonicalNumber(%s) = %s, want %s", in, got, want)
		}
	}
}
