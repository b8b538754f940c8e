package check

import (
	"bytes"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/value"
)

// maxRounds is how often Fix checks again. What one round puts right can only
// uncover what stood behind it; a plan that is not sound by then goes round in
// circles.
const maxRounds = 16

// maxChanges is after how many changes Fix begins no other round: two for every
// step of the largest plan.
const maxChanges = 2 * plan.DefaultSteps

// A Fixed is what Fix made of a document.
type Fixed struct {
	Text    []byte   // the document; only the references in Changes are other than before
	Changes []Change // in the order in which they were made
	Report  *Report  // of Text
}

// A Change is one reference that Fix replaced.
type Change struct {
	Code       string // of the finding
	Step       string
	Pointer    string // RFC 6901, into the document
	Old, New   string
	Candidates int // steps that the new reference was chosen from
}

// Fix repairs the references of a plan without a model: it applies the advice
// that replaces a string which is a reference as a whole, also one in a foreign
// dialect, by another reference, and checks again, until there is no more such
// advice. Steps, names of args and all other literals stay, and so does the
// layout of the text. A document that is refused is not changed.
func Fix(text []byte, o Options) Fixed {
	f := Fixed{Text: text}
	best := Fixed{}
	for round := 0; ; round++ {
		var p *plan.Plan
		p, f.Report = Text(f.Text, o)
		if best.Report == nil || f.Report.Count(Error) <= best.Report.Count(Error) {
			best = Fixed{f.Text, slices.Clone(f.Changes), f.Report}
		}
		if p == nil || round == maxRounds || len(f.Changes) > maxChanges {
			return best
		}
		changes := renames(p, f.Report)
		if len(changes) == 0 {
			return best
		}
		f.Text = splice(p, changes)
		f.Changes = append(f.Changes, changes...)
	}
}

// renames collects the advice that Fix applies, at most one for each reference.
func renames(p *plan.Plan, r *Report) []Change {
	doc := value.MustParse(string(p.Source()))
	taken := make(map[string]bool)
	var changes []Change
advice:
	for _, d := range r.Diagnostics {
		var of []Change
		args := p.Pointer(p.Index(d.Step)) + "/args/"
		for _, op := range d.Advice {
			old, _ := doc.AtPointer(op.Path)
			from, isText := old.Text()
			to, _ := op.Value.Text()
			ref, _, isRef := p.Read(to)
			if op.Op != "replace" || !strings.HasPrefix(op.Path, args) || !isText || !isRef || ref.Step < 0 || taken[op.Path] {
				continue advice
			}
			of = append(of, Change{d.Code, d.Step, op.Path, from, to, d.Candidates})
		}
		for _, c := range of {
			taken[c.Pointer] = true
		}
		changes = append(changes, of...)
	}
	return changes
}

// splice puts the new references into the text where the old ones stand.
func splice(p *plan.Plan, changes []Change) []byte {
	pointers := make([]string, len(changes))
	for i, c := range changes {
		pointers[i] = c.Pointer
	}
	at := p.Positions(pointers...)
	order := make([]int, len(changes))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return at[a].Offset - at[b].Offset })

	source := p.Source()
	var out bytes.Buffer
	done := 0
	for _, i := range order {
		start := at[i].Offset
		out.Write(source[done:start])
		out.Write(value.AppendQuote(nil, changes[i].New))
		done = endOfString(source, start)
	}
	out.Write(source[done:])
	return out.Bytes()
}

// endOfString is the offset after the JSON string that starts at i.
func endOfString(text []byte, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
}
