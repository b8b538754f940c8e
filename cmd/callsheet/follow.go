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

	sum, err := store.Summary(ctx, id)
	if err != nil {
		return stored(err)
	}
	end := c.plan
	if sum.Kind == record.KindAgent {
		end = c.agent
	}
	ended, err := end(ctx, a, store, id)
	switch {
	case interrupted.Load():
		return exit(exitInterrupted)
	case ended == nil || err != nil && !errors.Is(err, errStopped):
		return stored(err)
	}
	return ended()
}

// plan follows the run of a plan. ended shows how things stand then.
func (c *watchCmd) plan(ctx context.Context, a *app, store *journal.Store, id string) (ended func() error, err error) {
	feed, err := record.NewFeed(ctx, store, id)
	if err != nil {
		return nil, err
	}
	out := a.out()
	watch := out.Watch(feed.Plan())
	defer watch.Close()
	return func() error { return c.planEnded(a, store, id, out, watch) }, follow(ctx, store, id, feed.Take, watch.Observe)
}

// agent follows the run of an agent.
func (c *watchCmd) agent(ctx context.Context, a *app, store *journal.Store, id string) (ended func() error, err error) {
	feed, err := record.NewAgentFeed(ctx, store, id)
	if err != nil {
		return nil, err
	}
	out := a.out()
	watch := out.WatchAgent()
	defer watch.Close()
	return func() error { return c.agentEnded(store, id, out) }, follow(ctx, store, id, feed.Take, watch.Observe)
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
func follow[Event any](ctx context.Context, store *journal.Store, id string, take func(context.Context, journal.Entry) ([]Event, error), observe func(Event)) error {
	for e, err := range store.Follow(ctx, id, 0) {
		if err != nil {
			return err
		}
		events, err := take(ctx, e)
		if err != nil {
			return err
		}
		for _, ev := range events {
			observe(ev)
		}
	}
	return nil
}

// agentEnded shows how things stand now.
func (c *watchCmd) agentEnded(store *journal.Store, id string, out *terminal.Output) error {
	h, err := record.LoadAgent(context.Background(), store, id)
	if err != nil {
		return stored(err)
	}
	out.Line("run %s  %s", id, shown(&h.Summary))
	agentEnd(out, h)
	out.Line("head %s", h.Summary.Head.String())
	switch h.Summary.Status {
	case record.StatusOK:
		return nil
	case record.StatusWaiting:
		return exit(exitPaused)
	}
	return exit(exitNotOK)
}

// planEnded shows how things stand now.
func (c *watchCmd) planEnded(a *app, store *journal.Store, id string, out *terminal.Output, watch *terminal.Watch) error {
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
