package session

import (
	"testing"

	"github.com/callsheet/callsheet/world"
)

func FuzzSubmission(f *testing.F) {
	f.Add([]byte(`{"outcome":"success","effects":[{"op":"schedule","path":"world.x","value":{"effects":[]},"delay_steps":1}],"observation":""}`))
	f.Add([]byte(`{"outcome":"success","effects":[{"op":"set","path":"world[\"a\"]"}],"rule_ids":["r"]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var s Submission
		if world.Decode(text, &s) != nil {
			return
		}
		for _, m := range s.Effects {
			if m.Path == "" || m.Value.IsZero() {
				t.Fatalf("effect %+v", m)
			}
		}
	})
}
