package terminal

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/internal/lookalike"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// maxShown is how many bytes of a value that is no target are shown unless a
// person asks for all: a screenful, so that what decides is not pushed out of
// sight. Targets are always shown whole.
const maxShown = 400

// A Question is a call that a person is asked to approve. What is shown of it is
// what will be sent.
type Question struct {
	Run, Step string
	Tool      string
	Decl      *tool.Declaration // nil: not known here; then every arg is shown as a target
	Args      value.Value
	Code      string
	Message   string
	Expires   time.Time
}

// leaf is one value of the args.
type leaf struct {
	pointer string
	role    tool.Role
	v       value.Value
}

// order is the fixed layout: what the call acts on comes first.
var order = map[tool.Role]int{tool.Program: 0, tool.Host: 1, tool.Path: 2, tool.Target: 3, tool.Secret: 4, tool.Neutral: 5, tool.Content: 6}

func isTarget(r tool.Role) bool {
	return r == tool.Target || r == tool.Host || r == tool.Path || r == tool.Program
}

// Question shows q in a fixed layout, targets first, everything escaped, and
// returns how many bytes of it are not shown. Where that is not 0 the call must
// not be approved before it was shown in full (spec/hostile.md 66).
func (o *Output) Question(q Question, full bool) (hidden int) {
	o.Line("step %s wants to call %s", q.Step, q.Tool)
	if q.Message != "" {
		o.Line("  because  %s", q.Message)
	}
	if q.Run != "" {
		o.Line("  run      %s, the question expires %s", q.Run, q.Expires.UTC().Format(time.RFC3339))
	}
	var leaves []leaf
	collect(&leaves, q.Decl, q.Args, "")
	slices.SortStableFunc(leaves, func(a, b leaf) int { return cmp.Compare(order[a.role], order[b.role]) })
	for _, l := range leaves {
		text := l.v.String()
		cut := 0
		if !full && !isTarget(l.role) && len(text) > maxShown {
			n := maxShown
			for n > 0 && !utf8.RuneStart(text[n]) {
				n--
			}
			cut = len(text) - n
			text = text[:n]
		}
		hidden += cut
		more := ""
		if cut > 0 {
			more = fmt.Sprintf(" … %s not shown", count.Of(cut, "byte"))
		}
		o.Line("  %-8s %s = %s%s", l.role, l.pointer, text, more)
		if s, ok := l.v.Text(); ok {
			for _, note := range lookalikes(s) {
				o.Line("           ^ %s", note)
			}
		}
	}
	if len(leaves) == 0 {
		o.Line("  no args")
	}
	return hidden
}

func collect(leaves *[]leaf, d *tool.Declaration, v value.Value, pointer string) {
	if n := v.Len(); n > 0 {
		for i := range n {
			key := fmt.Sprint(i)
			if v.Kind() == value.Object {
				key = value.EscapePointer(v.Key(i))
			}
			collect(leaves, d, v.At(i), pointer+"/"+key)
		}
		return
	}
	if pointer == "" {
		return
	}
	role := tool.Target
	if d != nil {
		role = d.RoleOf(pointer)
	}
	*leaves = append(*leaves, leaf{pointer, role, v})
}

// maxLookalikes bounds the notes about one value.
const maxLookalikes = 8

// lookalikes are notes about the words of s that could be mistaken for others:
// names of hosts with letters beyond ASCII, in punycode, and words that mix
// scripts.
func lookalikes(s string) (notes []string) {
	for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`/@:"'<>()[]{},;?&=#`, r) }) {
		if len(notes) == maxLookalikes {
			return notes
		}
		if lookalike.ASCII(word) {
			continue
		}
		if strings.Contains(strings.Trim(word, "."), ".") {
			if _, err := netip.ParseAddr(word); err != nil {
				if ascii, err := idna.Punycode.ToASCII(strings.ToLower(word)); err == nil && ascii != word {
					notes = append(notes, fmt.Sprintf("the host %s is %s", word, ascii))
				}
			}
		}
		if scripts := lookalike.Scripts(word); len(scripts) > 1 {
			notes = append(notes, fmt.Sprintf("%s mixes letters of %s", word, strings.Join(scripts, " and ")))
		}
	}
	return notes
}

// Targets is what a call acts on, as one text: calls of one tool that have it in
// common are one question to a person (spec/hostile.md 69). d may be nil.
func Targets(d *tool.Declaration, args value.Value) string {
	var leaves []leaf
	collect(&leaves, d, args, "")
	var b strings.Builder
	for _, l := range leaves {
		if isTarget(l.role) {
			fmt.Fprintf(&b, "%q=%s ", l.pointer, l.v.Canonical())
		}
	}
	return b.String()
}
