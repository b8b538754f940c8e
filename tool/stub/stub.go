// Package stub answers in place of tools, so that users can try their plans.
//
//	answers, err := stub.Read([]byte(`{
//		"s1": ["a.txt", "b.txt"],
//		"s2": {"$error": "the disk is full", "retryable": true},
//		"s3": {"$output": {"$error": "this object is an output"}}
//	}`))
//	set, err := answers.Replace(catalogue)
//
// A file maps step ids to outputs. An object with "$error" is a failure, one
// with "$output" quotes any value; both only as the whole answer of a step. A
// step that the file lacks fails with code "no_stub".
package stub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// Answers are what a stub file says, by step id. They are immutable.
type Answers struct {
	byStep map[string]answer
	ids    []string // as in the file
}

type answer struct {
	output  value.Value
	failure *tool.Failure
}

// Read reads a stub file strictly. A fault of the text is a [*value.SyntaxError]
// with its line; of the others all are told, joined, each a
// [*tool.FileError].
func Read(text []byte) (*Answers, error) {
	doc, err := value.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("stub file: %w", err)
	}
	if doc.Kind() != value.Object {
		return nil, fmt.Errorf("stub file: %w", &tool.FileError{Message: "the file is a JSON " + doc.Kind().String() + `; write an object from step ids to outputs`})
	}
	a := &Answers{byStep: make(map[string]answer, doc.Len())}
	var faults []error
	for id, v := range doc.Members() {
		one, faulty := read(v)
		for _, f := range faulty {
			if f.Pointer = "/" + value.EscapePointer(id) + f.Pointer; len(faults) < tool.MaxFileErrors {
				faults = append(faults, f)
			}
		}
		a.byStep[id] = one
		a.ids = append(a.ids, id)
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("stub file: %w", errors.Join(faults...))
	}
	return a, nil
}

// read reads one answer.
func read(v value.Value) (answer, []*tool.FileError) {
	quoted, isQuoted := v.Get("$output")
	text, isFailure := v.Get("$error")
	if !isQuoted && !isFailure {
		return answer{output: v}, nil
	}
	var faults []*tool.FileError
	fault := func(pointer, message string) {
		faults = append(faults, &tool.FileError{Pointer: pointer, Message: message})
	}
	if isQuoted {
		if v.Len() > 1 {
			fault("", `an object with "$output" has nothing else; to answer with such an object, quote it: {"$output": {…}}`)
		}
		return answer{output: quoted}, faults
	}
	f := &tool.Failure{Code: tool.CodeToolError}
	var ok bool
	if f.Message, ok = text.Text(); !ok {
		fault("/$error", "is "+text.Kind().String()+", it must be a string")
	}
	for k, m := range v.Members() {
		switch k {
		case "$error":
		case "retryable":
			if f.Retryable, ok = m.Bool(); !ok {
				fault("/retryable", "is "+m.Kind().String()+", it must be true or false")
			}
		default:
			fault("/"+value.EscapePointer(k), `beside "$error" there is only "retryable"; to answer with such an object, quote it: {"$output": {…}}`)
		}
	}
	return answer{failure: tool.AsFailure(f)}, faults
}

// Steps lists the ids that the file answers for, in its order.
func (a *Answers) Steps() []string { return slices.Clone(a.ids) }

// Handler answers a call by its step, whatever the tool and the args.
func (a *Answers) Handler() tool.Handler {
	return func(_ context.Context, call *tool.Call) (value.Value, error) {
		found, ok := a.byStep[call.Step]
		switch {
		case !ok:
			return value.Value{}, &tool.Failure{Code: tool.CodeNoStub, Message: a.missing(call.Step)}
		case found.failure != nil:
			f := *found.failure
			return value.Value{}, &f
		}
		return found.output, nil
	}
}

func (a *Answers) missing(step string) string {
	says := "the stub file has no answer for step " + strconv.Quote(step)
	if near := tool.Nearest(step, a.ids, 3); len(near) > 0 {
		for i := range near {
			near[i] = strconv.Quote(near[i])
		}
		says += "; near to it are " + strings.Join(near, ", ")
	}
	return says
}

// Replace gives every tool of a catalogue the stub's handler. Names and schemas
// stay; effects do not, because nothing is done: the tools are read-only and
// their args neutral, save those that are secret (spec/policy.md).
func (a *Answers) Replace(c *tool.Catalogue) (*tool.Set, error) {
	tools := make([]tool.Tool, len(c.All()))
	for i, d := range c.All() {
		tools[i] = a.tool(*d)
	}
	return tool.NewSet(tools...)
}

// Tools are stubs for these names, without schemas: the catalogue of a plan that
// has none. A name that stands twice counts once.
func (a *Answers) Tools(names []string) (*tool.Set, error) {
	var tools []tool.Tool
	seen := make(map[string]bool, len(names))
	for _, name := range names {
		if !seen[name] {
			seen[name] = true
			tools = append(tools, a.tool(tool.Declaration{Name: name, Source: "stub"}))
		}
	}
	return tool.NewSet(tools...)
}

func (a *Answers) tool(d tool.Declaration) tool.Tool {
	d.Effects = tool.Effects{ReadOnly: true, Idempotent: true}
	var args []tool.Arg
	for _, arg := range d.Args {
		if arg.Role == tool.Secret {
			args = append(args, arg)
		}
	}
	d.Args = append(args, tool.Arg{Pattern: "/*", Role: tool.Neutral})
	return tool.Tool{Declaration: d, Handler: a.Handler()}
}
