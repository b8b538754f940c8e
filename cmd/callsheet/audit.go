package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/terminal"
)

type auditCmd struct {
	Verify verifyCmd `cmd:"" help:"Check that nothing in the record of a run was changed: exit 0 it holds, 1 it does not, 2 there is nothing to read."`
	Export exportCmd `cmd:"" help:"Write the record of a run as a file that can be verified anywhere: exit 1 if it does not hold."`
	Key    keyCmd    `cmd:"" help:"Show or change the key that signs records."`
}

type verifyCmd struct {
	What string   `arg:"" name:"file-or-id" help:"An exported file, - for standard input, or a run, or the beginning of its id."`
	Key  []string `help:"The fingerprint of a key that is known to be right; may be repeated." placeholder:"FINGERPRINT"`
	Head string   `help:"A head that was seen before." placeholder:"N:HASH"`
	storedFlags
}

// Run verifies an export or a stored run.
func (c *verifyCmd) Run(a *app) error {
	trust := journal.Trust{Keys: c.Key}
	if c.Head != "" {
		head, err := journal.ParseHead(c.Head)
		if err != nil {
			return refuse("--head: %w", err)
		}
		trust.Head = &head
	}
	if err := trust.Validate(); err != nil {
		return refuse("--key: %w", err)
	}
	r, err := c.verify(a, trust)
	var broken *journal.BrokenError
	switch {
	case errors.As(err, &broken):
		a.out().Line("%s", err)
		return exit(exitNotOK)
	case err != nil:
		return err
	}
	say(a.out(), r)
	if !r.OK() {
		return exit(exitNotOK)
	}
	return nil
}

func (c *verifyCmd) verify(a *app, trust journal.Trust) (*journal.Report, error) {
	r, err := c.verifyFile(a, trust)
	if err == nil {
		return r, nil
	}
	if !errors.Is(err, os.ErrNotExist) || filepath.Base(c.What) != c.What {
		return nil, refusal{err} // there is nothing to read
	}
	ctx := context.Background()
	store, id, err := c.find(ctx, a, c.What)
	if err != nil {
		return nil, fmt.Errorf("there is no file %s, and %w", c.What, err)
	}
	defer store.Close()
	r, err = store.Verify(ctx, id, trust)
	return r, stored(err)
}

func (c *verifyCmd) verifyFile(a *app, trust journal.Trust) (*journal.Report, error) {
	if c.What == "-" {
		return journal.Verify(a.stdin, trust)
	}
	f, err := os.Open(c.What)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return journal.Verify(f, trust)
}

// say tells what an audit found.
func say(out *terminal.Output, r *journal.Report) {
	for _, f := range r.Faults {
		at := fmt.Sprintf("record %d", f.Index)
		switch {
		case f.Index < 0:
			at = "header"
		case f.Index >= r.Head.Records:
			at = "end"
		}
		out.Line("%s: %s", at, f.Reason)
	}
	verdict := "holds"
	if !r.OK() {
		verdict = "DOES NOT HOLD"
	}
	out.Line("the record of run %s %s: %s, head %s", r.Header.Run, verdict, count.Of(r.Head.Records, "record"), r.Head.String())
	for _, s := range r.Signers {
		out.Line("signed by key %s", s)
	}
	for _, n := range r.Notes() {
		out.Line("note: %s", n)
	}
}

type exportCmd struct {
	ID     string `arg:"" help:"The run, or the beginning of its id."`
	Output string `short:"o" help:"The file; without it standard output." placeholder:"FILE"`
	storedFlags
}

// Run exports a run.
func (c *exportCmd) Run(a *app) error {
	ctx := context.Background()
	store, id, err := c.find(ctx, a, c.ID)
	if err != nil {
		return err
	}
	defer store.Close()
	var out io.Writer = a.stdout
	var file *os.File
	if c.Output != "" {
		if file, err = os.OpenFile(c.Output, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
			return refusal{err}
		}
		out = file
	}
	report, err := store.Export(ctx, id, out)
	if file != nil {
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return stored(err)
	}
	if !report.OK() {
		// It is written all the same: what is left is what an auditor looks at.
		say(a.err(), report)
		return exit(exitNotOK)
	}
	a.err().Line("run %s, head %s", id, report.Head.String())
	return nil
}

type keyCmd struct {
	Show   keyShowCmd   `cmd:"" help:"Print the fingerprint of the key, and those of earlier ones."`
	Rotate keyRotateCmd `cmd:"" help:"Make a new key, also where the old one was lost; what that signed stays signed by it."`
}

// openKeys opens the journal, making it if it is not there, for what its keys are.
func (f *storedFlags) openKeys(a *app, opt journal.Options) (*journal.Store, error) {
	c, err := f.configuration()
	if err != nil {
		return nil, err
	}
	path, err := f.path(a, c)
	if err != nil {
		return nil, err
	}
	if opt.NewKey {
		if err := notBelow(path); err != nil {
			return nil, err
		}
	}
	return openAt(path, opt)
}

// sayKeys prints the keys of the journal, that which signs first.
func sayKeys(a *app, store *journal.Store) error {
	keys, err := store.Keys(context.Background())
	if err != nil {
		return err
	}
	own := store.Key().Fingerprint()
	a.out().Line("%s", own)
	for _, k := range keys {
		if k != own {
			a.out().Line("%s retired", k)
		}
	}
	return nil
}

type keyShowCmd struct{ storedFlags }

// Run shows the key. On first use it is made.
func (c *keyShowCmd) Run(a *app) error {
	store, err := c.openKeys(a, journal.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	return sayKeys(a, store)
}

type keyRotateCmd struct{ storedFlags }

// Run makes a new key, also where the old one was lost.
func (c *keyRotateCmd) Run(a *app) error {
	store, err := c.openKeys(a, journal.Options{NewKey: true})
	if err != nil {
		return err
	}
	defer store.Close()
	return sayKeys(a, store)
}
