package check

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/internal/lookalike"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/value"
)

// fields takes in what the decoder warned of and what concerns the document
// as a whole.
func (c *checker) fields() {
	severity := Warning
	if c.opt.Strict {
		severity = Error
	}
	for _, f := range c.Warnings {
		var advice Patch
		if f.Step != "" {
			advice = rewrite(c.document(), f.Pointer)
		}
		if advice == nil {
			advice = Patch{remove(f.Pointer)}
		}
		c.add(Diagnostic{Code: f.Code, Severity: severity, Step: f.Step, Pointer: f.Pointer, Message: f.Message, Advice: advice})
	}
	if c.opt.Catalogue == nil {
		c.add(Diagnostic{Code: NoTools, Severity: Info,
			Message: "no tools were given, so names of tools and their args are not judged"})
	}
	c.lookalikes()
}

// refusal turns the faults of a document into diagnostics, which have their
// places already.
func refusal(text []byte, faults []plan.Fault) []Diagnostic {
	doc, err := value.Parse("null")
	if c := faults[0].Code; c != plan.CodeTooLarge && c != plan.CodeTooDeep {
		doc, err = value.Parse(text)
	}
	ds := make([]Diagnostic, len(faults))
	for i, f := range faults {
		ds[i] = Diagnostic{Code: f.Code, Severity: Error, Step: f.Step, Pointer: f.Pointer,
			Line: f.Line, Column: f.Column, Message: f.Message, Advice: Patch{}}
		if err == nil {
			ds[i].Advice = append(ds[i].Advice, repair(doc, f)...)
		}
	}
	return ds
}

// rewrite puts the value of a step's unknown field where it was probably meant to
// be, nil when nothing is near, the place is taken or the value does not fit there.
func rewrite(doc value.Value, pointer string) Patch {
	cut := strings.LastIndexByte(pointer, '/')
	parent := pointer[:cut]
	step, _ := doc.AtPointer(parent)
	meant := plan.MeantField(value.UnescapePointer(pointer[cut+1:]))
	if _, taken := step.Get(meant); meant == "" || taken {
		return nil
	}
	v, _ := doc.AtPointer(pointer)
	fit := v
	switch meant {
	case "after":
		fit = asIDs(v)
	case "args":
		fit = asObject(v)
	case "tool":
		if name, ok := v.Text(); !ok || name == "" {
			return nil
		}
	}
	path := parent + "/" + meant
	switch fit.Kind() {
	case v.Kind():
		return Patch{{Op: "move", From: pointer, Path: path}}
	case value.Invalid:
		return nil
	}
	return Patch{remove(pointer), {Op: "add", Path: path, Value: fit}}
}

// asIDs is v as a list of ids: v itself, or a list of the only one; the zero Value
// when it is neither.
func asIDs(v value.Value) value.Value {
	if v.Kind() == value.String {
		return value.ListOf(v)
	}
	if v.Kind() != value.List {
		return value.Value{}
	}
	for _, e := range v.Elements() {
		if e.Kind() != value.String {
			return value.Value{}
		}
	}
	return v
}

// asObject is v as an object: v itself, or the one that its text holds as JSON; the
// zero Value when it is neither.
func asObject(v value.Value) value.Value {
	if text, ok := v.Text(); ok {
		v, _ = value.Parse(text)
	}
	if v.Kind() != value.Object {
		return value.Value{}
	}
	return v
}

// repair is how a fault of structure can be removed without a guess at what was
// meant.
func repair(doc value.Value, f plan.Fault) Patch {
	at, _ := doc.AtPointer(f.Pointer)
	cut := strings.LastIndexByte(f.Pointer, '/')
	if cut < 0 {
		return nil
	}
	parent, name := f.Pointer[:cut], value.UnescapePointer(f.Pointer[cut+1:])
	holder, _ := doc.AtPointer(parent)
	switch {
	case f.Code == plan.CodeDuplicateID:
		id, _ := at.Text()
		if fresh := freshID(doc, id+"_"); fresh != "" {
			return Patch{replace(f.Pointer, fresh)}
		}
	case f.Code != plan.CodeBadDocument:
	case holder.Kind() == value.Object && name == "after" && at.Kind() == value.String:
		return Patch{{Op: "replace", Path: f.Pointer, Value: value.ListOf(at)}}
	case holder.Kind() == value.Object && name == "args" && at.Kind() == value.String:
		if args := asObject(at); !args.IsZero() {
			return Patch{{Op: "replace", Path: f.Pointer, Value: args}}
		}
	case holder.Kind() == value.Object:
		for _, k := range []string{"id", "tool", "args", "after", "steps", "name", "budget"} {
			if name == k || !strings.EqualFold(name, k) {
				continue
			}
			if _, taken := holder.Get(k); taken {
				return Patch{remove(f.Pointer)}
			}
			return Patch{{Op: "move", From: f.Pointer, Path: parent + "/" + k}}
		}
	case at.Kind() == value.Object && strings.HasSuffix(f.Message, `has no "id"`):
		if !hasFolded(at, "id") { // else the advice is about that field
			return Patch{{Op: "add", Path: f.Pointer + "/id", Value: value.MustText(freshID(doc, "s"))}}
		}
	case at.Kind() == value.Object && strings.HasSuffix(f.Message, `has no "tool"`):
		if hasFolded(at, "tool") {
			return nil
		}
		for key := range at.Members() {
			if plan.MeantField(key) != "tool" {
				continue
			}
			if advice := rewrite(doc, f.Pointer+"/"+value.EscapePointer(key)); advice != nil {
				return advice
			}
		}
	}
	return nil
}

// hasFolded reports whether a key is written as field but for its case.
func hasFolded(v value.Value, field string) bool {
	for key := range v.Members() {
		if strings.EqualFold(key, field) {
			return true
		}
	}
	return false
}

// freshID is the stem with a number, an id that no step of the document has; ""
// when the stem is too long for one.
func freshID(doc value.Value, stem string) string {
	if steps, ok := doc.Get("steps"); ok {
		doc = steps
	}
	taken := make(map[string]bool, doc.Len())
	for _, s := range doc.Elements() {
		id, _ := s.Get("id")
		text, _ := id.Text()
		taken[plan.Fold(text)] = true
	}
	for n := 1; n <= doc.Len()+1; n++ {
		id := stem + strconv.Itoa(n)
		if plan.CheckID(id) == "" && !taken[plan.Fold(id)] {
			return id
		}
	}
	return ""
}

// lookalikes warns of ids that a person takes for others: equal once the
// letters of Cyrillic and Greek that look like Latin ones are taken for them,
// or mixed of Latin and such letters.
func (c *checker) lookalikes() {
	var seen map[string]int
	for i := range c.Steps {
		if id := c.Steps[i].ID; !lookalike.ASCII(id) {
			seen = make(map[string]int, len(c.Steps))
			break
		}
	}
	if seen == nil {
		return
	}
	for i := range c.Steps {
		id := c.Steps[i].ID
		looks := lookalike.Skeleton(id)
		first, twice := seen[looks]
		switch {
		case twice:
			c.add(c.at(i, "/id", LookalikeID, Warning, "the id %s looks like %s, the id of another step", escaped(id), escaped(c.Steps[first].ID)))
		case lookalike.HoldsHidden(id):
			c.add(c.at(i, "/id", LookalikeID, Warning, "the id %s holds what is not drawn, and looks like %q", escaped(id), looks))
		case looks != id && len(lookalike.Scripts(id)) > 1:
			c.add(c.at(i, "/id", LookalikeID, Warning, "the id %s mixes letters of several scripts and looks like %q", escaped(id), looks))
		}
		if !twice {
			seen[looks] = i
		}
	}
}

// escaped shows an id with everything that is not ASCII as an escape.
func escaped(id string) string { return fmt.Sprintf("%+q", id) }
