package mcp

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/textproto"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/group"
)

// Defaults of a [Config].
const (
	DefaultStartTimeout      = 30 * time.Second // a package runner may have to fetch the server first
	DefaultRestartsPerMinute = 3                // spec/plan.md §8
	DefaultStopGrace         = 2 * time.Second
)

// maxPool bounds the sessions of one source: each may be a process.
const maxPool = 64

// A Config says how to reach a server and what to believe of it. Exactly one of
// Command and URL is set.
type Config struct {
	// Name of the source, as in "mcp:files". Required.
	Name string
	// Prefix stands before the name of every tool, so that two servers may
	// export one name.
	Prefix string

	// Command is the argv of a stdio server. The program is looked up once, when
	// the source is opened; a program found only through the working directory
	// is refused.
	Command []string
	// Dir is the working directory of the command; "": that of Callsheet.
	Dir string
	// EnvAllow names the variables of Callsheet's own environment that the
	// command gets. PATH and HOME are always given, because the launchers of node
	// and python servers need them; nothing else is.
	EnvAllow []string
	// Env are further variables of the command.
	Env map[string]string

	// URL of a streamable HTTP server. Redirects are followed only within its
	// scheme and host.
	URL string
	// Headers are sent with every HTTP request.
	Headers map[string]Header
	// Proxy is the URL of an HTTP proxy; "": none, whatever the environment says.
	Proxy string

	// Pool is how many sessions (over stdio: processes) the source may keep for
	// calls that run side by side. 0: one, which all calls share.
	Pool int
	// Trust believes the server's annotations about effects. Without it every
	// tool has the worst effects, [tool.Undeclared], except where Overrides say
	// otherwise.
	Trust bool
	// Overrides by the server's own name of the tool, without Prefix. A name that
	// the server does not have is an error of Open.
	Overrides map[string]Override
	// ParseJSON reads a result that is one text block as strict JSON.
	ParseJSON bool

	// StartTimeout bounds one start, from the process to its list of tools. 0:
	// DefaultStartTimeout.
	StartTimeout time.Duration
	// StopGrace is how long a command has to leave after its stdin was closed,
	// and again after SIGTERM. 0: DefaultStopGrace.
	StopGrace time.Duration
	// RestartsPerMinute bounds restarts. 0: DefaultRestartsPerMinute; negative:
	// a server that died stays dead.
	RestartsPerMinute int
	// MaxOutput is the most bytes of one result. 0: [tool.DefaultMaxOutput].
	MaxOutput int
	// Groups keeps the processes of a command while they run; nil: nobody does.
	Groups *group.List
	// Logger gets the server's stderr (debug) and what happens to it. nil: quiet.
	Logger *slog.Logger
}

// A Header is a value that comes from an environment variable, so that secrets
// stay out of the configuration.
type Header struct {
	Prefix string // before the variable's value: "Bearer "
	Env    string // name of the variable; one that is not set is an error of Open
}

// An Override corrects what a server says, or does not say, of one tool. Effects
// in it win over annotations and over Trust; MaxOutput is at most that of the
// source.
type Override struct {
	tool.Override
	ParseJSON *bool // nil: as Config.ParseJSON
}

// Validate checks the fields against each other and names each one at fault.
func (c *Config) Validate() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("mcp source %q: %s: %s", c.Name, field, fmt.Sprintf(format, args...)))
	}
	if c.Name == "" {
		bad("Name", "is empty; give the source a name")
	}
	switch {
	case len(c.Command) == 0 && c.URL == "":
		bad("Command", "neither a command nor a URL; set one")
	case len(c.Command) > 0 && c.URL != "":
		bad("URL", "a command and a URL; set only one")
	}
	if len(c.Command) > 0 {
		c.validateCommand(bad)
	} else if c.URL != "" {
		c.validateHTTP(bad)
	}
	for _, f := range []struct {
		name string
		n    int64
	}{{"StartTimeout", int64(c.StartTimeout)}, {"StopGrace", int64(c.StopGrace)}, {"MaxOutput", int64(c.MaxOutput)}} {
		if f.n < 0 {
			bad(f.name, "is negative")
		}
	}
	if c.Pool < 0 || c.Pool > maxPool {
		bad("Pool", "%d is not between 0 and %d", c.Pool, maxPool)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Overrides)) {
		o := c.Overrides[name]
		if o.Attempts < 0 || o.Delay < 0 || o.Deadline < 0 || o.MaxOutput < 0 {
			bad("Overrides", "tool %q: a negative number", name)
		}
		if o.MaxOutput > c.maxOutput() {
			bad("Overrides", "tool %q: MaxOutput %d is over the source's %d", name, o.MaxOutput, c.maxOutput())
		}
	}
	return errors.Join(errs...)
}

func (c *Config) validateCommand(bad func(string, string, ...any)) {
	if c.Command[0] == "" {
		bad("Command", "the program is empty")
	}
	if len(c.Headers) > 0 || c.Proxy != "" {
		bad("Headers", "headers and proxies are for a URL, not for a command")
	}
	for _, arg := range c.Command {
		if strings.ContainsRune(arg, 0) {
			bad("Command", "%q holds a NUL byte", arg)
		}
	}
	for _, name := range c.EnvAllow {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			bad("EnvAllow", "%q is not the name of a variable", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(c.Env[name], 0) {
			bad("Env", "%q cannot be set", name)
		}
	}
	if c.Dir != "" && !filepath.IsAbs(c.Dir) {
		bad("Dir", "%q is not absolute", c.Dir)
	}
}

func (c *Config) validateHTTP(bad func(string, string, ...any)) {
	if c.Dir != "" || len(c.Env) > 0 || len(c.EnvAllow) > 0 {
		bad("Env", "a directory and an environment are for a command, not for a URL")
	}
	u, err := url.Parse(c.URL)
	switch {
	case err != nil:
		bad("URL", "cannot be read")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		bad("URL", "must be http or https with a host")
	case u.User != nil:
		bad("URL", "holds credentials; send them in a header from an environment variable")
	}
	if c.Proxy != "" {
		if p, err := url.Parse(c.Proxy); err != nil || p.Host == "" {
			bad("Proxy", "is not a URL with a host")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		h := c.Headers[name]
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case name == "" || strings.ContainsAny(name, " \t\r\n:"):
			bad("Headers", "%q is not the name of a header", name)
		case canonical == "Content-Type" || canonical == "Accept" || canonical == "Host" || strings.HasPrefix(canonical, "Mcp-"):
			bad("Headers", "%s belongs to the protocol", canonical)
		case h.Env == "":
			bad("Headers", "%s names no environment variable", canonical)
		}
	}
}

// headers resolves the headers; a value never appears in an error.
func (c *Config) headers(lookup func(string) (string, bool)) (http.Header, error) {
	out := make(http.Header, len(c.Headers))
	for name, h := range c.Headers {
		v, ok := lookup(h.Env)
		if !ok || v == "" {
			return nil, fmt.Errorf("mcp source %q: header %s: environment variable %s is not set", c.Name, name, h.Env)
		}
		if strings.ContainsAny(v, "\r\n\x00") {
			return nil, fmt.Errorf("mcp source %q: header %s: environment variable %s holds a line break", c.Name, name, h.Env)
		}
		out.Set(name, h.Prefix+v)
	}
	return out, nil
}

func (c *Config) maxOutput() int { return orDefault(c.MaxOutput, tool.DefaultMaxOutput) }

// envelopeRoom is what a message may need around its result: the JSON-RPC
// frame and the metadata of a server.
const envelopeRoom = 64 << 10

func (c *Config) maxMessage() int { return c.maxOutput() + envelopeRoom }

func (c *Config) startTimeout() time.Duration { return orDefault(c.StartTimeout, DefaultStartTimeout) }

func (c *Config) stopGrace() time.Duration { return orDefault(c.StopGrace, DefaultStopGrace) }

func orDefault[T int | time.Duration](v, def T) T {
	if v == 0 {
		return def
	}
	return v
}
