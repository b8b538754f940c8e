package agent

import (
	"math"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/value"
	"github.com/go-json-experiment/json/jsontext"
)

// Usage is what the model calls of a run cost. nil is a number that no reply
// reported.
type Usage struct {
	PromptTokens     *int
	CompletionTokens *int
	ModelCalls       int
	// Complete says whether every reply reported both numbers and none was
	// negative; otherwise the sums are lower bounds.
	Complete bool
}

// Value is {"prompt_tokens", "completion_tokens", "model_calls", "complete"},
// null for what was not reported.
func (u Usage) Value() value.Value {
	number := func(n *int) value.Value {
		if n == nil {
			return value.NullValue()
		}
		return value.Int(int64(*n))
	}
	return value.ObjectOf(
		value.Member{Key: "prompt_tokens", Value: number(u.PromptTokens)},
		value.Member{Key: "completion_tokens", Value: number(u.CompletionTokens)},
		value.Member{Key: "model_calls", Value: value.Int(int64(u.ModelCalls))},
		value.Member{Key: "complete", Value: value.BoolValue(u.Complete)},
	)
}

// MarshalJSONTo writes [Usage.Value].
func (u Usage) MarshalJSONTo(enc *jsontext.Encoder) error { return u.Value().MarshalJSONTo(enc) }

func (u Usage) total() int { return plus(or(u.PromptTokens, 0), or(u.CompletionTokens, 0)) }

// add sums one reply's usage. It says whether a number was missing or negative;
// a negative one counts as 0.
func (u *Usage) add(r model.Usage, missingIsZero bool) (missing, negative bool) {
	for _, n := range []struct {
		sum      **int
		reported *int
	}{{&u.PromptTokens, r.Prompt}, {&u.CompletionTokens, r.Completion}} {
		reported := n.reported
		if reported == nil {
			missing = true
			if !missingIsZero {
				continue
			}
			reported = new(int)
		}
		negative = negative || *reported < 0
		if *n.sum == nil {
			*n.sum = new(int)
		}
		**n.sum = plus(**n.sum, max(0, *reported))
	}
	if missing || negative {
		u.Complete = false
	}
	return missing, negative
}

// plus saturates.
func plus(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}
