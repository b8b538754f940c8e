package rehearsal

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// PerformOptions say how a plan is performed on a stage. The zero value performs
// it without a gate and without a record.
type PerformOptions struct {
	// Store keeps the rehearsal and its receipt; nil: nobody does.
	Store *journal.Store
	// Record are the options of the run, as those of the real one. What
	// Record.Run.Gate would ask is listed in the receipt and taken as approved;
	// what it denies is denied. Record.Policy is the digest of what it decides by.
	// The calls are made one at a time, because what is recorded of a state is
	// found by the calls that led there.
	Record record.Options
	// AllowAgent lets the receipt count although the agent answered.
	AllowAgent bool
	// Dir is where the session is kept; "": it is removed afterwards.
	Dir string
}

// Perform runs a plan on the stage: the machine and the schemas are those of the
// real run, and a tool's handler is the stage's answer. The catalogue has no
// handlers, and nothing else is handed over that could have any, so there is
// nothing live to call (spec/hostile.md 91).
//
// The error is the harness's own; the report comes with it as far as there is
// one.
func (s *Stage) Perform(ctx context.Context, p *plan.Plan, c *tool.Catalogue, o PerformOptions) (*machine.Report, *Receipt, error) {
	dir := o.Dir
	if dir == "" {
		var err error
		if dir, err = os.MkdirTemp("", "callsheet-rehearsal-"); err != nil {
			return nil, nil, err
		}
		defer os.RemoveAll(dir)
	}
	episode, err := s.Begin(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	defer episode.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	play := &play{run: episode, cancel: cancel, answers: map[string]Provenance{}}
	tools, err := play.tools(c)
	if err != nil {
		return nil, nil, err
	}
	gate := &stageGate{inner: o.Record.Run.Gate, asked: map[string]string{}}
	opt := o.Record
	opt.Run.Gate, opt.Run.Workers, opt.Run.Eager, opt.Run.Limits = gate, 1, false, nil
	var receipt *Receipt
	settle := func(r *machine.Report) value.Value {
		receipt = s.receipt(p, c, o, r, play.answers, gate.asked)
		return receipt.Value()
	}
	opt.Receipt = settle
	var report *machine.Report
	if o.Store != nil {
		report, err = record.Run(ctx, o.Store, p, tools, opt)
	} else {
		report, err = run.Do(ctx, p, tools, opt.Run)
	}
	if report != nil && receipt == nil {
		settle(report)
	}
	if receipt != nil {
		receipt.Run = report.Run
	}
	return report, receipt, errors.Join(err, play.failed)
}

// play is one performance: which answer each step had.
type play struct {
	run    *Run
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	answers map[string]Provenance // holding mu: by step, of its last call
	failed  error                 // holding mu: the harness's own failure
}

// tools are the declared tools, with the stage in the place of what does the
// work.
func (y *play) tools(c *tool.Catalogue) (*tool.Set, error) {
	var tools []tool.Tool
	for _, d := range c.All() {
		tools = append(tools, tool.Tool{Declaration: *d, Handler: func(ctx context.Context, call *tool.Call) (value.Value, error) {
			return y.answer(ctx, d.Name, call)
		}})
	}
	return tool.NewSet(tools...)
}

func (y *play) answer(ctx context.Context, name string, call *tool.Call) (value.Value, error) {
	a, err := y.run.Answer(ctx, name, call.Args)
	y.mu.Lock()
	defer y.mu.Unlock()
	if err != nil {
		y.failed = errors.Join(y.failed, err)
		y.cancel(err)
		return value.Value{}, err
	}
	y.answers[call.Step] = a.Provenance
	if a.Failure != nil {
		return value.Value{}, a.Failure
	}
	return a.Output, nil
}

// stageGate asks the gate of the real run, and takes its questions as answered.
type stageGate struct {
	inner call.Gate

	mu    sync.Mutex
	asked map[string]string // holding mu: why, by step
}

var _ call.Follower = (*stageGate)(nil)

// Judge implements [call.Gate].
func (g *stageGate) Judge(ctx context.Context, r call.Request) (call.Decision, error) {
	if g.inner == nil {
		return call.Decision{Verdict: machine.Allow}, nil
	}
	d, err := g.inner.Judge(ctx, r)
	if err != nil || d.Verdict != machine.Ask {
		return d, err
	}
	g.mu.Lock()
	g.asked[r.Step] = d.Message
	g.mu.Unlock()
	d.Verdict, d.Message = machine.Allow, "taken as approved on the stage: "+d.Message
	r.Approved = true
	g.Allowed(r)
	return d, nil
}

// Allowed implements [call.Follower].
func (g *stageGate) Allowed(r call.Request) {
	if f, ok := g.inner.(call.Follower); ok {
		f.Allowed(r)
	}
}

// Ended implements [call.Follower].
func (g *stageGate) Ended(r call.Request, o call.Outcome) {
	if f, ok := g.inner.(call.Follower); ok {
		f.Ended(r, o)
	}
}
