package machine

import (
	"strconv"
	"strings"
	"time"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// A Status is how a step ended (spec/plan.md §3).
type Status string

// The statuses.
const (
	OK              Status = "ok"
	BadReference    Status = "bad_reference"
	UnknownTool     Status = "unknown_tool"
	InvalidArgs     Status = "invalid_args"
	Denied          Status = "denied"
	BudgetExhausted Status = "budget_exhausted"
	ToolError       Status = "tool_error"
	Uncertain       Status = "uncertain"
	Cancelled       Status = "cancelled"
	Skipped         Status = "skipped"
	Blocked         Status = "blocked"
	Waiting         Status = "waiting"    // only in reports of unfinished runs
	NotNeeded       Status = "not_needed" // reserved
)

// A Cause names the first step and reason that led to a status.
type Cause struct {
	Step    string
	Code    string
	Message string
}

// An Attempt is one call of a step.
type Attempt struct {
	N               int // from 1; a rerun repeats the number of the attempt that was lost
	Start, End      time.Time
	Failure         *tool.Failure
	Rerun           bool   // made again after a crash
	Crashed         bool   // the process died while it was out
	Resolved        string // what a person said of it: "happened", "did_not_happen", "gave_up"
	MayHaveHappened bool   // it failed, and the tool has effects
	Unrecorded      bool   // the journal could not keep its outcome
}

// Outcome is the attempt in one word: "ok", "failed", "lost", "crashed".
func (a *Attempt) Outcome() string {
	switch {
	case a.Resolved == "happened":
		return "ok"
	case a.Crashed:
		return "crashed"
	case a.Failure == nil && !a.End.IsZero():
		return "ok"
	case a.Failure == nil:
		return "running"
	case a.Failure.Lost:
		return "lost"
	}
	return "failed"
}

// A StepReport is what became of one step.
type StepReport struct {
	ID       string
	Tool     string
	Status   Status
	Wave     int         // from 0; -1 when the step was in no wave
	Args     value.Value // as resolved, secrets redacted; no value when they were not
	Output   value.Value // of an ok step
	Attempts []Attempt
	Cause    *Cause
}

// A Report is the result of a run (spec/plan.md §5).
type Report struct {
	Run   string       // id of the run when it was journaled
	Steps []StepReport // in plan order
	Waves [][]string
	Calls int
}

// Report says how things stand. Before the run is finished, steps that wait for
// a person are waiting and those that have not begun are cancelled.
func (m *Machine) Report() *Report {
	r := &Report{Steps: make([]StepReport, len(m.steps)), Calls: m.calls, Waves: [][]string{}}
	if m.waiting > 0 {
		m.trace()
	}
	for i := range m.steps {
		st, s := &m.steps[i], &m.plan.Steps[i]
		out := &r.Steps[i]
		*out = StepReport{ID: s.ID, Tool: s.Tool, Status: st.status, Wave: -1, Args: st.args, Output: st.output, Attempts: st.tries, Cause: st.cause}
		if st.decl != nil && !st.args.IsZero() {
			out.Args = st.decl.Redact(st.args)
		}
		if st.phase != settled {
			out.Status, out.Cause = m.leftover(i)
		}
		if s.Wave >= 0 && st.open == 0 {
			out.Wave = s.Wave
		}
	}
	for _, i := range m.order {
		out := &r.Steps[i]
		if out.Wave < 0 {
			continue
		}
		for len(r.Waves) <= out.Wave {
			r.Waves = append(r.Waves, nil)
		}
		r.Waves[out.Wave] = append(r.Waves[out.Wave], out.ID)
	}
	return r
}

// OK reports whether every step is ok; an empty plan is.
func (r *Report) OK() bool {
	for i := range r.Steps {
		if r.Steps[i].Status != OK {
			return false
		}
	}
	return true
}

// AppendJSON appends the core report, exactly status, outputs, waves and calls,
// on one line without a newline.
func (r *Report) AppendJSON(b []byte) []byte {
	b = r.core(append(b, '{'))
	return append(b, '}')
}

func (r *Report) core(b []byte) []byte {
	b = append(b, `"status":{`...)
	for i := range r.Steps {
		b = comma(b, i)
		b = value.AppendQuote(b, r.Steps[i].ID)
		b = append(b, ':', '"')
		b = append(b, r.Steps[i].Status...)
		b = append(b, '"')
	}
	b = append(b, `},"outputs":{`...)
	n := 0
	for i := range r.Steps {
		if r.Steps[i].Status != OK {
			continue
		}
		b = comma(b, n)
		n++
		b = value.AppendQuote(b, r.Steps[i].ID)
		b = append(b, ':')
		b = r.Steps[i].Output.AppendTo(b)
	}
	b = append(b, `},"waves":[`...)
	for i, w := range r.Waves {
		b = append(comma(b, i), '[')
		for k, id := range w {
			b = value.AppendQuote(comma(b, k), id)
		}
		b = append(b, ']')
	}
	b = append(b, `],"calls":`...)
	return strconv.AppendInt(b, int64(r.Calls), 10)
}

// AppendFullJSON appends the full report: the core four, the id of the run if
// it has one, and every step with its attempts and cause.
func (r *Report) AppendFullJSON(b []byte) []byte {
	b = r.core(append(b, '{'))
	if r.Run != "" {
		b = append(b, `,"run":`...)
		b = value.AppendQuote(b, r.Run)
	}
	b = append(b, `,"steps":[`...)
	for i := range r.Steps {
		s := &r.Steps[i]
		b = append(comma(b, i), `{"id":`...)
		b = value.AppendQuote(b, s.ID)
		b = append(b, `,"tool":`...)
		b = value.AppendQuote(b, s.Tool)
		b = append(b, `,"status":"`...)
		b = append(b, s.Status...)
		b = append(b, `","wave":`...)
		if s.Wave < 0 {
			b = append(b, "null"...)
		} else {
			b = strconv.AppendInt(b, int64(s.Wave), 10)
		}
		if !s.Args.IsZero() {
			b = append(b, `,"args":`...)
			b = s.Args.AppendTo(b)
		}
		b = append(b, `,"attempts":[`...)
		for k := range s.Attempts {
			b = s.Attempts[k].appendJSON(comma(b, k))
		}
		b = append(b, ']')
		if s.Cause != nil {
			b = append(b, `,"cause":{"step":`...)
			b = value.AppendQuote(b, s.Cause.Step)
			b = append(b, `,"code":`...)
			b = value.AppendQuote(b, valid(s.Cause.Code))
			b = append(b, `,"message":`...)
			b = value.AppendQuote(b, valid(s.Cause.Message))
			b = append(b, '}')
		}
		b = append(b, '}')
	}
	return append(b, "]}"...)
}

func (a *Attempt) appendJSON(b []byte) []byte {
	b = append(b, `{"n":`...)
	b = strconv.AppendInt(b, int64(a.N), 10)
	stamp := func(name string, t time.Time) {
		if !t.IsZero() {
			b = append(b, `,"`+name+`":"`...)
			b = t.UTC().AppendFormat(b, time.RFC3339Nano)
			b = append(b, '"')
		}
	}
	stamp("start", a.Start)
	stamp("end", a.End)
	b = append(b, `,"outcome":"`...)
	b = append(b, a.Outcome()...)
	b = append(b, '"')
	if f := a.Failure; f != nil {
		b = append(b, `,"error":{"code":`...)
		b = value.AppendQuote(b, valid(f.Code))
		b = append(b, `,"message":`...)
		b = value.AppendQuote(b, valid(f.Message))
		b = append(b, '}')
	}
	flag := func(name string, on bool) {
		if on {
			b = append(b, `,"`+name+`":true`...)
		}
	}
	flag("rerun", a.Rerun)
	flag("may_have_happened", a.MayHaveHappened)
	if a.Resolved != "" {
		b = append(b, `,"resolved":"`+a.Resolved+`"`...)
	}
	if a.Unrecorded {
		b = append(b, `,"recorded":false`...)
	}
	return append(b, '}')
}

func comma(b []byte, i int) []byte {
	if i > 0 {
		return append(b, ',')
	}
	return b
}

// valid makes a message that came from outside fit for JSON: what a tool says of
// its failure may hold any bytes, and they must not stop a report.
func valid(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
