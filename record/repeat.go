package record

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// CodeRepeatedEffect is why a person is asked about an effect that an earlier
// run had, or may have had.
const CodeRepeatedEffect = "repeated_effect"

// repeats is the gate of a run that does an earlier one's work anew: a call with
// effects of the same tool on the same targets as one that ended ok or uncertain
// there asks a person, in the other gate's way but whatever it says. A call whose outcome is
// taken over is not made, and not judged.
type repeats struct {
	inner call.Gate         // nil: allows
	done  map[effect]string // where it happened, in words
}

// effect is what a call does to what.
type effect struct{ tool, targets string }

var _ call.Follower = (*repeats)(nil)

// newRepeats reads the effects of the run h and of those that it was forked from.
func newRepeats(ctx context.Context, store *journal.Store, h *History, inner call.Gate) (*repeats, error) {
	g := &repeats{inner: inner, done: map[effect]string{}}
	for {
		if err := g.add(h); err != nil {
			return nil, err
		}
		if h.Forked == "" {
			return g, nil
		}
		var err error
		if h, err = Load(ctx, store, h.Forked); err != nil {
			return nil, fmt.Errorf("what an earlier run did cannot be read: %w", err)
		}
	}
}

func (g *repeats) add(h *History) error {
	c, err := h.Catalogue()
	if err != nil {
		return err
	}
	r, err := h.Report()
	if err != nil {
		return err
	}
	lost := h.Lost()
	for i := range r.Steps {
		s := &r.Steps[i]
		d := c.Get(s.Tool)
		happened := s.Status == machine.OK || s.Status == machine.Uncertain || slices.Contains(lost, s.ID)
		if d == nil || d.Effects.ReadOnly || !happened {
			continue
		}
		g.done[effectOf(d, s.Args)] = fmt.Sprintf("step %s of run %s, which ended %s", s.ID, h.Summary.ID, s.Status)
	}
	return nil
}

// effectOf names a call by its tool and its targets. A call without any has all
// targets in common with every other call of the tool.
func effectOf(d *tool.Declaration, args value.Value) effect {
	var b strings.Builder
	targets(&b, d, args, "")
	return effect{d.Name, b.String()}
}

func targets(b *strings.Builder, d *tool.Declaration, v value.Value, pointer string) {
	switch {
	case v.Kind() == value.Object && v.Len() > 0:
		var keys []string
		for k := range v.Members() {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			m, _ := v.Get(k)
			targets(b, d, m, pointer+"/"+value.EscapePointer(k))
		}
	case v.Kind() == value.List && v.Len() > 0:
		for i, e := range v.Elements() {
			targets(b, d, e, fmt.Sprintf("%s/%d", pointer, i))
		}
	case pointer != "":
		switch d.RoleOf(pointer) {
		case tool.Target, tool.Host, tool.Path, tool.Program:
			fmt.Fprintf(b, "%s=%s\n", pointer, v.Canonical())
		}
	}
}

// Allowed and Ended implement [call.Follower] for the other gate.
func (g *repeats) Allowed(r call.Request) {
	if f, ok := g.inner.(call.Follower); ok {
		f.Allowed(r)
	}
}

// Ended implements [call.Follower].
func (g *repeats) Ended(r call.Request, o call.Outcome) {
	if f, ok := g.inner.(call.Follower); ok {
		f.Ended(r, o)
	}
}

// Judge implements [call.Gate].
func (g *repeats) Judge(ctx context.Context, r call.Request) (call.Decision, error) {
	d := call.Decision{Verdict: machine.Allow}
	if g.inner != nil {
		var err error
		if d, err = g.inner.Judge(ctx, r); err != nil || d.Verdict != machine.Allow {
			return d, err
		}
	}
	if r.Tool.Effects.ReadOnly {
		return d, nil
	}
	where, done := g.done[effectOf(r.Tool, r.Args)]
	if !done {
		return d, nil
	}
	d = call.Decision{
		Verdict: machine.Ask, Code: CodeRepeatedEffect, By: "replan",
		Message: fmt.Sprintf("%s was called on the same targets before: %s", r.Tool.Name, where),
	}
	if asker, ok := g.inner.(call.Asker); ok {
		return asker.Ask(ctx, r, d)
	}
	return d, nil
}
