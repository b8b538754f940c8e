package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/secret"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/arith"
	"github.com/callsheet/callsheet/tool/command"
	"github.com/callsheet/callsheet/tool/demo"
	"github.com/callsheet/callsheet/tool/group"
	"github.com/callsheet/callsheet/tool/mcp"
	"github.com/callsheet/callsheet/tool/stub"
)

// maxCatalogue is how many bytes of a file of declarations or stubs are read.
const maxCatalogue = 64 << 20

// Options of [Open], which the flags of the command line fill.
type Options struct {
	Tools []string     // more sources: "demo", "arith", or a file of declarations
	Stub  string       // a file of answers that take the place of every tool; "": none
	Names []string     // the tools that exist when there is a stub and no source
	Steps []string     // ids of the plan: an answer of the stub for another is warned of; nil: there is no plan
	Log   *slog.Logger // of the sources; nil: quiet
	// Groups keeps the programs and servers while they run; nil: nobody does.
	Groups *group.List
}

// Opened are the tools of a configuration, ready to be called.
type Opened struct {
	Set     *tool.Set
	Limits  *call.Limits    // per tool; nil: none
	Approve map[string]bool // the tools every call of which a person must approve
	Policy  *policy.Policy  // compiled against the tools; nil: the configuration has none
	// Secrets are those that are set in the environment, by name; Unset are the
	// names of the others.
	Secrets map[string]string
	Unset   []string
	// Untrusted are the tools of servers that are not trusted: what these say of
	// them is anybody's text.
	Untrusted []string
	Warnings  []string // names that look alike, tools that a server lists and that cannot be used
	// Declared are the tools that are only declared: without a stub they cannot
	// be called.
	Declared []string

	closers []io.Closer
	groups  *group.List // of the programs of the sources
}

// Close ends what the sources started, the programs of calls that were given up
// included, and returns when nothing of it runs any more.
func (o *Opened) Close() error {
	var errs []error
	for _, c := range o.closers {
		errs = append(errs, c.Close())
	}
	o.closers = nil
	o.groups.Close(command.StopGrace)
	return errors.Join(errs...)
}

// origin is one source of tools while it is opened.
type origin struct {
	name    string // for people: "source files", "--tools demo"
	pointer string // into the configuration, "" for a flag
	tools   []tool.Tool
	closer  io.Closer
	refused []mcp.Refusal
	leftOut map[string]string // why, by the name that the tool would have
	err     error
	named   bool // err names the source itself

	untrusted bool // a server whose word about its tools is not believed
	unread    bool // no secret is read: nothing will be called
	settled   bool // what the configuration says of the tools is in their declarations already
}

// Open starts the sources of c, which may be nil, and of the options. ctx bounds
// the start. An error about the configuration is an [*Error]; nothing is left
// open then.
func Open(ctx context.Context, c *Config, opt Options) (*Opened, error) {
	c, o := c.opening()
	o.groups.Within = opt.Groups
	opt.Groups = o.groups
	c.readSecrets(o)
	if err := c.doc.err(); err != nil {
		return nil, err
	}
	var err error
	if c.doc.redact, err = secret.NewRedactor(o.Secrets); err != nil {
		return nil, err
	}
	if opt.Log != nil {
		opt.Log = slog.New(secret.LogHandler(c.doc.redact, opt.Log.Handler()))
	}
	origins := c.openAll(ctx, opt)
	for _, from := range origins {
		if from.closer != nil {
			o.closers = append(o.closers, from.closer)
		}
	}
	if err := o.gather(c, origins, opt); err != nil {
		return nil, errors.Join(err, o.Close())
	}
	return o, nil
}

// opening is a copy of c, which may be nil, and what is to be filled: faults found
// while tools are opened are not the file's for good.
func (c *Config) opening() (*Config, *Opened) {
	if c == nil {
		c = &Config{doc: readDocument("", nil)}
	}
	copied, doc := *c, *c.doc
	copied.doc = &doc
	return &copied, &Opened{Approve: make(map[string]bool), groups: new(group.List)}
}

// openAll opens every source, side by side: each may be a server that takes its
// time to start. Their order is kept.
func (c *Config) openAll(ctx context.Context, opt Options) []*origin {
	origins := make([]*origin, 0, len(c.Sources)+len(opt.Tools))
	var started sync.WaitGroup
	for _, e := range c.Sources {
		from := &origin{name: "source " + e.Name, pointer: at("sources", e.Name)}
		origins = append(origins, from)
		started.Go(func() { from.open(ctx, c, e.Name, &e.Value, opt) })
	}
	for _, name := range opt.Tools {
		origins = append(origins, flagged(name))
	}
	started.Wait()
	return origins
}

// flagged is the source that --tools names.
func flagged(name string) *origin {
	from := &origin{name: "--tools " + name}
	if name == "" {
		from.name, from.err = "--tools", errors.New("it is empty; use demo, arith or the path of a catalogue")
	} else if b := builtin(Builtin(name)); b != nil {
		from.tools = b
	} else {
		from.tools, from.err = readCatalogue(name)
	}
	return from
}

func builtin(name Builtin) []tool.Tool {
	switch name {
	case "demo":
		return demo.New()
	case "arith":
		return arith.New()
	}
	return nil
}

func (from *origin) open(ctx context.Context, c *Config, name string, s *Source, opt Options) {
	var tools []tool.Tool
	prefix := s.Prefix
	switch {
	case s.MCP != nil:
		prefix = "" // the server's source puts it there itself
		tools, from.err = from.openMCP(ctx, c, name, s, opt)
	case s.Commands != nil:
		prefix = "" // the names have it already, so that overrides find them
		secret := c.secret
		if from.unread {
			secret = func(string) (string, error) { return "", nil }
		}
		for _, e := range s.Commands {
			t, err := c.command(name, s.Prefix+e.Name, &e.Value, secret, opt.Groups)
			if err != nil {
				from.pointer = at("sources", name, "commands", e.Name)
				from.err = err
				return
			}
			tools = append(tools, t)
		}
	case s.Catalogue != "":
		tools, from.err = readCatalogue(s.Catalogue)
	default:
		tools = builtin(s.Builtin)
	}
	if from.err != nil {
		return
	}
	from.leftOut = make(map[string]string)
	for _, r := range from.refused {
		from.leftOut[s.Prefix+r.Name] = r.Reason
	}
	from.tools, from.err = from.only(s, tool.Prefix(prefix, tools))
}

func (from *origin) openMCP(ctx context.Context, c *Config, name string, s *Source, opt Options) ([]tool.Tool, error) {
	m := s.MCP
	from.untrusted = !m.Trust
	cfg := mcp.Config{
		Name: name, Prefix: s.Prefix, Command: m.Command, Dir: m.Dir, Env: make(map[string]string),
		URL: m.URL, Headers: make(map[string]mcp.Header), Proxy: m.Proxy,
		Pool: m.Pool, Trust: m.Trust, ParseJSON: m.JSON,
		StartTimeout: time.Duration(m.StartTimeout), MaxOutput: int(m.MaxOutput), Logger: opt.Log, Groups: opt.Groups,
	}
	for _, e := range m.Env {
		if k, v, set := strings.Cut(e, "="); set {
			cfg.Env[k] = v
		} else {
			cfg.EnvAllow = append(cfg.EnvAllow, e)
		}
	}
	for _, e := range m.EnvSecrets {
		v, err := c.secret(e.Value)
		if err != nil {
			return nil, err
		}
		cfg.Env[e.Name] = v
	}
	cfg.Env[BelowVariable] = "1"
	for _, h := range m.Headers {
		cfg.Headers[h.Name] = mcp.Header{Prefix: h.Value.Prefix, Env: c.Secrets.Get(h.Value.Secret).Env}
	}
	src, err := mcp.Open(ctx, cfg)
	if err != nil {
		from.named = true
		return nil, err
	}
	from.closer, from.refused = src, src.Refused()
	return src.Tools(), nil
}

// secret is the value of a secret by its name. It is in no error.
func (c *Config) secret(name string) (string, error) {
	env := c.Secrets.Get(name).Env
	v, ok := os.LookupEnv(env)
	if !ok || v == "" {
		return "", fmt.Errorf("secret %s: the environment variable %s is not set", name, env)
	}
	return v, nil
}

// only keeps the tools that the source is to offer.
func (from *origin) only(s *Source, tools []tool.Tool) ([]tool.Tool, error) {
	if s.Only == nil {
		return tools, nil
	}
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = strings.TrimPrefix(t.Name, s.Prefix)
	}
	for _, name := range s.Only {
		if why, ok := from.leftOut[s.Prefix+name]; ok && !slices.Contains(names, name) {
			return nil, fmt.Errorf("only: the tool %q is left out: %s", name, why)
		}
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("only: there is no tool %q; %s", name, didYouMean(name, names))
		}
	}
	return slices.DeleteFunc(slices.Clone(tools), func(t tool.Tool) bool {
		out := !slices.Contains(s.Only, strings.TrimPrefix(t.Name, s.Prefix))
		if out {
			from.leftOut[t.Name] = "only does not name it"
		}
		return out
	}), nil
}

// readCatalogue reads a file of declarations, which have no handlers.
func readCatalogue(path string) ([]tool.Tool, error) {
	text, err := readFile(path)
	if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(path, "./") {
		return nil, fmt.Errorf("no tools are called %s, and there is no such file; use demo, arith or the path of a catalogue", path)
	}
	if err != nil {
		return nil, err
	}
	decls, err := tool.ReadCatalogue(text, path)
	if err != nil {
		return nil, err
	}
	tools := make([]tool.Tool, len(decls))
	for i, d := range decls {
		tools[i].Declaration = *d
	}
	return tools, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxCatalogue+1))
	if err == nil && len(text) > maxCatalogue {
		err = fmt.Errorf("%s is larger than %d bytes", path, maxCatalogue)
	}
	return text, err
}

// gather makes one set of what the sources gave.
func (o *Opened) gather(c *Config, origins []*origin, opt Options) error {
	var errs []error
	refuse := func(from *origin, pointer, format string, args ...any) {
		if from.pointer == "" {
			errs = append(errs, fmt.Errorf("%s: %s", from.name, c.doc.redact.Text(fmt.Sprintf(format, args...))))
		} else {
			c.doc.fault(pointer, format, args...)
		}
	}
	var tools []tool.Tool
	first := make(map[string]*origin)
	for _, from := range origins {
		var spec *command.SpecError
		switch {
		case errors.As(from.err, &spec):
			refuse(from, from.pointer+spec.Pointer, "%s", spec.Reason)
		case from.named:
			refuse(from, from.pointer, "%v", from.err)
		case from.err != nil && from.pointer != "":
			refuse(from, from.pointer, "%s: %v", from.name, from.err)
		case from.err != nil:
			refuse(from, "", "%v", from.err)
		}
		for _, r := range from.refused {
			o.Warnings = append(o.Warnings, c.doc.redact.Text(fmt.Sprintf("%s: its tool %q is left out: %s", from.name, r.Name, r.Reason)))
		}
		for _, t := range from.tools {
			if other := first[t.Name]; other != nil {
				refuse(from, from.pointer, "tool %q comes from %s and from %s; give one of them a prefix", t.Name, other.name, from.name)
				continue
			}
			first[t.Name] = from
			if from.untrusted {
				o.Untrusted = append(o.Untrusted, t.Name)
			}
			if err := tellsSecret(&t.Declaration, c.doc.redact); err != nil {
				refuse(from, from.pointer, "%v", err)
			}
			tools = append(tools, t)
		}
	}
	if err := errors.Join(c.doc.err(), errors.Join(errs...)); err != nil {
		return err
	}
	c.knownOverrides(tools, origins)
	for i := range tools {
		c.knownArgs(&tools[i].Declaration, first[tools[i].Name])
	}
	if err := c.doc.err(); err != nil {
		return err
	}
	limits := make(map[string]call.Limit)
	for i := range tools {
		c.setUp(&tools[i].Declaration, first[tools[i].Name], o, limits)
		if tools[i].Handler == nil {
			o.Declared = append(o.Declared, tools[i].Name)
		}
	}
	if len(limits) > 0 {
		o.Limits = call.NewLimits(limits)
	}
	var err error
	if o.Set, err = tool.NewSet(tools...); err != nil {
		return err
	}
	for _, l := range o.Set.Catalogue().LookAlikes() {
		o.Warnings = append(o.Warnings, l.String())
	}
	if opt.Stub != "" {
		o.Declared = nil
		if err := o.stubs(opt); err != nil {
			return err
		}
	}
	o.Policy = c.compilePolicy(o.Set.Catalogue())
	return c.doc.err()
}

// stubs puts a stub's answers in the place of every tool.
func (o *Opened) stubs(opt Options) error {
	text, err := readFile(opt.Stub)
	if err != nil {
		return fmt.Errorf("--stub: %w", err)
	}
	answers, err := stub.Read(text)
	if err != nil {
		return fmt.Errorf("--stub %s: %w", opt.Stub, err)
	}
	if opt.Steps != nil {
		o.unanswerable(answers.Steps(), opt)
	}
	if len(o.Set.Catalogue().All()) == 0 {
		o.Set, err = answers.Tools(opt.Names)
	} else {
		o.Set, err = answers.Replace(o.Set.Catalogue())
	}
	if err != nil {
		return fmt.Errorf("--stub %s: %w", opt.Stub, err)
	}
	return nil
}

// maxUnanswerable is how many answers for no step are warned of one by one.
const maxUnanswerable = 10

// unanswerable warns of answers that no step of the plan will ask for.
func (o *Opened) unanswerable(ids []string, opt Options) {
	known := make(map[string]bool, len(opt.Steps))
	for _, id := range opt.Steps {
		known[id] = true
	}
	n := 0
	for _, id := range ids {
		if known[id] {
			continue
		}
		if n++; n <= maxUnanswerable {
			o.Warnings = append(o.Warnings, fmt.Sprintf("--stub %s: no step has the id %q; %s", opt.Stub, id, didYouMean(id, opt.Steps)))
		}
	}
	if n > maxUnanswerable {
		o.Warnings = append(o.Warnings, fmt.Sprintf("--stub %s: and %s that no step has", opt.Stub, count.Of(n-maxUnanswerable, "more id")))
	}
}

// PlanLimits are the bounds of a plan document.
func (c *Config) PlanLimits() plan.Limits {
	if c == nil {
		return plan.Limits{}
	}
	return plan.Limits{Bytes: int(c.Limits.Plan.Bytes), Steps: c.Limits.Plan.Steps, Depth: c.Limits.Plan.Depth}
}
