package planner

import (
	"fmt"
	"strings"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// system tells how plans are written (spec/plan.md §1–§3).
const system = `You write plans of tool calls. You do not call the tools yourself: you submit one complete plan, which is checked and then run.

A plan is a list of steps. A step has an id, the exact name of a tool, and the args of the call, which must fit the tool's input schema. To pass on the output of an earlier step, write a string that is nothing but a reference: "$s1" is the whole output of the step s1, "$s1.items.0.id" a part of it, by names of members and indexes from 0. A reference keeps the type of what it names. It cannot stand inside longer text. Text that really starts with a dollar is written with two: "$$5". A step may only refer to other steps, never to itself; put ids into "after" only for an order that no reference shows.

Steps that depend on each other run one after the other; nothing is repeated, and there are no conditions and no loops. Use the fewest steps that do the task, and only tools that exist. If something is wrong with the plan you are told what and where, often with a patch that mends it: send the whole plan again, mended.`

const (
	// maxTold is how many bytes of a catalogue are told whole: some tens of
	// tools. Beyond it a model reads what it does not need.
	maxTold = 48 << 10
	// maxNamed is how many bytes of names are told of a longer one.
	maxNamed = 16 << 10
	// maxEarlier is how many bytes are told of an earlier run.
	maxEarlier = 32 << 10
	// maxOutput is how many characters of each text in an output are told.
	maxOutput = 200
)

// user is the task and what there is to do it with.
func (s *Session) user() string {
	var b strings.Builder
	b.WriteString("The task:\n")
	b.WriteString(s.config.Task)
	b.WriteString("\n\n")
	if all := s.config.Catalogue.All(); !tooLong(s.config.Catalogue) {
		b.WriteString("The tools, one a line:\n")
		for _, d := range all {
			b.WriteString(told(d).String())
			b.WriteByte('\n')
		}
	} else {
		fmt.Fprintf(&b, "There are %d tools. Find those that you need with %s; here are names of some:\n", len(all), searchName)
		size := 0
		for _, d := range all {
			if size += len(d.Name) + 1; size > maxNamed {
				break
			}
			b.WriteString(d.Name)
			b.WriteByte('\n')
		}
	}
	if s.config.Check.Budget != nil {
		fmt.Fprintf(&b, "\nAt most %s may be made, retries included.\n", count.Of(*s.config.Check.Budget, "call"))
	}
	if s.config.Earlier != nil {
		s.config.Earlier.tell(&b)
	}
	return b.String()
}

// told is a tool as the model is told of it.
func told(d *tool.Declaration) value.Value {
	text := func(s string) value.Value { return value.MustText(strings.ToValidUTF8(s, "\uFFFD")) }
	ms := []value.Member{{Key: "name", Value: text(d.Name)}}
	if d.Description != "" {
		ms = append(ms, value.Member{Key: "description", Value: text(d.Description)})
	}
	if d.Input != nil {
		ms = append(ms, value.Member{Key: "input", Value: d.Input.Value()})
	}
	if d.Output != nil {
		ms = append(ms, value.Member{Key: "output", Value: d.Output.Value()})
	}
	return value.ObjectOf(ms...)
}

func tooLong(c *tool.Catalogue) bool {
	size := 0
	for _, d := range c.All() {
		if size += told(d).Size() + 1; size > maxTold {
			return true
		}
	}
	return false
}

// Earlier is a run that did not end well.
type Earlier struct {
	Plan   *plan.Plan
	Report *machine.Report
}

// tell says how the run went: statuses, causes and outputs, clipped.
func (e *Earlier) tell(b *strings.Builder) {
	b.WriteString("\nThis plan was run and did not end well:\n")
	b.WriteString(clip(string(e.Plan.Source()), maxEarlier))
	b.WriteString("\n\nHow its steps ended:\n")
	end := b.Len() + maxEarlier
	for i := range e.Report.Steps {
		if b.Len() > end {
			fmt.Fprintf(b, "(and %s)\n", count.Of(len(e.Report.Steps)-i, "more step"))
			break
		}
		s := &e.Report.Steps[i]
		fmt.Fprintf(b, "%s: %s", s.ID, s.Status)
		if c := s.Cause; c != nil {
			fmt.Fprintf(b, ", because of %s: %s: %s", c.Step, c.Code, clip(c.Message, maxOutput))
		}
		if s.Status == machine.OK {
			fmt.Fprintf(b, ", output %s", clip(agent.Clip(s.Output, maxOutput).String(), 10*maxOutput))
		}
		b.WriteByte('\n')
	}
	b.WriteString("\nSubmit a plan that completes the task from here. A step with the same tool and the same resolved args as one that ended ok takes over its output, and no call is made: keep such steps as they are. Do not repeat an effect that has happened, or may have.\n")
}

// clip shortens text to at most n bytes, with a mark.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
