package main

import (
	"errors"
	"os"
	"strings"

	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/replay"
)

type worldReplayCmd struct {
	Package   string `arg:"" help:"The worldbook."`
	Cases     string `required:"" help:"The cases, as JSON Lines." placeholder:"FILE"`
	Output    string `help:"Write the report to this file too." placeholder:"FILE"`
	Baseline  string `help:"A worldbook on which no case may have passed that fails on this one." placeholder:"DIR"`
	PromoteTo string `help:"Write a validated copy here if the report allows it." placeholder:"DIR"`
}

// Run plays cases.
func (c *worldReplayCmd) Run(a *app) error {
	if err := errors.Join(outside("--output", c.Output), outside("--promote-to", c.PromoteTo), apart("--output", c.Output, c.PromoteTo, c.Cases)); err != nil {
		return err
	}
	b, err := openBook(c.Package)
	if err != nil {
		return err
	}
	defer b.Close()
	var baseline *book.Book
	if c.Baseline != "" {
		if baseline, err = openBook(c.Baseline); err != nil {
			return err
		}
		defer baseline.Close()
	}
	cases, err := a.cases(c.Cases)
	if err != nil {
		return err
	}
	ctx, _, stop := a.interruptible(nil, nil)
	defer stop()
	report, err := replay.Run(ctx, b, cases, baseline)
	if err != nil {
		return exitIf(ctx, mended(err))
	}
	return a.reported(b, report, c.Output, c.PromoteTo)
}

func (a *app) cases(path string) ([]replay.Case, error) {
	text, err := a.read(path, maxCases)
	if err != nil {
		return nil, err
	}
	cases, err := replay.ReadCases(path, text)
	if err != nil {
		return nil, refusal{err}
	}
	return cases, nil
}

// maxCases bounds a file of cases: a long recording of a large environment fits.
const maxCases = 1 << 30

// reported writes a report, then promotes, and gives the exit code: 0 when there
// were cases and all passed, and a wanted promotion was allowed.
func (a *app) reported(b *book.Book, r *replay.Report, output, promote string) error {
	if output != "" {
		if err := writeFile(output, func(w *os.File) error {
			text, err := world.AppendDocument(nil, r)
			if err == nil {
				_, err = w.Write(text)
			}
			return err
		}); err != nil {
			return err
		}
	}
	if err := a.printDocument(r); err != nil {
		return err
	}
	for i := range r.Cases {
		for _, what := range r.Cases[i].Details {
			a.err().Lines("callsheet: case "+r.Cases[i].CaseID+": ", what)
		}
	}
	switch {
	case promote != "" && !r.PromotionEligible:
		a.err().Line("callsheet: not promoted: %s", strings.Join(r.Reasons, "; "))
		return exit(exitNotOK)
	case !r.Passed():
		return exit(exitNotOK)
	case promote != "":
		if err := replay.Promote(b, r, promote); err != nil {
			return mended(err)
		}
		a.err().Line("promoted to %s", promote)
	}
	return nil
}

type worldPatchCmd struct {
	Package   string `arg:"" help:"The worldbook that the patch was made for."`
	Patch     string `required:"" help:"The patch." placeholder:"FILE"`
	Output    string `required:"" help:"The new worldbook, a directory that is not there yet." placeholder:"DIR"`
	Cases     string `required:"" help:"The cases, as JSON Lines; the old worldbook is the baseline." placeholder:"FILE"`
	Report    string `required:"" help:"Write the report to this file." placeholder:"FILE"`
	PromoteTo string `help:"Write a validated copy here if the report allows it." placeholder:"DIR"`
}

// Run patches a worldbook.
func (c *worldPatchCmd) Run(a *app) error {
	if err := errors.Join(outside("--output", c.Output), outside("--report", c.Report), outside("--promote-to", c.PromoteTo),
		apart("--report", c.Report, c.Output, c.PromoteTo, c.Patch, c.Cases), apart("--promote-to", c.PromoteTo, c.Output)); err != nil {
		return err
	}
	base, err := openBook(c.Package)
	if err != nil {
		return err
	}
	defer base.Close()
	text, err := a.read(c.Patch, 0)
	if err != nil {
		return err
	}
	var p book.Patch
	if err := world.Decode(text, &p); err != nil {
		return refuse("%s: %w", c.Patch, err)
	}
	cases, err := a.cases(c.Cases)
	if err != nil {
		return err
	}
	ctx, _, stop := a.interruptible(nil, nil)
	defer stop()
	report, err := replay.Patch(ctx, base, &p, cases, c.Output)
	if err != nil {
		return exitIf(ctx, mended(err))
	}
	b, err := openBook(c.Output)
	if err != nil {
		return err
	}
	defer b.Close()
	return a.reported(b, report, c.Report, c.PromoteTo)
}
