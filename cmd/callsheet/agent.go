package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// agentFlags are what the commands with an agent in them have in common.
type agentFlags struct {
	MaxToolCalls *int   `help:"Calls of tools that the agent may spend; 8 unless told." placeholder:"N"`
	Trace        string `help:"Write the trace of every call to this file, also when the run fails." placeholder:"FILE"`
	JSON         bool   `name:"json" help:"Print the result as one line of JSON, and nothing else."`
	Quiet        bool   `help:"Show nothing but errors."`
	OnAsk        string `help:"When a person must approve a call: prompt at the terminal, pause, or refuse the call. Without it, prompt where there is a terminal and pause where there is none." enum:",prompt,pause,refuse" default:"" placeholder:"prompt|pause|refuse"`
	modelFlags
	toolFlags
	journalFlag
	NoJournal bool `help:"Keep no record: nothing can be resumed, approved later or audited."`
}

// Validate is called by the parser.
func (f *agentFlags) Validate() error {
	if f.NoJournal && f.Journal != "" {
		return errors.New("--no-journal and --journal exclude each other")
	}
	return nil
}

func (f *agentFlags) show() *showFlags {
	return &showFlags{JSON: f.JSON, Quiet: f.Quiet, OnAsk: f.OnAsk}
}

// setup is what resume needs of the flags.
func (f *agentFlags) setup(c *config.Config, g *guard, more ...value.Member) (value.Value, error) {
	tools, err := f.toolFlags.setup(c, began{onAsk: f.OnAsk}, g)
	if err != nil {
		return value.Value{}, err
	}
	asked, err := f.modelFlags.setup()
	if err != nil {
		return value.Value{}, err
	}
	var ms []value.Member
	for k, v := range tools.Members() {
		ms = append(ms, value.Member{Key: k, Value: v})
	}
	return value.ObjectOf(append(append(ms, value.Member{Key: "agent", Value: asked}), more...)...), nil
}

// A commission is a task for a model, with what it is done with.
type commission struct {
	task   string // redacted
	config *config.Config
	tools  *config.Opened
	model  model.Model
}

// commission opens the configuration and the tools, which the caller must close.
func (f *agentFlags) commission(p *performance, words string) (*commission, error) {
	task, err := p.app.words(words)
	if err != nil {
		return nil, err
	}
	c := &commission{}
	if c.config, err = f.configuration(); err != nil {
		return nil, err
	}
	if err := f.fill(c.config); err != nil {
		return nil, err
	}
	if c.tools, err = f.toolFlags.open(p.ctx, p.app, c.config, nil); err != nil {
		return nil, err
	}
	c.task = p.app.redact.Text(task)
	return c, nil
}

// equip opens the rest, when nothing is left to refuse: the model and the journal.
// The caller must close p, whatever comes of it.
func (f *agentFlags) equip(p *performance, c *commission) (err error) {
	if c.model, err = f.modelFlags.open(c.config); err != nil {
		return err
	}
	if err := p.open(c.config, c.tools); err != nil {
		return err
	}
	if !f.NoJournal {
		p.store, err = f.create(p.app, c.config)
	}
	return err
}

type agentCmd struct {
	Task               string `required:"" help:"What to do, in words; - for standard input." placeholder:"TEXT"`
	System             string `help:"What the model is told before the task." placeholder:"TEXT"`
	Schema             string `required:"" help:"JSON Schema of the answer, an object." placeholder:"FILE"`
	RequireObservation bool   `help:"Refuse a transition without a real observation."`
	agentFlags
}

// maxTask bounds the words of a task, in bytes: a long document fits, and no
// model reads more at once.
const maxTask = 4 << 20

// words are those of a task on the command line.
func (a *app) words(task string) (string, error) {
	if task != "-" {
		return task, nil
	}
	text, err := a.read("-", maxTask)
	if err != nil {
		return "", err
	}
	if len(text) > maxTask {
		return "", refuse("the task has more than %d bytes", maxTask)
	}
	return string(text), nil
}

// Run lets an agent do a task.
func (c *agentCmd) Run(a *app) error {
	p := newPerformance(a, c.show())
	defer p.stop()
	return c.run(p)
}

func (c *agentCmd) run(p *performance) error {
	answer, err := readSchema(c.Schema)
	if err != nil {
		return err
	}
	com, err := c.commission(p, c.Task)
	if err != nil {
		return err
	}
	defer com.tools.Close()
	if len(com.tools.Declared) > 0 {
		return onlyDeclared(com.tools.Declared, "")
	}
	g, err := p.guard(com.tools, nil, author(policy.Agent, com.task, com.tools))
	if err != nil {
		return err
	}
	defer p.close()
	if err := c.equip(p, com); err != nil {
		return err
	}
	if p.opt.Setup, err = c.setup(com.config, g); err != nil {
		return err
	}
	s := agent.Settings{MaxToolCalls: c.MaxToolCalls, RequireObservation: c.RequireObservation, Deadline: p.opt.Run.Deadline}
	p.opt.Name = title(com.task)
	run := p.agent(agent.Config[value.Value]{Model: com.model, Schema: answer, Settings: s, Role: "agent"}, com.tools.Set, c.Trace)
	if err := run.check(); err != nil {
		return err
	}
	res, err := run.begin(agent.Task{System: c.System, User: com.task})
	return run.report(res, err)
}

func readSchema(path string) (*schema.Schema, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, refuse("--schema: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxTask))
	if err != nil {
		return nil, refuse("--schema: %w", err)
	}
	doc, err := value.Parse(text)
	if err != nil {
		return nil, refuse("--schema %s: %w", path, err)
	}
	s, err := schema.Compile(doc)
	if err != nil {
		return nil, refuse("--schema %s: %w", path, err)
	}
	return s, nil
}

// agentRun is one run of an agent as a person drives it.
type agentRun struct {
	*performance
	opt    record.Options // the performance's, unless the agent has its own
	config agent.Config[value.Value]
	tools  *tool.Set
	trace  string // file; "": none
}

// agent prepares a run of an agent. The view is on standard error: standard
// output is the answer's.
func (p *performance) agent(c agent.Config[value.Value], tools *tool.Set, trace string) *agentRun {
	return &agentRun{performance: p, opt: p.opt, config: c, tools: tools, trace: trace}
}

// check refuses what no agent can be made of, and a trace that cannot be written.
func (r *agentRun) check() error {
	c := r.config
	c.Tools, c.Caller = r.tools.Catalogue(), agent.Direct(r.tools)
	if _, err := agent.New(c); err != nil {
		return refusal{err}
	}
	if r.trace == "" {
		return nil
	}
	f, err := os.OpenFile(r.trace, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return refuse("--trace: %w", err)
	}
	return f.Close()
}

// begin does a task, with a record if there is a journal.
func (r *agentRun) begin(t agent.Task) (*agent.Result[value.Value], error) {
	return r.drive(func(ctx context.Context) (*agent.Result[value.Value], error) {
		if r.store != nil {
			return record.RunAgent(ctx, r.store, r.tools, r.config, t, r.opt)
		}
		c := r.config
		c.Redactor, _ = r.opt.Run.Vault.(agent.Redactor)
		c.Tools, c.Caller = r.tools.Catalogue(), agent.Through{Door: &call.Door{Tools: r.tools, Gate: r.opt.Run.Gate, Limits: r.opt.Run.Limits, Vault: r.opt.Run.Vault}}
		a, err := agent.New(c)
		if err != nil {
			return &agent.Result[value.Value]{}, err
		}
		return a.Run(ctx, t)
	})
}

// resume goes on with a recorded run.
func (r *agentRun) resume(id string) (*agent.Result[value.Value], error) {
	return r.drive(func(ctx context.Context) (*agent.Result[value.Value], error) {
		return record.ResumeAgent(ctx, r.store, id, r.tools, r.config, r.opt)
	})
}

// drive shows a run while it goes on, and writes its trace.
func (r *agentRun) drive(run func(context.Context) (*agent.Result[value.Value], error)) (*agent.Result[value.Value], error) {
	if show := r.app.err(); !r.flags.Quiet && (!r.flags.JSON || show.Live()) {
		w := show.WatchAgent()
		defer w.Close()
		r.config.Watch, r.config.Stream = w.Observe, show.Live()
		r.view.Store(w)
		defer r.view.Store(nil)
	}
	r.opt.OnStart = func(l record.Live) {
		r.live.Store(&l)
		if r.config.Watch != nil {
			r.app.err().Line("run %s", l.ID())
		}
	}
	asks := r.hook != nil && r.opt.Run.Gate != nil
	if asks {
		r.opt.OnAsk = r.hook.tell
	}
	res, err := run(r.ctx)
	if asks {
		for _, w := range r.hook.wait() {
			r.app.err().Line("warning: %s", w)
		}
	}
	if r.trace != "" {
		records := make([]value.Value, len(res.Trace))
		for i := range res.Trace {
			records[i] = res.Trace[i].Value()
		}
		if failed := os.WriteFile(r.trace, append(value.ListOf(records...).AppendTo(nil), '\n'), 0o600); failed != nil {
			err = errors.Join(err, fmt.Errorf("--trace: %w", failed))
		}
	}
	return res, stored(err)
}

// report prints the answer, or why there is none, and says by the exit code
// which.
func (r *agentRun) report(res *agent.Result[value.Value], failed error) error {
	var refused refusal
	if errors.As(failed, &refused) {
		return failed
	}
	if r.flags.JSON {
		if err := r.app.print(r.app.resultJSON(res, failed)); err != nil {
			return err
		}
	} else if failed == nil {
		if _, err := r.app.stdout.Write(indented(res.Submitted)); err != nil {
			return err
		}
	}
	return r.ended(res, failed)
}

// resultJSON is what --json prints of a run that was begun, however it ended.
func (a *app) resultJSON(res *agent.Result[value.Value], failed error) value.Value {
	submission := res.Submitted
	if failed != nil || submission.IsZero() {
		submission = value.NullValue()
	}
	ms := append([]value.Member{{Key: "submission", Value: submission}}, costs(res)...)
	if failed != nil {
		ms = append(ms, a.failureJSON(failed))
	}
	return value.ObjectOf(ms...)
}

// costs are the members that tell what a run took.
func costs(res *agent.Result[value.Value]) []value.Member {
	degraded, err := value.Of(res.Degraded)
	if err != nil || degraded.IsNull() {
		degraded = value.ListOf()
	}
	return []value.Member{
		{Key: "usage", Value: res.Usage.Value()},
		{Key: "rounds", Value: value.Int(int64(res.Rounds))},
		{Key: "calls", Value: value.Int(int64(res.Calls))},
		{Key: "degraded", Value: degraded},
	}
}

// Codes of errors that are not those of a protocol error.
const (
	codeWaiting     = "waiting"     // a person has to decide
	codeModel       = "model"       // the model failed for good
	codeInterrupted = "interrupted" // Ctrl-C
	codeHarness     = "harness"     // the harness could not do its work
)

func (a *app) failureJSON(failed error) value.Member {
	var protocol *agent.ProtocolError
	var waiting *agent.WaitingError
	var provider *model.Error
	code := codeHarness
	switch {
	case errors.As(failed, &protocol):
		code = protocol.Code
	case errors.As(failed, &waiting):
		code = codeWaiting
	case errors.As(failed, &provider):
		code = codeModel
	case errors.Is(failed, context.Canceled):
		code = codeInterrupted
	}
	return value.Member{Key: "error", Value: value.ObjectOf(
		value.Member{Key: "code", Value: plain(code)}, value.Member{Key: "message", Value: plain(a.redact.Text(failed.Error()))},
	)}
}

// ended is the exit code of a run of an agent, said in words where it is not 0.
// When several apply, the first holds.
func (r *agentRun) ended(res *agent.Result[value.Value], failed error) error {
	say := r.app.err().Line
	if !r.flags.Quiet && !r.flags.JSON {
		for _, d := range res.Degraded {
			say("note: %s (round %d, %s)", d.Message, d.Round, times(d.Times))
		}
	}
	resumable := r.store != nil && res.Run != "" && r.opt.Contents != record.Digests
	var protocol *agent.ProtocolError
	var waiting *agent.WaitingError
	switch {
	case failed == nil:
		return nil
	case errors.As(failed, &protocol):
		say("callsheet: %s", protocol.Message)
		if res.LastInvalid != nil {
			say("  the last invalid submission, of round %d: %s", res.LastInvalid.Round, res.LastInvalid.Reason)
		}
		return exit(exitNotOK)
	case errors.As(failed, &waiting):
		r.waits(res.Run, waiting, resumable)
		return exit(exitPaused)
	}
	if resumable {
		say("callsheet resume %s  goes on with the run", res.Run)
	}
	if r.interrupted.Load() && errors.Is(failed, context.Canceled) {
		return exit(exitInterrupted)
	}
	return failed
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// waits names the calls that wait for a person, and the commands that answer.
func (r *agentRun) waits(id string, w *agent.WaitingError, resumable bool) {
	say := r.app.err().Line
	for _, c := range w.Calls {
		say("call %s of %s waits for a person: %s", c.Step, c.Tool, c.Reason)
		switch {
		case !resumable:
		case c.Waiting == agent.ForResolution:
			say("  callsheet resolve %s %s --happened OUTPUT | --did-not-happen | --give-up", id, c.Step)
		default:
			say("  callsheet approve %s %s", id, c.Step)
			say("  callsheet deny %s %s --why TEXT", id, c.Step)
		}
	}
	if resumable {
		say("then  callsheet resume %s", id)
	} else {
		say("there is no journal that the run could go on from: leave out --no-journal, keep its contents full, or run at a terminal")
	}
}

// resumeAgent goes on with an agent's run.
func (f *goOn) resumeAgent(p *performance, id string) error {
	h, err := record.LoadAgent(p.ctx, p.store, id)
	if err != nil {
		return stored(err)
	}
	asked, _ := h.Setup.Get("agent")
	f.toolFlags.recall(h.Setup)
	f.modelFlags.recall(asked)
	c, err := f.configuration()
	if err != nil {
		return err
	}
	if err := f.fill(c); err != nil {
		return err
	}
	m, err := f.modelFlags.open(c)
	if err != nil {
		return err
	}
	tools, err := f.toolFlags.open(p.ctx, p.app, c, nil)
	if err != nil {
		return err
	}
	defer tools.Close()
	if h.Role == roleOfPlans {
		return resumePlanning(p, h, m, c, tools)
	}
	p.flags.OnAsk = cmp.Or(p.flags.OnAsk, recallBegan(h.Setup).onAsk)
	if _, err := p.guard(tools, nil, author(policy.Agent, h.Task.User, tools)); err != nil {
		return err
	}
	if err := p.open(c, tools); err != nil {
		return err
	}
	run := p.agent(agent.Config[value.Value]{Model: m}, tools.Set, "")
	res, err := run.resume(id)
	return run.report(res, err)
}

func (f *agentFlags) deadline(c *config.Config) time.Duration {
	if c == nil {
		return 0
	}
	return time.Duration(c.Limits.Deadline)
}
