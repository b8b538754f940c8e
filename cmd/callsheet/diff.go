package main

import (
	"context"
	"errors"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/terminal"
	"github.com/callsheet/callsheet/value"
)

type diffCmd struct {
	A    string `arg:"" help:"One run, or the beginning of its id: the rehearsal."`
	B    string `arg:"" help:"The other: the real run."`
	JSON bool   `name:"json" help:"Print the differences as one line of JSON."`
	storedFlags
}

// difference is a step that went otherwise in two runs. A member that is the
// same in both is left out.
type difference struct {
	Step   string `json:"step"`
	Status *pair  `json:"status,omitempty"`
	Args   *pair  `json:"args,omitempty"`
	Output *pair  `json:"output,omitempty"`
}

// pair is what one run has and what the other; null where it has nothing.
type pair struct {
	A value.Value `json:"a"`
	B value.Value `json:"b"`
}

// Run compares two runs step by step. The exit code is 0 when they are alike.
func (c *diffCmd) Run(a *app) error {
	ctx := context.Background()
	store, err := c.open(a)
	if err != nil {
		return err
	}
	defer store.Close()
	one, err := reportOf(ctx, store, c.A)
	if err != nil {
		return err
	}
	other, err := reportOf(ctx, store, c.B)
	if err != nil {
		return err
	}
	found := differences(one, other)
	switch {
	case c.JSON:
		if err := a.print(map[string]any{"a": one.Run, "b": other.Run, "differences": found}); err != nil {
			return err
		}
	case len(found) == 0:
		a.out().Line("no difference: %s with the same status, args and output", count.Of(len(one.Steps), "step"))
	default:
		show := a.out()
		var rows [][]terminal.Cell
		for _, d := range found {
			for _, m := range []struct {
				what string
				*pair
			}{{"status", d.Status}, {"args", d.Args}, {"output", d.Output}} {
				if m.pair != nil {
					rows = append(rows, terminal.Cells(d.Step, m.what, value.Excerpt(m.A.String()), value.Excerpt(m.B.String())))
				}
			}
		}
		show.Table([]string{"STEP", "WHAT", one.Run, other.Run}, rows)
	}
	if len(found) > 0 {
		return exit(exitNotOK)
	}
	return nil
}

// reportOf is the report of a stored run of a plan.
func reportOf(ctx context.Context, store *journal.Store, prefix string) (*machine.Report, error) {
	id, err := store.Find(ctx, prefix)
	if err != nil {
		return nil, stored(err)
	}
	h, err := record.Load(ctx, store, id)
	if err != nil {
		return nil, stored(err)
	}
	if h.Contents != record.Full {
		return nil, refusal{errors.Join(record.ErrDigestsOnly)}
	}
	r, err := h.Report()
	if err != nil {
		return nil, stored(err)
	}
	r.Run = id
	return r, nil
}

// differences are the steps of two runs that went otherwise, those of the first
// in its order and then those that only the second has.
func differences(one, other *machine.Report) []difference {
	found := []difference{}
	at := make(map[string]*machine.StepReport, len(other.Steps))
	for i := range other.Steps {
		at[other.Steps[i].ID] = &other.Steps[i]
	}
	compare := func(id string, x, y *machine.StepReport) {
		d := difference{Step: id, Status: differ(status(x), status(y)), Args: differ(args(x), args(y)), Output: differ(output(x), output(y))}
		if d != (difference{Step: id}) {
			found = append(found, d)
		}
	}
	for i := range one.Steps {
		s := &one.Steps[i]
		compare(s.ID, s, at[s.ID])
		delete(at, s.ID)
	}
	for i := range other.Steps {
		if s := &other.Steps[i]; at[s.ID] != nil {
			compare(s.ID, nil, s)
		}
	}
	return found
}

func differ(a, b value.Value) *pair {
	if value.Equal(a, b) {
		return nil
	}
	return &pair{a, b}
}

func status(s *machine.StepReport) value.Value {
	if s == nil {
		return value.NullValue()
	}
	return plain(string(s.Status))
}

func args(s *machine.StepReport) value.Value {
	if s == nil || s.Args.IsZero() {
		return value.NullValue()
	}
	return s.Args
}

// output is what a step gave: its output, or the code of its failure.
func output(s *machine.StepReport) value.Value {
	switch {
	case s == nil:
	case !s.Output.IsZero():
		return s.Output
	case s.Cause != nil && s.Cause.Step == s.ID:
		return value.ObjectOf(value.Member{Key: "code", Value: plain(s.Cause.Code)})
	}
	return value.NullValue()
}
