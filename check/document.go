package check

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/internal/lookalike"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/value"
)

// document takes in what the decoder warned of and what concerns the document
// as a whole.
func (c *checker) document() {
	severity := Warning
	if c.opt.Strict {
		severity = Error
	}
	for _, f := range c.Warnings {
		c.add(Diagnostic{Code: f.Code, Severity: severity, Step: f.Step, Pointer: f.Pointer,
			Message: f.Message, Advice: Patch{remove(f.Pointer)}})
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
	case at.Kind() == value.Object:
		if _, ok := at.Get("id"); !ok && strings.HasSuffix(f.Message, `has no "id"`) {
			return Patch{{Op: "add", Path: f.Pointer + "/id", Value: value.MustText(freshID(doc, "s"))}}
		}
	}
	return nil
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
