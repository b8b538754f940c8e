package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/terminal"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world/rehearsal"
)

type showCmd struct {
	ID   string `arg:"" help:"The run, or the beginning of its id."`
	JSON bool   `name:"json" help:"Print the full report as one line of JSON."`
	Full bool   `help:"Show args and outputs in full."`
	storedFlags
}

// Run shows a run as its record has it. Nothing is called, and no tool is
// started.
func (c *showCmd) Run(a *app) error {
	ctx := context.Background()
	store, id, err := c.find(ctx, a, c.ID)
	if err != nil {
		return err
	}
	defer store.Close()
	sum, err := store.Summary(ctx, id)
	if err != nil {
		return stored(err)
	}
	if sum.Kind == record.KindAgent {
		return c.agent(ctx, a, store, &sum)
	}
	if sum.Kind != record.KindPlan && sum.Kind != record.KindRehearsal {
		if c.JSON {
			return refuse("run %s is of kind %q, which has no report of steps", id, sum.Kind)
		}
		out := a.out()
		c.summary(out, &sum)
		return timeline(ctx, out, store, &sum)
	}
	h, err := record.Load(ctx, store, id)
	if err != nil {
		return stored(err)
	}
	report, err := h.Report()
	if c.JSON {
		if err != nil {
			return stored(err)
		}
		_, err = a.stdout.Write(append(report.AppendFullJSON(nil), '\n'))
		return err
	}
	out := a.out()
	c.summary(out, &sum)
	if sum.Kind == record.KindRehearsal {
		if err := receiptOf(ctx, out, store, id); err != nil {
			return err
		}
	}
	for _, of := range []struct{ what, id string }{{"origin", h.Origin}, {"forked from", h.Forked}, {"started by", h.Parent}} {
		if of.id != "" && of.id != id {
			out.Line("%s %s", of.what, of.id)
		}
	}
	if err != nil {
		a.err().Line("callsheet: there is no report yet: %s", err)
	} else {
		out.Line("")
		out.Steps(report)
		out.Line("")
		out.Detail(report, c.Full)
	}
	out.Line("")
	return timeline(ctx, out, store, &sum)
}

// receiptOf shows what a rehearsal was and what it is worth. One that did not end
// has no receipt.
func receiptOf(ctx context.Context, out *terminal.Output, store *journal.Store, id string) error {
	out.Line("what follows was answered from a world, and nothing was called")
	kept, err := record.Receipt(ctx, store, id)
	if errors.Is(err, record.ErrNoReceipt) {
		out.Line("it has no receipt, for it did not end")
		return nil
	}
	if err != nil {
		return stored(err)
	}
	receipt, err := rehearsal.ParseReceipt(kept)
	if err != nil {
		return err
	}
	receipt.Run = id
	showReceipt(out, receipt)
	return nil
}

func (c *showCmd) summary(out *terminal.Output, sum *journal.Summary) {
	out.Line("run %s  %s", sum.ID, shown(sum))
	if sum.Name != "" {
		out.Line("name %s", sum.Name)
	}
	out.Line("started %s, last change %s", sum.Started.Local().Format(time.DateTime), sum.Updated.Local().Format(time.DateTime))
	out.Line("head %s", sum.Head.String())
}

// timeline shows what was recorded, in its order.
func timeline(ctx context.Context, out *terminal.Output, store *journal.Store, sum *journal.Summary) error {
	for e, err := range store.Entries(ctx, sum.ID, 0) {
		if err != nil {
			return err
		}
		out.Line("%s  %4d  %-10s %s", after(e.Time.Sub(sum.Started)), e.Index, e.Kind, moments(e.Slim()))
	}
	return nil
}

// after is the time since the start of a run, in a column.
func after(d time.Duration) string { return fmt.Sprintf("%+12.3fs", d.Seconds()) }

// told are the members of a record's body that a timeline tells, in this order.
// Args and outputs are not among them.
var told = []string{"step", "tool", "attempt", "rerun", "verdict", "resolution", "status", "withheld", "by", "code", "message", "failure", "why", "calls", "records"}

// moments is a record's body in short.
func moments(body value.Value) string {
	var parts []string
	for _, key := range told {
		v, ok := body.Get(key)
		if !ok {
			continue
		}
		switch key {
		case "step", "tool", "verdict", "resolution", "status":
			s, _ := v.Text()
			parts = append(parts, s)
		case "failure":
			code, _ := v.Get("code")
			message, _ := v.Get("message")
			c, _ := code.Text()
			m, _ := message.Text()
			parts = append(parts, "failed: "+c+": "+m)
		case "rerun", "withheld":
			parts = append(parts, key)
		default:
			s, isText := v.Text()
			if !isText {
				s = v.String()
			}
			parts = append(parts, key+" "+s)
		}
	}
	return strings.Join(parts, "  ")
}
