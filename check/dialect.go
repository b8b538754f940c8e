package check

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/value"
)

// A dialect is a way in which other executors, papers and models write a
// reference. The first group of whole is what names the step, the second the
// path, if there is one.
type dialect struct {
	like  string // an example, for messages
	whole *regexp.Regexp
	// known is set where the writing has other uses too, so that it counts only
	// if it names a step of this plan.
	known bool
}

// maxForeign is how many bytes a reference in another dialect may have.
const maxForeign = 1 << 10

// tail is the path after a reference in another dialect.
const tail = `((?:\.[\pL\pN_-]+|\[\d+\])*)`

var (
	dialects = [...]dialect{
		{like: "<node-0>", whole: regexp.MustCompile(`^<([\pL\pN _-]*(?i:step|node|task)[ _-]?\d+[\pL\pN _-]*)>` + tail + `$`)},
		{like: "<GENERATED>-0", whole: regexp.MustCompile(`^<GENERATED>-(\d+)` + tail + `$`)},
		{like: "#E1", whole: regexp.MustCompile(`^#(E\d+)` + tail + `$`)},
		{like: "{{s1.x}}", whole: regexp.MustCompile(`^\{\{([^{}]*)\}\}` + tail + `$`)},
		{like: "${1}", whole: regexp.MustCompile(`^\$\{\{?(.*?)\}?\}` + tail + `$`)},
		{like: "$[0]", whole: regexp.MustCompile(`^\$\[(.*)\]` + tail + `$`)},
		{like: "$(1)", whole: regexp.MustCompile(`^\$\((.*)\)` + tail + `$`)},
		{like: "%{s1}", whole: regexp.MustCompile(`^%\{(.*?)%?\}%?` + tail + `$`)},
		{like: "<s1>", whole: regexp.MustCompile(`^<([\pL\pM\pN_.-]+)>` + tail + `$`), known: true},
		{like: "{s1}", whole: regexp.MustCompile(`^\{([\pL\pM\pN_.-]+)\}` + tail + `$`), known: true},
	}

	// inside are, in the first two groups, the writings that are references
	// wherever they stand, and, in the third, those that are if what is in the
	// fourth names a step.
	inside = regexp.MustCompile(`(<(?i:step|node|task)[ _-]?\d+>|<GENERATED>-\d+)|(?:^|[^\pL\pN&#])(#E\d+)(?:$|[^\pL\pN])|((?:\$\{|\{\{)([^{}]*)\}+)`)

	// braced is a text that starts with a reference in braces and goes on.
	braced = regexp.MustCompile(`^(\$\{\{?[^{}]*\}?\})`)

	// indexed is an id with a path in brackets: s1[0].a, s1["a"].
	indexed = regexp.MustCompile(`^([^\[\]]+)((?:\[(?:\d+|"[^"\[\]]+"|'[^'\[\]]+')\]|\.[^.\[\]]+)+)$`)

	// What stands in the brackets: a number, with a path; or a step in words, as
	// output_of_step_1, which has no path of its own.
	numbered = regexp.MustCompile(`^(?:[A-Za-z]+[ _-]?)?(\d+)` + tail + `$`)
	spoken   = regexp.MustCompile(`^(?i:(?:the[ _-])?(?:output|result)s?[ _-](?:of|from)[ _-])?(?i:step|node|task)[ _-]?(\d+)(?i:[ _.-](?:output|result)s?)?$`)
)

// strings judges every string of a step's args that is no reference of ours.
func (c *checker) strings(i int) {
	if c.full() {
		c.more = true // or so it may be; nobody looks
		return
	}
	var walk func(v value.Value, pointer string)
	walk = func(v value.Value, pointer string) {
		switch v.Kind() {
		case value.String:
			if c.full() {
				c.more = true
				return
			}
			if s, _ := v.Text(); strings.ContainsAny(s, "$<#{%") {
				c.literal(i, pointer, s)
			}
		case value.Object:
			for name, m := range v.Members() {
				if k := m.Kind(); k == value.String || k == value.List || k == value.Object {
					walk(m, pointer+"/"+value.EscapePointer(name))
				}
			}
		case value.List:
			for j, e := range v.Elements() {
				if k := e.Kind(); k == value.String || k == value.List || k == value.Object {
					walk(e, pointer+"/"+strconv.Itoa(j))
				}
			}
		}
	}
	if strings.ContainsAny(c.Steps[i].Args.String()[1:], "$<#{%") {
		walk(c.Steps[i].Args, "")
	}
}

func (c *checker) literal(i int, pointer, text string) {
	if _, _, isRef := c.Read(text); isRef {
		return // see references
	}
	for k := range dialects {
		if len(text) > maxForeign {
			break
		}
		if m := dialects[k].whole.FindStringSubmatch(text); m != nil && (!dialects[k].known || c.named(m[1]) >= 0) {
			c.add(c.foreign(i, pointer, text, Warning))
			return
		}
	}
	if ref := c.embedded(text); ref != "" {
		c.add(c.at(i, "/args"+pointer, EmbeddedReference, Warning,
			"the text holds %s, which looks like a reference; only a whole string can be one, so the tool will get it as it stands", value.Quoted(ref)))
	}
}

// foreign is a whole string in another dialect. It is an error where our own
// rules make the step fail for it.
func (c *checker) foreign(i int, pointer, text string, severity Severity) Diagnostic {
	d := c.at(i, "/args"+pointer, ForeignReference, severity, "%s is no reference; references are written $id or $id.path", value.Quoted(text))
	if m := braced.FindStringSubmatch(text); m != nil && len(text) <= maxForeign {
		d.Message = value.Quoted(text) + " goes on after " + value.Quoted(m[1]) + "; only a whole string can be a reference, written $id or $id.path"
	}
	for k := range dialects {
		if len(text) > maxForeign || c.full() {
			break
		}
		m := dialects[k].whole.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		d.Message = value.Quoted(text) + " looks like a reference in another dialect (" + dialects[k].like + "); ours are written $id or $id.path"
		if strings.HasPrefix(text, "${") {
			d.Message = value.Quoted(text) + " has braces; references are written without them, $id or $id.path"
		}
		if ours := c.translate(i, m[1], m[2]); ours != "" {
			d.Advice, d.Candidates = Patch{replace(d.Pointer, ours)}, 1
			d.Message += ", here " + value.Quoted(ours)
		} else if inner := strings.TrimPrefix(strings.TrimSpace(m[1]), "."); c.named(inner) < 0 && !numbered.MatchString(inner) && !spoken.MatchString(inner) {
			d.Message += "; besides, no step has that id"
		}
		break
	}
	return d
}

// translate writes what names a step in another dialect as a reference of ours,
// "" if it does not clearly name one that step i can wait for.
func (c *checker) translate(i int, inner, path string) string {
	inner = strings.TrimPrefix(strings.TrimSpace(inner), ".")
	step, own, hasOwn := -1, "", false
	if ref, _, ok := c.Read("$" + inner); ok && ref.Step >= 0 {
		step, own, hasOwn = ref.Step, ref.Path, ref.HasPath
	} else if m := numbered.FindStringSubmatch(inner); m != nil {
		step = c.numbered(m[1])
		own, hasOwn = dotted(m[2])
	} else if m := spoken.FindStringSubmatch(inner); m != nil {
		step = c.numbered(m[1])
	}
	if step < 0 || !c.names.spend() || c.waiting(i)[step] {
		return ""
	}
	if more, ok := dotted(path); ok {
		if hasOwn {
			more = own + "." + more
		}
		own, hasOwn = more, true
	}
	return c.reference(step, own, hasOwn)
}

// bracketed is a reference of ours for one with its path in brackets, $s1[0].a; ""
// when it names no step that step i can wait for, or nothing that the step gives.
func (c *checker) bracketed(i int, text string) string {
	if len(text) > maxForeign || !strings.Contains(text, "[") {
		return ""
	}
	m := indexed.FindStringSubmatch(text[1:])
	if m == nil {
		return ""
	}
	ours := "$" + m[1] + strings.NewReplacer("[", ".", "]", "", `"`, "", "'", "").Replace(m[2])
	ref, _, ok := c.Read(ours)
	if !ok || ref.Step < 0 || ref.Step == i || c.waiting(i)[ref.Step] {
		return ""
	}
	if d := c.tool(ref.Step); d != nil && ref.HasPath {
		if _, p := c.part(d, ref.Path); p < schema.Possible {
			return ""
		}
	}
	return ours
}

// dotted turns a path such as .a[0].b into a.0.b.
func dotted(path string) (string, bool) {
	if path == "" {
		return "", false
	}
	path = strings.NewReplacer("[", ".", "]", "").Replace(path)
	return strings.TrimPrefix(path, "."), true
}

// named is the step that the inside of a bracket names, -1 for none.
func (c *checker) named(inner string) int {
	inner = strings.TrimSpace(inner)
	if ref, _, ok := c.Read("$" + inner); ok && ref.Step >= 0 {
		return ref.Step
	}
	return -1
}

// numbered is the only step whose id ends in this number, -1 when there is none
// or another.
func (c *checker) numbered(number string) int {
	if c.numbers == nil {
		c.numbers = make(map[string]int, len(c.Steps))
		for i := range c.Steps {
			id := c.Steps[i].ID
			n := trimZeros(id[len(strings.TrimRight(id, "0123456789")):])
			if _, twice := c.numbers[n]; twice {
				c.numbers[n] = -1
			} else {
				c.numbers[n] = i
			}
		}
		delete(c.numbers, "")
	}
	if i, ok := c.numbers[trimZeros(number)]; ok {
		return i
	}
	return -1
}

func trimZeros(number string) string {
	if t := strings.TrimLeft(number, "0"); t != "" || number == "" {
		return t
	}
	return "0"
}

// embedded is the first thing inside a longer text that looks like a reference,
// "" when there is none.
func (c *checker) embedded(text string) string {
	if strings.ContainsAny(text, "<#{") {
		for _, m := range inside.FindAllStringSubmatch(text, -1) {
			switch sure, bracket, in := m[1]+m[2], m[3], m[4]; {
			case sure != "":
				return sure
			case c.named(in) >= 0, c.numberedStep(in):
				return bracket
			}
		}
	}
	for at, rest := 0, text; ; {
		dollar := strings.IndexByte(rest, '$')
		if dollar < 0 {
			return ""
		}
		at += dollar
		rest = text[at+1:]
		if at == 0 || text[at-1] != '$' { // $$ is an escape
			run := strings.TrimRight(idRun(rest), ".-")
			if run != "" && c.named(run) >= 0 {
				return "$" + run
			}
		}
		at++
	}
}

func (c *checker) numberedStep(inner string) bool {
	m := numbered.FindStringSubmatch(strings.TrimSpace(inner))
	return m != nil && c.numbered(m[1]) >= 0
}

// idRun is what s starts with that could be an id and a path.
func idRun(s string) string {
	const most = 4 * 2 * plan.MaxID // bytes: an id and a path of that length
	s = s[:min(len(s), most)]
	for i, r := range s {
		if r != '_' && r != '-' && r != '.' && !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.Is(unicode.Nd, r) {
			return s[:i]
		}
	}
	return s
}
