package gate

import (
	"fmt"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/secret"
	"github.com/callsheet/callsheet/value"
)

// A Vault holds named secrets for the door: {"$secret": "name"} in an arg of role
// secret becomes the secret when the tool is called, and what the tool says is
// cleaned of it before anybody else hears.
type Vault struct {
	secrets map[string]string
	redact  *secret.Redactor
}

var _ call.Vault = (*Vault)(nil)

// NewVault makes a vault. A secret too short to be recognised in other text is
// an error: it could not be kept out of the records.
func NewVault(secrets map[string]string) (*Vault, error) {
	r, err := secret.NewRedactor(secrets)
	if err != nil {
		return nil, err
	}
	return &Vault{secrets: secrets, redact: r}, nil
}

// Reveal implements [call.Vault]. Only a plan's own literals are looked at: what
// a tool returned is never a placeholder.
func (v *Vault) Reveal(r call.Request) (value.Value, error) {
	c := policy.Call{Step: r.Step, Tool: r.Tool, Args: r.Args}
	for _, ref := range r.Refs {
		c.Origins = append(c.Origins, policy.Origin{Pointer: ref.Pointer, Step: fmt.Sprint(ref.Step), Path: ref.Path, HasPath: ref.HasPath})
	}
	return policy.Reveal(c, func(name string) (string, bool) {
		s, ok := v.secrets[name]
		return s, ok
	})
}

// Redact implements [call.Vault].
func (v *Vault) Redact(x value.Value) value.Value { return v.redact.Value(x) }

// RedactText implements [call.Vault].
func (v *Vault) RedactText(s string) string { return v.redact.Text(s) }
