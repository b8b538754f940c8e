package secret_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/secret"
	"github.com/callsheet/callsheet/value"
)

func Example() {
	r, _ := secret.NewRedactor(map[string]string{"api_key": "sk-live-4242"})
	fmt.Println(r.Text("401 for token sk-live-4242"))
	fmt.Println(r.Text("Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("me:sk-live-4242"))))
	fmt.Println(r.Value(value.MustParse(`{"ok":1,"echo":["sk-live-4242"]}`)))
	// Output:
	// 401 for token [secret:api_key]
	// Authorization: Basic bWU6[secret:api_key]
	// {"ok":1,"echo":["[secret:api_key]"]}
}

// encodings are the ways in which a tool may give a secret back.
var encodings = map[string]func(before, s, after string) string{
	"exact":     func(b, s, a string) string { return b + s + a },
	"base64":    func(b, s, a string) string { return base64.StdEncoding.EncodeToString([]byte(b + s + a)) },
	"base64url": func(b, s, a string) string { return base64.RawURLEncoding.EncodeToString([]byte(b + s + a)) },
	"hex":       func(b, s, a string) string { return hex.EncodeToString([]byte(b + s + a)) },
	"HEX":       func(b, s, a string) string { return strings.ToUpper(hex.EncodeToString([]byte(b + s + a))) },
	"query":     func(b, s, a string) string { return url.QueryEscape(b + s + a) },
	"path":      func(b, s, a string) string { return url.PathEscape(b + s + a) },
	"json": func(b, s, a string) string {
		out, _ := json.Marshal(b + s + a)
		return string(out)
	},
	"json in json": func(b, s, a string) string {
		once, _ := json.Marshal(map[string]string{"k": b + s + a})
		twice, _ := json.Marshal(string(once))
		return string(twice)
	},
	"value": func(b, s, a string) string { return value.MustText(b + s + a).String() },
}

// TestHostile030_EveryFormIsRedacted: for every secret, in every encoding, between
// any neighbours, what is left no longer decodes to the secret.
func TestHostile030_EveryFormIsRedacted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`[ -~äß]{8,40}`).Draw(t, "secret")
		r, err := secret.NewRedactor(map[string]string{"k": s})
		if err != nil {
			t.Fatal(err)
		}
		before := rapid.StringMatching(`[a-z :]{0,5}`).Draw(t, "before")
		after := rapid.StringMatching(`[a-z :]{0,5}`).Draw(t, "after")
		for name, encode := range encodings {
			text := encode(before, s, after)
			got := r.Text(text)
			if !strings.Contains(got, "[secret:k]") {
				t.Errorf("%s of %q: %q is left as %q", name, s, text, got)
			}
			if strings.Contains(got, s) && !strings.Contains("[secret:k]", s) {
				t.Errorf("%s of %q: the secret stands in %q", name, s, got)
			}
		}
	})
}

func TestHostile031_ErrorTexts(t *testing.T) {
	r, err := secret.NewRedactor(map[string]string{"token": "sk-0123456789", "longer": "sk-0123456789-and-more"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"401 for token sk-0123456789":            "401 for token [secret:token]",
		"401 for token sk-0123456789-and-more":   "401 for token [secret:longer]",
		"GET /?k=sk-0123456789&k2=sk%2D01234567": "GET /?k=[secret:token]&k2=sk%2D01234567",
		"nothing to see":                         "nothing to see",
	} {
		if got := r.Text(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if got := string(r.Bytes([]byte(text))); got != want {
			t.Errorf("bytes of %q: got %q, want %q", text, got, want)
		}
	}
}

// Encoders of JSON differ in what they escape.
func TestHostile030_EscapesOfOtherEncoders(t *testing.T) {
	r, err := secret.NewRedactor(map[string]string{"k": "pä/ss😀 1234"})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`p\u00e4/ss\ud83d\ude00 1234`, `pä\/ss😀 1234`, `p\u00e4\/ss\ud83d\ude00 1234`,
		`p\\u00e4/ss\\ud83d\\ude00 1234`, `pä\\/ss😀 1234`, `p\\u00e4\\/ss\\ud83d\\ude00 1234`,
	} {
		if got := r.Text("<" + text + ">"); got != "<[secret:k]>" {
			t.Errorf("%s is left as %s", text, got)
		}
	}
}

func TestValue(t *testing.T) {
	r, err := secret.NewRedactor(map[string]string{"pin code": "1234567890"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`{"a":["x","1234567890"],"b":1234567890,"c":null}`: `{"a":["x","[secret:pin_code]"],"b":"[secret:pin_code]","c":null}`,
		`{"1234567890":1,"31323334353637383930":2}`:        `{"[secret:pin_code]":1,"[secret:pin_code] (2)":2}`,
		`{"a":[1,2,{"b":"c"}]}`:                            `{"a":[1,2,{"b":"c"}]}`,
	} {
		v := value.MustParse(text)
		got := r.Value(v)
		if got.String() != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
		if text == want && got != v {
			t.Errorf("%s was copied though nothing in it changed", text)
		}
	}
}

func TestShortSecretsAreRefused(t *testing.T) {
	if _, err := secret.NewRedactor(map[string]string{"pin": "1234567"}); !errors.Is(err, secret.ErrTooShort) || !strings.Contains(err.Error(), `"pin"`) {
		t.Errorf("got %v, want ErrTooShort that names the secret", err)
	}
	none, err := secret.NewRedactor(nil)
	if err != nil || none.Text("x") != "x" || none.Longest() != 0 {
		t.Errorf("without secrets: got %v", err)
	}
}

// FuzzRedactor: no text makes redaction fail, and none of the secret is left.
func FuzzRedactor(f *testing.F) {
	f.Add("sk-live-4242", "401 for sk-live-4242")
	f.Add("pass word/+%", "x")
	f.Fuzz(func(t *testing.T, s, text string) {
		r, err := secret.NewRedactor(map[string]string{"k": s})
		if err != nil {
			return
		}
		if got := r.Text(text + s); strings.Contains(got, s) && !strings.Contains("[secret:k]"+text, s) && !strings.Contains(s, "[secret:k]") {
			t.Errorf("%q is left in %q", s, got)
		}
	})
}

func BenchmarkText(b *testing.B) {
	secrets := map[string]string{}
	for i := range 20 {
		secrets[fmt.Sprint("k", i)] = fmt.Sprintf("sk-%d-0123456789abcdef", i*7919)
	}
	r, err := secret.NewRedactor(secrets)
	if err != nil {
		b.Fatal(err)
	}
	text := strings.Repeat("the quick brown fox jumps over the lazy dog. ", 23)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		r.Text(text)
	}
}
