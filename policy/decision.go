package policy

import (
	"fmt"
	"strings"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// An Effect is the answer to a call. The order is that of precedence: deny wins
// over ask, ask over allow.
type Effect uint8

// The effects.
const (
	Allow Effect = iota
	Ask          // a person decides, bound to the exact call
	Deny
)

// String is the effect as policies spell it.
func (e Effect) String() string {
	switch e {
	case Allow:
		return "allow"
	case Ask:
		return "ask"
	}
	return "deny"
}

func parseEffect(s string) (Effect, bool) {
	for _, e := range []Effect{Allow, Ask, Deny} {
		if s == e.String() {
			return e, true
		}
	}
	return Deny, false
}

// Codes of decisions that do not allow.
const (
	CodeNeedsApproval   = "needs_approval"     // a target is untrusted, the tool is destructive, or a rule asks
	CodeWorseThanCheck  = "worse_than_checked" // a real value is worse than the check could know
	CodeMissingFact     = "missing_fact"       // a rule needs a call that the history does not have
	CodeDenied          = "denied"             // a rule denies
	CodeUntrustedPlace  = "untrusted_place"    // an untrusted host, path or program
	CodeSecretMisplaced = "secret_misplaced"   // a secret in an arg that is not of kind secret
	CodeRuleFailed      = "rule_failed"        // a rule could not be evaluated, which refuses
)

// A Decision is the answer to one call, with what it rests on.
type Decision struct {
	Effect  Effect
	Code    string // "" when it allows
	Message string // one sentence, without values; "" when it allows

	Rules  []string     // ids of the rules that spoke, in the order of the policy; built-in ones start with "default."
	Facts  []Fact       // labels that were looked at and are not the user's own
	Policy value.Digest // of the policy that judged
	// Group is equal for asks of one tool with the same targets, which a person may
	// be shown as one with a count; zero for any other effect, and in a check: what
	// was known before the run stands for no value.
	Group value.Digest
}

// A Fact is what a decision knows of one part of the args.
type Fact struct {
	Pointer string // RFC 6901, into args
	Role    tool.Role
	Label   Label
	Value   value.Value // what stands there; none when it is secret or not known before the run
	// Accepted names the closed list that made an untrusted value usable, "" if
	// none did.
	Accepted string
}

// Refused is d with an ask turned into a denial: the answer under --on-ask
// refuse, and to an agent's call there (code "needs_approval").
func (d Decision) Refused() Decision {
	if d.Effect == Ask {
		d.Effect, d.Code = Deny, CodeNeedsApproval
	}
	return d
}

// Value is what the decision rests on as JSON, for a record: policy, rules, and
// the facts without their values, which the record of the call has.
func (d Decision) Value() value.Value {
	text := func(s string) value.Value { return value.MustText(strings.ToValidUTF8(s, "\uFFFD")) }
	rules := make([]value.Value, len(d.Rules))
	for i, r := range d.Rules {
		rules[i] = text(r)
	}
	facts := make([]value.Value, len(d.Facts))
	for i, f := range d.Facts {
		m := []value.Member{
			{Key: "pointer", Value: text(f.Pointer)},
			{Key: "role", Value: text(string(f.Role))},
			{Key: "integrity", Value: text(f.Label.Integrity.String())},
		}
		if f.Label.Secret {
			m = append(m, value.Member{Key: "secret", Value: value.BoolValue(true)})
		}
		sources := make([]value.Value, len(f.Label.Sources))
		for k, s := range f.Label.Sources {
			sources[k] = text(s.Step)
		}
		if len(sources) > 0 {
			m = append(m, value.Member{Key: "sources", Value: value.ListOf(sources...)})
		}
		if f.Accepted != "" {
			m = append(m, value.Member{Key: "accepted", Value: text(f.Accepted)})
		}
		facts[i] = value.ObjectOf(m...)
	}
	return value.ObjectOf(
		value.Member{Key: "policy", Value: text(d.Policy.String())},
		value.Member{Key: "rules", Value: value.ListOf(rules...)},
		value.Member{Key: "facts", Value: value.ListOf(facts...)},
	)
}

// verdict gathers a decision: the worst effect wins, and of equals the first
// gives code and message.
type verdict struct{ Decision }

func (v *verdict) add(e Effect, code, rule, format string, args ...any) {
	v.Rules = append(v.Rules, rule)
	if e <= v.Effect {
		return
	}
	v.Effect, v.Code = e, code
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	v.Message = format
}
