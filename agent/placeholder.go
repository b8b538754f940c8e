package agent

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/value"
)

// standIns are texts that stand for an answer (spec/agent.md §2).
var standIns = []string{
	"placeholder", "todo", "tbd", "n/a", "na", "...", "…", "<placeholder>", "<observation>", "<output>",
	"observation", "output", "the observation", "[observation]", "[output]", "lorem ipsum",
}

// isStandIn reports whether text is one of them after white space, back-ticks
// and quotes around it, case, and underscores for spaces are put aside.
func isStandIn(text string) bool {
	const longest = 256 // no stand-in with decoration around it is as long
	if len(text) > longest {
		return false
	}
	text = bare(text)
	return slices.Contains(standIns, text) || slices.Contains(standIns, strings.ReplaceAll(text, "_", " "))
}

func bare(text string) string {
	return strings.ToLower(strings.Trim(text, " \t\r\n\v\f\u0085\u00a0`'\""))
}

// A Detector finds text that stands for an answer in chosen fields of a
// submission.
type Detector struct {
	fields []string
	wide   bool
}

// Placeholders looks at the strings at and below each of the fields, which are
// RFC 6901 pointers; "" is the whole submission.
func Placeholders(fields ...string) *Detector { return &Detector{fields: fields} }

// Wide also finds single letters, "test", template tokens ({{…}}, <two or more
// words>), and empty strings that the schema requires.
func (d *Detector) Wide() *Detector { return &Detector{d.fields, true} }

// Find lists what is found in v, a value of the schema doc.
func (d *Detector) Find(doc, v value.Value) []schema.Fault {
	s := search{detector: d, schema: doubles{root: doc}}
	s.walk(doc, v, "", false, 0)
	return s.faults
}

type search struct {
	detector *Detector
	schema   doubles
	faults   []schema.Fault
}

func (s *search) walk(doc, v value.Value, at string, required bool, depth int) {
	if len(s.faults) >= schema.MaxFaults || depth > value.MaxDepth {
		return
	}
	doc = s.schema.resolve(doc)
	switch v.Kind() {
	case value.String:
		text, _ := v.Text()
		if !slices.ContainsFunc(s.detector.fields, func(f string) bool { return at == f || strings.HasPrefix(at, f+"/") }) {
			return
		}
		switch {
		case isStandIn(text), s.detector.wide && isWide(text):
			s.faults = append(s.faults, schema.Fault{Pointer: at, Message: "it is a placeholder (" + quote(text) + "); give the real text"})
		case s.detector.wide && required && strings.TrimSpace(text) == "":
			s.faults = append(s.faults, schema.Fault{Pointer: at, Message: "it is required and empty; give the real text"})
		}
	case value.Object:
		properties := s.schema.member(doc, "properties", value.Object)
		names := s.schema.member(doc, "required", value.Object)
		for key, m := range v.Members() {
			sub, _ := properties.Get(key)
			must := false
			for _, n := range names.Elements() {
				name, _ := n.Text()
				must = must || name == key
			}
			s.walk(sub, m, at+"/"+value.EscapePointer(key), must, depth+1)
		}
	case value.List:
		items := s.schema.member(doc, "items", value.List)
		for i, e := range v.Elements() {
			s.walk(items, e, at+"/"+strconv.Itoa(i), false, depth+1)
		}
	}
}

// template is a token that somebody was to fill in. An angle bracket with two
// words is one, with an attribute it is markup.
var template = regexp.MustCompile(`\{\{[^{}]*\}\}|<[\pL][^<>\n=/]* [^<>\n=/]*>`)

func isWide(text string) bool {
	b := bare(text)
	return b == "test" || utf8.RuneCountInString(b) == 1 && isLetter(b) || template.MatchString(text)
}

func isLetter(s string) bool {
	return strings.ToLower(s) != strings.ToUpper(s)
}
