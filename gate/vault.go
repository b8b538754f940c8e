package gate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/secret"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// A Vault holds named secrets for the door: {"$secret": "name"} in an arg of role
// secret becomes the secret when the tool is called, and what the tool says is
// cleaned of it before anybody else hears.
type Vault struct {
	secrets map[string]string
	unset   []string // names that have no value here
	redact  *secret.Redactor
}

var _ call.Vault = (*Vault)(nil)

// NewVault makes a vault. A secret too short to be recognised in other text is
// an error: it could not be kept out of the records. unset are the names of
// secrets that have no value here, which is worth saying when one is asked for.
func NewVault(secrets map[string]string, unset ...string) (*Vault, error) {
	r, err := secret.NewRedactor(secrets)
	if err != nil {
		return nil, err
	}
	return &Vault{secrets: secrets, unset: unset, redact: r}, nil
}

// Reveal implements [call.Vault]. Only a plan's own literals are looked at: what
// a tool returned is never a placeholder.
func (v *Vault) Reveal(r call.Request) (value.Value, error) {
	c := policy.Call{Step: r.Step, Tool: r.Tool, Args: r.Args}
	for _, ref := range r.Refs {
		c.Origins = append(c.Origins, policy.Origin{Pointer: ref.Pointer, Step: fmt.Sprint(ref.Step), Path: ref.Path, HasPath: ref.HasPath})
	}
	args, err := policy.Reveal(c, func(name string) (string, bool) {
		s, ok := v.secrets[name]
		return s, ok
	})
	if err != nil || !r.Tool.HasSecrets() {
		return args, err
	}
	// Before this only the name of the secret could be held against the schema,
	// and what a tool returned may have looked like one.
	if faults := r.Tool.Input.Validate(args); len(faults) > 0 {
		return value.Value{}, fmt.Errorf("the args with their secrets do not fit %s: %s", r.Tool.Name, v.RedactText(faults[0].String()))
	}
	return args, nil
}

// Codes of what is known of placeholders before anything runs.
const (
	CodeUnknownSecret   = "unknown_secret" // there is no secret of that name, or no value for it
	CodeSecretMisplaced = call.CodeSecret  // a placeholder outside an arg of role secret
	CodeSecretLiteral   = "secret_literal" // a secret itself, in plain or encoded
)

// Findings are the placeholders of a plan that cannot be filled, and secrets
// written out in it: a plan with one is not started.
func (v *Vault) Findings(p *plan.Plan, c *tool.Catalogue) []check.Diagnostic {
	var ds []check.Diagnostic
	for i := range p.Steps {
		s := &p.Steps[i]
		if !value.Same(v.redact.Value(s.Args), s.Args) {
			ds = append(ds, check.Diagnostic{
				Code: CodeSecretLiteral, Severity: check.Error, Step: s.ID, Pointer: p.Pointer(i) + "/args",
				Message: `a secret stands in the args, which are recorded and shown; write {"$secret": NAME}`,
			})
		}
		d := c.Get(s.Tool)
		if d == nil {
			continue
		}
		for _, h := range policy.Placeholders(policy.Call{Step: s.ID, Tool: d, Args: s.Args, Origins: policy.Origins(p, i)}) {
			f := check.Diagnostic{Severity: check.Error, Step: s.ID, Pointer: p.Pointer(i) + "/args" + h.Pointer}
			_, known := v.secrets[h.Name]
			switch {
			case h.Role != tool.Secret:
				f.Code = CodeSecretMisplaced
				f.Message = fmt.Sprintf("%s of %s is not an arg of kind secret, so the secret %q cannot stand there", h.Pointer, d.Name, h.Name)
			case slices.Contains(v.unset, h.Name):
				f.Code = CodeUnknownSecret
				f.Message = fmt.Sprintf("the secret %q has no value: its environment variable is not set", h.Name)
			case !known:
				f.Code = CodeUnknownSecret
				f.Message = fmt.Sprintf("there is no secret %q; %s", h.Name, v.known())
			default:
				continue
			}
			ds = append(ds, f)
		}
	}
	return ds
}

// known says which secrets there are, by name.
func (v *Vault) known() string {
	if len(v.secrets) == 0 {
		return "the configuration has no secrets"
	}
	return "there are " + strings.Join(slices.Sorted(maps.Keys(v.secrets)), ", ")
}

// Redact implements [call.Vault].
func (v *Vault) Redact(x value.Value) value.Value { return v.redact.Value(x) }

// RedactText implements [call.Vault].
func (v *Vault) RedactText(s string) string { return v.redact.Text(s) }

// Longest is the number of bytes of the longest text that is redacted, as an
// agent's Redactor has it; 0 without secrets.
func (v *Vault) Longest() int { return v.redact.Longest() }
