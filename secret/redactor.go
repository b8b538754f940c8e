// Package secret keeps secrets out of whatever is written.
//
//	r, err := secret.NewRedactor(map[string]string{"api_key": "sk-live-4242"})
//	r.Text("401 for token sk-live-4242") // 401 for token [secret:api_key]
//
// A secret itself goes to a tool and nowhere else (spec/policy.md, Labels). But a
// tool may echo it, plainly or encoded, in an output, an error or a log line, and
// a model may repeat it. A [Redactor] takes out the text of every secret, also as
// base64, hexadecimal, percent-encoded and JSON-escaped, before a record, an
// event, a message or a line is made of it.
package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/callsheet/callsheet/value"
)

// MinLength is how many characters a secret must have: shorter ones would be
// found in ordinary text, and their encodings everywhere.
const MinLength = 8

// ErrTooShort is wrapped by the error about a secret below [MinLength].
var ErrTooShort = errors.New("secret is too short to be redacted")

var errNotText = errors.New("secret is not UTF-8 text, so it cannot stand in a JSON argument")

// A Redactor replaces secrets. The nil Redactor replaces nothing. It is immutable
// and safe for concurrent use.
type Redactor struct {
	replacer *strings.Replacer
	longest  int
}

// NewRedactor makes a redactor of named secrets. A secret of fewer than
// [MinLength] characters is an error that names it: a secret that cannot be kept
// out of the records must not be used.
func NewRedactor(secrets map[string]string) (*Redactor, error) {
	if len(secrets) == 0 {
		return nil, nil
	}
	type form struct{ text, mark string }
	var forms []form
	names := make([]string, 0, len(secrets))
	for name := range secrets {
		names = append(names, name)
	}
	slices.Sort(names)
	r := &Redactor{}
	for _, name := range names {
		s := secrets[name]
		if utf8.RuneCountInString(s) < MinLength {
			return nil, fmt.Errorf("secret %q: %w: it needs at least %d characters", name, ErrTooShort, MinLength)
		}
		if !utf8.ValidString(s) {
			return nil, fmt.Errorf("secret %q: %w", name, errNotText)
		}
		for _, text := range Forms(s) {
			forms = append(forms, form{text, "[secret:" + plainName(name) + "]"})
			r.longest = max(r.longest, len(text))
		}
	}
	// At one place the longest form wins, so that a secret that starts with
	// another is replaced as a whole.
	slices.SortStableFunc(forms, func(a, b form) int { return len(b.text) - len(a.text) })
	pairs := make([]string, 0, 2*len(forms))
	for _, f := range forms {
		pairs = append(pairs, f.text, f.mark)
	}
	r.replacer = strings.NewReplacer(pairs...)
	return r, nil
}

// plainName keeps a name from being anything but text, wherever the mark is put.
func plainName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
}

// Forms are the texts in which a secret may stand, without repeats: as it is, and as
// base64, hex, URLs and JSON write it.
func Forms(s string) []string {
	forms := []string{s}
	add := func(more ...string) {
		for _, f := range more {
			if f != "" && !slices.Contains(forms, f) {
				forms = append(forms, f)
			}
		}
	}
	// Inside a longer text the encoding of a secret depends on where it starts, in
	// three ways; the characters that its neighbours have a part in are left out.
	for shift := range 3 {
		raw := append(make([]byte, shift), s...)
		std := base64.RawStdEncoding.EncodeToString(raw)
		from, to := []int{0, 2, 3}[shift], len(std)
		if len(raw)%3 != 0 {
			to--
		}
		core := std[from:to]
		add(core, strings.NewReplacer("+", "-", "/", "_").Replace(core), url.QueryEscape(core))
	}
	h := hex.EncodeToString([]byte(s))
	add(h, strings.ToUpper(h))
	for _, escaped := range []string{url.QueryEscape(s), url.PathEscape(s), everyByte(s), butAlphanumerics(s)} {
		add(escaped, lowerEscapes(escaped))
	}
	// Escaped once as a string in JSON, and twice as JSON inside a JSON string,
	// with and without the escapes that are safe in HTML.
	once := []string{quoted(s), string(value.AppendQuote(nil, s))}
	for _, q := range once {
		q = q[1 : len(q)-1]
		twice := quoted(q)
		thin := string(value.AppendQuote(nil, q))
		add(q, twice[1:len(twice)-1], thin[1:len(thin)-1])
	}
	// What other encoders write: everything but ASCII escaped, or slashes, or both.
	plain := once[1][1 : len(once[1])-1]
	ascii := asciiEscapes(plain)
	for _, q := range []string{ascii, slashEscapes(plain), slashEscapes(ascii)} {
		twice := string(value.AppendQuote(nil, q))
		add(q, twice[1:len(twice)-1])
	}
	add(unicodeEscapes(s))
	return forms
}

// quoted is s as encoding/json writes it: with HTML escapes.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string always has a form
	}
	return string(b)
}

func everyByte(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02X", s[i])
	}
	return b.String()
}

// butAlphanumerics percent-encodes everything but ASCII letters and digits, as
// cautious clients do.
func butAlphanumerics(s string) string {
	var b strings.Builder
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// lowerEscapes writes %2F as %2f.
func lowerEscapes(s string) string {
	b := []byte(s)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], strings.ToLower(string(b[i+1:i+3])))
			i += 2
		}
	}
	return string(b)
}

// asciiEscapes escapes what is not ASCII.
func asciiEscapes(s string) string {
	var b []byte
	for _, r := range s {
		switch {
		case r < utf8.RuneSelf:
			b = append(b, byte(r))
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return string(b)
}

func slashEscapes(s string) string { return strings.ReplaceAll(s, "/", `\/`) }

func unicodeEscapes(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r > 0xFFFF {
			return "" // written as surrogates; AppendQuote's form is the usual one
		}
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

// Text is s with every secret replaced by "[secret:NAME]". Without one it is s
// itself, and nothing is allocated.
func (r *Redactor) Text(s string) string {
	if r == nil {
		return s
	}
	return r.replacer.Replace(s)
}

// Bytes is [Redactor.Text] for bytes. The result is b itself when nothing was
// replaced.
func (r *Redactor) Bytes(b []byte) []byte {
	if r == nil || len(b) == 0 {
		return b
	}
	s := string(b)
	if out := r.replacer.Replace(s); out != s {
		return []byte(out)
	}
	return b
}

// Longest is the number of bytes of the longest form of a secret: who redacts a
// stream in pieces keeps that many back, so that none is cut in two.
func (r *Redactor) Longest() int {
	if r == nil {
		return 0
	}
	return r.longest
}

// Value is v with the secrets in its strings, names and numbers replaced. Parts
// without one are shared with v.
func (r *Redactor) Value(v value.Value) value.Value {
	if r == nil {
		return v
	}
	switch v.Kind() {
	case value.String:
		s, _ := v.Text()
		if out := r.replacer.Replace(s); out != s {
			return value.MustText(out)
		}
	case value.Number:
		s, _ := v.Number()
		if out := r.replacer.Replace(s); out != s {
			return value.MustText(out)
		}
	case value.List:
		var out []value.Value
		for i, e := range v.Elements() {
			n := r.Value(e)
			if out == nil && !same(n, e) {
				out = make([]value.Value, v.Len())
				for k := range i {
					out[k] = v.At(k)
				}
			}
			if out != nil {
				out[i] = n
			}
		}
		if out != nil {
			return value.ListOf(out...)
		}
	case value.Object:
		return r.object(v)
	}
	return v
}

func (r *Redactor) object(v value.Value) value.Value {
	ms := make([]value.Member, 0, v.Len())
	used := make(map[string]bool, v.Len())
	changed := false
	for k, m := range v.Members() {
		name, n := r.replacer.Replace(k), r.Value(m)
		changed = changed || name != k || !same(n, m)
		for base, i := name, 2; used[name]; i++ { // two names that held the same secret
			name = fmt.Sprintf("%s (%d)", base, i)
		}
		used[name] = true
		ms = append(ms, value.Member{Key: name, Value: n})
	}
	if !changed {
		return v
	}
	return value.ObjectOf(ms...)
}

// same reports whether redaction left a value as it was: a value is immutable, so
// one that changed is another.
func same(a, b value.Value) bool { return a == b }
