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
		if d == nil || !hasSecrets(d) {
			continue
		}
		refs := map[string]plan.Ref{}
		for _, r := range step.Refs {
			refs[r.Pointer] = r
		}
		var literal string
		eachSecret(d, step.Args, "", func(pointer string, v value.Value) value.Value {
			// References anywhere below a secret pointer feed the secret;
			// anything else there is a literal.
			for at, r := range refs {
				if (at == pointer || strings.HasPrefix(at, pointer+"/")) && r.Step >= 0 {
					s.feeds[p.Steps[r.Step].ID] = true
				}
			}
			if _, isRef := refs[pointer]; !isRef && !named(v) && literal == "" {
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

// named reports whether v is the placeholder {"$secret": name}: not a secret,
// but the name of one.
func named(v value.Value) bool {
	if v.Kind() != value.Object || v.Len() != 1 {
		return false
	}
	_, ok := v.Get("$secret")
	return ok
}

func hasSecrets(d *tool.Declaration) bool {
	for _, a := range d.Args {
		if a.Role == tool.Secret {
			return true
		}
	}
	return false
}

// eachSecret replaces every part of args whose role is secret.
func eachSecret(d *tool.Declaration, v value.Value, pointer string, replace func(pointer string, v value.Value) value.Value) value.Value {
	if pointer != "" && d.RoleOf(pointer) == tool.Secret {
		return replace(pointer, v)
	}
	switch v.Kind() {
	case value.Object:
		ms := make([]value.Member, 0, v.Len())
		same := true
		for k, m := range v.Members() {
			n := eachSecret(d, m, pointer+"/"+value.EscapePointer(k), replace)
			same = same && value.Same(n, m)
			ms = append(ms, value.Member{Key: k, Value: n})
		}
		if !same {
			return value.ObjectOf(ms...)
		}
	case value.List:
		vs := make([]value.Value, 0, v.Len())
		same := true
		for i, e := range v.Elements() {
			n := eachSecret(d, e, fmt.Sprintf("%s/%d", pointer, i), replace)
			same = same && value.Same(n, e)
			vs = append(vs, n)
		}
		if !same {
			return value.ListOf(vs...)
		}
	}
	return v
}

// args are args as a record may hold them.
func (s *sealer) args(d *tool.Declaration, args value.Value) value.Value {
	if !hasSecrets(d) {
		return args
	}
	return eachSecret(d, args, "", func(_ string, v value.Value) value.Value {
		if named(v) {
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
