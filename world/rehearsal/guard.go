package rehearsal

import (
	"context"
	"fmt"
	"sync"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/machine"
)

// CodeDiffers is the code of the question that a real run asks when it does
// something else than its rehearsal did.
const CodeDiffers = "not_as_rehearsed"

// A Guard holds a real run to its rehearsal: a call that was not rehearsed, or
// with other args, is one to ask a person about, and whoever is asked about any
// call is told of the rehearsal (spec/hostile.md 92). It only adds questions to
// those of the gate that it stands before.
type Guard struct {
	receipt *Receipt
	inner   call.Gate // nil: every call is allowed

	mu    sync.Mutex
	begun map[attempt]bool // holding mu: calls that the inner gate counts as made although a person is asked
}

type attempt struct {
	step string
	n    int
}

var _ call.Follower = (*Guard)(nil)

// NewGuard puts a receipt before a gate, which may be nil.
func NewGuard(r *Receipt, inner call.Gate) *Guard {
	return &Guard{receipt: r, inner: inner, begun: map[attempt]bool{}}
}

// Judge implements [call.Gate].
func (g *Guard) Judge(ctx context.Context, r call.Request) (call.Decision, error) {
	d := call.Decision{Verdict: machine.Allow, By: "rehearsal"}
	if g.inner != nil {
		var err error
		if d, err = g.inner.Judge(ctx, r); err != nil {
			return d, err
		}
	}
	differs := g.differs(r)
	switch {
	case d.Verdict == machine.Deny:
	case d.Verdict == machine.Ask:
		if differs != "" {
			d.Message += "; " + differs
		}
		d.Message += "; " + g.receipt.Summary()
	case differs != "" && !d.Person:
		g.mu.Lock()
		g.begun[attempt{r.Step, r.Attempt}] = true
		g.mu.Unlock()
		d.Verdict, d.Code, d.By, d.Message = machine.Ask, CodeDiffers, "rehearsal", differs+"; "+g.receipt.Summary()
	}
	return d, nil
}

// differs says how a call is not the one that was rehearsed, "" when it is. A
// retry has the args of the first attempt.
func (g *Guard) differs(r call.Request) string {
	y := g.receipt.Step(r.Step)
	switch {
	case y == nil || y.Way == "":
		return fmt.Sprintf("step %s was not called in the rehearsal", r.Step)
	case y.Args != argsDigest(r.Tool.Redact(r.Args)):
		return fmt.Sprintf("step %s had other args in the rehearsal", r.Step)
	}
	return ""
}

// Allowed implements [call.Follower].
func (g *Guard) Allowed(r call.Request) {
	g.mu.Lock()
	k := attempt{r.Step, r.Attempt}
	known := g.begun[k]
	delete(g.begun, k)
	g.mu.Unlock()
	if f, ok := g.inner.(call.Follower); ok && !known {
		f.Allowed(r)
	}
}

// Ended implements [call.Follower].
func (g *Guard) Ended(r call.Request, o call.Outcome) {
	if f, ok := g.inner.(call.Follower); ok {
		f.Ended(r, o)
	}
}
