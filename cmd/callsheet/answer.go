package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/terminal"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

type approveCmd struct {
	ID     string  `arg:"" help:"The run, or the beginning of its id."`
	Step   string  `arg:"" help:"The step that asks."`
	Edit   *string `help:"Call with these args instead, as JSON; the call is judged anew." placeholder:"ARGS"`
	Full   bool    `help:"Show the call in full; needed where something of it would not be shown."`
	Resume bool    `help:"Go on with the run."`
	goOn
}

// Run shows the call and approves it.
func (c *approveCmd) Run(a *app) error {
	var edited value.Value
	if c.Edit != nil {
		var err error
		if edited, err = value.Parse([]byte(*c.Edit)); err != nil {
			return refuse("--edit: the args are not JSON: %w", err)
		}
	}
	p := newPerformance(a, &c.showFlags)
	defer p.stop()
	store, id, err := c.stored().find(p.ctx, a, c.ID)
	if err != nil {
		return err
	}
	p.store = store
	defer p.close()
	if err := notBelow(store.Path()); err != nil {
		return err
	}
	open, err := record.LoadQuestions(p.ctx, store, id)
	if err != nil {
		return stored(err)
	}
	answer := record.Answer{Allow: true, Args: edited}
	if err := open.Refuses(c.Step, answer, time.Now()); err != nil {
		return stored(err)
	}
	q, ask, err := question(open, c.Step)
	if err != nil {
		return err
	}
	if !edited.IsZero() {
		q.Args = edited
	}
	if hidden := a.err().Question(q, c.Full); hidden > 0 {
		return refuse("the call has %s not shown; approve it with --full, which shows all", count.Of(hidden, "byte"))
	}
	answer.Ask = ask
	if err := record.Decide(p.ctx, store, id, c.Step, answer, record.Options{}); err != nil {
		return stored(err)
	}
	if !c.Resume {
		a.err().Line("approved; callsheet resume %s  goes on", id)
		return nil
	}
	return c.goOn.resume(p, id, false, "")
}

// question is the open ask of a step as it is shown.
func question(h *record.Questions, step string) (q terminal.Question, ask value.Digest, err error) {
	c, err := h.Catalogue()
	if err != nil {
		return q, ask, err
	}
	for _, ask := range h.Asks() {
		if ask.Step == step {
			return terminal.Question{
				Run: ask.Run, Step: ask.Step, Tool: ask.Tool, Decl: c.Get(ask.Tool), Args: ask.Args, Code: ask.Code, Message: ask.Message, Expires: ask.Expires,
			}, ask.Digest, nil
		}
	}
	return q, ask, record.ErrNoAsk
}

type denyCmd struct {
	ID   string `arg:"" help:"The run, or the beginning of its id."`
	Step string `arg:"" help:"The step that asks."`
	Why  string `help:"The reason, which the report gives." placeholder:"TEXT"`
	storedFlags
}

// Run denies a call.
func (c *denyCmd) Run(a *app) error {
	ctx := context.Background()
	store, id, err := c.find(ctx, a, c.ID)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := notBelow(store.Path()); err != nil {
		return err
	}
	if err := record.Decide(ctx, store, id, c.Step, record.Answer{Why: strings.ToValidUTF8(c.Why, "\uFFFD")}, record.Options{}); err != nil {
		return stored(err)
	}
	a.err().Line("denied; callsheet resume %s  goes on", id)
	return nil
}

type resolveCmd struct {
	ID           string  `arg:"" help:"The run, or the beginning of its id."`
	Step         string  `arg:"" help:"The step whose call was lost."`
	Happened     *string `help:"The call was made and this is its output, as JSON." xor:"what" required:"" placeholder:"OUTPUT"`
	DidNotHappen bool    `help:"The call was not made: it is made again, and charged." xor:"what" required:""`
	GiveUp       bool    `help:"Nobody knows: the step ends uncertain." xor:"what" required:""`
	storedFlags
}

// Run records what became of a lost call.
func (c *resolveCmd) Run(a *app) error {
	r := record.Resolution{What: machine.GiveUp}
	switch {
	case c.DidNotHappen:
		r.What = machine.DidNotHappen
	case c.Happened != nil:
		out, err := value.Parse([]byte(*c.Happened))
		if err != nil {
			return refuse("--happened: the output is not JSON: %w; a text needs its quotes", err)
		}
		r.What, r.Output = machine.Happened, out
	}
	ctx := context.Background()
	store, id, err := c.find(ctx, a, c.ID)
	if err != nil {
		return err
	}
	defer store.Close()
	if err := notBelow(store.Path()); err != nil {
		return err
	}
	if err := record.Resolve(ctx, store, id, c.Step, r); err != nil {
		return stored(err)
	}
	a.err().Line("resolved; callsheet resume %s  goes on", id)
	return nil
}

type approvalsCmd struct {
	storedFlags
	JSON bool `name:"json" help:"Print the open questions as one line of JSON."`
}

// maxWaiting bounds the runs that are looked at: more questions than a person
// answers in a day.
const maxWaiting = 1000

// Run lists what waits for a person.
func (c *approvalsCmd) Run(a *app) (err error) {
	ctx := context.Background()
	store, err := c.open(a)
	if err != nil {
		return err
	}
	defer store.Close()
	var asks []record.Ask
	var lost [][2]string // run and step
	unread := 0
	decls := map[string]*tool.Declaration{}
	// A run that goes on has open questions too, while other branches are busy.
	for _, status := range []string{record.StatusWaiting, record.StatusRunning} {
		runs, err := store.Runs(ctx, journal.Filter{Status: status, Limit: maxWaiting})
		if err != nil {
			return err
		}
		for _, sum := range runs {
			h, err := record.LoadQuestions(ctx, store, sum.ID)
			if errors.Is(err, journal.ErrNoRun) || errors.Is(err, journal.ErrRemoved) {
				continue
			}
			var cat *tool.Catalogue
			if err == nil {
				cat, err = h.Catalogue()
			}
			if err != nil {
				a.err().Line("callsheet: %s", err)
				unread++
				continue
			}
			for _, ask := range h.Asks() {
				asks = append(asks, ask)
				decls[ask.Run+" "+ask.Step] = cat.Get(ask.Tool)
			}
			for _, step := range h.Lost() {
				if d := cat.Get(h.ToolOf(step)); d != nil && !d.Effects.Repeatable() {
					lost = append(lost, [2]string{sum.ID, step})
				}
			}
		}
	}
	if unread > 0 {
		defer func() {
			if err == nil {
				err = fmt.Errorf("not all that waits is listed: %s cannot be read", count.Of(unread, "run"))
			}
		}()
	}
	if c.JSON {
		return c.print(a, asks, lost)
	}
	if len(asks) == 0 && len(lost) == 0 {
		if unread == 0 {
			a.out().Line("nothing waits for a person")
		}
		return nil
	}
	for _, g := range grouped(asks, decls) {
		first := g[0]
		if n := len(g); n > 1 {
			a.out().Line("%s of %s with the same targets:", count.Of(n, "call"), first.Tool)
		}
		a.out().Question(terminal.Question{
			Run: first.Run, Step: first.Step, Tool: first.Tool, Decl: decls[first.Run+" "+first.Step], Args: first.Args, Message: first.Message, Expires: first.Expires,
		}, false)
		for _, ask := range g {
			a.out().Line("  callsheet approve %s %s", ask.Run, ask.Step)
		}
	}
	for _, l := range lost {
		a.out().Line("step %s of run %s was called before a crash; say what became of it:", l[1], l[0])
		a.out().Line("  callsheet resolve %s %s --happened OUTPUT | --did-not-happen | --give-up", l[0], l[1])
	}
	return nil
}

func (c *approvalsCmd) print(a *app, asks []record.Ask, lost [][2]string) error {
	list := make([]value.Value, len(asks))
	for i, ask := range asks {
		list[i] = askJSON(ask)
	}
	lists := make([]value.Value, len(lost))
	for i, l := range lost {
		lists[i] = value.ObjectOf(value.Member{Key: "run", Value: plain(l[0])}, value.Member{Key: "step", Value: plain(l[1])})
	}
	return a.print(value.ObjectOf(value.Member{Key: "asks", Value: value.ListOf(list...)}, value.Member{Key: "lost", Value: value.ListOf(lists...)}))
}

// grouped puts the asks of one tool with the same targets together, in the order
// of the first of each (spec/hostile.md 69).
func grouped(asks []record.Ask, decls map[string]*tool.Declaration) (groups [][]record.Ask) {
	at := map[string]int{}
	for _, ask := range asks {
		key := fmt.Sprintf("%q %s", ask.Tool, terminal.Targets(decls[ask.Run+" "+ask.Step], ask.Args))
		i, ok := at[key]
		if !ok {
			i = len(groups)
			at[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], ask)
	}
	return groups
}
