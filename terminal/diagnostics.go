package terminal

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/internal/count"
)

var severityStyle = map[check.Severity]lipgloss.Style{check.Error: bad, check.Warning: odd, check.Info: faint}

// Diagnostics shows findings, one a line: file, line, column, severity, code,
// step, sentence; and under it the advice, if there is one.
func (o *Output) Diagnostics(file string, found []check.Diagnostic) {
	for _, d := range found {
		at := Escape(file)
		if d.Line > 0 {
			at += fmt.Sprintf(":%d:%d", d.Line, d.Column)
		}
		step := ""
		if d.Step != "" {
			step = " step " + Escape(d.Step)
		}
		fmt.Fprintf(o.w, "%s: %s %s%s: %s\n", at, o.paint(severityStyle[d.Severity], string(d.Severity)), d.Code, step, Escape(d.Message))
		for _, op := range d.Advice {
			fmt.Fprintln(o.w, o.paint(faint, "    advice: "+operation(op)))
		}
	}
}

// Check shows what check found, and what a run would be like.
func (o *Output) Check(file string, r *check.Report) {
	o.Diagnostics(file, r.Diagnostics)
	verdict := o.paint(good, "ok")
	if !r.OK {
		verdict = o.paint(bad, count.Of(r.Count(check.Error), "error"))
	}
	if n := r.Count(check.Warning); n > 0 {
		verdict += ", " + count.Of(n, "warning")
	}
	calls := count.Of(r.Calls.Max, "call")
	switch {
	case r.Calls.Min == 0 && r.Calls.Max > 0: // no step can do what it is for
		calls = "no call"
	case r.Calls.Min != r.Calls.Max:
		calls = fmt.Sprintf("%d to %s", r.Calls.Min, calls)
	}
	fmt.Fprintf(o.w, "%s; %s in %s\n", verdict, calls, count.Of(len(r.Waves), "wave"))
}

// operation is one change of an advice in words.
func operation(op check.Op) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", op.Op, Escape(op.Path))
	switch {
	case op.From != "":
		fmt.Fprintf(&b, " from %s", Escape(op.From))
	case !op.Value.IsZero():
		fmt.Fprintf(&b, " with %s", Escape(op.Value.String()))
	}
	return b.String()
}
