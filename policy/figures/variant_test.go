package figures

import (
	"os"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/value"
)

// A variant is one line of the ablation: a way to judge, from nothing to the
// strictest labels.
type variant struct {
	name      string
	setting   setting
	none      bool // policy.None
	names     bool // rules about names of tools alone
	substring bool // a literal is the user's own if the task holds it anywhere, also inside a word
	compiled  map[*suite]*policy.Policy
}

const (
	perLeafVariant = 4
	textVariant    = 5
)

var variants = []*variant{
	{name: "no policy", none: true},
	{name: "names of tools only", names: true},
	{name: "substring grants", substring: true},
	{name: "labels per output", setting: perOutput},
	{name: "labels per leaf", setting: perLeaf},
	{name: "every text leaf untrusted", setting: textTainted},
}

func customData() bool { return os.Getenv(dirVariable) != "" }

func (v *variant) policy(t testing.TB, s *suite) *policy.Policy {
	t.Helper()
	if v.none {
		return policy.None
	}
	if p := v.compiled[s]; p != nil {
		return p
	}
	var p *policy.Policy
	if v.names {
		doc := &policy.Document{Base: "allow"}
		for _, d := range destructive {
			if s.cat.Get(d) != nil {
				doc.Rules = append(doc.Rules, policy.Rule{ID: d, Effect: policy.Ask, Tools: []string{d}})
			}
		}
		var err error
		if p, err = doc.Compile(s.cat); err != nil {
			t.Fatal(err)
		}
	} else {
		p = s.policy(t, v.setting)
	}
	if v.compiled == nil {
		v.compiled = map[*suite]*policy.Policy{}
	}
	v.compiled[s] = p
	return p
}

func (s *suite) planner(task *userTask) policy.Author {
	return policy.Author{Kind: policy.Planner, Grants: s.granted(task)}
}

func (s *suite) agent(task *userTask) policy.Author {
	return policy.Author{Kind: policy.Agent, Grants: s.granted(task)}
}

// ownArgs are, for substring grants, the leaves that the task holds anywhere.
func (v *variant) ownArgs(s *suite, task *userTask) func(string, value.Value) []policy.Origin {
	if !v.substring {
		return nil
	}
	return func(_ string, args value.Value) []policy.Origin {
		var own []policy.Origin
		leaves(args, "", func(ptr string, leaf value.Value) {
			if text := strings.Trim(leaf.String(), `"`); ptr != "" && strings.Contains(task.Prompt, text) {
				own = append(own, policy.Origin{Pointer: ptr})
			}
		})
		return own
	}
}

// ownStep is ownArgs for the literals of a plan.
func (v *variant) ownStep(s *suite, w written, task *userTask) func(int, value.Value) []policy.Origin {
	own := v.ownArgs(s, task)
	if own == nil {
		return nil
	}
	return func(step int, args value.Value) []policy.Origin {
		var out []policy.Origin
	leaf:
		for _, o := range own("", args) {
			for _, r := range w.plan.Steps[step].Refs {
				if strings.HasPrefix(o.Pointer, r.Pointer) {
					continue leaf
				}
			}
			out = append(out, o)
		}
		return out
	}
}
