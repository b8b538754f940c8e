package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/secret"
	"github.com/callsheet/callsheet/terminal"
	"github.com/callsheet/callsheet/tool"
)

// sourceFlags say where tools come from.
type sourceFlags struct {
	Tools  []string `help:"Tools: demo, arith, or the path of a catalogue. May be repeated." placeholder:"demo|arith|FILE" sep:"none"`
	Config string   `help:"The configuration; without any other flag for tools, callsheet.yaml of the working directory." placeholder:"FILE"`
}

// toolFlags say which tools there are and what binds a run.
type toolFlags struct {
	sourceFlags
	Stub string `help:"Answer in place of every tool from this file." placeholder:"FILE"`
}

// configuration reads the file that holds, nil when there is none. With --tools
// or --stub only one that is named holds.
func (f *toolFlags) configuration() (*config.Config, error) {
	if f.Config == "" && (len(f.Tools) > 0 || f.Stub != "") {
		return nil, nil
	}
	return configuration(f.Config)
}

// configuration reads the file that is named, else that of the working
// directory; nil when there is none.
func configuration(path string) (*config.Config, error) {
	if path == "" {
		var err error
		if path, err = config.Find("."); err != nil {
			return nil, refusal{err}
		}
		if path == "" {
			return nil, nil
		}
	}
	c, err := config.Load(path)
	if err != nil {
		return nil, refusal{err}
	}
	return c, nil
}

// limitFlag is for commands that read a plan and need no tools.
type limitFlag struct {
	Config string `help:"The configuration, whose limits.plan holds; callsheet.yaml of the working directory unless told." placeholder:"FILE"`
}

// limits are the bounds of a plan document.
func (f *limitFlag) limits() (plan.Limits, error) {
	c, err := configuration(f.Config)
	return c.PlanLimits(), err
}

// quietStart is how long sources may start before somebody at a terminal is told
// what is waited for.
const quietStart = time.Second

// open starts the tools for a plan, nil for none yet.
func (f *toolFlags) open(ctx context.Context, a *app, c *config.Config, p *plan.Plan) (*config.Opened, error) {
	opt := config.Options{Tools: f.Tools, Stub: f.Stub, Groups: &a.running}
	if p != nil {
		opt.Names, opt.Steps = make([]string, len(p.Steps)), make([]string, len(p.Steps))
		for i := range p.Steps {
			opt.Names[i], opt.Steps[i] = p.Steps[i].Tool, p.Steps[i].ID
		}
	}
	if c != nil {
		defer starting(a.err(), len(c.Sources))()
	}
	o, err := config.Open(ctx, c, opt)
	if err != nil {
		return nil, exitIf(ctx, refusal{err})
	}
	if a.redact, err = secret.NewRedactor(o.Secrets); err != nil {
		return nil, errors.Join(refusal{err}, o.Close())
	}
	return o, nil
}

// starting tells on a terminal that n sources are started, unless done is called
// before that takes long.
func starting(out *terminal.Output, n int) (done func()) {
	if !out.Live() || n == 0 {
		return func() {}
	}
	sources := "sources"
	if n == 1 {
		sources = "source"
	}
	told := time.AfterFunc(quietStart, func() { out.Line("starting %d %s…", n, sources) })
	return func() { told.Stop() }
}

// errNoTools refuses a command line without any source of tools.
var errNoTools = refuse("there are no tools; name some with --tools demo|arith|FILE, --stub FILE or --config FILE, or write a %s here", config.FileName)

// errNoSources is the same of a command that takes no --stub.
var errNoSources = refuse("there are no tools; name some with --tools demo|arith|FILE or --config FILE, or write a %s here", config.FileName)

// planFlags are the flags of run and check.
type planFlags struct {
	Plan   string `arg:"" help:"The plan, - for standard input."`
	Budget *int   `help:"Calls at most, in place of the plan's own budget." placeholder:"N"`
	Strict bool   `help:"Refuse a plan with errors, unknown fields, or a worst case over its budget."`
	authorFlags
	toolFlags
}

// Validate is called by the parser.
func (f *planFlags) Validate() error {
	if f.Budget != nil && *f.Budget < 0 {
		return fmt.Errorf("--budget is %d; a budget is at least 0", *f.Budget)
	}
	return f.authorFlags.Validate()
}

// author is who wrote the plan.
func (f *planFlags) author(tools *config.Opened) policy.Author {
	return author(f.kind(), f.Task, tools)
}

// read returns the text of the plan: never more than one byte beyond the limit,
// so that an oversized one is refused before it fills the memory.
func (a *app) read(path string, limit int) ([]byte, error) {
	if limit == 0 {
		limit = plan.DefaultBytes
	}
	in := a.stdin
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return nil, refusal{err}
		}
		defer f.Close()
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, int64(limit)+1))
	if err != nil {
		return nil, refuse("%s: %w", named(path), err)
	}
	return text, nil
}

// named is what messages call a file.
func named(path string) string {
	if path == "-" {
		return "<stdin>"
	}
	return path
}

// onlyDeclared refuses tools that have nothing behind them. instead is what else
// can be done, "" for nothing.
func onlyDeclared(names []string, instead string) error {
	what := fmt.Sprintf("the tool %q is", names[0])
	if n := len(names) - 1; n > 0 {
		what = fmt.Sprintf("the tool %q and %d more are", names[0], n)
	}
	return refuse("%s only declared and cannot be called; add --stub FILE to answer in place of every tool%s", what, instead)
}

// script is a plan with the tools that it is judged or run with.
type script struct {
	file   string
	text   []byte
	plan   *plan.Plan // nil: the document was refused
	config *config.Config
	tools  *config.Opened // nil when the document was refused
	guard  *guard         // nil when the document was refused
}

// Close ends what the tools started.
func (s *script) Close() error {
	if s.tools == nil {
		return nil
	}
	return s.tools.Close()
}

// load reads the configuration, then the plan, and opens the tools if the plan
// can be read. ctx bounds the start of servers.
func (a *app) load(ctx context.Context, f *planFlags) (*script, error) {
	s := &script{file: named(f.Plan)}
	var err error
	if s.config, err = f.configuration(); err != nil {
		return nil, err
	}
	limits := s.config.PlanLimits()
	if s.text, err = a.read(f.Plan, limits.Bytes); err != nil {
		return nil, err
	}
	var refused *plan.Error
	if s.plan, err = plan.Decode(s.text, limits); errors.As(err, &refused) {
		return s, nil
	} else if err != nil {
		return nil, err
	}
	s.tools, err = f.open(ctx, a, s.config, s.plan)
	return s, err
}

// check judges the plan. Without any tool everything but tools is judged.
func (s *script) check(f *planFlags) *check.Report {
	if s.plan == nil {
		_, r := check.Text(s.text, s.options(f))
		return r
	}
	return check.Plan(s.plan, s.options(f))
}

// options are what the plan is judged against.
func (s *script) options(f *planFlags) check.Options {
	o := check.Options{Budget: f.Budget, Ceiling: s.ceiling(), Limits: s.config.PlanLimits(), Strict: f.Strict}
	if s.plan == nil {
		return o
	}
	if c := s.catalogue(); len(c.All()) > 0 {
		o.Catalogue = c
	}
	o.Policy = func(p *plan.Plan) []check.Diagnostic { return s.guard.findings(p, s.catalogue()) }
	return o
}

func (s *script) catalogue() *tool.Catalogue { return s.tools.Set.Catalogue() }

// ceiling is the configured bound on budgets.
func (s *script) ceiling() *int {
	if s.config == nil {
		return nil
	}
	return s.config.Limits.Budget
}
