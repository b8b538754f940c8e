package plan

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/value"
)

// reserved are the step fields that other executors guard a step with. A plan
// that uses one is refused, so that a guarded step never runs unguarded
// (spec/plan.md §1).
var reserved = [...]string{"when", "for_each", "foreach", "if", "unless", "retry", "timeout"}

var (
	stepFields = [...]string{"id", "tool", "args", "after"}
	planFields = [...]string{"steps", "name", "budget"}

	// synonyms are how other executors call our fields of a step, folded.
	synonyms = map[string]string{
		"dependson": "after", "depends": "after", "dependencies": "after",
		"arguments": "args", "params": "args", "parameters": "args", "input": "args", "inputs": "args",
		"name": "tool", "toolname": "tool", "function": "tool",
	}
)

// MeantField is the field of a step that a model probably meant by a name which is
// not one: "after" for depends_on or dependsOn. "" when nothing is near.
func MeantField(name string) string {
	if len(name) > 64 {
		return ""
	}
	return synonyms[strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))]
}

// Decode reads a plan strictly. A fault of the text stops it; of faults of
// structure all are found. The error is an [*Error], unless limits are not valid.
func Decode(text []byte, limits Limits) (*Plan, error) {
	if err := limits.Validate(); err != nil {
		return nil, err
	}
	limits = limits.orDefault()
	if len(text) > limits.Bytes {
		return nil, refuse(Fault{Code: CodeTooLarge, Line: 1, Column: 1,
			Message: fmt.Sprintf("the document has %s; at most %d are read", count.Of(len(text), "byte"), limits.Bytes)})
	}
	if f := checkDepth(text, limits.Depth); f != nil {
		return nil, refuse(*f)
	}
	doc, err := value.Parse(text)
	if err != nil {
		return nil, refuse(textFault(text, err))
	}
	d := &decoder{text: text, limits: limits, plan: &Plan{}}
	d.document(doc)
	if len(d.faults) > 0 {
		return nil, &Error{Faults: d.place(d.faults)}
	}
	d.plan.Warnings = d.place(d.warnings)
	d.plan.source = bytes.Clone(text)
	d.plan.link()
	return d.plan, nil
}

func refuse(f Fault) *Error { return &Error{Faults: []Fault{f}} }

// textFault is a text that is no strict JSON. The two mistakes that models make
// most are called by their names.
func textFault(text []byte, err error) Fault {
	var e *value.SyntaxError
	if !errors.As(err, &e) {
		return Fault{Code: CodeBadDocument, Line: 1, Column: 1, Message: err.Error()}
	}
	f := Fault{Code: CodeBadDocument, Pointer: e.Pointer, Line: e.Line, Column: e.Column, Message: e.Reason}
	offset := min(e.Offset, len(text))
	before, rest := bytes.TrimRight(text[:offset], " \t\r\n"), bytes.TrimLeft(text[offset:], " \t\r\n")
	fence := []byte("```")
	switch {
	case e.Duplicate:
		f.Code = CodeDuplicateKey
	case bytes.HasPrefix(rest, fence):
		f.Message = "a code fence (```) stands around the JSON; send the JSON alone"
	case len(before) == 0 && bytes.Contains(rest, fence):
		f.Message = "text and a code fence (```) stand around the JSON; send the JSON alone"
	case bytes.HasSuffix(before, []byte{','}) && len(rest) > 0 && (rest[0] == '}' || rest[0] == ']'):
		f.Message = fmt.Sprintf("a comma stands before the closing %q; take it out", rest[:1])
	}
	return f
}

// checkDepth refuses text that nests too deep before anything recurses into it.
// Text that is at fault before it gets too deep has that fault instead.
func checkDepth(text []byte, limit int) *Fault {
	at := tooDeep(text, limit)
	if at < 0 {
		return nil
	}
	dec := jsontext.NewDecoder(bytes.NewReader(text[:at]))
	for {
		if _, err := dec.ReadToken(); err == nil {
			continue
		} else if !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return nil // value.Parse stops at the same fault, and explains it
		}
		break
	}
	line, column := value.Position(text, at)
	return &Fault{Code: CodeTooDeep, Pointer: string(dec.StackPointer()), Line: line, Column: column,
		Message: fmt.Sprintf("lists and objects are nested more than %d deep", limit)}
}

// tooDeep is the offset of the first bracket beyond the limit, -1 without one.
func tooDeep(text []byte, limit int) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '[', '{':
			if depth++; depth > limit {
				return i
			}
		case ']', '}':
			depth--
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
	}
	return -1
}

// decoder reads the structure of a document that is strict JSON.
type decoder struct {
	text     []byte
	limits   Limits
	plan     *Plan
	faults   []Fault
	warnings []Fault
	pointers int // bytes of the pointers of all strings in args so far
}

// fault notes one of the first MaxFaults faults.
func (d *decoder) fault(code, step, pointer, format string, args ...any) {
	if len(d.faults) < MaxFaults {
		d.faults = append(d.faults, Fault{Code: code, Step: step, Pointer: pointer, Message: fmt.Sprintf(format, args...)})
	}
}

// place gives faults their lines and columns and puts them in the order of the
// document.
func (d *decoder) place(faults []Fault) []Fault {
	pointers := make([]string, len(faults))
	for i, f := range faults {
		pointers[i] = f.Pointer
	}
	if len(pointers) > 0 {
		for i, at := range locate(d.text, pointers) {
			faults[i].Line, faults[i].Column = at.Line, at.Column
		}
	}
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
	return faults
}

func (d *decoder) document(doc value.Value) {
	switch doc.Kind() {
	case value.List:
		d.steps(doc, "")
	case value.Object:
		for name, m := range doc.Members() {
			pointer := "/" + value.EscapePointer(name)
			switch name {
			case "steps":
			case "name":
				s, ok := m.Text()
				if !ok {
					d.fault(CodeBadDocument, "", pointer, "name must be a string, not %s", article(m.Kind()))
				}
				d.plan.Name = s
			case "budget":
				d.budget(m)
			default:
				d.unknown("", pointer, name, planFields[:], nil)
			}
		}
		steps, ok := doc.Get("steps")
		switch {
		case !ok:
			d.fault(CodeBadDocument, "", "", `a plan that is an object needs "steps", a list of steps`)
		case steps.Kind() != value.List:
			d.fault(CodeBadDocument, "", "/steps", "steps must be a list, not %s", article(steps.Kind()))
		default:
			d.steps(steps, "/steps")
		}
	default:
		d.fault(CodeBadDocument, "", "", `a plan is a list of steps, or an object with "steps", not %s`, article(doc.Kind()))
	}
}

func (d *decoder) budget(m value.Value) {
	literal, ok := m.Number()
	n, exact := m.Int()
	switch {
	case !ok:
		d.fault(CodeBadDocument, "", "/budget", "budget must be a whole number of calls, not %s", article(m.Kind()))
	case exact && n >= 0 && n <= math.MaxInt:
		b := int(n)
		d.plan.Budget = &b
	case strings.HasPrefix(literal, "-"):
		d.fault(CodeBadDocument, "", "/budget", "budget must not be negative, as %s is; 0 makes no calls", value.Excerpt(literal))
	default:
		d.fault(CodeBadDocument, "", "/budget", "budget must be a whole number of calls up to %d, written without a fraction or an exponent, not %s", math.MaxInt, value.Excerpt(literal))
	}
}

func (d *decoder) steps(list value.Value, base string) {
	if n := list.Len(); n > d.limits.Steps {
		d.faults = nil // one fault says it all
		d.fault(CodeTooManySteps, "", base, "the plan has %s; at most %d are allowed", count.Of(n, "step"), d.limits.Steps)
		return
	}
	d.plan.base = base
	d.plan.Steps = make([]Step, list.Len())
	d.plan.ids.grow(list.Len())
	for i, m := range list.Elements() {
		d.step(&d.plan.Steps[i], spot{base, i}, m)
	}
	if len(d.faults) > 0 {
		return
	}
	for i := range d.plan.Steps {
		if s := &d.plan.Steps[i]; !d.references(s) {
			d.fault(CodeTooLarge, s.ID, d.plan.Pointer(i)+"/args", "the names that args stand under come to more than %d bytes, counted for every string below them; use shorter names or fewer strings", maxPointers)
			return
		}
	}
}

// spot is where a step stands; its pointers are written only for faults.
type spot struct {
	base string // of the list
	step int
}

func (at spot) pointer(rest string) string { return at.base + "/" + strconv.Itoa(at.step) + rest }

func (d *decoder) step(s *Step, at spot, m value.Value) {
	if m.Kind() != value.Object {
		d.fault(CodeBadDocument, "", at.pointer(""), "a step must be an object, not %s", article(m.Kind()))
		return
	}
	d.id(s, at, m)
	tool, ok := m.Get("tool")
	s.Tool, _ = tool.Text()
	switch {
	case !ok:
		d.fault(CodeBadDocument, s.ID, at.pointer(""), `%s has no "tool"`, s.name(at.step))
	case tool.Kind() != value.String:
		d.fault(CodeBadDocument, s.ID, at.pointer("/tool"), "the tool of %s must be a string, not %s", s.name(at.step), article(tool.Kind()))
	case s.Tool == "":
		d.fault(CodeBadDocument, s.ID, at.pointer("/tool"), "the tool of %s must not be empty", s.name(at.step))
	}
	for name, f := range m.Members() {
		switch name {
		case "id", "tool":
		case "args":
			if f.Kind() != value.Object && !f.IsNull() {
				d.fault(CodeBadDocument, s.ID, at.pointer("/args"), "the args of %s must be an object, not %s", s.name(at.step), article(f.Kind()))
				continue
			}
			s.Args = f
		case "after":
			d.after(s, at, f)
		default:
			d.unknown(s.ID, at.pointer("/"+value.EscapePointer(name)), name, stepFields[:], reserved[:])
		}
	}
	if s.Args.IsZero() || s.Args.IsNull() {
		s.Args = value.ObjectOf()
	}
}

func (d *decoder) id(s *Step, at spot, m value.Value) {
	v, ok := m.Get("id")
	id, isText := v.Text()
	switch {
	case !ok:
		d.fault(CodeBadDocument, "", at.pointer(""), `%s has no "id"`, s.name(at.step))
	case !isText:
		d.fault(CodeBadDocument, "", at.pointer("/id"), "the id of %s must be a string, not %s", s.name(at.step), article(v.Kind()))
	default:
		if wrong := CheckID(id); wrong != "" {
			d.fault(CodeBadDocument, "", at.pointer("/id"), "the id of %s: %s", s.name(at.step), wrong)
			return
		}
		s.ID = id
		taken := d.plan.ids.add(id, at.step)
		switch {
		case taken < 0:
		case d.plan.Steps[taken].ID == id:
			d.fault(CodeDuplicateID, id, at.pointer("/id"), "two steps have the id %q; rename one", id)
		default:
			d.fault(CodeDuplicateID, id, at.pointer("/id"), "the ids %q and %q are equal after NFKC and case folding; rename one", d.plan.Steps[taken].ID, id)
		}
	}
}

func (d *decoder) after(s *Step, at spot, f value.Value) {
	switch f.Kind() {
	case value.Null:
	case value.List:
		s.After = make([]string, 0, f.Len())
		var seen map[string]bool // a set only where a walk would be slow
		if f.Len() > 16 {
			seen = make(map[string]bool, f.Len())
		}
		for j, e := range f.Elements() {
			id, ok := e.Text()
			switch {
			case !ok:
				d.fault(CodeBadDocument, s.ID, at.pointer("/after/"+strconv.Itoa(j)), "after of %s lists ids of steps, not %s", s.name(at.step), article(e.Kind()))
			case seen[id], seen == nil && slices.Contains(s.After, id):
			default:
				s.After = append(s.After, id)
				if seen != nil {
					seen[id] = true
				}
			}
		}
	case value.String:
		d.fault(CodeBadDocument, s.ID, at.pointer("/after"), "after of %s must be a list of ids; write [%s]", s.name(at.step), value.Excerpt(f.String()))
	default:
		d.fault(CodeBadDocument, s.ID, at.pointer("/after"), "after of %s must be a list of ids, not %s", s.name(at.step), article(f.Kind()))
	}
}

// unknown judges a field that this version does not read: refused when it is a
// known one in another case or a reserved one, else without effect.
func (d *decoder) unknown(step, pointer, name string, known, reserved []string) {
	for _, k := range known {
		if strings.EqualFold(k, name) {
			d.fault(CodeBadDocument, step, pointer, "the field is written %q, not %s", k, value.Quoted(name))
			return
		}
	}
	for _, r := range reserved {
		if strings.EqualFold(r, name) {
			d.fault(CodeBadDocument, step, pointer, "the field %q is reserved and not supported yet, so the plan is refused rather than run without it", name)
			return
		}
	}
	if len(d.warnings) < MaxFaults {
		message := fmt.Sprintf("the field %s is not known and has no effect", value.Quoted(name))
		if meant := MeantField(name); reserved != nil && meant != "" {
			message += fmt.Sprintf("; did you mean %q?", meant)
		}
		d.warnings = append(d.warnings, Fault{Code: CodeUnknownField, Step: step, Pointer: pointer, Message: message})
	}
}

// maxPointers bounds the pointers of all strings in the args of a plan together,
// in bytes. They are kept for references and built for findings, and one long name
// over many short strings makes them square: 4 MiB of text would come to a
// terabyte. Plans that people and models write stay below a thousandth of it.
const maxPointers = 64 << 20

// pointers is how long the pointers of the strings in v are together, where v's
// own has n bytes.
func pointers(v value.Value, n int) (sum int) {
	switch v.Kind() {
	case value.String:
		return n
	case value.Object:
		for name, m := range v.Members() {
			sum += pointers(m, n+1+len(name))
		}
	case value.List:
		for i, e := range v.Elements() {
			sum += pointers(e, n+1+len(strconv.Itoa(i)))
		}
	}
	return sum
}

// references finds the references in a step's args and makes its template, unless
// the pointers of the plan pass maxPointers.
func (d *decoder) references(s *Step) (ok bool) {
	if d.pointers += pointers(s.Args, 0); d.pointers > maxPointers {
		return false
	}
	s.Template = value.NewTemplate(s.Args, func(pointer, text string) value.Answer {
		ref, literal, isRef := d.plan.ids.read(text)
		switch {
		case isRef:
			ref.Pointer = pointer
			s.Refs = append(s.Refs, ref)
			return value.Answer{Hole: true}
		case len(literal) != len(text):
			return value.Answer{Literal: value.MustText(literal)}
		}
		return value.Answer{}
	})
	return true
}

// name is what a message calls the step.
func (s *Step) name(i int) string {
	if s.ID == "" {
		return "step " + strconv.Itoa(i+1)
	}
	return "step " + strconv.Quote(s.ID)
}

// article names a kind in a sentence.
func article(k value.Kind) string {
	switch k {
	case value.Null:
		return "null"
	case value.List, value.Object:
		return "an " + k.String()
	}
	return "a " + k.String()
}
