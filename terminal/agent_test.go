package terminal_test

import (
	"strings"
	"testing"
	"time"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/terminal"
)

func events(w *terminal.AgentWatch) {
	w.Observe(agent.Event{Kind: agent.RoundBegins, Round: 1})
	w.Observe(agent.Event{Kind: agent.TextArrives, Round: 1, Text: "let me see"})
	w.Observe(agent.Event{Kind: agent.CallBegins, Round: 1, Step: "1.1", Tool: "search"})
	w.Observe(agent.Event{Kind: agent.CallEnds, Round: 1, Step: "1.1", Tool: "search", Record: &agent.Record{Duration: 12 * time.Millisecond}})
	w.Observe(agent.Event{Kind: agent.CallEnds, Round: 1, Step: "1.2", Tool: "\x1b[31mred", Record: &agent.Record{Error: "unknown_tool: there\nis none"}})
	w.Observe(agent.Event{Kind: agent.CallWaits, Round: 1, Step: "1.3", Tool: "pay", Text: "may it?"})
	w.Observe(agent.Event{Kind: agent.CallEnds, Round: 1, Step: "1.4", Tool: "search", Record: &agent.Record{Duration: time.Second}, Recorded: true})
	w.Observe(agent.Event{Kind: agent.CallEnds, Round: 1, Step: "1.5", Tool: "search", Record: &agent.Record{Error: "no"}, Recorded: true})
	w.Observe(agent.Event{Kind: agent.RoundBegins, Round: 2, Forced: "tool budget exhausted"})
}

func TestAgentWatchWritesLines(t *testing.T) {
	var b strings.Builder
	w := terminal.New(&b, 0, 0).WatchAgent()
	events(w)
	w.Close()
	want := `round            1
call             1.1 search
ok               1.1 search, 12ms
not ok           1.2 \x1b[31mred: unknown_tool: there\nis none
waits            1.3 pay: may it?
recorded ok      1.4 search, 1.0s
recorded not ok  1.5 search: no
round            2, must submit: tool budget exhausted
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// On a terminal the lines stay, and the live line leaves no trace: also when
// somebody else has the screen.
func TestAgentWatchLive(t *testing.T) {
	var b strings.Builder
	w := terminal.New(&b, 60, 20).WatchAgent()
	release := w.Hold()
	events(w)
	release()
	w.Close()
	if !strings.Contains(b.String(), "ok               1.1 search, 12ms\n") || strings.Contains(b.String(), "\x1b[31m") {
		t.Errorf("got %q", b.String())
	}
	if last := b.String()[strings.LastIndexByte(b.String(), '\n')+1:]; strings.Trim(last, "\r\x1b[J") != "" && !strings.HasSuffix(last, "\r\x1b[J") {
		t.Errorf("something is left on the screen: %q", last)
	}
}
