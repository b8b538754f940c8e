// Package tool says what a tool is: what it declares to the model and to the
// checker, how it is called, and how it fails.
//
//	type In struct {
//		City string `json:"city"`
//	}
//	weather, err := tool.Func("weather", "The weather in a city.",
//		func(ctx context.Context, in In) (string, error) { return "sunny in " + in.City, nil },
//		tool.Options{Effects: new(tool.Effects{ReadOnly: true})})
//	set, err := tool.NewSet(weather)
//	set.Catalogue().Get("weather").CheckArgs(value.MustParse(`{"town": "Oslo"}`)) // invalid_args
//
// A [Catalogue] is a frozen set of declarations with a digest; a [Set] adds the
// handlers that do the work. [Func] is the typed door to a tool, a [Tool] with a
// [Handler] of one's own the raw one. What a tool does not declare is assumed to
// be the worst (spec/policy.md, Effects).
package tool

import (
	"context"
	"time"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/value"
)

// Effects say what a call may do to the world. The zero value is not the
// assumption about a tool that declares nothing: that is [Undeclared].
type Effects struct {
	ReadOnly    bool // changes nothing
	Destructive bool // may destroy or overwrite; meaningless when ReadOnly
	Idempotent  bool // a second call with the same args changes nothing more
	OpenWorld   bool // reaches beyond a closed set of things
	Keyed       bool // takes an idempotency key: two calls with one key have one effect
}

// Undeclared are the effects of a tool that declares none: the worst.
func Undeclared() Effects { return Effects{Destructive: true, OpenWorld: true} }

// Annotated are the effects that the annotations of an MCP tool say. What they
// leave out, and what is no boolean, is as MCP says, which is [Undeclared].
func Annotated(annotations value.Value) Effects {
	e := Undeclared()
	for _, hint := range []struct {
		name string
		into *bool
	}{
		{"readOnlyHint", &e.ReadOnly}, {"destructiveHint", &e.Destructive},
		{"idempotentHint", &e.Idempotent}, {"openWorldHint", &e.OpenWorld},
	} {
		m, _ := annotations.Get(hint.name)
		if b, ok := m.Bool(); ok {
			*hint.into = b
		}
	}
	if e.ReadOnly {
		e.Destructive = false
	}
	return e
}

// Repeatable reports whether a call whose answer was lost may be made again.
func (e Effects) Repeatable() bool { return e.ReadOnly || e.Idempotent || e.Keyed }

// Role is what an argument is to a policy (spec/policy.md, Effects).
type Role string

// The roles. What a tool does not declare is a Target.
const (
	Target  Role = "target"  // who or what is acted on
	Host    Role = "host"    // a target that names a network place
	Path    Role = "path"    // a target that names a file
	Program Role = "program" // a target that names what is executed
	Content Role = "content" // payload
	Secret  Role = "secret"  // never recorded or shown
	Neutral Role = "neutral" // neither
)

// Roles are all roles.
func Roles() []Role { return []Role{Target, Host, Path, Program, Content, Secret, Neutral} }

// An Arg gives a role to the args that a pointer pattern matches, and to all that
// is inside them. A pattern is an RFC 6901 pointer in which a token * stands for
// any one name or index.
type Arg struct {
	Pattern string
	Role    Role
}

// Defaults of a declaration (spec/plan.md §8).
const (
	DefaultAttempts  = 2                // a first try and one retry
	DefaultDeadline  = 60 * time.Second // of one call
	DefaultMaxOutput = 16 << 20         // bytes of one output
)

// A Declaration is everything about a tool but its code. It is immutable once
// it is in a [Catalogue].
type Declaration struct {
	Name        string
	Description string
	Input       *schema.Schema // nil: any object
	Output      *schema.Schema // nil: any value
	Effects     Effects
	Args        []Arg    // first match wins; what none matches is a Target
	Allowed     []string // undeclared args that the configuration allows
	Program     string   // digest of what carries the calls out, where a configuration says that: a command's template; "" elsewhere
	Source      string   // where it comes from: "demo", "mcp:files"; not part of the definition

	Attempts  int           // calls at most for one step; 0: DefaultAttempts
	Delay     time.Duration // before a retry, doubled each time; 0: none
	Deadline  time.Duration // of one call; 0: DefaultDeadline
	MaxOutput int           // bytes; 0: DefaultMaxOutput

	frozen *frozen // set when the declaration enters a catalogue
}

// A Call is what a handler is given.
type Call struct {
	Run     string // id of the run, "" outside one
	Step    string // id of the step, or ROUND.N of an agent's call
	Attempt int    // from 1
	Args    value.Value
	// Key returns the idempotency key of the call: the same for every attempt
	// and resume of this step with these args, and for no other. It is never
	// nil; it is a function because most tools do not ask.
	Key func() string
	// Progress reports progress to whoever watches. It may be called from the
	// handler's goroutine until the handler returns; it is never nil.
	Progress func(Progress)
}

// Progress is one notice from a running call.
type Progress struct {
	Done, Total float64 // Total 0: unknown
	Message     string
}

// A Handler does the work of one call. An error that is a [*Failure], or wraps
// one, is taken as it is, and a nil one is no failure; any other error is a
// failure for good with code "tool_error". The context ends at the call's deadline and when the run is
// cancelled. The value returned must not change afterwards; a Value cannot.
type Handler func(ctx context.Context, call *Call) (value.Value, error)

// A Tool is a declaration with its handler.
type Tool struct {
	Declaration
	Handler Handler
}
