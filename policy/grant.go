package policy

import (
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/callsheet/callsheet/internal/iban"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// MinWord is how many characters an id or a word of the task must have to be a
// grant: shorter ones stand in a text by chance.
const MinWord = 4

// Grants are the typed tokens of a task (spec/policy.md, Labels). A literal that
// a model wrote is the user's own only if the task holds it whole. The nil
// Grants grants nothing but what a schema itself fixes.
//
// A token is a run of characters without white space, without the quotes,
// brackets and closing punctuation around it; a part of one is never granted. A run
// of whole tokens ('1234 Elm Street', 'Sarah Baker') is granted where the arg's
// schema says that it is text, and neither a format nor its role says of what kind:
// an address or a host is one token.
type Grants struct {
	task    string
	starts  map[int]bool // offsets at which a token starts
	ends    map[int]bool
	numbers []grantedNumber
	ibans   map[string]bool // without spaces
}

type grantedNumber struct {
	value string   // canonical
	long  bool     // MinWord characters or more, or beside a unit or currency
	near  []string // the words beside it, lower-case
}

// maxTask bounds the text that is searched for grants, to keep the tokens of a
// pasted book out of memory; what follows grants nothing.
const maxTask = 1 << 20

// NewGrants reads the grants of a task, once, from the user's own words.
func NewGrants(task string) *Grants {
	if len(task) > maxTask {
		task = task[:maxTask]
	}
	g := &Grants{task: task, starts: map[int]bool{}, ends: map[int]bool{}, ibans: map[string]bool{}}
	var tokens []string
	for at := 0; at < len(task); {
		r, n := utf8.DecodeRuneInString(task[at:])
		if unicode.IsSpace(r) {
			at += n
			continue
		}
		end := at
		for end < len(task) {
			r, n := utf8.DecodeRuneInString(task[end:])
			if unicode.IsSpace(r) {
				break
			}
			end += n
		}
		from, to := trimToken(task, at, end)
		if from < to {
			g.starts[from], g.ends[to] = true, true
			tokens = append(tokens, task[from:to])
		}
		at = end
	}
	for i, t := range tokens {
		g.number(tokens, i, t)
		g.iban(tokens[i:])
	}
	return g
}

const (
	opening = "'\"`(<[{«“‘„¿¡"
	closing = "'\"`)>]}»”’,.;:!?…"
)

func trimToken(s string, from, to int) (int, int) {
	for from < to {
		r, n := utf8.DecodeRuneInString(s[from:to])
		if !strings.ContainsRune(opening, r) {
			break
		}
		from += n
	}
	for from < to {
		r, n := utf8.DecodeLastRuneInString(s[from:to])
		if !strings.ContainsRune(closing, r) {
			break
		}
		to -= n
	}
	return from, to
}

// Signs and words that show a short number to be an amount and not a mere digit:
// a currency before or after it, a unit after it ("Room 8" is no amount of rooms).
const (
	currencies    = "$€£¥₹"
	currencyWords = ` usd eur gbp chf jpy cny inr cad aud sek nok dkk pln czk huf
 dollar dollars euro euros pound pounds franc francs yen yuan rupee rupees krona kronor cent cents `
	units = ` % percent second seconds sec minute minutes min hour hours hr day days week weeks month months year years
 mm cm m km inch inches ft foot feet mile miles g kg gram grams lb lbs oz ton tons tonne tonnes
 ml l liter liters litre litres gb mb kb tb bytes c f °c °f degrees
 person people guest guests item items piece pieces copy copies times night nights ticket tickets room rooms `
)

func isCurrency(w string) bool {
	return w != "" && (strings.Trim(w, currencies) == "" || isWordOf(currencyWords, w))
}

func isWordOf(list, w string) bool {
	for _, have := range strings.Fields(list) {
		if have == w {
			return true
		}
	}
	return false
}

func (g *Grants) number(tokens []string, i int, t string) {
	text, sign := strings.Trim(t, currencies), false
	if len(text) != len(t) {
		sign = true
	}
	if s, ok := strings.CutSuffix(text, "%"); ok {
		text, sign = s, true
	}
	v, ok := canonicalNumber(ungroup(text))
	if !ok {
		return
	}
	n := grantedNumber{value: v, long: sign || utf8.RuneCountInString(text) >= MinWord}
	for _, j := range []int{i - 2, i - 1, i + 1} {
		if j >= 0 && j < len(tokens) {
			w := strings.ToLower(strings.TrimRight(tokens[j], ":=#"))
			n.near = append(n.near, w)
			if j != i-2 && isCurrency(w) || j == i+1 && isWordOf(units, w) {
				n.long = true
			}
		}
	}
	g.numbers = append(g.numbers, n)
}

// ungroup takes the commas out of 1,234,567.89, and leaves every other text as
// it is.
func ungroup(s string) string {
	whole, frac, _ := strings.Cut(s, ".")
	groups := strings.Split(whole, ",")
	if len(groups) < 2 || groups[0] == "" || len(groups[0]) > 3 || strings.Contains(frac, ",") {
		return s
	}
	for _, p := range groups[1:] {
		if len(p) != 3 {
			return s
		}
	}
	return strings.ReplaceAll(s, ",", "")
}

// maxDigits is how long a number may be to be compared exactly; anything longer
// is granted by nothing.
const maxDigits = 400

// parseNumber reads a JSON number, and nothing else that looks like one.
func parseNumber(text string) (*big.Rat, bool) {
	if len(text) > maxDigits || text == "" {
		return nil, false
	}
	v, err := value.Parse(text)
	if err != nil || v.Kind() != value.Number {
		return nil, false
	}
	if i := strings.IndexAny(text, "eE"); i >= 0 && len(strings.TrimLeft(text[i+1:], "+-0")) > 3 {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// canonicalNumber is the one spelling of a number's value: 1e2, 100.0 and 100 are
// the same, -0 is 0.
func canonicalNumber(text string) (string, bool) {
	if strings.ContainsAny(text, "eE") {
		r, ok := parseNumber(text)
		if !ok {
			return "", false
		}
		text = r.FloatString(maxFraction)
	} else if !isPlainNumber(text) {
		return "", false
	}
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	if text == "-0" {
		text = "0"
	}
	return text, true
}

// maxFraction is the most decimals that a number of maxDigits characters and
// three digits of exponent has.
const maxFraction = maxDigits + 999

// isPlainNumber reports whether s is a JSON number without an exponent.
func isPlainNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	whole, frac, dot := strings.Cut(s, ".")
	return len(s) <= maxDigits && digits(whole) && (len(whole) == 1 || whole[0] != '0') && (!dot || digits(frac))
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// iban takes the account number that stands at the head of tokens, written in
// one piece or in groups of four.
func (g *Grants) iban(tokens []string) {
	joined := ""
	for i, t := range tokens {
		if i > 0 && (len(tokens[i-1]) != 4 || len(t) > 4) || len(joined) > 34 {
			break
		}
		joined += t
		if iban.Is(joined) && (i == 0 || len(joined) >= 15) {
			g.ibans[joined] = true
		}
	}
}

// Allows reports whether v, as the arg of d at the pointer, is the user's own: a
// token of the task of the arg's type, or what the arg's schema itself fixes
// (its default, or its only value). A list or object that is not empty is never
// granted as a whole; ask for its leaves.
func (g *Grants) Allows(d *tool.Declaration, pointer string, v value.Value) bool {
	if v.Len() > 0 {
		return false
	}
	schemas := argSchemas(d, pointer)
	var formats []string
	enum, prose := false, false
	for _, s := range schemas {
		for _, k := range []string{"default", "const"} {
			if fixed, ok := s.Get(k); ok && value.Equal(fixed, v) {
				return true
			}
		}
		if e, ok := s.Get("enum"); ok {
			if e.Len() == 1 && value.Equal(e.At(0), v) {
				return true
			}
			for _, one := range e.Elements() {
				enum = enum || value.Equal(one, v)
			}
		}
		if f, ok := s.Get("format"); ok {
			if text, ok := f.Text(); ok {
				formats = append(formats, text)
			}
		}
		prose = prose || slices.Contains(kindsOf(s), "string")
	}
	if g == nil {
		return false
	}
	switch v.Kind() {
	case value.Number:
		return g.allowsNumber(d, pointer, v)
	case value.String:
		text, _ := v.Text()
		prose = prose && d.RoleOf(pointer) != tool.Host
		return g.allowsText(text, formats, enum, prose)
	}
	return false
}

func (g *Grants) allowsNumber(d *tool.Declaration, pointer string, v value.Value) bool {
	text, _ := v.Number()
	n, ok := canonicalNumber(text)
	if !ok {
		return false
	}
	for _, have := range g.numbers {
		if have.value == n && (have.long || names(d, pointer, have.near)) {
			return true
		}
	}
	return false
}

// names reports whether one of the words is the arg's name, or a word of it:
// "id 7" for transaction_id.
func names(d *tool.Declaration, pointer string, words []string) bool {
	i := strings.LastIndexByte(pointer, '/')
	if i < 0 {
		return false
	}
	name := strings.ToLower(value.UnescapePointer(pointer[i+1:]))
	parts := strings.FieldsFunc(name, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for _, w := range words {
		if w == name {
			return true
		}
		for _, p := range parts {
			if w == p && len(p) > 1 {
				return true
			}
		}
	}
	return false
}

// allowsText reports whether a text is granted for an arg of these formats. enum
// says that the schema lists it, prose that the arg may be several words.
func (g *Grants) allowsText(text string, formats []string, enum, prose bool) bool {
	if compact := strings.ReplaceAll(text, " ", ""); iban.Is(compact) && g.ibans[compact] && len(formats) == 0 {
		return true
	}
	for _, f := range formats {
		if !fits(text, f) {
			return false
		}
	}
	if len(formats) == 0 && !enum && utf8.RuneCountInString(text) < MinWord {
		return false
	}
	if g.holds(text) && (prose && len(formats) == 0 || !strings.ContainsFunc(text, unicode.IsSpace)) {
		return true
	}
	// A date and a time of the task make a date-time: "2024-05-20 at 10:00".
	date, clock, ok := strings.Cut(strings.Replace(text, "T", " ", 1), " ")
	return ok && isDate(date) && isTime(clock) && g.holds(date) && g.holds(clock)
}

// holds reports whether the task has text as a run of whole tokens.
func (g *Grants) holds(text string) bool {
	if text == "" {
		return false
	}
	for from := 0; ; {
		i := strings.Index(g.task[from:], text)
		if i < 0 {
			return false
		}
		if at := from + i; g.starts[at] && g.ends[at+len(text)] {
			return true
		}
		from += i + 1
	}
}

// fits reports whether text is of a JSON Schema format. One that is not known here
// is one token at least, of which the schema's own validation says more; a date and
// a time may have a space between them.
func fits(text, format string) bool {
	if format != "date-time" && strings.ContainsFunc(text, unicode.IsSpace) {
		return false
	}
	switch format {
	case "email", "idn-email":
		return isEmail(text)
	case "date":
		return isDate(text)
	case "time":
		return isTime(text)
	case "date-time":
		date, clock, ok := strings.Cut(strings.Replace(text, "T", " ", 1), " ")
		return ok && isDate(date) && isTime(clock)
	case "uri", "iri", "url":
		scheme, rest, ok := strings.Cut(text, "://")
		return ok && scheme != "" && rest != ""
	case "hostname", "idn-hostname":
		return strings.Contains(text, ".") && !strings.ContainsAny(text, "@/:")
	case "ipv4", "ipv6":
		a, err := netip.ParseAddr(text)
		return err == nil && a.Is4() == (format == "ipv4")
	case "uuid":
		return isUUID(text)
	}
	return true
}

func isUUID(s string) bool {
	if len(s) != 36 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		hex := c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (c == '-') || !dash && !hex {
			return false
		}
	}
	return true
}

func isEmail(s string) bool {
	local, domain, ok := strings.Cut(s, "@")
	return ok && local != "" && strings.Contains(domain, ".") && !strings.ContainsAny(domain, "@ ")
}

func isDate(s string) bool { return shaped(s, "dddd-dd-dd") }

// isTime takes 10:00, 10:00:30 and what an ISO time may have after that.
func isTime(s string) bool {
	s = strings.TrimSuffix(s, "Z")
	return shaped(s, "dd:dd") || shaped(s, "dd:dd:dd")
}

func shaped(s, form string) bool {
	if len(s) != len(form) {
		return false
	}
	for i := range len(s) {
		if form[i] == 'd' && (s[i] < '0' || s[i] > '9') || form[i] != 'd' && s[i] != form[i] {
			return false
		}
	}
	return true
}
