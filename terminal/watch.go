package terminal

import (
	"container/list"
	"fmt"
	"strings"
	"time"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/run"
)

// A Watch follows one run. On a terminal it keeps one line for the run and one
// for each call that is out; elsewhere it writes a line when something happens.
type Watch struct {
	view
	steps   int // of the plan
	waves   int
	settled int
	failed  int
	calls   int
	wave    map[string]int
	start   time.Time
	end     time.Time
	running list.List                // of *running, in the order in which they began
	at      map[string]*list.Element // in running, by step: a step has one call at a time
	first   map[string]time.Time
}

// running is a call that is out.
type running struct {
	step, tool string
	attempt    int
	since      time.Time
	note       string
}

// Watch begins to follow a run of p. Close must be called when it is over.
func (o *Output) Watch(p *plan.Plan) *Watch {
	w := &Watch{view: view{out: o}, steps: len(p.Steps), wave: make(map[string]int, len(p.Steps)), first: make(map[string]time.Time), at: make(map[string]*list.Element), start: time.Now()}
	for i := range p.Steps {
		w.wave[p.Steps[i].ID] = p.Steps[i].Wave
		w.waves = max(w.waves, p.Steps[i].Wave+1)
	}
	w.begin(w.lines)
	return w
}

// Close ends the live view and leaves no trace of it.
func (w *Watch) Close() {
	w.view.close()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end.IsZero() {
		w.end = time.Now()
	}
}

// Elapsed is how long the run took.
func (w *Watch) Elapsed() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end.IsZero() {
		return time.Since(w.start)
	}
	return w.end.Sub(w.start)
}

// Observe takes in an event; it is a run's Observer.
func (w *Watch) Observe(e run.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := w.apply(e)
	if w.out.live {
		// The clock draws; events only so that the first call is seen at once. A
		// plan of thousands of quick steps must not wait for its terminal.
		if e.Kind == run.Called && e.Time.Sub(w.last) >= redrawEvery {
			w.draw(e.Time)
		}
		return
	}
	if line != "" {
		fmt.Fprintln(w.out.w, line)
	}
}

// apply updates what is known and returns the line of a plain log.
func (w *Watch) apply(e run.Event) string {
	switch e.Kind {
	case run.Started:
		w.start = e.Time
	case run.Called:
		w.calls++
		w.gone(e.Step)
		w.at[e.Step] = w.running.PushBack(&running{step: e.Step, tool: e.Tool, attempt: e.Attempt, since: e.Time})
		if _, ok := w.first[e.Step]; !ok {
			w.first[e.Step] = e.Time
		}
		again := ""
		if e.Attempt > 1 {
			again = fmt.Sprintf(", attempt %d", e.Attempt)
		}
		return logLine("call", e) + again
	case run.Noted:
		if at := w.at[e.Step]; at != nil {
			at.Value.(*running).note = note(e)
		}
	case run.Returned:
		w.gone(e.Step)
		if e.Failure != nil {
			return logLine("failed", e) + ": " + Escape(e.Failure.Error())
		}
	case run.Asked:
		return logLine("asks", e) + tail(why(e.Step, "", e.Cause))
	case run.Settled:
		w.gone(e.Step) // a call that was not made after all does not return
		w.settled++
		if e.Status != machine.OK {
			w.failed++
		}
		line := logLine(string(e.Status), e)
		if began, ok := w.first[e.Step]; ok {
			line += ", " + short(e.Time.Sub(began))
		}
		return line + tail(why(e.Step, e.Status, e.Cause))
	case run.Ended:
		w.end = e.Time
	}
	return ""
}

// gone takes the call of a step from those that are out.
func (w *Watch) gone(step string) {
	if at := w.at[step]; at != nil {
		w.running.Remove(at)
		delete(w.at, step)
	}
}

func logLine(what string, e run.Event) string {
	s := fmt.Sprintf("%-16s %s", what, Escape(e.Step))
	if e.Tool != "" {
		s += " " + Escape(e.Tool)
	}
	return s
}

func tail(s string) string {
	if s == "" {
		return ""
	}
	return ": " + s
}

// note is a tool's progress in words.
func note(e run.Event) string {
	var parts []string
	switch p := e.Progress; {
	case p.Total > 0:
		parts = append(parts, fmt.Sprintf("%.0f%%", 100*min(max(p.Done/p.Total, 0), 1)))
	case p.Done > 0:
		parts = append(parts, fmt.Sprintf("%.6g", p.Done))
	}
	if e.Progress.Message != "" {
		parts = append(parts, Escape(e.Progress.Message))
	}
	return strings.Join(parts, " ")
}

// lines are the live view: a line for the run, and one for each call that is
// out, as many as fit. No line is wider than width.
func (w *Watch) lines(now time.Time, width, height int) []string {
	deepest := 0
	for at := w.running.Front(); at != nil; at = at.Next() {
		r := at.Value.(*running)
		deepest = max(deepest, w.wave[r.step]+1)
	}
	head := fmt.Sprintf("%d/%s", w.settled, count.Of(w.steps, "step"))
	if deepest > 0 {
		head = fmt.Sprintf("wave %d/%d  ", deepest, w.waves) + head
	}
	if w.failed > 0 {
		head += fmt.Sprintf(", %d not ok", w.failed)
	}
	head += fmt.Sprintf("  %s  %s", count.Of(w.calls, "call"), short(now.Sub(w.start)))
	all := []string{w.out.paint(strong, Fit(head, width-1))}
	room := max(height-3, 1) // the line above, the one for the rest, and the cursor's own
	for at := w.running.Front(); at != nil; at = at.Next() {
		r := at.Value.(*running)
		if len(all) > room {
			all = append(all, w.out.paint(faint, Fit(fmt.Sprintf("  and %d more", w.running.Len()-room), width-1)))
			break
		}
		line := fmt.Sprintf("  %s  %s  %s", Escape(r.step), Escape(r.tool), short(now.Sub(r.since)))
		if r.attempt > 1 {
			line += fmt.Sprintf("  attempt %d", r.attempt)
		}
		if r.note != "" {
			line += "  " + r.note
		}
		all = append(all, Fit(line, width-1))
	}
	return all
}

// short is a duration for people: 812ms, 3.4s, 2m05s.
func short(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Millisecond:
		return "0ms"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}
