package tool

import (
	"net/mail"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"github.com/callsheet/callsheet/internal/iban"
	"github.com/callsheet/callsheet/tool/internal/number"
	"github.com/callsheet/callsheet/value"
)

// Targets are what a call acts on: the args that are targets, hosts, paths and
// programs, read as the predicates and grants of package policy read them. It does
// not matter how a number is written (1, 1.0), what case a domain or host has, how a
// path or URL is spelled out, how an account number is grouped, what white space is
// around and between words, and which of its Unicode spellings a character has. A
// list, and a text that lists e-mail addresses, is a set.
type Targets []targetsAt // by pointer

type targetsAt struct {
	pointer string
	list    bool
	members []string // sorted, each once
}

// Targets are the targets of a call with these args. What is null or empty is none.
func (d *Declaration) Targets(args value.Value) Targets {
	var t Targets
	t.add(d, args, "")
	slices.SortFunc(t, func(a, b targetsAt) int { return strings.Compare(a.pointer, b.pointer) })
	return t
}

func (t *Targets) add(d *Declaration, v value.Value, pointer string) {
	at := targetsAt{pointer: pointer}
	switch v.Kind() {
	case value.Object:
		for k, m := range v.Members() {
			t.add(d, m, pointer+"/"+value.EscapePointer(k))
		}
		return
	case value.List:
		at.list = true
		at.members = elementsOf(d, v, pointer)
	default:
		if !isTarget(d, pointer) {
			return
		}
		if at.members = addresses(v); len(at.members) > 0 {
			at.list = len(at.members) > 1
		} else if form := leafForm(d, v, pointer); form != "" {
			at.members = []string{form}
		}
	}
	if len(at.members) > 0 {
		*t = append(*t, at)
	}
}

// Same reports whether two calls of one tool act on the same: on the same in every
// arg that is no list and, if there are lists, on a member of one that the other
// call had in that place too. Calls without any targets have all in common.
func (t Targets) Same(u Targets) bool {
	lists, shared := false, false
	for len(t) > 0 || len(u) > 0 {
		var a, b targetsAt
		switch {
		case len(u) == 0 || len(t) > 0 && t[0].pointer < u[0].pointer:
			a, t = t[0], t[1:]
		case len(t) == 0 || u[0].pointer < t[0].pointer:
			b, u = u[0], u[1:]
		default:
			a, b, t, u = t[0], u[0], t[1:], u[1:]
		}
		if a.list || b.list {
			lists = true
			shared = shared || slices.ContainsFunc(a.members, func(m string) bool {
				_, found := slices.BinarySearch(b.members, m)
				return found
			})
		} else if !slices.Equal(a.members, b.members) {
			return false
		}
	}
	return shared || !lists
}

func isTarget(d *Declaration, pointer string) bool {
	switch d.RoleOf(pointer) {
	case Target, Host, Path, Program:
		return true
	}
	return false
}

func elementsOf(d *Declaration, v value.Value, pointer string) []string {
	var members []string
	for i, e := range v.Elements() {
		if m := form(d, e, pointer+"/"+strconv.Itoa(i)); m != "" {
			members = append(members, m)
		}
	}
	slices.Sort(members)
	return slices.Compact(members)
}

// form is how the targets in a member of a list are compared; "" if there are none.
func form(d *Declaration, v value.Value, pointer string) string {
	switch v.Kind() {
	case value.Object:
		var parts []string
		for k, m := range v.Members() {
			if f := form(d, m, pointer+"/"+value.EscapePointer(k)); f != "" {
				parts = append(parts, quoted(k)+":"+f)
			}
		}
		if len(parts) == 0 {
			return ""
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}"
	case value.List:
		if members := elementsOf(d, v, pointer); len(members) > 0 {
			return "[" + strings.Join(members, ",") + "]"
		}
		return ""
	}
	if !isTarget(d, pointer) {
		return ""
	}
	return leafForm(d, v, pointer)
}

func leafForm(d *Declaration, v value.Value, pointer string) string {
	switch v.Kind() {
	case value.Null:
		return ""
	case value.Number:
		text, _ := v.Number()
		if r, err := number.Parse(text); err == nil {
			return r.RatString()
		}
		return text
	case value.String:
		text, _ := v.Text()
		return quoted(textForm(d.RoleOf(pointer), text))
	}
	return v.String()
}

// quoted keeps a text apart from a number or word that is written like it.
func quoted(s string) string { return value.MustText(strings.ToValidUTF8(s, "\uFFFD")).String() }

func textForm(role Role, text string) string {
	text = norm.NFC.String(text)
	if role == Path || role == Program && strings.Contains(text, "/") {
		return path.Clean(text)
	}
	text = strings.Join(strings.Fields(text), " ")
	if role == Host || strings.Contains(text, "://") {
		if address, ok := urlForm(text); ok {
			return address
		}
	}
	if a, err := mail.ParseAddress(text); err == nil {
		return addressForm(a)
	}
	if compact := strings.ReplaceAll(text, " ", ""); iban.Is(compact) {
		return compact
	}
	return text
}

// urlForm spells a URL, or a bare host, in one way. As for host_in, what names no
// scheme is https.
func urlForm(text string) (string, bool) {
	if !strings.Contains(text, "//") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return "", false
	}
	u.Host = strings.ToLower(u.Host)
	if port := u.Port(); u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
		u.Host = strings.TrimSuffix(u.Host, ":"+port)
	}
	if u.Path == "" {
		u.Path = "/"
	}
	u.Fragment, u.RawFragment = "", ""
	return u.String(), true
}

// addressForm is an e-mail address without the name beside it. Letters of a domain
// have no case.
func addressForm(a *mail.Address) string {
	i := strings.LastIndexByte(a.Address, '@')
	return a.Address[:i] + strings.ToLower(a.Address[i:])
}

// addresses are the e-mail addresses that a text lists, sorted; nil if it is
// another text.
func addresses(v value.Value) []string {
	text, _ := v.Text()
	if !strings.Contains(text, ",") {
		return nil
	}
	list, err := mail.ParseAddressList(norm.NFC.String(text))
	if err != nil {
		return nil
	}
	members := make([]string, len(list))
	for i, a := range list {
		members[i] = quoted(addressForm(a))
	}
	slices.Sort(members)
	return slices.Compact(members)
}
