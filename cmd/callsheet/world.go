package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/terminal"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/build"
	"github.com/callsheet/callsheet/world/episode"
	"github.com/callsheet/callsheet/world/runs"
	"github.com/callsheet/callsheet/world/session"
)

type worldCmd struct {
	Ingest   worldIngestCmd   `cmd:"" help:"Read recordings into episodes and action-result slices."`
	Build    worldBuildCmd    `cmd:"" help:"Make a worldbook of recordings, without a model."`
	InitDemo worldInitDemoCmd `cmd:"" name:"init-demo" help:"Write the ledger demonstration."`
	Inspect  worldInspectCmd  `cmd:"" help:"Verify a worldbook and show what it holds."`
	Step     worldStepCmd     `cmd:"" help:"Play one action of a session."`
	Play     worldPlayCmd     `cmd:"" help:"Play a session at the terminal."`
	Sessions worldSessionsCmd `cmd:"" help:"List the sessions below a directory."`
	Fork     worldForkCmd     `cmd:"" help:"Copy a session as it was at a revision into a new one."`
	Replay   worldReplayCmd   `cmd:"" help:"Play recorded cases, and promote the worldbook if it deserves it."`
	Patch    worldPatchCmd    `cmd:"" help:"Edit a worldbook into a new one, and replay cases on it."`
}

// printDocument prints a document of the worlds' format as the format writes it.
func (a *app) printDocument(doc any) error {
	text, err := world.AppendDocument(nil, doc)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(text)
	return err
}

// mended makes a refusal of an error that whoever named a worldbook, a session or
// an output can mend; the others are the harness's own.
func mended(err error) error {
	for _, t := range []error{fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, syscall.ENOTDIR, book.ErrIntegrity, book.ErrInside, session.ErrOtherWorld, session.ErrNoSession} {
		if errors.Is(err, t) {
			return refusal{err}
		}
	}
	if world.IsFault(err) {
		return refusal{err}
	}
	return err
}

// outside refuses an output inside a worldbook before any work is done for it.
func outside(flag, path string) error {
	if path == "" {
		return nil
	}
	if err := book.Outside(path); err != nil {
		return refuse("%s: %w", flag, err)
	}
	return nil
}

// apart refuses an output at or below a place that is read, or that is yet to be
// written. An empty path is nowhere.
func apart(flag, path string, from ...string) error {
	if path == "" {
		return nil
	}
	at, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	for _, other := range from {
		if other == "" || other == "-" {
			continue
		}
		place, err := filepath.Abs(other)
		if err != nil {
			return err
		}
		one, err1 := os.Stat(at)
		two, err2 := os.Stat(place)
		if rel, err := filepath.Rel(place, at); err == nil && (rel == "." || filepath.IsLocal(rel)) || err1 == nil && err2 == nil && os.SameFile(one, two) {
			return refuse("%s: %s would write into %s; choose another place", flag, path, other)
		}
	}
	return nil
}

// readFlags say how recordings are read.
type readFlags struct {
	Redact  []string `help:"Replace what matches this regular expression before anything is derived from the text. May be repeated." placeholder:"PATTERN" sep:"none"`
	Secrets string   `help:"A configuration: the values of the args to which it gives the role secret are replaced wherever they stand." placeholder:"FILE"`
	Quiet   bool     `help:"Show nothing but errors."`
}

// options are those of a reader that tells people how far it is.
func (f *readFlags) options(a *app) (episode.Options, error) {
	var o episode.Options
	for _, pattern := range f.Redact {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return o, refuse("--redact: %w", err)
		}
		o.Redact = append(o.Redact, re)
	}
	if f.Secrets != "" {
		c, err := config.Load(f.Secrets)
		if err != nil {
			return o, refuse("--secrets: %w", err)
		}
		tools, err := config.Declare(c, config.Options{}, nil)
		if err != nil {
			return o, refuse("--secrets: %w", err)
		}
		o.Secrets = episode.Secrets(tools.Set.Catalogue())
	}
	if !f.Quiet {
		o.Progress = progress(a.err())
	}
	return o, nil
}

// between two lines of progress: often enough to see that it goes on, too seldom
// to fill a log.
const between = 2 * time.Second

// progress tells people how far a reader is, when that takes long.
func progress(out *terminal.Output) func(episode.Progress) {
	last := time.Now()
	return func(p episode.Progress) {
		if time.Since(last) < between {
			return
		}
		last = time.Now()
		out.Line("read %d of %s, %d of %d MB: %s, %s", p.Files, count.Of(p.Of, "file"), p.Bytes>>20, p.TotalBytes>>20, count.Of(p.Episodes, "episode"), count.Of(p.Transitions, "transition"))
	}
}

// faults names the recordings that were left out, and those that say nothing.
func (a *app) faults(rec *episode.Recording) {
	for _, f := range rec.Faults {
		a.err().Lines("callsheet: ", f.Error())
	}
	for _, name := range rec.Silent {
		hint := ""
		switch strings.ToLower(filepath.Ext(name)) {
		case ".json", ".jsonl", ".ndjson":
		default:
			hint = "; it was read as text with roles: what is JSON needs a name that ends in .json or .jsonl"
		}
		a.err().Line("callsheet: %s: there is no action in it, so no world can be made of it%s", name, hint)
	}
}

// leftOut is the exit code of a command that did its work but for some files.
func leftOut(rec *episode.Recording) error {
	if len(rec.Faults) > 0 {
		return exit(exitNotOK)
	}
	return nil
}

type worldIngestCmd struct {
	Files  []string `arg:"" help:"Recordings: .json, .jsonl, anything else as role-prefixed text."`
	Output string   `required:"" help:"The directory for episodes.jsonl, transitions.jsonl and sources.json." placeholder:"DIR"`
	readFlags
}

// The files of an ingest.
const (
	episodesFile    = "episodes.jsonl"
	transitionsFile = "transitions.jsonl"
	sourcesFile     = "sources.json" // id → raw text, for build
)

// Run reads recordings. A file that cannot be read is named and left out, and the
// exit code is 1 then.
func (c *worldIngestCmd) Run(a *app) error {
	o, err := c.options(a)
	if err != nil {
		return err
	}
	if err := outside("--output", c.Output); err != nil {
		return err
	}
	ctx, _, stop := a.interruptible(nil, nil)
	defer stop()
	rec, err := episode.Read(ctx, c.Files, o)
	if err != nil {
		return exitIf(ctx, err)
	}
	a.faults(rec)
	if len(rec.Episodes) == 0 { // what an earlier ingest left stays
		a.err().Line("callsheet: there is no episode in what was named, so nothing was written")
		return exit(exitNotOK)
	}
	if err := os.MkdirAll(c.Output, 0o777); err != nil {
		return refuse("--output: %w", err)
	}
	sources := make([]value.Member, len(rec.Sources))
	for i, s := range rec.Sources {
		sources[i] = value.Member{Key: s.ID, Value: plain(s.Text)}
	}
	err = errors.Join(
		writeFile(filepath.Join(c.Output, episodesFile), func(w *os.File) error { return world.WriteLines(w, rec.Episodes) }),
		writeFile(filepath.Join(c.Output, transitionsFile), func(w *os.File) error { return world.WriteLines(w, rec.Slices) }),
		writeFile(filepath.Join(c.Output, sourcesFile), func(w *os.File) error {
			text, err := world.AppendDocument(nil, value.ObjectOf(sources...))
			if err == nil {
				_, err = w.Write(text)
			}
			return err
		}),
	)
	if err != nil {
		return err
	}
	if err := a.print(struct {
		Episodes    int    `json:"episodes"`
		Transitions int    `json:"transitions"`
		Output      string `json:"output"`
	}{len(rec.Episodes), len(rec.Slices), c.Output}); err != nil {
		return err
	}
	return leftOut(rec)
}

// exitIf is the exit code of an interrupt, else the error.
func exitIf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return exit(exitInterrupted)
	}
	return err
}

type worldBuildCmd struct {
	Inputs        []string `arg:"" help:"Recordings, or the directory of an ingest; with --from-runs the ids of recorded runs."`
	FromRuns      bool     `help:"Make the world of recorded runs of plans."`
	Output        string   `required:"" help:"The worldbook, a directory that is not there yet." placeholder:"DIR"`
	EnvironmentID string   `help:"Id of the environment; the base name of --output unless told." placeholder:"ID"`
	Name          string   `help:"Name for people; the id unless told." placeholder:"TEXT"`
	Description   string   `help:"What the environment is, or @FILE." placeholder:"TEXT"`
	Domain        []string `help:"A domain of the environment. May be repeated." placeholder:"NAME"`
	NoRules       bool     `help:"Induce no rules."`
	readFlags
	storedFlags
}

// manyTurns is how many make what comes after reading take long enough to say so.
const manyTurns = 10_000

// Run makes a worldbook and prints its path.
func (c *worldBuildCmd) Run(a *app) error {
	if _, err := os.Lstat(c.Output); err == nil {
		return refuse("--output: %s is there already; a worldbook is never changed", c.Output)
	}
	if err := outside("--output", c.Output); err != nil {
		return err
	}
	ctx, _, stop := a.interruptible(nil, nil)
	defer stop()
	rec, err := c.read(ctx, a)
	if err != nil {
		return exitIf(ctx, err)
	}
	a.faults(rec)
	if len(rec.Episodes) == 0 {
		return refuse("there is no episode in what was named, so there is nothing to make a world of")
	}
	b := book.Defaults()
	b.EnvironmentID, b.Name, b.Description, b.Domains = c.EnvironmentID, c.Name, c.Description, append(b.Domains, c.Domain...)
	if b.EnvironmentID == "" {
		b.EnvironmentID = strings.TrimSuffix(filepath.Base(c.Output), filepath.Ext(c.Output))
	}
	if b.Name == "" {
		b.Name = b.EnvironmentID
	}
	if file, ok := strings.CutPrefix(c.Description, "@"); ok {
		text, err := a.read(file, 0)
		if err != nil {
			return err
		}
		b.Description = string(text)
	}
	say := func(format string, args ...any) {
		if !c.Quiet && len(rec.Slices) >= manyTurns {
			a.err().Line(format, args...)
		}
	}
	say("looking for rules in %s of %s", count.Of(len(rec.Slices), "turn"), count.Of(len(rec.Episodes), "episode"))
	artifacts, report, err := build.Build(rec, &b, build.Options{NoRules: c.NoRules})
	if err != nil {
		return refuse("%w", err)
	}
	say("writing %s", c.Output)
	if err := book.Write(c.Output, artifacts, &b, book.WriteOptions{}); err != nil {
		return mended(err)
	}
	if !c.Quiet {
		a.err().Line("%s, %s (%d ambiguous, %d unreadable), %s; rules: %d supported, %d tentative, %d rejected",
			count.Of(report.Episodes, "episode"), count.Of(report.Turns, "turn"), report.Ambiguous, report.Unreadable, count.Of(report.Actions, "action"), report.Rules, report.Tentative, report.Rejected)
	}
	a.out().Line("%s", c.Output)
	return leftOut(rec)
}

// read reads what the world is made of.
func (c *worldBuildCmd) read(ctx context.Context, a *app) (*episode.Recording, error) {
	o, err := c.options(a)
	if err != nil {
		return nil, err
	}
	if c.FromRuns {
		return c.readRuns(ctx, a, o)
	}
	if info, err := os.Stat(c.Inputs[0]); len(c.Inputs) == 1 && err == nil && info.IsDir() {
		if len(o.Redact) > 0 || o.Secrets != nil {
			return nil, refuse("what was ingested has its ids already: redact when it is ingested")
		}
		return readIngest(c.Inputs[0])
	}
	return episode.Read(ctx, c.Inputs, o)
}

func (c *worldBuildCmd) readRuns(ctx context.Context, a *app, o episode.Options) (*episode.Recording, error) {
	store, err := c.open(a)
	if err != nil {
		return nil, err
	}
	defer store.Close()
	ids := make([]string, len(c.Inputs))
	for i, prefix := range c.Inputs {
		if ids[i], err = store.Find(ctx, prefix); err != nil {
			return nil, stored(err)
		}
		if k := slices.Index(ids[:i], ids[i]); k >= 0 {
			return nil, refuse("%s and %s are the same run, %s: name it once, for a run that is read twice would be its own witness", c.Inputs[k], prefix, ids[i])
		}
	}
	rec, err := episode.ReadFrom(ctx, runs.Exporter{Store: store, IDs: ids}, o)
	if errors.Is(err, runs.ErrReused) {
		return nil, refusal{err}
	}
	return rec, stored(err)
}

// readIngest reads what ingest wrote. The slices are cut anew, which is as cheap
// as reading them.
func readIngest(dir string) (*episode.Recording, error) {
	text, err := os.ReadFile(filepath.Join(dir, episodesFile))
	if err != nil {
		return nil, refuse("%s is no directory of an ingest: %w", dir, err)
	}
	rec := &episode.Recording{}
	if rec.Episodes, err = world.ReadLines[episode.Episode](text); err != nil {
		return nil, refuse("%s: %w", filepath.Join(dir, episodesFile), err)
	}
	for i := range rec.Episodes {
		rec.Slices = append(rec.Slices, episode.Segment(&rec.Episodes[i], episode.MaxHistory)...)
	}
	if text, err = os.ReadFile(filepath.Join(dir, sourcesFile)); err != nil {
		return nil, refuse("%s is no directory of an ingest: %w", dir, err)
	}
	texts, err := value.Parse(text)
	if err != nil {
		return nil, refuse("%s: %w", filepath.Join(dir, sourcesFile), err)
	}
	for id, source := range texts.Members() {
		s, _ := source.Text()
		rec.Sources = append(rec.Sources, episode.Source{ID: id, Text: s})
	}
	return rec, nil
}

type worldInitDemoCmd struct {
	Output string `required:"" help:"The worldbook, a directory that is not there yet." placeholder:"DIR"`
}

// Run writes the ledger demonstration.
func (c *worldInitDemoCmd) Run(a *app) error {
	artifacts, cfg := book.Demo()
	if err := book.Write(c.Output, artifacts, cfg, book.WriteOptions{}); err != nil {
		return mended(err)
	}
	a.out().Line("%s", c.Output)
	return nil
}

type worldInspectCmd struct {
	Package string `arg:"" help:"The worldbook."`
	Action  string `help:"What is known of this action." xor:"what" placeholder:"TYPE"`
	Search  string `help:"Rules that have these words." xor:"what" placeholder:"WORDS"`
}

// maxFound is how many rules a search shows.
const maxFound = 20

// Run verifies a worldbook and shows it.
func (c *worldInspectCmd) Run(a *app) error {
	b, err := openBook(c.Package)
	if err != nil {
		return err
	}
	defer b.Close()
	switch {
	case c.Action != "":
		initial, err := b.Engine.Initial()
		if err != nil {
			return err
		}
		if b.Engine.Action(c.Action) == nil {
			var known []string
			for _, spec := range b.Summary().Actions {
				known = append(known, spec.Name)
			}
			a.err().Line("callsheet: the worldbook declares no action %q; it has %s", c.Action, strings.Join(known, ", "))
		}
		return a.printDocument(b.Engine.Retrieve(c.Action, initial, true).View())
	case c.Search != "":
		hits, err := b.Search(context.Background(), c.Search, []string{"rule"}, maxFound)
		if err != nil {
			return err
		}
		if hits == nil {
			hits = []book.Hit{}
		}
		return a.printDocument(hits)
	}
	a.err().Line("worldbook %s: intact", b.Digest())
	return a.printDocument(b.Summary())
}
