package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/terminal"
)

// statusCrashed is what a list shows of a run that is said to run while nobody
// has it open.
const statusCrashed = "crashed"

// moment is a time of a flag: a point in time, a day, or how long ago.
type moment struct{ time.Time }

// UnmarshalText reads "2026-01-31T12:00:00Z", "2026-01-31", or "2h" and "7d" for
// that long ago.
func (m *moment) UnmarshalText(text []byte) error {
	s := string(text)
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			m.Time = t
			return nil
		}
	}
	var ago config.Duration
	if err := ago.UnmarshalText(text); err != nil {
		return fmt.Errorf("%q is no time; write one as in 2026-01-31, 2026-01-31T12:00:00Z, or how long ago as in 2h or 7d", s)
	}
	m.Time = time.Now().Add(-time.Duration(ago))
	return nil
}

type runsCmd struct {
	Status string `help:"Only runs of this status: running, crashed, waiting, interrupted, aborted, ok or failed." placeholder:"STATUS"`
	Tool   string `help:"Only runs that called this tool." placeholder:"NAME"`
	Since  moment `help:"Only runs that started at or after this time, or less than that long ago." placeholder:"TIME"`
	Until  moment `help:"Only runs that started before this time." placeholder:"TIME"`
	Limit  int    `help:"How many at most." default:"100" placeholder:"N"`
	JSON   bool   `name:"json" help:"Print the list as one line of JSON."`
	storedFlags
}

// Validate is called by the parser.
func (c *runsCmd) Validate() error {
	if c.Limit < 1 {
		return fmt.Errorf("--limit is %d; list at least one run", c.Limit)
	}
	return nil
}

// maxSifted bounds the runs among which those that crashed are looked for.
const maxSifted = 10_000

// Run lists the recorded runs, the latest first.
func (c *runsCmd) Run(a *app) error {
	store, err := c.open(a)
	if err != nil {
		return err
	}
	defer store.Close()
	f := journal.Filter{Status: c.Status, Tool: c.Tool, Since: c.Since.Time, Until: c.Until.Time, Limit: c.Limit}
	sift := c.Status == statusCrashed || c.Status == record.StatusRunning
	if sift {
		f.Status, f.Limit = record.StatusRunning, maxSifted
	}
	list, err := store.Runs(context.Background(), f)
	if err != nil {
		return err
	}
	for i := range list {
		list[i].Status = shown(&list[i])
	}
	if sift {
		list = slices.DeleteFunc(list, func(s journal.Summary) bool { return s.Status != c.Status })
		list = list[:min(len(list), c.Limit)]
	}
	if c.JSON {
		return a.print(list)
	}
	rows := make([][]terminal.Cell, len(list))
	for i, s := range list {
		rows[i] = terminal.Cells(s.ID, s.Status, s.Started.Local().Format(time.DateTime), s.Kind, s.Name)
	}
	a.out().Table([]string{"RUN", "STATUS", "STARTED", "KIND", "NAME"}, rows)
	return nil
}

// shown is the status of a run for people.
func shown(s *journal.Summary) string {
	if s.Status == record.StatusRunning && !s.Held {
		return statusCrashed
	}
	return s.Status
}

type rmCmd struct {
	IDs []string `arg:"" name:"id" help:"The runs, or the beginnings of their ids."`
	storedFlags
}

// Run removes runs.
func (c *rmCmd) Run(a *app) error {
	ctx := context.Background()
	store, err := c.open(a)
	if err != nil {
		return err
	}
	defer store.Close()
	ids := make([]string, len(c.IDs))
	for i, prefix := range c.IDs { // all are known before one is removed
		if ids[i], err = store.Find(ctx, prefix); err != nil {
			return stored(err)
		}
	}
	for len(ids) > 0 {
		var needed []string // by others, which may be among those that are removed now
		var why error
		for _, id := range ids {
			sum, err := store.Summary(ctx, id)
			if err == nil {
				err = store.Remove(ctx, id, "removed by "+record.Whoami())
			}
			switch {
			case errors.Is(err, journal.ErrNeeded):
				needed, why = append(needed, id), err
			case err != nil:
				return stored(err)
			default:
				a.out().Line("removed %s, head %s", id, sum.Head.String())
			}
		}
		if len(needed) == len(ids) {
			return stored(why)
		}
		ids = needed
	}
	return nil
}

type pruneCmd struct {
	OlderThan  config.Duration `required:"" help:"Remove runs whose status has not changed for this long, as in 30d." placeholder:"D"`
	Unfinished bool            `help:"Also those that wait, crashed or were interrupted."`
	storedFlags
}

// Run removes old runs.
func (c *pruneCmd) Run(a *app) error {
	store, err := c.open(a)
	if err != nil {
		return err
	}
	defer store.Close()
	removed, err := store.Prune(context.Background(), time.Now().Add(-time.Duration(c.OlderThan)), c.Unfinished)
	for _, id := range removed {
		a.out().Line("removed %s", id)
	}
	return err
}
