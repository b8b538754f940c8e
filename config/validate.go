package config

import (
	"errors"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/command"
	"github.com/callsheet/callsheet/value"
)

// maxAttempts of one step that a configuration may ask for: a retry storm is a
// mistake, not a wish.
const maxAttempts = 100

// validate checks what the types do not say, and makes paths absolute.
func (c *Config) validate(dir string) {
	for _, e := range c.Secrets {
		if e.Value.Env == "" || strings.ContainsAny(e.Value.Env, "=\x00") {
			c.doc.fault(at("secrets", e.Name), "secret %s: name the environment variable that holds it, as in {env: API_KEY}", e.Name)
		}
	}
	for _, e := range c.Sources {
		c.validateSource(e.Name, &e.Value, dir)
	}
	for _, e := range c.Overrides {
		c.validateOverride(&e.Value, at("overrides", e.Name))
	}
	if c.OnAsk != nil {
		if len(c.OnAsk.Command) == 0 {
			c.doc.fault("/on_ask", "on_ask: name the program, as in command: [/usr/local/bin/notify]")
		} else {
			absoluteProgram(&c.OnAsk.Command[0], dir)
		}
		c.validateEnv(c.OnAsk.Env, nil, "/on_ask")
	}
	if c.Model != nil {
		c.validateModel(dir)
	}
	absolute(&c.Journal.File, dir)
	absolute(&c.Rehearsal.World, dir)
	c.readPolicy()
}

// at makes a pointer.
func at(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteByte('/')
		b.WriteString(value.EscapePointer(p))
	}
	return b.String()
}

func absolute(path *string, dir string) {
	if *path != "" && !filepath.IsAbs(*path) {
		*path = filepath.Join(dir, *path)
	}
}

// absoluteProgram makes ./x absolute and leaves a bare name to be looked up.
func absoluteProgram(path *string, dir string) {
	if strings.Contains(*path, "/") {
		absolute(path, dir)
	}
}

func (c *Config) validateSource(name string, s *Source, dir string) {
	p := at("sources", name)
	var kinds []string
	if s.Builtin != "" {
		kinds = append(kinds, "builtin")
	}
	if s.MCP != nil {
		kinds = append(kinds, "mcp")
	}
	if s.Commands != nil {
		kinds = append(kinds, "commands")
	}
	if s.Catalogue != "" {
		kinds = append(kinds, "catalogue")
	}
	switch {
	case name == "":
		c.doc.fault(p, "a source needs a name")
	case len(kinds) == 0:
		c.doc.fault(p, "source %s: say where its tools come from with builtin, mcp, commands or catalogue", name)
	case len(kinds) > 1:
		c.doc.fault(p, "source %s has %s; make them sources of their own", name, strings.Join(kinds, " and "))
	}
	absolute(&s.Catalogue, dir)
	if s.MCP != nil {
		c.validateMCP(s.MCP, p+"/mcp", dir)
	}
	for _, e := range s.Commands {
		c.validateCommand(name, s, e, dir)
	}
}

func (c *Config) validateMCP(m *MCP, p, dir string) {
	switch {
	case len(m.Command) > 0 && m.URL != "":
		c.doc.fault(p, "a server has either a command or a url")
	case len(m.Command) == 0 && m.URL == "":
		c.doc.fault(p, "give the server a command, as in [npx, -y, some-server], or a url")
	case m.URL != "":
		u, err := url.Parse(m.URL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
			c.doc.fault(p+"/url", "url must be http or https, with a host and without credentials")
		}
		for _, k := range []string{"dir", "env", "env_secrets"} {
			if _, set := c.doc.at[p+"/"+k]; set {
				c.doc.fault(p+"/"+k, "%s is for a server with a command", k)
			}
		}
	default:
		for _, k := range []string{"headers", "proxy"} {
			if _, set := c.doc.at[p+"/"+k]; set {
				c.doc.fault(p+"/"+k, "%s is for a server with a url", k)
			}
		}
		absoluteProgram(&m.Command[0], dir)
		if m.Dir == "" {
			m.Dir = dir
		}
		absolute(&m.Dir, dir)
	}
	c.validateEnv(m.Env, m.EnvSecrets, p)
	for _, h := range m.Headers {
		c.knownSecret(h.Value.Secret, p+"/headers/"+value.EscapePointer(h.Name))
	}
}

func (c *Config) validateEnv(env []string, secrets Map[string], p string) {
	for _, e := range env {
		if name, _, _ := strings.Cut(e, "="); name == "" {
			c.doc.fault(p+"/env", "%q is neither NAME nor NAME=value", e)
		}
	}
	for _, e := range secrets {
		c.knownSecret(e.Value, p+"/env_secrets/"+value.EscapePointer(e.Name))
	}
}

func (c *Config) knownSecret(name, p string) {
	if c.Secrets.Get(name) != nil {
		return
	}
	known := make([]string, len(c.Secrets))
	for i, e := range c.Secrets {
		known[i] = e.Name
	}
	if len(known) == 0 {
		c.doc.fault(p, "no secret %q under secrets; add one: secrets: {%s: {env: VARIABLE}}", name, name)
		return
	}
	c.doc.fault(p, "no secret %q under secrets; %s", name, didYouMean(name, known))
}

func (c *Config) validateCommand(source string, s *Source, e *Entry[Command], dir string) {
	p := at("sources", source, "commands", e.Name)
	cmd := &e.Value
	c.validateEnv(cmd.Env, cmd.EnvSecrets, p)
	c.validateOverride(&cmd.Override, p)
	absolute(&cmd.Dir, dir)
	if len(cmd.Command) > 0 && len(cmd.Command[0].Words) == 1 {
		absoluteProgram(&cmd.Command[0].Words[0], dir)
	}
	if len(c.doc.faults) > 0 {
		return
	}
	_, err := c.command(source, s.Prefix+e.Name, cmd, func(string) (string, error) { return "", nil }, nil)
	var spec *command.SpecError
	if errors.As(err, &spec) {
		c.doc.fault(p+spec.Pointer, "tool %s: %s", e.Name, spec.Reason)
	} else if err != nil {
		c.doc.fault(p, "tool %s: %v", e.Name, err)
	}
}

func (c *Config) validateOverride(o *Override, p string) {
	if o.Effects.ReadOnly != nil && *o.Effects.ReadOnly && o.Effects.Destructive != nil && *o.Effects.Destructive {
		c.doc.fault(p+"/effects", "a tool that is read_only cannot be destructive")
	}
	for _, a := range o.Args {
		if !strings.HasPrefix(a.Name, "/") {
			c.doc.fault(p+"/args/"+value.EscapePointer(a.Name), "%s is no JSON pointer; write /%s", a.Name, a.Name)
		}
	}
	if _, set := c.doc.at[p+"/attempts"]; set && (o.Attempts < 1 || o.Attempts > maxAttempts) {
		c.doc.fault(p+"/attempts", "attempts is %d; it counts the first call too, so at least 1 and at most %d", o.Attempts, maxAttempts)
	}
	if _, set := c.doc.at[p+"/concurrency"]; set && o.Concurrency < 1 {
		c.doc.fault(p+"/concurrency", "concurrency must be at least 1")
	}
	if i := slices.Index(o.AllowArgs, ""); i >= 0 {
		c.doc.fault(p+"/allow_args", "an arg without a name")
	}
}

func (c *Config) validateModel(dir string) {
	m := c.Model
	switch m.Provider {
	case "":
		c.doc.fault("/model", "model: name the provider: %s", oneOf(m.Provider.choices()))
	case "openai", "anthropic":
		if m.Model == "" {
			c.doc.fault("/model", "model: name the model, as %s calls it", m.Provider)
		}
		if m.Secret != "" {
			c.knownSecret(m.Secret, "/model/secret")
		}
	default:
		if m.File == "" {
			c.doc.fault("/model", "model: name the file of the %s", m.Provider)
		}
		absolute(&m.File, dir)
	}
}

// apply puts an override over a declaration.
func (o *Override) apply(d *tool.Declaration) {
	over := tool.Override{
		ReadOnly: o.Effects.ReadOnly, Destructive: o.Effects.Destructive, Idempotent: o.Effects.Idempotent,
		OpenWorld: o.Effects.OpenWorld, Keyed: o.Effects.Keyed,
		Allowed: o.AllowArgs, Attempts: o.Attempts, Delay: time.Duration(o.Delay), Deadline: time.Duration(o.Deadline), MaxOutput: int(o.MaxOutput),
	}
	for _, a := range o.Args {
		over.Args = append(over.Args, tool.Arg{Pattern: a.Name, Role: tool.Role(a.Value)})
	}
	over.Apply(d)
}
