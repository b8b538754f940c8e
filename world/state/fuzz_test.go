package state

import (
	"testing"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
)

// Whatever the state and the mutations are, what comes out can be written and
// read again, and goes on the same way.
func FuzzApply(f *testing.F) {
	f.Add([]byte(`{"world":{"a":[{"b":1}]}}`), []byte(`[{"op":"append","path":"world.a.0.c","value":1},{"op":"merge","path":"world.a.0","value":{"x":null}}]`))
	f.Add([]byte(`{"step":3,"pending_events":[{"id":"p","due_step":4,"effects":[{"op":"set","path":"world.x","value":1}]}]}`), []byte(`[{"op":"schedule","path":"world.y","value":1,"delay_steps":0}]`))
	f.Add([]byte(`{"world":{"~/a":{"b":1},"x://y":{}}}`), []byte(`[{"op":"delete","path":"world.~/a.b"},{"op":"set","path":"world.x://y.z.w","value":{}}]`))
	f.Fuzz(func(t *testing.T, doc, effects []byte) {
		v, err := value.Parse(doc)
		if err != nil {
			return
		}
		s, err := Parse(v)
		if err != nil {
			return
		}
		var ms []world.Mutation
		if world.Decode(effects, &ms) != nil {
			return
		}
		before := s.Value().String()
		next, err := s.Apply(ms)
		if s.Value().String() != before {
			t.Fatal("the state before was changed")
		}
		if err != nil {
			return
		}
		again, err := Parse(next.Value())
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, next.Value())
		}
		a, _, errA := next.Advance()
		b, _, errB := again.Advance()
		if (errA == nil) != (errB == nil) || errA == nil && a.Value().String() != b.Value().String() {
			t.Fatalf("%v, %v\n%s\n%s", errA, errB, a.Value(), b.Value())
		}
	})
}
