package terminal

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/internal/count"
)

// maxTail is how many bytes of a reply that arrives are kept to be shown: more
// than fit on a line.
const maxTail = 1 << 10

// An AgentWatch follows one run of an agent. It writes a line for each round and
// call; on a terminal a live line below them says what is going on now.
type AgentWatch struct {
	view
	start time.Time
	round int
	calls int
	doing string // what goes on, escaped
	since time.Time
	tail  string // the end of the text that arrives
}

// WatchAgent begins to follow a run. Close must be called when it is over.
func (o *Output) WatchAgent() *AgentWatch {
	w := &AgentWatch{view: view{out: o}, start: time.Now()}
	w.begin(w.line)
	return w
}

// Close ends the live line and leaves no trace of it.
func (w *AgentWatch) Close() { w.close() }

// Observe takes in an event; it is an agent's Watch.
func (w *AgentWatch) Observe(e agent.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := w.apply(e, time.Now())
	if line == "" {
		return
	}
	w.erase()
	fmt.Fprintln(w.out.w, line)
}

// apply updates what is known and returns the line to write, if there is one.
func (w *AgentWatch) apply(e agent.Event, now time.Time) string {
	switch e.Kind {
	case agent.RoundBegins:
		w.round, w.doing, w.since, w.tail = e.Round, "asks the model", now, ""
		line := fmt.Sprintf("%-16s %d", "round", e.Round)
		if e.Forced != "" {
			line += ", must submit: " + Escape(e.Forced)
		}
		return line
	case agent.TextArrives:
		w.tail += e.Text
		if cut := len(w.tail) - maxTail; cut > 0 {
			for cut < len(w.tail) && !utf8.RuneStart(w.tail[cut]) {
				cut++
			}
			w.tail = w.tail[cut:]
		}
	case agent.ModelReplied:
		w.doing, w.tail = "", ""
	case agent.CallBegins:
		w.calls++
		w.doing, w.since, w.tail = "calls "+Escape(e.Step)+" "+Escape(e.Tool), now, ""
		return fmt.Sprintf("%-16s %s %s", "call", Escape(e.Step), Escape(e.Tool))
	case agent.CallWaits:
		w.doing, w.tail = "", ""
		return fmt.Sprintf("%-16s %s %s", "waits", Escape(e.Step), Escape(e.Tool)) + tail(Escape(e.Text))
	case agent.CallEnds:
		w.doing, w.tail = "", ""
		what := "ok"
		if e.Record.Error != "" {
			what = "not ok"
		}
		if e.Recorded {
			what = "recorded " + what
		}
		line := fmt.Sprintf("%-16s %s %s", what, Escape(e.Step), Escape(e.Tool))
		if d := e.Record.Duration; d > 0 {
			line += ", " + short(d)
		}
		return line + tail(Escape(e.Record.Error))
	}
	return ""
}

// line is the live view, one line.
func (w *AgentWatch) line(now time.Time, width, _ int) []string {
	line := fmt.Sprintf("round %d  %s  %s", w.round, count.Of(w.calls, "call"), short(now.Sub(w.start)))
	if w.doing != "" {
		line += "  " + w.doing + " " + short(now.Sub(w.since))
	}
	if text := strings.TrimSpace(w.tail); text != "" {
		line += "  " + Escape(lastOf(text, width))
	}
	return []string{w.out.paint(strong, Fit(line, width-1))}
}

// lastOf is the end of a text, at most n characters of it.
func lastOf(text string, n int) string {
	text = strings.Join(strings.Fields(text), " ")
	for utf8.RuneCountInString(text) > max(n/2, 1) {
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
	}
	return text
}
