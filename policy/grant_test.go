package policy_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

func TestGrants(t *testing.T) {
	d := &tool.Declaration{Name: "t", Input: compile(t, `{"type":"object","properties":{
		"text":{"type":"string"},"mail":{"type":"string","format":"email"},"day":{"type":"string","format":"date"},"at":{"type":"string","format":"date-time"},
		"url":{"type":"string","format":"uri"},"n":{"type":"number"},"guest_count":{"type":"integer"},"limit":{"type":"integer","default":100},
		"mode":{"enum":["r","rw","read"]},"only":{"const":"x"},"list":{"type":"array","items":{"type":"string","format":"email"}},"off":{"anyOf":[{"type":"string"},{"type":"null"}],"default":null},
		"untyped":{},"loose":{"type":"array"},"token":{"type":"string","format":"x-token"},"uuid":{"type":"string","format":"uuid"},"name":{"type":"string","format":"hostname"},
		"ip":{"type":"string","format":"ipv4"},"site":{"type":"string"}}}`), Args: []tool.Arg{{Pattern: "/site", Role: tool.Host}}}
	task := `Pay 12.50 EUR and $7 to Ann Lee (ann@example.com), IBAN GB29 NWBK 6016 1331 9268 19, for order #W2378156, rent is 2200.
		See https://example.com/a?b=1. On 2024-05-20 at 10:00 for guest_count 3, mode r; file 'team-notes.docx'. Total 1,234.50 for 5 nights. Room 8.
		Ask 6ba7b810-9dad-11d1-80b4-00c04fd430c8 at 10.0.0.7 or files.example.com.`
	g := policy.NewGrants(task)
	for _, c := range []struct {
		arg, value string
		want       bool
	}{
		{"/n", `12.5`, true},    // same value, other spelling
		{"/n", `1250e-2`, true}, // the same
		{"/n", `7`, true},       // short, with a currency sign
		{"/n", `2200`, true},    // four characters
		{"/n", `1234.5`, true},  // grouped
		{"/n", `5`, true},       // beside a unit
		{"/n", `8`, false},      // short and bare
		{"/n", `3`, false},      // beside the name of another arg
		{"/n", `220`, false},    // part of a token
		{"/n", `-7`, false},     //
		{"/n", `1e400`, false},  //
		{"/guest_count", `3`, true},
		{"/limit", `100`, true}, // the schema's own default
		{"/limit", `99`, false},
		{"/only", `"x"`, true},
		{"/off", `null`, true},
		{"/text", `null`, false},
		{"/mode", `"r"`, true},   // an enum's value, whole in the task
		{"/mode", `"rw"`, false}, // not there
		{"/mode", `"read"`, false},
		{"/text", `"r"`, false}, // a word needs four characters
		{"/text", `"team-notes.docx"`, true},
		{"/text", `"notes"`, false}, // never a part of a token
		{"/text", `"team-notes"`, false},
		{"/text", `"Ann Lee"`, true},
		{"/text", `"Ann"`, false},
		{"/text", `"ann lee"`, false},
		{"/text", `"nn Lee"`, false},
		{"/text", `"#W2378156"`, true},
		{"/text", `"GB29NWBK60161331926819"`, true},
		{"/text", `"GB29 NWBK 6016 1331 9268 19"`, true},
		{"/text", `"GB29NWBK60161331926818"`, false},
		{"/text", `"ann@example.com"`, true},
		{"/mail", `"ann@example.com"`, true},
		{"/mail", `"team-notes.docx"`, false}, // its type must be the arg's
		{"/mail", `"example.com"`, false},
		{"/mail", `"аnn@example.com"`, false}, // Cyrillic а
		{"/list/3", `"ann@example.com"`, true},
		{"/day", `"2024-05-20"`, true},
		{"/day", `"10:00"`, false},
		{"/at", `"2024-05-20T10:00"`, true},
		{"/at", `"2024-05-20T11:00"`, false},
		{"/url", `"https://example.com/a?b=1"`, true},
		{"/url", `"https://example.com/a"`, false},
		// A run of words only where the schema says text and of no kind.
		{"/off", `"Ann Lee"`, true},
		{"/untyped", `"Ann Lee"`, false},
		{"/undeclared", `"Ann Lee"`, false},
		{"/loose/0", `"Ann Lee"`, false},
		{"/mail", `"Ann Lee (ann@example.com"`, false},
		{"/token", `"Ann Lee"`, false},
		{"/url", `"https://example.com/a?b=1. On"`, false},
		{"/name", `"Ann Lee"`, false},
		{"/site", `"Ann Lee"`, false},
		{"/n", `"Ann Lee"`, false},
		// One token is typed by the formats that there are.
		{"/untyped", `"team-notes.docx"`, true},
		{"/loose/0", `"#W2378156"`, true},
		{"/token", `"#W2378156"`, true},
		{"/uuid", `"6ba7b810-9dad-11d1-80b4-00c04fd430c8"`, true},
		{"/uuid", `"#W2378156"`, false},
		{"/name", `"files.example.com"`, true},
		{"/name", `"ann@example.com"`, false},
		{"/ip", `"10.0.0.7"`, true},
		{"/ip", `"files.example.com"`, false},
		{"/site", `"files.example.com"`, true},
		{"/untyped", `"GB29 NWBK 6016 1331 9268 19"`, true}, // an account is one token, however it is grouped
		{"/text", `""`, false},
		{"/text", `true`, false},
		{"/list", `["ann@example.com"]`, false}, // leaf by leaf
	} {
		if got := g.Allows(d, c.arg, value.MustParse(c.value)); got != c.want {
			t.Errorf("%s %s: got %t, want %t", c.arg, c.value, got, c.want)
		}
	}
	var none *policy.Grants
	if none.Allows(d, "/text", value.MustText("Ann Lee")) || !none.Allows(d, "/limit", value.Int(100)) {
		t.Error("without a task only what the schema fixes is granted")
	}
}

// No proper part of a word is ever granted, unless the task has it elsewhere too.
func TestGrantsAreWhole(t *testing.T) {
	d := &tool.Declaration{Name: "t"}
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[a-z0-9@.-]{6,20}`), 1, 6).Draw(t, "words")
		task := strings.Join(words, " ")
		g := policy.NewGrants(task)
		w := rapid.SampledFrom(words).Draw(t, "word")
		from := rapid.IntRange(0, len(w)-1).Draw(t, "from")
		to := rapid.IntRange(from+1, len(w)).Draw(t, "to")
		part := w[from:to]
		whole := false
		for _, o := range words {
			whole = whole || strings.TrimRight(o, ".") == strings.TrimRight(part, ".")
		}
		if g.Allows(d, "/x", value.MustText(part)) && !whole {
			t.Fatalf("%q is granted by %q", part, task)
		}
	})
}

func FuzzGrants(f *testing.F) {
	f.Add("pay 5 EUR to ann@example.com", "ann@example.com")
	f.Fuzz(func(t *testing.T, task, word string) {
		v, err := value.Text(word)
		if err != nil {
			return
		}
		if policy.NewGrants(task).Allows(&tool.Declaration{Name: "t"}, "/x", v) &&
			!strings.Contains(strings.ReplaceAll(task, " ", ""), strings.ReplaceAll(word, " ", "")) &&
			!strings.ContainsAny(word, "T :") && !strings.ContainsAny(task, "\t\n\v\f\r\u0085\u00a0") {
			t.Errorf("%q is granted by %q, which does not hold it", word, task)
		}
	})
}

func TestPlaceholders(t *testing.T) {
	cat := bank(t)
	c := policy.Call{Step: "s2", Tool: cat.Get("fetch"), Args: value.MustParse(`{"url":"https://a.test","key":{"$secret":"k"},"deep":[{"$secret":"d"}],"data":{"$secret":"x"}}`),
		Origins: []policy.Origin{{Pointer: "/data", Step: "s1"}}}
	ps := policy.Placeholders(c)
	if len(ps) != 2 || ps[0] != (policy.Placeholder{Pointer: "/key", Name: "k", Role: tool.Secret}) || ps[1].Role != tool.Target {
		t.Errorf("got %v, want /key of kind secret and /deep/0 a target; what a step put in is data", ps)
	}
	lookup := func(name string) (string, bool) { return "s3cret-" + name, name == "k" }
	if _, err := policy.Reveal(c, lookup); err == nil {
		t.Error("a placeholder in a target was revealed")
	}
	c.Args = value.MustParse(`{"url":"https://a.test","key":{"$secret":"k"}}`)
	got, err := policy.Reveal(c, lookup)
	if err != nil || got.String() != `{"url":"https://a.test","key":"s3cret-k"}` || strings.Contains(c.Args.String(), "s3cret") {
		t.Errorf("got %s, %v", got, err)
	}
	c.Args = value.MustParse(`{"url":"https://a.test","key":{"$secret":"nope"}}`)
	if _, err := policy.Reveal(c, lookup); err == nil || !strings.Contains(err.Error(), `no secret "nope"`) {
		t.Errorf("got %v, want an error that names the secret", err)
	}
}
