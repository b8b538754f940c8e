// Package command makes tools of programs on this machine: an argv template,
// no shell.
//
//	t, err := command.New(command.Spec{
//		Declaration: tool.Declaration{
//			Name:    "wc",
//			Effects: tool.Effects{ReadOnly: true},
//			Args:    []tool.Arg{{Pattern: "/path", Role: tool.Path}},
//		},
//		Command: command.Words("/usr/bin/wc", "-c", "--", "{path}"),
//		Dir:     "/srv/work",
//	})
//	out, err := t.Handler(ctx, &tool.Call{Args: value.MustParse(`{"path": "notes.txt"}`)})
//
// # What a value can do
//
// The program is fixed when the tool is made: an absolute path, or a name that
// is looked up once in [SearchPath], never in the working directory. A value
// fills one element of argv and no more, whatever it holds. It cannot become an
// option: before a literal "--" a value that starts with a dash is refused
// unless its [Param] allows one. A value inside a longer element, as in
// "--size={n}", must be declared.
//
// # What the program gets
//
// An empty environment but for [Spec.Env], the working directory [Spec.Dir],
// no descriptor but its three (see [SealDescriptors]), and a session of its
// own without a terminal. When it ends, or its deadline comes, what is left of
// its process group is killed. A program that leaves the group by setsid is out
// of reach; on Linux the program itself also dies with the process that started
// it.
//
// # What is not confined
//
// A path argument is resolved inside Spec.Dir before the program starts: no
// "..", no absolute path, no link that leads out. That is a check of the
// argument, not of the program: what the program opens by itself, and a link
// that is swapped after the check, is not confined. Use a program that you
// trust with what its user may do, or put a sandbox into argv.
package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/group"
	"github.com/callsheet/callsheet/value"
)

// ExitRetry is the exit status by which a program says that nothing happened
// and that another try may work: EX_TEMPFAIL of sysexits.h.
const ExitRetry = 75

// KeyVariable is set in the program's environment to the idempotency key of the
// call, when the tool declares that it takes one.
const KeyVariable = "CALLSHEET_IDEMPOTENCY_KEY"

// SearchPath is where a program that is named without a slash is looked for. It
// is fixed, so that no variable and no directory of work can replace a program.
const SearchPath = "/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"

// A Format says how standard output becomes a value.
type Format string

const (
	Text Format = "text" // a string, one newline at the end removed; the zero Format too
	JSON Format = "json" // one strict JSON value
)

// A PathKind says what a path argument must name.
type PathKind string

const (
	PathFile PathKind = "file" // a regular file that exists
	PathDir  PathKind = "dir"  // a directory that exists
	PathNew  PathKind = "new"  // nothing yet, in a directory that exists
)

// A Param declares what a placeholder may hold beyond the rules for all.
type Param struct {
	AllowDash bool     // the value may start with a dash before "--"
	Embed     bool     // the placeholder may stand inside a longer element
	JSON      bool     // the value is written as JSON text, strings with their quotes; lists and objects are allowed
	Path      PathKind // the value names a path below Spec.Dir; [PathFile] when the arg's role is path
}

// A Spec describes a tool that runs a program.
type Spec struct {
	// Declaration is what the tool declares. Without an input schema one is
	// made of the placeholders: every arg that the command uses, scalars only
	// unless its Param says JSON, and no other.
	tool.Declaration
	// Command is the template of argv. {name} stands for the arg of that name,
	// {{ and }} for braces. The first element names the program.
	Command []Part
	// Stdin is the template of standard input, in which a placeholder may stand
	// anywhere. Without one, standard input is empty.
	Stdin string
	// Dir is the working directory, absolute; "" is /, and then no arg can be
	// a path.
	Dir string
	// Env lists the environment: NAME passes on the variable of this process
	// if it is set, NAME=value sets it.
	Env []string
	// Params declares placeholders by name.
	Params map[string]Param
	// Format says how standard output is read.
	Format Format
	// Groups keeps the program while it runs; nil: nobody does.
	Groups *group.List
}

// A SpecError is a fault of a [Spec].
type SpecError struct {
	Pointer string // RFC 6901, by the names of the configuration file: "/command/2"
	Reason  string
}

func (e *SpecError) Error() string { return strings.TrimPrefix(e.Pointer, "/") + ": " + e.Reason }

// program is a compiled Spec.
type program struct {
	Spec
	path  string // of the executable
	argv  []part
	stdin []piece
	param map[string]Param
}

// New compiles spec into a tool. An error is a [*SpecError], on systems that are
// no Unix always.
//
// The tool fails with code "output_too_large" as soon as standard output passes
// MaxOutput, with "invalid_output" when it is not UTF-8 or not the JSON that was
// promised, and with "tool_error" on any exit status but 0; the message holds
// the end of standard error. Exit status [ExitRetry] is a retryable failure. A
// program that is stopped because the context ended, or killed by a signal from
// elsewhere, is a lost call.
func New(spec Spec) (tool.Tool, error) {
	p := &program{Spec: spec}
	if err := p.compile(); err != nil {
		return tool.Tool{}, err
	}
	return tool.Tool{Declaration: p.Declaration, Handler: p.call}, nil
}

func (p *program) compile() error {
	fault := func(pointer, format string, args ...any) error {
		return &SpecError{Pointer: pointer, Reason: fmt.Sprintf(format, args...)}
	}
	if unsupported != "" {
		return fault("", unsupported)
	}
	if len(p.Command) == 0 || len(p.Command[0].Words) != 1 || p.Command[0].Optional {
		return fault("/command", "the first element must be the program")
	}
	var err error
	if p.path, err = lookProgram(p.Command[0].Words[0]); err != nil {
		return fault("/command/0", "%v", err)
	}
	if p.Format == "" {
		p.Format = Text
	}
	if p.Format != Text && p.Format != JSON {
		return fault("/output", "%q is no format; use text or json", p.Format)
	}
	if p.Dir == "" {
		p.Dir = "/"
	} else if !filepath.IsAbs(p.Dir) {
		return fault("/dir", "the path %q is not absolute", p.Dir)
	} else if info, err := os.Stat(p.Dir); err != nil {
		return fault("/dir", "%v", err)
	} else if !info.IsDir() {
		return fault("/dir", "%s is not a directory", p.Dir)
	}
	for i, e := range p.Env {
		name, _, _ := strings.Cut(e, "=")
		if name == "" || strings.ContainsAny(e, "\x00") {
			return fault(fmt.Sprintf("/env/%d", i), "%q is neither NAME nor NAME=value", e)
		}
	}
	if p.MaxOutput == 0 {
		p.MaxOutput = tool.DefaultMaxOutput
	}
	if err := p.compileParams(fault); err != nil {
		return err
	}
	uses, err := p.compileTemplates(fault)
	if err != nil {
		return err
	}
	for name := range p.param {
		if !slices.ContainsFunc(uses, func(u use) bool { return u.name == name }) {
			return fault("/params/"+value.EscapePointer(name), "the command has no placeholder {%s}", name)
		}
	}
	p.Program = p.template()
	return p.compileInput(uses, fault)
}

// template is the digest of everything that decides what is executed for which
// args. Of the environment it has the names only: a secret that was renewed is
// no other program.
func (p *program) template() string {
	argv := make([]value.Value, len(p.Command))
	for i, part := range p.Command {
		words := make([]value.Value, 0, len(part.Words)+1)
		words = append(words, value.BoolValue(part.Optional))
		for _, w := range part.Words {
			words = append(words, value.MustText(w))
		}
		argv[i] = value.ListOf(words...)
	}
	var env []value.Value
	for _, e := range p.Env {
		name, _, _ := strings.Cut(e, "=")
		env = append(env, value.MustText(strings.ToValidUTF8(name, "\uFFFD")))
	}
	var params []value.Member
	for _, name := range slices.Sorted(maps.Keys(p.param)) {
		par := p.param[name]
		params = append(params, value.Member{Key: name, Value: value.ListOf(
			value.BoolValue(par.AllowDash), value.BoolValue(par.Embed), value.BoolValue(par.JSON), value.MustText(string(par.Path)))})
	}
	return value.ObjectOf(
		value.Member{Key: "program", Value: value.MustText(strings.ToValidUTF8(p.path, "\uFFFD"))},
		value.Member{Key: "command", Value: value.ListOf(argv...)},
		value.Member{Key: "stdin", Value: value.MustText(p.Stdin)},
		value.Member{Key: "dir", Value: value.MustText(strings.ToValidUTF8(p.Dir, "\uFFFD"))},
		value.Member{Key: "env", Value: value.ListOf(env...)},
		value.Member{Key: "params", Value: value.ObjectOf(params...)},
		value.Member{Key: "output", Value: value.MustText(string(p.Format))},
	).Digest().String()
}

type faultFunc func(pointer, format string, args ...any) error

// compileParams joins Params and the roles of Args, which both can make an arg
// a path.
func (p *program) compileParams(fault faultFunc) error {
	p.param = make(map[string]Param, len(p.Params))
	for name, par := range p.Params {
		at := "/params/" + value.EscapePointer(name)
		switch par.Path {
		case "":
		case PathFile, PathDir, PathNew:
			if par.JSON {
				return fault(at, "an arg is either a path or JSON")
			}
			if !slices.ContainsFunc(p.Args, func(a tool.Arg) bool { return a.Pattern == "/"+value.EscapePointer(name) }) {
				p.Args = append(slices.Clone(p.Args), tool.Arg{Pattern: "/" + value.EscapePointer(name), Role: tool.Path})
			}
		default:
			return fault(at+"/path", "%q is no kind of path; use file, dir or new", par.Path)
		}
		p.param[name] = par
	}
	for _, a := range p.Args {
		if a.Role != tool.Path {
			continue
		}
		name := value.UnescapePointer(strings.TrimPrefix(a.Pattern, "/"))
		if name == "*" || strings.Count(a.Pattern, "/") != 1 {
			return fault("/args/"+value.EscapePointer(a.Pattern), "a path arg must be named itself, as in /path")
		}
		par := p.param[name]
		if par.Path == "" {
			par.Path = PathFile
			p.param[name] = par
		}
	}
	return nil
}

func (p *program) compileTemplates(fault faultFunc) (uses []use, err error) {
	ended := false // a literal "--" stands before
	for i, element := range p.Command {
		at := fmt.Sprintf("/command/%d", i)
		if len(element.Words) == 0 {
			return nil, fault(at, "an element without words")
		}
		c := part{words: make([]word, len(element.Words)), optional: element.Optional}
		for k, word := range element.Words {
			w, err := parseTemplate(word)
			if err != nil {
				return nil, fault(at, "%v", err)
			}
			if word == "--" && !element.Optional {
				ended = true
			}
			w.ended = ended
			for j, piece := range w.pieces {
				if !piece.hole {
					continue
				}
				if i == 0 {
					return nil, fault(at, "the program must not come from an arg")
				}
				if len(w.pieces) > 1 && !p.param[piece.text].Embed {
					return nil, fault(at, "{%s} stands inside the longer element %q; let it stand alone, or declare it with embed: true", piece.text, word)
				}
				if j == 0 {
					w.dash = ended || p.param[piece.text].AllowDash
				}
				uses = append(uses, use{piece.text, element.Optional})
			}
			c.words[k] = w
		}
		if element.Optional && !c.hasHole() {
			return nil, fault(at, "a group without a placeholder is always there; write its words without brackets")
		}
		p.argv = append(p.argv, c)
	}
	if p.Stdin != "" {
		w, err := parseTemplate(p.Stdin)
		if err != nil {
			return nil, fault("/stdin", "%v", err)
		}
		p.stdin = w.pieces
		for _, piece := range w.pieces {
			if piece.hole {
				uses = append(uses, use{piece.text, false})
			}
		}
	}
	for _, u := range uses {
		if p.param[u.name].Path != "" && p.Spec.Dir == "/" {
			return nil, fault("/dir", "the arg %q is a path; name the directory that it must stay in", u.name)
		}
	}
	return uses, nil
}

// compileInput makes the input schema, or compares the one given with the
// placeholders: an arg that the command drops silently is a mistake.
func (p *program) compileInput(uses []use, fault faultFunc) error {
	if p.Input != nil {
		probe := make([]value.Member, 0, len(uses))
		for _, u := range uses {
			if !slices.ContainsFunc(probe, func(m value.Member) bool { return m.Key == u.name }) {
				probe = append(probe, value.Member{Key: u.name, Value: value.NullValue()})
			}
		}
		if ghosts := p.Input.Undeclared(value.ObjectOf(probe...)); len(ghosts) > 0 {
			return fault("/input", "the command uses {%s}, which the input schema does not declare", ghosts[0])
		}
		props, _ := p.Input.Value().Get("properties")
		for name := range props.Members() {
			if !slices.ContainsFunc(uses, func(u use) bool { return u.name == name }) {
				return fault("/input/properties/"+value.EscapePointer(name), "the command never uses {%s}", name)
			}
		}
		return nil
	}
	var props []value.Member
	var required []value.Value
	for _, u := range uses {
		if !slices.ContainsFunc(props, func(m value.Member) bool { return m.Key == u.name }) {
			props = append(props, value.Member{Key: u.name, Value: p.paramSchema(u.name)})
		}
		name := value.MustText(u.name)
		if !u.optional && !slices.ContainsFunc(required, func(v value.Value) bool { return value.Equal(v, name) }) {
			required = append(required, name)
		}
	}
	doc := value.ObjectOf(
		value.Member{Key: "type", Value: value.MustText("object")},
		value.Member{Key: "properties", Value: value.ObjectOf(props...)},
		value.Member{Key: "required", Value: value.ListOf(required...)},
		value.Member{Key: "additionalProperties", Value: value.BoolValue(false)},
	)
	var err error
	p.Input, err = schema.Compile(doc)
	return err
}

func (p *program) paramSchema(name string) value.Value {
	switch par := p.param[name]; {
	case par.Path != "":
		return value.MustParse(`{"type":"string"}`)
	case par.JSON:
		return value.MustParse(`{}`)
	}
	return value.MustParse(`{"type":["string","number","boolean","null"]}`)
}

// lookProgram finds the executable that name stands for.
func lookProgram(name string) (string, error) {
	if strings.ContainsAny(name, "{}") {
		return "", errors.New("the program must not come from an arg")
	}
	if filepath.IsAbs(name) {
		return name, executable(name)
	}
	if name == "" || strings.Contains(name, "/") {
		return "", fmt.Errorf("%q is neither an absolute path nor the name of a program", name)
	}
	for dir := range strings.SplitSeq(SearchPath, ":") {
		if path := filepath.Join(dir, name); executable(path) == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no program %q in %s; give its absolute path", name, SearchPath)
}

func executable(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is not an executable file", path)
	}
	return nil
}

// call is the handler.
func (p *program) call(ctx context.Context, call *tool.Call) (value.Value, error) {
	argv, err := p.fill(call.Args)
	if err != nil {
		return value.Value{}, err
	}
	stdin, err := p.fillStdin(call.Args)
	if err != nil {
		return value.Value{}, err
	}
	if err := ctx.Err(); err != nil {
		f := tool.AsFailure(err)
		f.Lost, f.NotStarted = false, true
		return value.Value{}, f
	}
	end, err := run(ctx, process{
		groups: p.Groups,
		path:   p.path, argv: argv, env: p.environ(call), dir: p.Dir,
		stdin: stdin, hasStdin: p.stdin != nil, max: p.MaxOutput,
	})
	if err != nil {
		f := tool.Errorf("cannot start %s: %v", p.path, err)
		f.Retryable = errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) // out of processes or memory for a moment
		f.NotStarted = !f.Retryable
		return value.Value{}, f
	}
	return p.outcome(ctx, end)
}

func (p *program) environ(call *tool.Call) []string {
	env := make([]string, 0, len(p.Env)+1) // never nil: nil would inherit everything
	for _, e := range p.Env {
		if strings.Contains(e, "=") {
			env = append(env, e)
		} else if v, ok := os.LookupEnv(e); ok {
			env = append(env, e+"="+v)
		}
	}
	if p.Effects.Keyed {
		if key := call.Key(); key != "" {
			env = append(env, KeyVariable+"="+key)
		}
	}
	return env
}

// outcome judges how the program ended.
func (p *program) outcome(ctx context.Context, end ending) (value.Value, error) {
	base := filepath.Base(p.path)
	switch {
	case end.tooLarge:
		return value.Value{}, &tool.Failure{Code: tool.CodeOutputTooLarge, Message: fmt.Sprintf("%s wrote more than %s; it was stopped and its output dropped", base, count.Of(p.MaxOutput, "byte"))}
	case end.stopped:
		return value.Value{}, fmt.Errorf("%s was stopped before it ended: %w", base, ctx.Err())
	case end.signal != 0:
		return value.Value{}, tool.Lost(tool.Errorf("%s was killed by signal %d (%v)%s", base, int(end.signal), end.signal, end.said()))
	case end.code == ExitRetry:
		return value.Value{}, tool.Retryable(tool.Errorf("%s: exit status %d%s", base, end.code, end.said()))
	case end.code != 0:
		return value.Value{}, tool.Errorf("%s: exit status %d%s", base, end.code, end.said())
	case end.held:
		return value.Value{}, tool.Errorf("%s ended, but a process that it left behind kept its output open", base)
	}
	invalid := func(format string, args ...any) error {
		return &tool.Failure{Code: tool.CodeInvalidOutput, Message: base + ": " + fmt.Sprintf(format, args...)}
	}
	if p.Format == JSON {
		v, err := value.Parse(end.stdout)
		if err != nil {
			return value.Value{}, invalid("the output is not one JSON value: %v", err)
		}
		return v, nil
	}
	if !utf8.Valid(end.stdout) {
		return value.Value{}, invalid("the output is not valid UTF-8")
	}
	v, err := value.Text(strings.TrimSuffix(string(end.stdout), "\n"))
	if err != nil {
		return value.Value{}, invalid("%v", err)
	}
	return v, nil
}
