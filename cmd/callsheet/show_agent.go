package main

import (
	"context"
	"strconv"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/terminal"
	"github.com/callsheet/callsheet/value"
)

// maxCell is how many characters of args and results a table shows.
const maxCell = 60

// agent shows the run of an agent as its record has it.
func (c *showCmd) agent(ctx context.Context, a *app, store *journal.Store, sum *journal.Summary) error {
	h, err := record.LoadAgent(ctx, store, sum.ID)
	if err != nil {
		return stored(err)
	}
	if c.JSON {
		return a.print(historyJSON(h))
	}
	out := a.out()
	c.summary(out, sum)
	if h.Parent != "" {
		out.Line("started by %s", h.Parent)
	}
	out.Line("%s of the model", count.Of(len(h.Replies), "round"))
	out.Line("")
	short := func(v value.Value) string {
		if v.IsZero() {
			return ""
		}
		if c.Full {
			return v.String()
		}
		clipped, _ := agent.Clip(value.MustText(v.String()), maxCell).Text()
		return clipped
	}
	rows := make([][]terminal.Cell, len(h.Calls))
	for i, call := range h.Calls {
		result := short(call.Output)
		if call.Failure != nil {
			result = call.Failure.Error()
		}
		rows[i] = terminal.Cells(call.Step, call.Tool, call.Status(), strconv.Itoa(call.Made), short(call.Args), result)
	}
	out.Table([]string{"CALL", "TOOL", "STATUS", "MADE", "ARGS", "RESULT"}, rows)
	out.Line("")
	if agentEnd(out, h) {
		out.Line("")
	}
	return timeline(ctx, out, store, sum)
}

// agentEnd shows what came of an agent's run, if it has ended.
func agentEnd(out *terminal.Output, h *record.AgentHistory) bool {
	if submission, ok := h.End.Get("submission"); ok {
		out.Line("submitted %s", submission.String())
		return true
	}
	failed, ok := h.End.Get("error")
	if ok {
		message, _ := failed.Get("message")
		text, _ := message.Text()
		out.Line("failed: %s", text)
	}
	return ok
}

// historyJSON is the run of an agent for programs: its calls, and its end when
// it has one.
func historyJSON(h *record.AgentHistory) value.Value {
	calls := make([]value.Value, len(h.Calls))
	for i, call := range h.Calls {
		ms := []value.Member{
			{Key: "step", Value: plain(call.Step)},
			{Key: "tool", Value: plain(call.Tool)},
			{Key: "status", Value: plain(call.Status())},
			{Key: "made", Value: value.Int(int64(call.Made))},
		}
		if !call.Args.IsZero() {
			ms = append(ms, value.Member{Key: "args", Value: call.Args})
		}
		if call.Failure != nil {
			ms = append(ms, value.Member{Key: "error", Value: value.ObjectOf(
				value.Member{Key: "code", Value: plain(call.Failure.Code)}, value.Member{Key: "message", Value: plain(call.Failure.Message)},
			)})
		} else if !call.Output.IsZero() {
			ms = append(ms, value.Member{Key: "output", Value: call.Output})
		}
		calls[i] = value.ObjectOf(ms...)
	}
	ms := []value.Member{
		{Key: "run", Value: plain(h.Summary.ID)},
		{Key: "status", Value: plain(shown(&h.Summary))},
		{Key: "role", Value: plain(h.Role)},
		{Key: "task", Value: value.ObjectOf(value.Member{Key: "system", Value: plain(h.Task.System)}, value.Member{Key: "user", Value: plain(h.Task.User)})},
		{Key: "rounds", Value: value.Int(int64(len(h.Replies)))},
		{Key: "calls", Value: value.ListOf(calls...)},
	}
	if !h.End.IsZero() {
		ms = append(ms, value.Member{Key: "end", Value: h.End})
	}
	return value.ObjectOf(ms...)
}
