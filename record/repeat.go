package record

import (
	"context"
	"fmt"
	"slices"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// CodeRepeatedEffect is why a person is asked about an effect that an earlier
// run had, or may have had.
const CodeRepeatedEffect = "repeated_effect"

// repeats is the gate of a fork. A call that is not safe to repeat asks a person,
// in the other gate's way but whatever that says, when the same call is one of which
// nobody knows what became in a run before; with [Options.AskRepeats] also a call
// with effects of the same tool on the same targets ([tool.Targets.Same]) as one
// that ended ok there. A call whose outcome is taken over is not made, and not
// judged.
type repeats struct {
	inner  call.Gate // nil: allows
	seal   sealer
	asker  call.Asker          // asked where there is no other gate; nil: nobody, and the run pauses
	doubts map[sameCall]string // where its outcome was lost, in words
	done   map[string][]effect // by tool; nil: that is not asked about
}

// sameCall is a call by what is sent. The tool goes by its name: a definition that
// changed does not undo what the old one may have done.
type sameCall struct {
	tool string
	args value.Digest
}

// effect is what a call did to what.
type effect struct {
	targets tool.Targets
	where   string // it happened, in words
}

var _ call.Follower = (*repeats)(nil)

// newRepeats reads what became of the calls of the run h and of those that it was
// forked from.
func newRepeats(ctx context.Context, store *journal.Store, h *History, seal sealer, opt *Options) (*repeats, error) {
	g := &repeats{inner: opt.Run.Gate, asker: opt.Asker, seal: seal, doubts: map[sameCall]string{}}
	if asker, ok := g.inner.(call.Asker); ok {
		g.asker = asker
	}
	if opt.AskRepeats {
		g.done = map[string][]effect{}
	}
	for {
		g.doubt(h)
		if opt.AskRepeats {
			if err := g.add(h); err != nil {
				return nil, err
			}
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

// doubt notes the calls of h that were begun and whose outcome is not known: lost
// in a crash, left by a deadline, or given up by a person.
func (g *repeats) doubt(h *History) {
	open := map[string]value.Digest{}
	args := map[string]value.Digest{}
	for i := range h.Past {
		p := &h.Past[i]
		e := &p.Event
		if p.Begun {
			args[p.Step] = p.Args
		}
		switch {
		case p.Begun, e.Kind == machine.Lost, e.Kind == machine.Answered && e.Failure != nil && e.Failure.Lost,
			e.Kind == machine.Resolved && e.Resolution == machine.GiveUp:
			open[p.Step] = args[p.Step]
		case e.Kind == machine.Answered, e.Kind == machine.Resolved:
			delete(open, p.Step)
		}
	}
	for step, digest := range open {
		at := h.Plan.Index(step)
		if at < 0 || h.repeatable(step) {
			continue
		}
		g.doubts[sameCall{h.Plan.Steps[at].Tool, digest}] = fmt.Sprintf("step %s of run %s", step, h.Summary.ID)
	}
}

// add notes the effects that h had.
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
		g.done[s.Tool] = append(g.done[s.Tool], effect{
			d.Targets(s.Args), fmt.Sprintf("step %s of run %s, which ended %s", s.ID, h.Summary.ID, s.Status),
		})
	}
	return nil
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
		if d, err = g.inner.Judge(ctx, r); err != nil || d.Verdict == machine.Deny {
			return d, err
		}
	}
	why := g.why(r)
	switch {
	case why == "":
	case d.Verdict == machine.Ask: // whoever is asked must know this too
		d.Message += "; " + why
	default:
		d = call.Decision{Verdict: machine.Ask, Code: CodeRepeatedEffect, By: "fork", Message: why}
		if g.asker != nil {
			return g.asker.Ask(ctx, r, d)
		}
	}
	return d, nil
}

// why says what is known against making a call; "" is nothing.
func (g *repeats) why(r call.Request) string {
	if r.Tool.Effects.ReadOnly {
		return ""
	}
	if !r.Tool.Effects.Repeatable() {
		if where, ok := g.doubts[sameCall{r.Tool.Name, g.seal.args(r.Tool, r.Args).Digest()}]; ok {
			return "the same call was made before, and what became of it is not known: " + where
		}
	}
	done := g.done[r.Tool.Name]
	if len(done) == 0 {
		return ""
	}
	targets := r.Tool.Targets(r.Args)
	for _, e := range done {
		if e.targets.Same(targets) {
			return fmt.Sprintf("%s was called on the same targets before: %s", r.Tool.Name, e.where)
		}
	}
	return ""
}
