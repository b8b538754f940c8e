package episode

import (
	"cmp"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/callsheet/callsheet/secret"
	"github.com/callsheet/callsheet/value"
	"github.com/go-json-experiment/json/jsontext"
)

// Redacted stands where a secret stood.
const Redacted = "[redacted]"

// MinSecret is the shortest secret that can be replaced wherever it stands:
// a shorter one would take innocent text with it.
const MinSecret = 4

// maxNested bounds JSON inside JSON that is looked into: a result inside a message
// inside a log is three deep.
const maxNested = 16

// A mask replaces what must not be read in a text.
type mask func(string) string

// byPattern replaces what matches.
func byPattern(patterns []*regexp.Regexp) mask {
	return func(text string) string {
		for _, re := range patterns {
			text = re.ReplaceAllString(text, Redacted)
		}
		return text
	}
}

// byValue replaces secrets as they stand, the longest first, so that one that holds
// another is replaced whole, and those that are long enough in the forms that
// package secret knows too.
func byValue(secrets []string) mask {
	var forms []string
	for _, s := range secrets {
		if utf8.RuneCountInString(s) < secret.MinLength {
			forms = append(forms, s)
			continue
		}
		forms = append(forms, secret.Forms(s)...)
	}
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	var pairs []string
	for _, f := range slices.Compact(forms) {
		pairs = append(pairs, f, Redacted)
	}
	return strings.NewReplacer(pairs...).Replace
}

// redact replaces what a mask does, in what a recording says and not only in how it
// is written: a text may be spelled in JSON in many ways.
func (m mask) redact(name string, data []byte) []byte {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".json", ".jsonl", ".ndjson":
		return m.literals(nil, string(data), true, 0)
	}
	return []byte(m.text(string(data), 0))
}

// text masks a text, and JSON in it.
func (m mask) text(s string, depth int) string {
	if depth < maxNested {
		switch trimmed := strings.TrimSpace(s); {
		case strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "["):
			s = string(m.literals(nil, s, true, depth+1))
		case strings.Contains(s, `\`):
			s = string(m.literals(nil, s, false, depth+1))
		}
	}
	return m(s)
}

// literals masks each string of JSON by what it means, and with numbers also each
// number; a number with a secret in it becomes a text. What it leaves alone it
// leaves byte for byte.
func (m mask) literals(dst []byte, s string, numbers bool, depth int) []byte {
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c == '"':
			end := closing(s, i)
			if end < 0 {
				dst = append(dst, c)
				i++
				continue
			}
			dst = m.literal(dst, s[i:end], depth)
			i = end
		case numbers && (c == '-' || '0' <= c && c <= '9'):
			end := i + 1
			for end < len(s) && strings.IndexByte("+-.eE0123456789", s[end]) >= 0 {
				end++
			}
			if number := s[i:end]; m(number) != number {
				dst = append(dst, `"`+Redacted+`"`...)
			} else {
				dst = append(dst, number...)
			}
			i = end
		default:
			dst = append(dst, c)
			i++
		}
	}
	return dst
}

// closing is the end of the string literal that begins at i, negative without one:
// a string of JSON does not go over the end of a line.
func closing(s string, i int) int {
	for k := i + 1; k < len(s); k++ {
		switch s[k] {
		case '"':
			return k + 1
		case '\\':
			k++
		case '\n':
			return -1
		}
	}
	return -1
}

func (m mask) literal(dst []byte, lit string, depth int) []byte {
	decoded, err := jsontext.AppendUnquote(nil, lit)
	if err != nil {
		return append(dst, lit...) // no JSON; the parser says so, or it is other text
	}
	text := string(decoded)
	if masked := m.text(text, depth); masked != text {
		return value.AppendQuote(dst, masked)
	}
	return append(dst, lit...)
}
