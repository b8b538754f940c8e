package session

import (
	"context"
	"time"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/engine"
)

// Observe takes in a turn that really happened: an action and what came back
// (spec/world-reference.md §3.13). A rule that applies and renders the very
// text, white space aside, says how the state changed; followed is whether
// there was one. Without it the turn is remembered and the state stays, so that
// it may lag behind the world.
func (s *Session) Observe(ctx context.Context, a world.Action, observation string) (followed bool, err error) {
	if a.Arguments.IsZero() {
		a.Arguments = world.NoArguments()
	}
	tx, err := s.begin(ctx)
	if err != nil {
		return false, err
	}
	route := Tracked
	audit := &Audit{PriorRevision: s.State().Revision, Request: Request{Action: a, Metadata: value.ObjectOf()}, Route: &route,
		Timestamp: s.o.Now().UTC().Format(time.RFC3339Nano), Observation: &observation}
	working, _, err := s.State().Advance()
	if err != nil {
		return false, tx.fail(audit, err)
	}
	e := s.book.Engine
	if c, err := e.Canonical(a); err == nil { // what does not fit its declaration was observed all the same
		a = c
	}
	plan := engine.Plan{Action: a, Outcome: world.Unknown, Observation: &observation}
	after := working
	if p, next, ok := e.Follow(s.State(), working, a, observation); ok {
		plan, after, followed = p, next, true
	}
	audit.Plan = &plan
	if err := tx.write(audit, &plan, observation, "observed", after); err != nil {
		return false, err
	}
	return followed, nil
}
