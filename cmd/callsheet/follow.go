package main

import (
	"context"
	"errors"
	"time"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/terminal"
)

type watchCmd struct {
	ID string `arg:"" help:"The run, or the beginning of its id."`
	storedFlags
}

// lookEvery is how often it is asked whether somebody still drives the run.
const lookEvery = time.Second

// errStopped ends the watching of a run that nobody drives any more.
var errStopped = errors.New("the run has stopped")

// Run follows a run until it ends or stops. The exit code is that of the run.
func (c *watchCmd) Run(a *app) error {
	ctx, interrupted, stop := a.interruptible(nil, nil)
	defer stop()
	store, id, err := c.find(ctx, a, c.ID)
	if err != nil {
		return err
	}
	defer store.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go untilStopped(ctx, store, id, cancel)

	feed, err := record.NewFeed(ctx, store, id)
	if err != nil {
		return stored(err)
	}
	out := a.out()
	watch := out.Watch(feed.Plan())
	err = follow(ctx, store, id, feed, watch)
	watch.Close()
	switch {
	case interrupted.Load():
		return exit(exitInterrupted)
	case errors.Is(err, errStopped):
		err = nil
	case err != nil:
		return stored(err)
	}
	return c.ended(a, store, id, out, watch)
}

// untilStopped cancels when nobody has the run open any more.
func untilStopped(ctx context.Context, store *journal.Store, id string, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	idle := 0
	for {
		sum, err := store.Summary(ctx, id)
		switch {
		case err != nil:
			cancel(err)
			return
		case sum.Held:
			idle = 0
		default:
			if idle++; idle > 1 { // what it wrote last has been shown by now
				cancel(errStopped)
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// follow shows the records of a run as they come.
func follow(ctx context.Context, store *journal.Store, id string, feed *record.Feed, watch *terminal.Watch) error {
	for e, err := range store.Follow(ctx, id, 0) {
		if err != nil {
			return err
		}
		events, err := feed.Take(ctx, e)
		if err != nil {
			return err
		}
		for _, ev := range events {
			watch.Observe(ev)
		}
	}
	return nil
}

// ended shows how things stand now.
func (c *watchCmd) ended(a *app, store *journal.Store, id string, out *terminal.Output, watch *terminal.Watch) error {
	ctx := context.Background()
	h, err := record.Load(ctx, store, id)
	if err != nil {
		return stored(err)
	}
	out.Line("run %s  %s", id, shown(&h.Summary))
	report, err := h.Report()
	if err != nil {
		a.err().Line("callsheet: there is no report: %s", err)
		return nil
	}
	out.Report(h.Plan, report, watch.Elapsed())
	out.Line("head %s", h.Summary.Head.String())
	for i := range report.Steps {
		if report.Steps[i].Status == machine.Waiting {
			return exit(exitPaused)
		}
	}
	if !report.OK() {
		return exit(exitNotOK)
	}
	return nil
}
