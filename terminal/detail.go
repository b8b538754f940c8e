package terminal

import (
	"fmt"
	"unicode/utf8"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/value"
)

// Detail shows each step with its args, its attempts, its output, and for a step
// that is not ok the chain of causes that led there. Values are cut to a
// screenful unless full.
func (o *Output) Detail(r *machine.Report, full bool) {
	by := make(map[string]*machine.StepReport, len(r.Steps))
	for i := range r.Steps {
		by[r.Steps[i].ID] = &r.Steps[i]
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		o.Line("%s  %s  %s", s.ID, s.Tool, string(s.Status))
		if !s.Args.IsZero() {
			o.Line("  args     %s", clipped(s.Args, full))
		}
		o.attempts(s)
		if s.Status == machine.OK {
			o.Line("  output   %s", clipped(s.Output, full))
		}
		o.chain(s, by)
	}
}

func (o *Output) attempts(s *machine.StepReport) {
	for k := range s.Attempts {
		a := &s.Attempts[k]
		line := fmt.Sprintf("  attempt  %d %s", a.N, a.Outcome())
		if !a.Start.IsZero() && !a.End.IsZero() {
			line += " after " + short(a.End.Sub(a.Start))
		}
		if a.Rerun {
			line += ", made again after a crash"
		}
		if a.Resolved != "" {
			line += ", resolved: " + Escape(a.Resolved)
		}
		if a.Failure != nil {
			line += ": " + Escape(a.Failure.Error())
		}
		if a.MayHaveHappened {
			line += " (its effect may have happened)"
		}
		if a.Unrecorded {
			line += " (not recorded)"
		}
		fmt.Fprintln(o.w, line)
	}
}

// chain says why a step is not ok: its cause, then the cause of the step that it
// names, and so on to the first.
func (o *Output) chain(s *machine.StepReport, by map[string]*machine.StepReport) {
	for range len(by) {
		c := s.Cause
		if c == nil {
			return
		}
		if c.Step == s.ID || c.Step == "" || by[c.Step] == nil {
			o.Line("  because  %s", why(s.ID, s.Status, c))
			return
		}
		s = by[c.Step]
		o.Line("  because  step %s is %s", s.ID, string(s.Status))
	}
}

// clipped is a value on one line, cut unless full.
func clipped(v value.Value, full bool) string {
	text := v.String()
	if full || len(text) <= maxShown {
		return text
	}
	n := maxShown
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return fmt.Sprintf("%s … %s not shown", text[:n], count.Of(len(text)-n, "byte"))
}
