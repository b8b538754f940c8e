package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/run"
)

// journalFlag names the journal.
type journalFlag struct {
	Journal string `help:"The journal; without it that of the configuration, else journal.db in the user's state directory." placeholder:"FILE"`
}

// path is where the journal is. c may be nil.
func (f *journalFlag) path(a *app, c *config.Config) (string, error) {
	if f.Journal != "" {
		return f.Journal, nil
	}
	if c != nil && c.Journal.File != "" {
		return c.Journal.File, nil
	}
	dir, err := a.stateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "callsheet", "journal.db"), nil
}

// stateDir is the user's directory for what programs remember: XDG_STATE_HOME
// when it is absolute, as the XDG specification wants it, else ~/.local/state.
func (a *app) stateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", refuse("there is no state directory for the journal: %w; name a file with --journal, or run with --no-journal", err)
	}
	return filepath.Join(home, ".local", "state"), nil
}

// create opens the journal for a new run, making it if it is not there.
func (f *journalFlag) create(a *app, c *config.Config) (*journal.Store, error) {
	path, err := f.path(a, c)
	if err != nil {
		return nil, err
	}
	store, err := journal.Open(path, journal.Options{})
	if err != nil {
		return nil, refuse("the journal cannot be opened, so nothing was called: %w; name another with --journal FILE, or run without a record with --no-journal", err)
	}
	return store, nil
}

// openStored opens a journal that is there.
func (f *journalFlag) openStored(a *app, c *config.Config) (*journal.Store, error) {
	path, err := f.path(a, c)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, refuse("there is no journal at %s; a run makes it", path)
	}
	return openAt(path, journal.Options{})
}

// openAt opens the journal for a command that calls nothing.
func openAt(path string, opt journal.Options) (*journal.Store, error) {
	store, err := journal.Open(path, opt)
	switch {
	case errors.Is(err, journal.ErrForeign):
		return nil, refuse("the journal cannot be opened: %w", err)
	case err != nil:
		return nil, fmt.Errorf("the journal cannot be opened: %w", err)
	}
	return store, nil
}

// storedFlags are the flags of commands on stored runs that call nothing.
type storedFlags struct {
	journalFlag
	Config string `help:"The configuration that names the journal; callsheet.yaml of the working directory." placeholder:"FILE"`
}

func (f *storedFlags) configuration() (*config.Config, error) {
	if f.Journal != "" {
		return nil, nil
	}
	return (&toolFlags{sourceFlags: sourceFlags{Config: f.Config}}).configuration()
}

// open opens the journal.
func (f *storedFlags) open(a *app) (*journal.Store, error) {
	c, err := f.configuration()
	if err != nil {
		return nil, err
	}
	return f.journalFlag.openStored(a, c)
}

// find opens the journal and completes the prefix of a run's id.
func (f *storedFlags) find(ctx context.Context, a *app, prefix string) (*journal.Store, string, error) {
	store, err := f.open(a)
	if err != nil {
		return nil, "", err
	}
	id, err := store.Find(ctx, prefix)
	if err != nil {
		return nil, "", errors.Join(stored(err), store.Close())
	}
	return store, id, nil
}

// theirs are the errors about a stored run for which the command line is to
// blame: what it names is unknown, taken, used up or changed.
var theirs = []error{
	journal.ErrNoRun, journal.ErrAmbiguous, journal.ErrRemoved, journal.ErrNeeded, journal.ErrRunTaken, journal.ErrRunExists, journal.ErrFinished, journal.ErrDecided,
	record.ErrNotAPlan, record.ErrRehearsal, record.ErrNoReceipt, record.ErrChanged, record.ErrOver, record.ErrDigestsOnly, record.ErrNoAsk, record.ErrExpired, record.ErrNotLost,
	record.ErrBadEdit, record.ErrSecretLiteral, record.ErrSecretOutput, record.ErrUnfit, run.ErrTooDeep,
}

// stored makes a refusal of an error that says so.
func stored(err error) error {
	for _, t := range theirs {
		if errors.Is(err, t) {
			return refusal{err}
		}
	}
	return err
}
