// Package config reads callsheet.yaml, the one configuration file, and opens
// the tools that it names.
//
//	cfg, err := config.Load("callsheet.yaml")
//	if err != nil {
//		return err // file, line, column and what to do, for every fault
//	}
//	opened, err := config.Open(ctx, cfg, config.Options{})
//	if err != nil {
//		return err
//	}
//	defer opened.Close()
//	report, err := run.Do(ctx, p, opened.Set, run.Options{Limits: opened.Limits})
//
// A file looks like this; [Schema] has every key.
//
//	sources:
//	  files:
//	    mcp: {command: [mcp-server-filesystem, ./work], trust: true}
//	    prefix: fs_
//	  local:
//	    commands:
//	      count:
//	        command: [wc, -c, --, "{path}"]
//	        dir: ./work
//	        args: {/path: path}
//	        effects: {read_only: true}
//	overrides:
//	  fs_write_file: {approve: always, rate: 10/m}
//	limits: {budget: 100, deadline: 10m}
//
// The reader is strict: an unknown key, a key that stands twice, a value of
// another type, an anchor or a tag is refused. Relative paths are relative to
// the directory of the file. Durations and sizes are written with their unit.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// FileName is the name under which [Find] looks for the configuration.
const FileName = "callsheet.yaml"

// A Config is a configuration file that was read and found sound.
type Config struct {
	Sources   Map[Source]   `yaml:"sources" doc:"Where tools come from, by a name of your choice."`
	Overrides Map[Override] `yaml:"overrides" doc:"Corrections of what tools declare, by the name under which a plan calls the tool (with its prefix)."`
	Approve   Approve       `yaml:"approve" doc:"destructive: a person must approve every call of a tool that may destroy."`
	OnAsk     *Hook         `yaml:"on_ask" doc:"A program that is told when a run waits for a person."`
	Limits    Limits        `yaml:"limits" doc:"Bounds of every run and plan."`
	Secrets   Map[Secret]   `yaml:"secrets" doc:"Secrets by name. Their values are in environment variables, never in this file."`
	Policy    value.Value   `yaml:"policy" doc:"Rules about calls and values: default, or a mapping of the policy language."`
	Journal   Journal       `yaml:"journal" doc:"The record of runs."`
	Rehearsal Rehearsal     `yaml:"rehearsal" doc:"What must be rehearsed before it is run."`
	Model     *Model        `yaml:"model" doc:"The language model that plans and agents ask."`

	doc   *document
	rules *policy.Document // of Policy; nil: there is none
}

// A Source is one place that tools come from: exactly one of its first four
// keys is set.
type Source struct {
	Builtin   Builtin      `yaml:"builtin" doc:"Tools that are built in: demo or arith."`
	MCP       *MCP         `yaml:"mcp" doc:"A server of the Model Context Protocol."`
	Commands  Map[Command] `yaml:"commands" doc:"Programs of this machine, by the name of the tool."`
	Catalogue string       `yaml:"catalogue" doc:"A file of declarations in the shape of MCP's tools/list, for check and --stub; its tools cannot be called."`

	Prefix string   `yaml:"prefix" doc:"Text before the name of every tool of this source."`
	Only   []string `yaml:"only" doc:"The tools that are taken, by the source's own names; without it all are."`
}

// Builtin names tools that are built in.
type Builtin string

func (Builtin) choices() []string { return []string{"demo", "arith"} }

// MCP says how to reach a server: command or url.
type MCP struct {
	Command    []string    `yaml:"command" doc:"Program and arguments of a server over stdio. No shell."`
	Dir        string      `yaml:"dir" doc:"Working directory of the command; without it that of this file."`
	Env        []string    `yaml:"env" doc:"Variables of the command: NAME passes it on, NAME=value sets it. PATH and HOME are always given, nothing else."`
	EnvSecrets Map[string] `yaml:"env_secrets" doc:"Variables of the command that hold a secret, by the secret's name."`

	URL     string      `yaml:"url" doc:"Address of a streamable HTTP server."`
	Headers Map[Header] `yaml:"headers" doc:"Headers of every request, each from a secret."`
	Proxy   string      `yaml:"proxy" doc:"URL of an HTTP proxy; without it none is used, whatever the environment says."`

	Trust        bool     `yaml:"trust" doc:"Believe what the server says about the effects of its tools. Without it each is assumed to be the worst."`
	JSON         bool     `yaml:"json" doc:"Read a result that is one text block as JSON, strictly."`
	Pool         int      `yaml:"pool" doc:"Sessions (over stdio: processes) for calls that run side by side; 1 unless told."`
	StartTimeout Duration `yaml:"start_timeout" doc:"From the start of the server to its list of tools; 30s unless told."`
	MaxOutput    Size     `yaml:"max_output" doc:"Of one result; 16MiB unless told."`
}

// A Header is the value of an HTTP header.
type Header struct {
	Secret string `yaml:"secret" doc:"Name of the secret that is sent."`
	Prefix string `yaml:"prefix" doc:"Text before it, as in \"Bearer \"."`
}

func (Header) hint() string {
	return `name a secret, as in {secret: NAME, prefix: "Bearer "}; its value is in an environment variable, never in this file`
}

// A Command is a tool that runs a program; see package tool/command.
type Command struct {
	Description  string      `yaml:"description" doc:"What the tool does, for models."`
	Command      Argv        `yaml:"command" doc:"The program and its arguments. {name} stands for the arg of that name and must be an element by itself; a list inside the list is left out when one of its args is absent."`
	Stdin        string      `yaml:"stdin" doc:"Standard input, with placeholders; without it there is none."`
	Dir          string      `yaml:"dir" doc:"Working directory, in which path args must stay."`
	Env          []string    `yaml:"env" doc:"The environment: NAME passes a variable on, NAME=value sets it. Nothing else is given."`
	EnvSecrets   Map[string] `yaml:"env_secrets" doc:"Variables that hold a secret, by the secret's name."`
	Params       Map[Param]  `yaml:"params" doc:"What placeholders may hold, by name."`
	Input        value.Value `yaml:"input" doc:"JSON Schema of the args; without it one is made of the placeholders."`
	Output       Format      `yaml:"output" doc:"How standard output is read: text (the default, one newline at the end removed) or json."`
	OutputSchema value.Value `yaml:"output_schema" doc:"JSON Schema of the output."`
	Override
}

// A Param declares a placeholder of a command.
type Param struct {
	AllowDash bool     `yaml:"allow_dash" doc:"The value may start with a dash, and so be an option."`
	Embed     bool     `yaml:"embed" doc:"The placeholder may stand inside a longer element."`
	JSON      bool     `yaml:"json" doc:"The value is written as JSON; lists and objects are allowed."`
	Path      PathKind `yaml:"path" doc:"The value names something below dir: a file or dir that exists, or something new."`
}

// Format says how standard output is read.
type Format string

func (Format) choices() []string { return []string{"text", "json"} }

// PathKind says what a path must name.
type PathKind string

func (PathKind) choices() []string { return []string{"file", "dir", "new"} }

// An Override is what the configuration says of one tool. What it leaves out
// stays as the tool declares it.
type Override struct {
	Effects     Effects   `yaml:"effects" doc:"What a call may do to the world."`
	Args        Map[Role] `yaml:"args" doc:"Roles of args, by JSON pointer; a token * stands for any name or index."`
	AllowArgs   []string  `yaml:"allow_args" doc:"Args that are let through although the input schema does not declare them."`
	Deadline    Duration  `yaml:"deadline" doc:"Of one call; 60s unless told."`
	Attempts    int       `yaml:"attempts" doc:"Calls at most for one step, the first among them; 2 unless told."`
	Delay       Duration  `yaml:"delay" doc:"Before a retry, doubled each time; none unless told."`
	MaxOutput   Size      `yaml:"max_output" doc:"Of one call; 16MiB unless told."`
	Concurrency int       `yaml:"concurrency" doc:"Calls of the tool that may be out at once."`
	Rate        Rate      `yaml:"rate" doc:"How often a call may begin, as in 10/m."`
	Approve     Always    `yaml:"approve" doc:"always: a person must approve every call."`
}

// Effects override the effects of a tool; nil leaves one as it is.
type Effects struct {
	ReadOnly    *bool `yaml:"read_only" doc:"Changes nothing."`
	Destructive *bool `yaml:"destructive" doc:"May destroy or overwrite."`
	Idempotent  *bool `yaml:"idempotent" doc:"A second call with the same args changes nothing more."`
	OpenWorld   *bool `yaml:"open_world" doc:"Reaches beyond a closed set of things."`
	Keyed       *bool `yaml:"keyed" doc:"Takes an idempotency key: two calls with one key have one effect."`
}

// Role is the role of an arg (spec/policy.md, Effects).
type Role tool.Role

func (Role) choices() []string {
	var names []string
	for _, r := range tool.Roles() {
		names = append(names, string(r))
	}
	return names
}

// Always marks a tool every call of which a person must approve.
type Always string

func (Always) choices() []string { return []string{"always"} }

// Approve says which tools need a person's approval.
type Approve string

func (Approve) choices() []string { return []string{"destructive"} }

// A Hook is a program that is told of something.
type Hook struct {
	Command  []string `yaml:"command" doc:"Program and arguments. No shell."`
	Env      []string `yaml:"env" doc:"Its environment: NAME passes a variable on, NAME=value sets it."`
	Deadline Duration `yaml:"deadline" doc:"How long it may take; 10s unless told."`
}

// Limits bound every run. A zero field is the default.
type Limits struct {
	Budget   *int       `yaml:"budget" doc:"Calls of one run: a ceiling on the plan's own budget and on --budget."`
	Deadline Duration   `yaml:"deadline" doc:"Of a whole run; none unless told."`
	Output   Size       `yaml:"output" doc:"Of one call of any tool: a ceiling on max_output."`
	Args     Size       `yaml:"args" doc:"Of the resolved args of one step; 16MiB unless told."`
	Plan     PlanLimits `yaml:"plan" doc:"Bounds of a plan document."`
}

// PlanLimits bound a plan document (spec/plan.md §1).
type PlanLimits struct {
	Bytes Size `yaml:"bytes" doc:"Of text; 4MiB unless told."`
	Steps int  `yaml:"steps" doc:"10000 unless told."`
	Depth int  `yaml:"depth" doc:"Of nesting, args included; 64 unless told."`
}

// A Secret says where a secret's value is.
type Secret struct {
	Env string `yaml:"env" doc:"The environment variable that holds it."`
}

// Journal says how runs are recorded.
type Journal struct {
	File     string   `yaml:"file" doc:"The journal's file; without it one in the user's state directory."`
	Contents Contents `yaml:"contents" doc:"full keeps args and outputs whole, which resume needs; digests keeps only their digests."`
}

// Rehearsal says what must be rehearsed.
type Rehearsal struct {
	Required bool   `yaml:"required" doc:"A plan is run only after a rehearsal of it that counts (see callsheet rehearse)."`
	World    string `yaml:"world" doc:"The worldbook on which it must have been rehearsed; without it any."`
}

// Contents says what a journal keeps of args and outputs.
type Contents string

func (Contents) choices() []string { return []string{"full", "digests"} }

// A Model says which language model is asked.
type Model struct {
	Provider Provider `yaml:"provider" doc:"Who answers."`
	BaseURL  string   `yaml:"base_url" doc:"Address of the provider; its usual one unless told."`
	Model    string   `yaml:"model" doc:"The provider's name of the model."`
	Secret   string   `yaml:"secret" doc:"Name of the secret that holds the key."`
	File     string   `yaml:"file" doc:"The script or the cassette."`
	Forcing  Forcing  `yaml:"forcing" doc:"What an openai server does with tool_choice: name forces one tool (the default), any some tool, none nothing."`
}

// Forcing says what a server does with a tool choice.
type Forcing string

func (Forcing) choices() []string { return []string{"name", "any", "none"} }

// Provider names who answers for a model.
type Provider string

func (Provider) choices() []string { return []string{"openai", "anthropic", "scripted", "cassette"} }

// Find returns the path of the configuration in dir, "" when there is none. It
// does not look in the directories above: what a directory's file allows must
// not depend on where it was unpacked.
func Find(dir string) (string, error) {
	path := filepath.Join(dir, FileName)
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return path, err
}

// Load reads a file. An error about what it says is an [*Error].
func Load(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	return Parse(path, dir, text)
}

// Parse reads the text of a file. Relative paths in it are relative to dir; file
// names it in errors. An error is an [*Error].
func Parse(file, dir string, text []byte) (*Config, error) {
	d := readDocument(file, text)
	c := &Config{doc: d}
	if len(d.faults) == 0 && !d.root.IsNull() {
		d.decode(reflect.ValueOf(c).Elem(), d.root, "")
	}
	if len(d.faults) == 0 {
		c.validate(dir)
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// File is the name of the file that was read.
func (c *Config) File() string { return c.doc.file }

// Position is the line and column of a pointer into the file, or of the nearest
// thing around it, for a reader of [Config.Policy].
func (c *Config) Position(pointer string) (line, column int) {
	at := c.doc.place(pointer)
	return at.line, at.column
}
