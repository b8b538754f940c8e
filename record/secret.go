package record

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// sealer keeps secrets out of records: a salted HMAC stands for what an arg of
// role secret held, and an output that feeds such an arg is withheld.
type sealer struct {
	store *journal.Store
	feeds map[string]bool // steps whose output goes into a secret arg
}

// newSealer finds out which outputs must not be stored, and refuses a plan with
// a literal in a secret arg.
func newSealer(store *journal.Store, p *plan.Plan, c *tool.Catalogue) (sealer, error) {
	s := sealer{store: store, feeds: map[string]bool{}}
	for i := range p.Steps {
		step := &p.Steps[i]
		d := c.Get(step.Tool)
		if d == nil || !d.HasSecrets() {
			continue
		}
		refs := map[string]plan.Ref{}
		for _, r := range step.Refs {
			refs[r.Pointer] = r
		}
		var literal string
		d.MapSecrets(step.Args, func(pointer string, v value.Value) value.Value {
			// References anywhere below a secret pointer feed the secret;
			// anything else there is a literal.
			for at, r := range refs {
				if (at == pointer || strings.HasPrefix(at, pointer+"/")) && r.Step >= 0 {
					s.feeds[p.Steps[r.Step].ID] = true
				}
			}
			if _, isRef := refs[pointer]; !isRef && !tool.IsSecretName(v) && literal == "" {
				literal = pointer
			}
			return v
		})
		if literal != "" {
			return s, fmt.Errorf("step %q: %s: %w", step.ID, literal, ErrSecretLiteral)
		}
	}
	return s, nil
}

// args are args as a record may hold them.
func (s *sealer) args(d *tool.Declaration, args value.Value) value.Value {
	return d.MapSecrets(args, func(_ string, v value.Value) value.Value {
		if tool.IsSecretName(v) {
			return v
		}
		mac := s.store.HMAC("secret arg", []byte(v.Canonical()))
		return value.ObjectOf(value.Member{Key: "$hmac", Value: value.MustText(hex.EncodeToString(mac[:]))})
	})
}

// digest is the digest of args as a record may hold them.
func (s *sealer) digest(d *tool.Declaration, args value.Value) value.Value {
	return text(s.args(d, args).Digest().String())
}

func (s *sealer) feedsSecret(step string) bool { return s.feeds[step] }
