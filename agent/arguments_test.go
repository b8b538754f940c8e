package agent

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/callsheet/callsheet/value"
)

func TestDecodeArguments(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "{}",
		" \r\n\t":                   "{}",
		`{"n":9007199254740993}`:    `{"n":9007199254740993}`,
		` {"a" : 1} `:               `{"a":1}`,
		`{"a":1}{"b":2}`:            "error: text after the end",
		`{"a":1} x`:                 "error: text after the end",
		`{"a":1,"a":2}`:             "error: stands twice",
		`{"a":`:                     "error: ends before",
		"null":                      "error: are a JSON null; send an object",
		`[{}]`:                      "error: are a JSON array",
		`"{\"a\":1}"`:               "error: a string that holds JSON; send the object directly",
		`"text"`:                    "error: are a JSON string",
		"\ufeff{}":                  "error: not valid JSON",
		"{\"a\":\"\xff\"}":          "error: not valid JSON",
		`{"a":"\ud83d"}`:            "error: not valid JSON",
		strings.Repeat("[", 20_000): "error: not valid JSON",
	} {
		v, err := DecodeArguments(text)
		if message, fails := strings.CutPrefix(want, "error: "); fails {
			if err == nil || !strings.Contains(err.Error(), message) || len(err.Error()) > 300 {
				t.Errorf("%.40q: got %v, want %q", text, err, message)
			}
		} else if err != nil || v.String() != want {
			t.Errorf("%.40q: got %s, %v, want %s", text, v, err, want)
		}
	}
}

func TestDoubleEncoding(t *testing.T) {
	schema := value.MustParse(`{"$defs":{"tags":{"type":"array","items":{"type":"string"}}},
		"properties":{"tags":{"$ref":"#/$defs/tags"},"opt":{"anyOf":[{"type":"null"},{"type":"object","properties":{"in":{"type":"array"}}}]},
		"text":{"type":["string","array"]},"any":{},"rows":{"type":"array","items":{"type":"object"}},"n":{"type":"integer"}}}`)
	for text, want := range map[string]string{
		`{"tags":"[\"a\"]"}`:        `{"tags":["a"]} /tags`,
		`{"tags":"[a"}`:             `{"tags":"[a"}`, // no JSON: the schema speaks
		`{"tags":"{}"}`:             `{"tags":"{}"}`, // not what the schema wants either
		`{"opt":"{\"in\":\"[]\"}"}`: `{"opt":{"in":[]}} /opt /opt/in`,
		`{"opt":{"in":"[1]"}}`:      `{"opt":{"in":[1]}} /opt/in`,
		`{"text":"[]","any":"{}"}`:  `{"text":"[]","any":"{}"}`,
		`{"rows":[{},"{\"a\":1}"]}`: `{"rows":[{},{"a":1}]} /rows/1`,
		`{"n":"[1]","zz":"{}"}`:     `{"n":"[1]","zz":"{}"}`,
	} {
		v, coerced, err := decode(text, schema, true)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := strings.TrimSpace(v.String() + " " + strings.Join(coerced, " ")); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
		_, _, err = decode(text, schema, false)
		if (err != nil) != (len(coerced) > 0) {
			t.Errorf("%s without coercion: got %v", text, err)
		}
	}
}

// A schema that refers to itself is walked to a depth, and no further.
func TestDoubleEncodingInARecursiveSchema(t *testing.T) {
	schema := value.MustParse(`{"$ref":"#"}`)
	if _, _, err := decode(`{"a":"[]"}`, schema, true); err != nil {
		t.Error(err)
	}
	schema = value.MustParse(`{"type":"object","properties":{"a":{"$ref":"#"}}}`)
	if _, _, err := decode(strings.Repeat(`{"a":`, 500)+"{}"+strings.Repeat("}", 500), schema, true); err != nil {
		t.Error(err)
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{"", "{}", `{"q":"x"}`, `{"q":"[1]"}`, `"{\"q\":[]}"`, `{"a":1}{"b":2}`, `{"a":1,"a":2}`, "\xff", `{"q":"\ud800"}`, "[[[["} {
		f.Add(s)
	}
	schema := value.MustParse(`{"type":"object","properties":{"q":{"type":"array","items":{"type":"object"}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		v, err := DecodeArguments(text)
		switch {
		case err != nil:
			if !v.IsZero() {
				t.Errorf("%q: a value beside %v", text, err)
			}
			if len(err.Error()) > 600 {
				t.Errorf("%q: the error echoes %d bytes", text, len(err.Error()))
			}
		case v.Kind() != value.Object:
			t.Errorf("%q: became a %s", text, v.Kind())
		case strings.Trim(text, " \t\r\n") != "" && v.Len() == 0 && strings.Trim(text, " \t\r\n{}") != "":
			t.Errorf("%q: became {}", text)
		}
		if lenient := sourceArguments(text); lenient.Kind() != value.Object {
			t.Errorf("%q: the source's became a %s", text, lenient.Kind())
		}
		for _, coerce := range []bool{false, true} {
			again, coerced, err2 := decode(text, schema, coerce)
			if err2 == nil && again.Kind() != value.Object {
				t.Errorf("%q: decoded to a %s", text, again.Kind())
			}
			if err == nil && !coerce && len(coerced) > 0 {
				t.Errorf("%q: %q was coerced unasked", text, coerced)
			}
		}
		if s := Clip(shown(text), 5); !utf8.ValidString(s.String()) {
			t.Errorf("%q: shown as %s", text, s)
		}
	})
}
