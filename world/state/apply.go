package state

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/go-json-experiment/json"
)

// MaxPending bounds the events that wait at once, so that a rule that schedules
// more than fires cannot grow a state without end.
const MaxPending = 100_000

// Apply applies mutations in order, each seeing what the ones before it did
// (spec/world-reference.md §3.5). References in values must be resolved. The
// error names the mutation; s is unchanged in any case.
func (s State) Apply(ms []world.Mutation) (State, error) {
	for _, m := range ms {
		if err := s.apply(m); err != nil {
			return State{}, err
		}
	}
	return s, nil
}

func (s *State) apply(m world.Mutation) error {
	if m.Op == world.Schedule {
		return s.schedule(m)
	}
	p := ParsePath(m.Path)
	current, exists := s.find(p)
	switch m.Op {
	case world.Set, world.Create:
		return s.set(p, node{v: m.Value})
	case world.Delete:
		s.remove(p)
	case world.Increment, world.Decrement:
		if !exists {
			return world.Faultf(world.ValueError, "Cannot %s missing path %s", m.Op, m.Path)
		}
		add := python.Add
		if m.Op == world.Decrement {
			add = python.Sub
		}
		v, err := add(current.value(), m.Value)
		if err != nil {
			return world.Faultf(world.ValueError, "Cannot %s non-numeric path %s: %v", m.Op, m.Path, err)
		}
		return s.set(p, node{v: v})
	case world.Append:
		switch {
		case !exists:
			return s.set(p, node{v: value.ListOf(m.Value)})
		case current.kind() != value.List:
			return world.Faultf(world.ValueError, "Cannot append to non-list path %s", m.Path)
		}
		return s.replace(p, node{l: current.list().push(node{v: m.Value})})
	case world.Merge:
		switch {
		case m.Value.Kind() != value.Object:
			return world.Faultf(world.ValueError, "merge requires an object value at %s", m.Path)
		case !exists:
			return s.set(p, node{v: m.Value})
		case current.kind() != value.Object:
			return world.Faultf(world.ValueError, "Cannot merge into non-object path %s", m.Path)
		}
		o := current.object()
		for k, v := range m.Value.Members() {
			o = o.set(k, node{v: v})
		}
		return s.replace(p, node{o: o})
	case world.Remove:
		if !exists {
			return nil
		}
		if current.kind() != value.Object {
			return world.Faultf(world.ValueError, "Cannot remove keys from non-object path %s", m.Path)
		}
		keys := m.Value
		if keys.Kind() != value.List {
			keys = value.ListOf(keys)
		}
		o := current.object()
		for _, k := range keys.Elements() {
			o = o.remove(python.Str(k))
		}
		return s.replace(p, node{o: o})
	default:
		return world.Faultf(world.ValueError, "unknown op %q", m.Op)
	}
	return nil
}

// root is the namespace in which p lies.
func (s *State) root(p Path) (*node, error) {
	for i, name := range world.Namespaces {
		if p.parts[0] == name {
			return &s.ns[i], nil
		}
	}
	return nil, world.Faultf(world.ValueError, "path %q must start with world, session, surface or epistemic", p.text)
}

func (s *State) set(p Path, val node) error {
	how := writingOther
	if val.kind() == value.Object {
		how = writingObject
	}
	root, err := s.root(p)
	if err != nil {
		return err
	}
	if len(p.parts) == 1 {
		if val.kind() != value.Object {
			return world.Faultf(world.ValueError, "%s must be an object, not %s", p.text, val.kind())
		}
		*root = val
		return nil
	}
	n, err := root.set(p, 1, val, how)
	if err == nil {
		*root = n
	}
	return err
}

// replace puts val where reading found something: a container that grew or
// shrank in place keeps its address, whatever writing it anew would address.
func (s *State) replace(p Path, val node) error {
	root, err := s.root(p)
	if err != nil {
		return err
	}
	if len(p.parts) == 1 {
		*root = val
		return nil
	}
	*root, err = root.replace(p.parts, 1, val)
	return err
}

// vanished is the fault of a place that was found a moment ago; it cannot
// happen while find and replace follow a path alike.
func vanished(parts []string) error {
	return world.Faultf(world.ValueError, "nothing at %s", strings.Join(parts, "."))
}

// replace gives n with val where find would end.
func (n node) replace(parts []string, i int, val node) (node, error) {
	if n.kind() == value.List {
		return n.replaceInList(parts, i, val)
	}
	key, next := n.step(parts, i, reading)
	if next < len(parts) {
		child, ok := n.child(key)
		if !ok {
			return node{}, vanished(parts)
		}
		var err error
		if val, err = child.replace(parts, next, val); err != nil {
			return node{}, err
		}
	}
	return node{o: n.object().set(key, val)}, nil
}

func (n node) replaceInList(parts []string, i int, val node) (node, error) {
	l := n.list()
	index, ok := listIndex(parts[i])
	if !ok || index >= len(l.items) {
		return node{}, vanished(parts)
	}
	if i+1 < len(parts) {
		var err error
		if val, err = l.items[index].replace(parts, i+1, val); err != nil {
			return node{}, err
		}
	}
	items := slices.Clone(l.items)
	items[index] = val
	return node{l: &list{items: items, owner: &owner{used: len(items)}}}, nil
}

func (s *State) remove(p Path) {
	root, err := s.root(p)
	if err != nil || len(p.parts) == 1 {
		if err == nil {
			*root = node{o: &object{}} // a state always has its namespaces
		}
		return
	}
	*root = root.remove(p.parts, 1)
}

// schedule adds an event. Its id says when and as which of the step's events it
// was scheduled, so that ids are a function of the inputs and events of one
// step fire in the order in which they were scheduled.
func (s *State) schedule(m world.Mutation) error {
	if m.DelaySteps == nil {
		return world.Faultf(world.ValueError, "schedule mutation requires delay_steps")
	}
	if len(s.pending) >= MaxPending {
		return world.Faultf(world.ValueError, "more than %d events are pending", MaxPending)
	}
	effects := []world.Mutation{{Op: world.Set, Path: m.Path, Value: m.Value}}
	if nested, ok := m.Value.Get("effects"); ok {
		if nested.Kind() != value.List {
			return world.Faultf(world.ValueError, "scheduled effects must be a list")
		}
		effects = []world.Mutation{}
		if err := nested.Decode(&effects, json.RejectUnknownMembers(true)); err != nil {
			return world.Faultf(world.ValueError, "scheduled effects: %v", err)
		}
	}
	if *m.DelaySteps > math.MaxInt64-s.Step {
		return world.Faultf(world.ValueError, "delay_steps %d is beyond what a step can count", *m.DelaySteps)
	}
	p := Pending{DueStep: s.Step + *m.DelaySteps, Effects: effects}
	for {
		p.ID = fmt.Sprintf("pending_%016x%016x", max(s.now, s.Step), s.planned)
		s.planned++
		if !slices.ContainsFunc(s.pending, func(q Pending) bool { return q.ID == p.ID }) {
			break
		}
	}
	at, _ := slices.BinarySearchFunc(s.pending, p, byDue)
	s.pending = slices.Insert(slices.Clip(slices.Clone(s.pending)), at, p)
	return nil
}

// Advance is the working copy of the next step: the events that are due by then
// have been applied in their order, and the step counts. due are their ids.
func (s State) Advance() (next State, due []string, err error) {
	target := s.Step + 1
	n := 0
	for n < len(s.pending) && s.pending[n].DueStep <= target {
		n++
	}
	fire := s.pending[:n]
	s.now, s.planned = target, 0
	if n > 0 {
		s.pending = s.pending[n:]
	}
	for _, p := range fire {
		if s, err = s.Apply(p.Effects); err != nil {
			return State{}, nil, fmt.Errorf("pending event %s: %w", p.ID, err)
		}
		due = append(due, p.ID)
	}
	s.Step = target
	return s, due, nil
}
