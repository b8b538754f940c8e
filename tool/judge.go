package tool

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/value"
)

// CheckArgs judges resolved args against the declaration: the input schema, and
// names that it does not declare (spec/plan.md §3). nil means that they fit.
// The failure has code "invalid_args" and names every fault and its path. The
// name of a secret counts as a text of which nothing else is known.
func (d *Declaration) CheckArgs(args value.Value) *Failure {
	if d.Input == nil {
		return nil
	}
	shown, holes := d.SecretHoles(args)
	faults := d.Input.Validate(args)
	if holes != nil {
		faults = d.Input.FitsWithHoles(shown, holes)
	}
	undeclared := d.Undeclared(args)
	if len(faults) == 0 && len(undeclared) == 0 {
		return nil
	}
	var said []string
	for _, name := range undeclared[:min(len(undeclared), maxUndeclared)] {
		said = append(said, d.undeclared(name))
	}
	if more := len(undeclared) - maxUndeclared; more > 0 {
		said = append(said, fmt.Sprintf("and %d more that it does not declare", more))
	}
	return judged(CodeInvalidArgs, said, faults)
}

// maxUndeclared is how many undeclared args are told, each with what may have
// been meant: that is looked for among all that the tool declares.
const maxUndeclared = 10

// Undeclared lists the args that neither the input schema nor the configuration
// allows (spec/plan.md §3), in their order.
func (d *Declaration) Undeclared(args value.Value) []string {
	names := d.Input.Undeclared(args)
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(d.Allowed, name) })
}

// undeclared says what is wrong with a name and what may have been meant.
func (d *Declaration) undeclared(name string) string {
	declared := d.Input.Names()
	says := fmt.Sprintf("/%s: the tool declares no arg %s", value.Excerpt(value.EscapePointer(name)), value.Quoted(name))
	if near := Nearest(name, declared, 1); len(near) > 0 {
		return says + "; did you mean " + value.Quoted(near[0]) + "?"
	}
	for i := range declared {
		declared[i] = value.Quoted(declared[i])
	}
	if len(declared) > maxNames {
		declared = append(declared[:maxNames], "…")
	}
	return says + "; it has " + strings.Join(declared, ", ")
}

// MisnamedArg says what is wrong with a pattern (see [Arg]) that no arg which the
// tool declares or is allowed can match, and what there is; "" if one can. What a
// mistyped pattern was meant for would otherwise stay what it is in silence.
func (d *Declaration) MisnamedArg(pattern string) string {
	first, _ := cutToken(pattern)
	if slices.Contains(d.Allowed, value.UnescapePointer(first)) {
		return ""
	}
	return misnamed(d.Input, pattern, fmt.Sprintf("tool %q has no arg", d.Name))
}

// MisnamedOutput is [Declaration.MisnamedArg] for a pattern of what the tool
// returns.
func (d *Declaration) MisnamedOutput(pattern string) string {
	return misnamed(d.Output, pattern, fmt.Sprintf("tool %q returns no", d.Name))
}

// maxNames is how many names a message lists: more are not read.
const maxNames = 20

func misnamed(s *schema.Schema, pattern, says string) string {
	if pattern == "" {
		return ""
	}
	tokens := strings.Split(strings.TrimPrefix(pattern, "/"), "/")
	reached, names := s.Reach(tokens)
	if reached == len(tokens) {
		return ""
	}
	at := ""
	if reached > 0 {
		at = "/" + strings.Join(tokens[:reached], "/")
	}
	says += " " + value.Excerpt(pattern)
	if len(names) == 0 {
		return says + "; there is nothing inside " + value.Excerpt(cmp.Or(at, "it"))
	}
	near := Nearest(value.UnescapePointer(tokens[reached]), names, 1)
	listed := names[:min(len(names), maxNames)]
	pointers := make([]string, len(listed))
	for i, name := range listed {
		pointers[i] = value.Excerpt(at + "/" + value.EscapePointer(name))
	}
	if len(names) > maxNames {
		pointers = append(pointers, "…")
	}
	says += "; there is " + strings.Join(pointers, ", ")
	if len(near) > 0 {
		says += "; did you mean " + value.Excerpt(at+"/"+value.EscapePointer(near[0])) + "?"
	}
	return says
}

// CheckOutput judges an output: its size, then the output schema. nil means
// that it is accepted. The failure has code "output_too_large" or
// "invalid_output".
func (d *Declaration) CheckOutput(out value.Value) *Failure {
	if out.IsZero() {
		return &Failure{Code: CodeInvalidOutput, Message: "the tool returned no value"}
	}
	most := d.MaxOutput
	if most <= 0 {
		most = DefaultMaxOutput
	}
	if out.Size() > most {
		return &Failure{Code: CodeOutputTooLarge, Message: fmt.Sprintf("the output has %s; the limit is %d", count.Of(out.Size(), "byte"), most)}
	}
	if faults := d.Output.Validate(out); len(faults) > 0 {
		return judged(CodeInvalidOutput, nil, faults)
	}
	return nil
}

func judged(code string, said []string, faults []schema.Fault) *Failure {
	for _, f := range faults {
		said = append(said, f.String())
	}
	return AsFailure(&Failure{Code: code, Message: strings.Join(said, "; ")}) // clips
}

// MaxAttempts is how many calls one step may need: the worst case.
func (d *Declaration) MaxAttempts() int {
	if d.Attempts > 0 {
		return d.Attempts
	}
	return DefaultAttempts
}
