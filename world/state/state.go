// Package state is the state of an episode being played: four namespaces of
// JSON, the counters, and the events that are due later.
//
//	s, err := state.Parse(value.MustParse(`{"world":{"balance":100.0}}`))
//	t, err := s.Apply([]world.Mutation{{Op: world.Decrement, Path: "world.balance", Value: value.Int(25)}})
//	v, _ := t.Get("world.balance") // 75.0; s still has 100.0
//
// A State is persistent: changing one gives a new one that shares what did not
// change, so a copy is free, a step costs the logarithm of what it touches, and
// the state before a step is still there when the step fails.
package state

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A State is immutable but for the counters, which whoever holds it may set on
// a copy. The zero State is empty.
type State struct {
	Revision int64 // commits so far
	Step     int64 // actions so far

	ns      [4]node   // in the order of world.Namespaces; objects
	pending []Pending // by due step, then id; never changed in place
	now     int64     // the step being made; it may be ahead of Step
	planned int       // events that it has scheduled
}

// A Pending is an event that a step scheduled.
type Pending struct {
	ID           string           `json:"id"`
	DueStep      int64            `json:"due_step"`
	Effects      []world.Mutation `json:"effects"`
	SourceRuleID *string          `json:"source_rule_id"`
}

// Empty is the state of nothing.
func Empty() State {
	var s State
	for i := range s.ns {
		s.ns[i] = node{o: &object{}}
	}
	return s
}

// maxCounter bounds the revision and the step of a state that is read: no episode
// comes near it, and none can run past what an integer holds.
const maxCounter = 1 << 53

// Parse reads a state document. Members that are not part of one are refused.
func Parse(doc value.Value) (State, error) {
	s := Empty()
	if doc.Kind() != value.Object {
		return s, fmt.Errorf("a state must be an object, not %s", doc.Kind())
	}
next:
	for k, m := range doc.Members() {
		for i, name := range world.Namespaces {
			if k == name {
				if m.Kind() != value.Object {
					return s, fmt.Errorf("%s must be an object, not %s", k, m.Kind())
				}
				s.ns[i] = node{v: m}
				continue next
			}
		}
		switch k {
		case "revision", "step":
			n, ok := m.Int()
			if !ok || n < 0 || n > maxCounter {
				return s, fmt.Errorf("%s must be an integer from 0 to %d", k, int64(maxCounter))
			}
			if k == "step" {
				s.Step = n
			} else {
				s.Revision = n
			}
		case "pending_events":
			if err := m.Decode(&s.pending, json.RejectUnknownMembers(true)); err != nil {
				return s, fmt.Errorf("pending_events: %w", err)
			}
			for _, p := range s.pending {
				if p.ID == "" || p.Effects == nil {
					return s, fmt.Errorf("a pending event needs id, due_step and effects")
				}
			}
			slices.SortStableFunc(s.pending, byDue)
		default:
			return s, fmt.Errorf("a state has no member %q", k)
		}
	}
	return s, nil
}

func byDue(a, b Pending) int {
	return cmp.Or(cmp.Compare(a.DueStep, b.DueStep), cmp.Compare(a.ID, b.ID))
}

// AppendTo appends the whole state as compact JSON. Its cost is that of the
// state's size.
func (s State) AppendTo(dst []byte) []byte {
	dst = fmt.Appendf(dst, `{"revision":%d,"step":%d`, s.Revision, s.Step)
	for i, name := range world.Namespaces {
		dst = append(append(append(dst, ',', '"'), name...), `":`...)
		dst = s.ns[i].appendTo(dst)
	}
	dst = append(dst, `,"pending_events":`...)
	text, err := json.Marshal(s.pending)
	if err != nil {
		panic("state: pending events that cannot be written: " + err.Error())
	}
	return append(append(dst, text...), '}')
}

// Value is the whole state as a document.
func (s State) Value() value.Value {
	v, err := value.Parse(s.AppendTo(nil))
	if err != nil {
		panic("state: a state that is not JSON: " + err.Error())
	}
	return v
}

// Namespace is one of the four parts as a value.
func (s State) Namespace(name string) value.Value {
	for i, n := range world.Namespaces {
		if n == name {
			return s.ns[i].value()
		}
	}
	return value.Value{}
}

// MarshalJSONTo writes the whole state.
func (s State) MarshalJSONTo(enc *jsontext.Encoder) error {
	return enc.WriteValue(jsontext.Value(s.AppendTo(nil)))
}

// UnmarshalJSONFrom reads a state document.
func (s *State) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	var v value.Value
	err := v.UnmarshalJSONFrom(dec)
	if err == nil {
		*s, err = Parse(v)
	}
	return err
}

// Pending are the scheduled events in the order in which they fire; the slice
// must not be changed.
func (s State) Pending() []Pending { return s.pending }

// Get returns what is at a path; ok is false when there is nothing. An object
// is built anew, at the cost of its size.
func (s State) Get(path string) (v value.Value, ok bool) { return s.Lookup(ParsePath(path)) }

// Lookup is [State.Get] for a path that was parsed before.
func (s State) Lookup(p Path) (v value.Value, ok bool) {
	n, ok := s.find(p)
	if !ok {
		return value.Value{}, false
	}
	return n.value(), true
}

// Has reports whether there is something at a path.
func (s State) Has(p Path) bool {
	_, ok := s.find(p)
	return ok
}

// Kind is the kind of what is at a path, without building it.
func (s State) Kind(p Path) value.Kind {
	n, ok := s.find(p)
	if !ok {
		return value.Invalid
	}
	return n.kind()
}

// Fits reports whether what is at the path is of the type; ok is false when
// there is nothing.
func (s State) Fits(p Path, t world.Type) (fits, ok bool) {
	n, ok := s.find(p)
	if !ok {
		return false, false
	}
	switch n.kind() {
	case value.Object, value.List:
		return t == world.AnyType || n.kind().String() == string(t), true
	}
	return t.Fits(n.v), true
}

// find walks from the root, whose members are those of the document.
func (s State) find(p Path) (node, bool) {
	if len(p.parts) == 0 {
		return node{}, false
	}
	for i, name := range world.Namespaces {
		if p.parts[0] == name {
			return s.ns[i].find(p.parts, 1)
		}
	}
	var n node
	switch p.parts[0] {
	case "revision":
		n.v = value.Int(s.Revision)
	case "step":
		n.v = value.Int(s.Step)
	case "pending_events":
		v, err := value.Of(s.pending)
		if err != nil {
			panic("state: pending events that cannot be written: " + err.Error())
		}
		n.v = v
	default:
		return node{}, false
	}
	return n.find(p.parts, 1)
}
