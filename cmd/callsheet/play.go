package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/terminal"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/engine"
	"github.com/callsheet/callsheet/world/session"
)

// sessionFlags say how a session is played.
type sessionFlags struct {
	Package          string `arg:"" help:"The worldbook."`
	Session          string `required:"" help:"The directory of the session; it is made if it is not there." placeholder:"DIR"`
	InitialState     string `help:"The state of a new session, as JSON or @FILE." placeholder:"JSON|@FILE"`
	AllowUnvalidated bool   `help:"Play a candidate, which has passed no replay."`
	Agent            bool   `help:"Let the world-model agent of the configuration decide what no confident rule does; --model does so too."`
	FastPath         string `help:"When a rule decides without the agent." enum:"confident,always,never" default:"confident" placeholder:"confident|always|never"`
	TrustPolicy      string `help:"Which effects of the agent are taken: those of rules, or all that pass the schema." enum:"rules_only,schema_checked" default:"rules_only" placeholder:"rules_only|schema_checked"`
	MaxToolCalls     *int   `help:"Calls of tools that the agent may spend in a step; 8 unless told." placeholder:"N"`
	Config           string `help:"The configuration that names the model; callsheet.yaml of the working directory." placeholder:"FILE"`
	modelFlags
}

// open opens the worldbook and the session. requireObservation holds the agent to
// real observations.
func (f *sessionFlags) open(ctx context.Context, a *app, requireObservation bool) (*book.Book, *session.Session, error) {
	o := session.Options{AllowUnvalidated: f.AllowUnvalidated, FastPath: session.FastPath(f.FastPath), Trust: engine.Trust(f.TrustPolicy), Wait: true}
	var err error
	if o.Initial, err = a.initialState(f.InitialState); err != nil {
		return nil, nil, err
	}
	if f.Agent || f.Model != "" {
		var c *config.Config
		if f.Model == "" {
			if c, err = (&toolFlags{sourceFlags: sourceFlags{Config: f.Config}}).configuration(); err != nil {
				return nil, nil, err
			}
		}
		if o.Agent, err = f.worldAgent(c, requireObservation, f.MaxToolCalls); err != nil {
			return nil, nil, err
		}
	}
	b, err := openBook(f.Package)
	if err != nil {
		return nil, nil, err
	}
	s, err := session.Open(ctx, f.Session, b, o)
	if err != nil {
		return nil, nil, errors.Join(a.unopened(err), b.Close())
	}
	return b, s, nil
}

// unopened says why a session was not opened.
func (a *app) unopened(err error) error {
	if errors.Is(err, session.ErrConflict) {
		a.err().Line("callsheet: %s; try again", err)
		return exit(exitNotOK)
	}
	return mended(err)
}

type worldStepCmd struct {
	Action             string `required:"" help:"The action, or a request that holds one, as JSON or @FILE." placeholder:"JSON|@FILE"`
	JSON               bool   `name:"json" help:"Print the whole result as JSON."`
	RequireObservation bool   `help:"Refuse a transition of the agent without a real observation."`
	sessionFlags
}

// request reads an action, or a request that holds one.
func request(doc value.Value) (session.Request, error) {
	var r session.Request
	if _, ok := doc.Get("action"); !ok {
		doc = value.ObjectOf(value.Member{Key: "action", Value: doc})
	}
	err := world.DecodeValue(doc, &r)
	return r, err
}

// Run plays one action. A failure of the environment is a step like any other; a
// step that is refused leaves the state as it was, and the exit code is 1.
func (c *worldStepCmd) Run(a *app) error {
	doc, err := a.document("--action", c.Action)
	if err != nil {
		return err
	}
	req, err := request(doc)
	if err != nil {
		return refuse("--action: %w", err)
	}
	ctx, _, stop := a.interruptible(nil, nil)
	defer stop()
	b, s, err := c.sessionFlags.open(ctx, a, c.RequireObservation)
	if err != nil {
		return err
	}
	defer b.Close()
	defer s.Close()
	r, err := s.Step(ctx, req)
	if err != nil {
		return a.refusedStep(ctx, err)
	}
	if c.JSON {
		return a.printDocument(r)
	}
	return a.observation(r.Observation)
}

// observation prints what the environment says, byte for byte where nobody reads
// it from a terminal, and escaped where somebody does.
func (a *app) observation(text string) error {
	out := a.out()
	if out.Live() {
		out.Lines("", text)
		return nil
	}
	_, err := a.stdout.WriteString(text + "\n")
	return err
}

// refusedStep says why a step was not committed.
func (a *app) refusedStep(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return exit(exitInterrupted)
	case errors.Is(err, session.ErrConflict):
		a.err().Line("callsheet: %s; make the step again", err)
	default:
		a.err().Lines("callsheet: the step was refused: ", world.Named(err))
	}
	return exit(exitNotOK)
}

type worldPlayCmd struct{ sessionFlags }

// playHelp is what may be typed.
const playHelp = `an action as TYPE or TYPE {"arg": …}; :actions, :state, :quit`

// maxLine bounds one line that a person types.
const maxLine = 1 << 20

// Run plays a session: an action on each line, as TYPE, TYPE {"arg": …} or JSON.
// The world-model agent, if there is one, must say what is observed.
func (c *worldPlayCmd) Run(a *app) error {
	ctx, _, stop := a.interruptible(nil, nil)
	defer stop()
	b, s, err := c.sessionFlags.open(ctx, a, true)
	if err != nil {
		return err
	}
	defer b.Close()
	defer s.Close()
	out := a.out()
	out.Line("%s, revision %d; %s", b.Manifest.Name, s.State().Revision, playHelp)
	in := bufio.NewScanner(a.stdin)
	in.Buffer(nil, maxLine)
	for a.prompt(out); in.Scan(); a.prompt(out) {
		line := strings.TrimSpace(in.Text())
		switch line {
		case "":
			continue
		case ":quit":
			return nil
		case ":state":
			if err := a.printDocument(s.State()); err != nil {
				return err
			}
			continue
		case ":actions":
			for _, spec := range b.Summary().Actions {
				out.Line("%s", signature(&spec))
			}
			continue
		}
		// What is meant for the prompt is no action, unless the world has it.
		word := strings.Fields(line)[0]
		if strings.HasPrefix(word, ":") || b.Engine.Action(word) == nil && slices.Contains([]string{"help", "?", "quit", "exit"}, word) {
			out.Line("%s", playHelp)
			continue
		}
		req, err := typedAction(line)
		if err != nil {
			out.Line("%s; %s", err, playHelp)
			continue
		}
		r, err := s.Step(ctx, req)
		if err != nil {
			if ctx.Err() != nil {
				return exit(exitInterrupted)
			}
			out.Lines("refused: ", world.Named(err))
			continue
		}
		out.Lines("", r.Observation)
		out.Line("  %s, by %s, revision %d", r.Outcome, r.Route, r.State.Revision)
	}
	return in.Err()
}

func (a *app) prompt(out *terminal.Output) {
	if out.Live() {
		a.stdout.WriteString("> ")
	}
}

// typedAction reads a line as a person types it.
func typedAction(line string) (session.Request, error) {
	name, args, _ := strings.Cut(line, " ")
	if strings.HasPrefix(line, "{") {
		doc, err := value.Parse([]byte(line))
		if err != nil {
			return session.Request{}, err
		}
		return request(doc)
	}
	doc := value.ObjectOf()
	if args = strings.TrimSpace(args); args != "" {
		var err error
		if doc, err = value.Parse([]byte(args)); err != nil {
			return session.Request{}, fmt.Errorf("the arguments of %s: %w", name, err)
		}
	}
	return request(value.ObjectOf(value.Member{Key: "type", Value: plain(name)}, value.Member{Key: "arguments", Value: doc}))
}

// signature is an action as it is typed.
func signature(spec *world.ActionSpec) string {
	var b strings.Builder
	b.WriteString(spec.Name)
	for _, arg := range spec.Arguments {
		b.WriteString(" " + arg.Name + ":" + string(arg.Type))
		if !arg.Required {
			b.WriteString("?")
		}
	}
	if spec.Description != "" {
		b.WriteString("  " + spec.Description)
	}
	return b.String()
}

type worldSessionsCmd struct {
	Dir  string `arg:"" help:"Where to look: a session, or a directory of sessions."`
	JSON bool   `name:"json" help:"Print the list as one line of JSON."`
}

// playedSession is a session in a list.
type playedSession struct {
	Session string `json:"session"`
	session.Info
}

// Run lists sessions. One that cannot be read is named, and the exit code is 1
// then.
func (c *worldSessionsCmd) Run(a *app) error {
	ctx, _, stop := a.interruptible(nil, nil)
	defer stop()
	list := []playedSession{}
	var left error
	missed := func(err error) error {
		a.err().Lines("callsheet: ", err.Error())
		left = exit(exitNotOK)
		return nil
	}
	err := filepath.WalkDir(c.Dir, func(dir string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && dir == c.Dir:
			return err
		case err != nil:
			return missed(err)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !d.IsDir():
			return nil
		case dir != c.Dir && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		}
		info, err := session.Inspect(ctx, dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return missed(err)
		}
		list = append(list, playedSession{dir, info})
		return fs.SkipDir // what is in a session is its own
	})
	if err != nil {
		return exitIf(ctx, mended(err))
	}
	if c.JSON {
		return errors.Join(a.print(list), left)
	}
	rows := make([][]terminal.Cell, len(list))
	for i, l := range list {
		rows[i] = terminal.Cells(l.Session, value.Int(l.Revision).String(), value.Int(int64(l.Turns)).String(), value.Int(int64(l.Failed)).String(), l.World, l.ForkedFrom)
	}
	a.out().Table([]string{"SESSION", "REVISION", "TURNS", "FAILED", "WORLD", "FORKED FROM"}, rows)
	return left
}

type worldForkCmd struct {
	Session  string `arg:"" help:"The directory of the session."`
	Output   string `required:"" help:"The new session, a directory that is not there yet." placeholder:"DIR"`
	Revision *int64 `help:"The revision to go back to; the newest unless told." placeholder:"N"`
}

// Run forks a session. The session may be played meanwhile.
func (c *worldForkCmd) Run(a *app) error {
	at := int64(session.Newest)
	if c.Revision != nil {
		if at = *c.Revision; at < 0 {
			return refuse("--revision is %d; revisions count from 0", at)
		}
	}
	if err := outside("--output", c.Output); err != nil {
		return err
	}
	ctx, _, stop := a.interruptible(nil, nil)
	defer stop()
	if err := session.Fork(ctx, c.Session, c.Output, at); err != nil {
		return exitIf(ctx, mended(err))
	}
	a.out().Line("%s", c.Output)
	return nil
}
