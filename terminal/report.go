package terminal

import (
	"fmt"
	"strings"
	"time"

	"charm.land/lipgloss/v2"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
)

// maxOutputs is how many outputs of a run are shown: about a screenful.
const maxOutputs = 20

// Report shows how a run of p ended: on a terminal a table of the steps, with the
// causes that the table had to cut in full below it; then what the run was for,
// which are the outputs of the steps that no other step waits for; and one line
// that counts the steps. Elsewhere the steps have been told of, line by line, when
// they settled.
func (o *Output) Report(p *plan.Plan, r *machine.Report, elapsed time.Duration) {
	if o.live {
		for _, i := range o.Table(stepRows(r)) {
			if s := &r.Steps[i]; s.Cause == nil || s.Cause.Step == s.ID || s.Cause.Step == "" {
				fmt.Fprintln(o.w, row(o.paint(styleOf(s.Status), string(s.Status)), s)+tail(why(s.ID, s.Status, s.Cause)))
			}
		}
	}
	o.outputs(p, r)
	fmt.Fprintln(o.w, o.summary(r, elapsed))
}

// outputs shows those of the steps that no other step waits for.
func (o *Output) outputs(p *plan.Plan, r *machine.Report) {
	inner := make([]bool, len(p.Steps))
	for i := range p.Steps {
		for _, d := range p.Steps[i].Deps {
			inner[d] = true
		}
	}
	n := 0
	for i := range r.Steps {
		s := &r.Steps[i]
		if inner[i] || s.Status != machine.OK {
			continue
		}
		if n++; n <= maxOutputs {
			fmt.Fprintln(o.w, row("output", s)+": "+Escape(clipped(s.Output, false)))
		}
	}
	if n > maxOutputs {
		o.Line("and %s more; --json gives all", count.Of(n-maxOutputs, "output"))
	}
}

// row is a line about a step, in the columns of a plain log.
func row(what string, s *machine.StepReport) string {
	return what + strings.Repeat(" ", max(16-Width(what), 0)) + " " + Escape(s.ID)
}

// Steps shows the steps of a report in a table.
func (o *Output) Steps(r *machine.Report) { o.Table(stepRows(r)) }

func stepRows(r *machine.Report) (head []string, rows [][]Cell) {
	head = []string{"STEP", "TOOL", "STATUS", "TIME", "CAUSE"}
	for i := range r.Steps {
		s := &r.Steps[i]
		took := ""
		if n := len(s.Attempts); n > 0 {
			took = span(s.Attempts)
			if n > 1 {
				took += fmt.Sprintf(" in %d", n)
			}
		}
		rows = append(rows, []Cell{
			{Text: s.ID}, {Text: s.Tool}, {Text: string(s.Status), style: styleOf(s.Status)}, {Text: took},
			{Text: why(s.ID, s.Status, s.Cause), escaped: true},
		})
	}
	return head, rows
}

// span is the time from the beginning of the first attempt to the end of the
// last, "" while there is none.
func span(as []machine.Attempt) string {
	first, last := as[0].Start, as[len(as)-1].End
	if first.IsZero() || last.IsZero() {
		return ""
	}
	return short(last.Sub(first))
}

// summary counts the steps by status, in the order in which they first appear.
func (o *Output) summary(r *machine.Report, elapsed time.Duration) string {
	of := make(map[machine.Status]int)
	var order []machine.Status
	for i := range r.Steps {
		s := r.Steps[i].Status
		if of[s] == 0 {
			order = append(order, s)
		}
		of[s]++
	}
	parts := make([]string, len(order))
	for i, s := range order {
		parts[i] = o.paint(styleOf(s), fmt.Sprintf("%d %s", of[s], s))
	}
	line := count.Of(len(r.Steps), "step")
	if len(parts) > 0 {
		line += ": " + strings.Join(parts, ", ")
	}
	return fmt.Sprintf("%s; %s, %s", line, count.Of(r.Calls, "call"), short(elapsed))
}

// A Cell is one field of a table.
type Cell struct {
	Text    string
	escaped bool
	style   lipgloss.Style
}

// Cells makes a row of plain texts.
func Cells(texts ...string) []Cell {
	row := make([]Cell, len(texts))
	for i, t := range texts {
		row[i].Text = t
	}
	return row
}

// gap between two columns.
const gap = 2

// Table writes rows under a head, every text escaped. On a terminal the last
// column is cut to what is left of the width, and the others to a third of it; the
// indexes of the rows whose last column was cut come back.
func (o *Output) Table(head []string, rows [][]Cell) (cut []int) {
	width := 0
	if o.live {
		width, _ = o.size()
	}
	all := append([][]Cell{Cells(head...)}, rows...)
	widths := make([]int, len(head))
	for r, row := range all {
		for i := range row {
			c := &row[i]
			if !c.escaped {
				c.Text = Escape(c.Text)
			}
			if r == 0 {
				c.style = strong
			}
			if width > 0 && i < len(head)-1 {
				c.Text = Fit(c.Text, max(width/3, 8))
			}
			widths[i] = max(widths[i], Width(c.Text))
		}
	}
	for r, row := range all {
		var b strings.Builder
		used, pad := 0, 0
		for i, c := range row {
			if c.Text == "" {
				pad += widths[i] + gap
				continue
			}
			if width > 0 && i == len(row)-1 {
				whole := c.Text
				if c.Text = Fit(whole, width-1-used-pad); c.Text != whole && r > 0 {
					cut = append(cut, r-1)
				}
				if c.Text == "" {
					break
				}
			}
			b.WriteString(strings.Repeat(" ", pad))
			b.WriteString(o.paint(c.style, c.Text))
			used += pad + Width(c.Text)
			pad = widths[i] - Width(c.Text) + gap
		}
		line := b.String()
		if width > 0 {
			line = Fit(line, width-1) // a narrow terminal cuts the other columns too
		}
		fmt.Fprintln(o.w, line)
	}
	return cut
}
