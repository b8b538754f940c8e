package record

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"strings"
	"time"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// writer is the recorder of one run.
type writer struct {
	run  *journal.Run
	opt  *Options
	seal sealer
}

var _ run.Recorder = (*writer)(nil)

func text(s string) value.Value { return value.MustText(toUTF8(s)) }

func stamp(t time.Time) value.Value { return value.MustText(t.UTC().Format(time.RFC3339Nano)) }

// of is an object of the members that have a value.
func of(ms ...value.Member) value.Value {
	kept := ms[:0]
	for _, m := range ms {
		if !m.Value.IsZero() {
			kept = append(kept, m)
		}
	}
	return value.ObjectOf(kept...)
}

// onlyTrue leaves a false flag out.
func onlyTrue(b bool) value.Value {
	if !b {
		return value.Value{}
	}
	return value.BoolValue(true)
}

func optional(s string) value.Value {
	if s == "" {
		return value.Value{}
	}
	return text(s)
}

// Decided implements [call.Recorder].
func (w *writer) Decided(r call.Request, d call.Decision) (call.Ticket, error) {
	body := []value.Member{
		{Key: "step", Value: text(r.Step)},
		{Key: "tool", Value: text(r.Tool.Name)},
		{Key: "verdict", Value: text(d.Verdict.String())},
		{Key: "code", Value: optional(d.Code)},
		{Key: "message", Value: optional(d.Message)},
		{Key: "by", Value: optional(d.By)},
		{Key: "person", Value: onlyTrue(d.Person)},
		{Key: "facts", Value: d.Facts},
		{Key: "args_digest", Value: w.seal.digest(r.Tool, r.Args)},
	}
	if d.Verdict != machine.Ask {
		// The intent that follows, or the end of the run, makes it durable.
		return nil, w.run.Append(journal.Record{Kind: kindDecision, Body: of(body...), Deferred: d.Verdict == machine.Allow}).Err()
	}
	ask := w.newAsk(r, d)
	body = append(body, value.Member{Key: "ask", Value: ask.body(w.opt.Contents)})
	t := w.run.Append(journal.Record{Kind: kindDecision, Body: of(body...)})
	return askTicket{t, ask, w.opt.OnAsk}, t.Err()
}

// An askTicket is the promise of an ask. Whoever is told of asks is told by Wait.
type askTicket struct {
	journal.Ticket
	ask  Ask
	tell func(Ask)
}

// Wait implements [call.Ticket]. It is called once.
func (t askTicket) Wait(ctx context.Context) error {
	if err := t.Ticket.Wait(ctx); err != nil {
		return err
	}
	if t.tell != nil {
		t.tell(t.ask)
	}
	return nil
}

// newAsk makes the question of a request, with a nonce so that no two are alike.
func (w *writer) newAsk(r call.Request, d call.Decision) Ask {
	var nonce [16]byte
	rand.Read(nonce[:])
	h := w.run.Header()
	a := Ask{
		Run: h.Run, Step: r.Step, Tool: r.Tool.Name, Args: w.seal.args(r.Tool, r.Args),
		Code: d.Code, Message: d.Message, Expires: w.opt.Now().Add(w.opt.Approval).Truncate(time.Millisecond), request: r,
	}
	a.Digest = value.ObjectOf(
		value.Member{Key: "run", Value: text(h.Run)},
		value.Member{Key: "step", Value: text(r.Step)},
		value.Member{Key: "plan", Value: text(h.Plan.String())},
		value.Member{Key: "args", Value: w.seal.digest(r.Tool, r.Args)},
		value.Member{Key: "tool", Value: text(r.Tool.Digest().String())},
		value.Member{Key: "policy", Value: text(h.Policy.String())},
		value.Member{Key: "nonce", Value: text(hex.EncodeToString(nonce[:]))},
		value.Member{Key: "expires", Value: stamp(a.Expires)},
	).Digest()
	return a
}

func (a *Ask) body(contents Contents) value.Value {
	args := a.Args
	if contents != Full {
		args = value.Value{}
	}
	return of(
		value.Member{Key: "digest", Value: text(a.Digest.String())},
		value.Member{Key: "tool", Value: text(a.Tool)},
		value.Member{Key: "args", Value: args},
		value.Member{Key: "expires", Value: stamp(a.Expires)},
	)
}

// Intent implements [call.Recorder]. The intent of an effect that a second call
// could double is on the disk when it returns.
func (w *writer) Intent(ctx context.Context, r call.Request) error {
	safe := r.Tool.Effects.ReadOnly || r.Tool.Effects.Idempotent
	body := []value.Member{
		{Key: "step", Value: text(r.Step)},
		{Key: "tool", Value: text(r.Tool.Name)},
		{Key: "attempt", Value: value.Int(int64(r.Attempt))},
	}
	if r.Rerun {
		body = append(body, value.Member{Key: "rerun", Value: value.BoolValue(true)})
	}
	if w.opt.Contents == Full {
		body = append(body, value.Member{Key: "args", Value: w.seal.args(r.Tool, r.Args)})
	} else {
		body = append(body, value.Member{Key: "args_digest", Value: w.seal.digest(r.Tool, r.Args)})
	}
	t := w.run.Append(journal.Record{Kind: kindIntent, Body: value.ObjectOf(body...), Tool: r.Tool.Name, Deferred: safe})
	if safe {
		return t.Err()
	}
	return t.Wait(context.WithoutCancel(ctx))
}

// Outcome implements [call.Recorder].
func (w *writer) Outcome(r call.Request, o call.Outcome) call.Ticket {
	return w.run.Append(journal.Record{Kind: kindOutcome, Body: w.outcome(r, o)})
}

// Late implements [call.Recorder]. Nothing waits for it: the run may have ended.
func (w *writer) Late(r call.Request, o call.Outcome) {
	w.run.Append(journal.Record{Kind: kindLate, Body: w.outcome(r, o), Deferred: true})
}

func (w *writer) outcome(r call.Request, o call.Outcome) value.Value {
	body := []value.Member{
		{Key: "step", Value: text(r.Step)},
		{Key: "attempt", Value: value.Int(int64(r.Attempt))},
		{Key: "start", Value: stamp(o.Start)},
		{Key: "end", Value: stamp(o.End)},
	}
	switch {
	case o.Failure != nil:
		body = append(body, value.Member{Key: "failure", Value: failureBody(o.Failure)})
	case w.seal.feedsSecret(r.Step):
		if f := r.Tool.CheckOutput(o.Output); f != nil {
			body = append(body, value.Member{Key: "failure", Value: failureBody(&tool.Failure{Code: f.Code, Message: "the output, which feeds a secret and is not recorded, does not fit the tool"})})
			break
		}
		body = append(body, value.Member{Key: "withheld", Value: value.BoolValue(true)})
	case w.opt.Contents == Digests:
		body = append(body, value.Member{Key: "output_digest", Value: text(o.Output.Digest().String())})
	default:
		body = append(body, value.Member{Key: "output", Value: o.Output})
	}
	return value.ObjectOf(body...)
}

func failureBody(f *tool.Failure) value.Value {
	ms := []value.Member{
		{Key: "code", Value: text(f.Code)},
		{Key: "message", Value: text(f.Message)},
	}
	flag := func(name string, on bool) {
		if on {
			ms = append(ms, value.Member{Key: name, Value: value.BoolValue(true)})
		}
	}
	flag("retryable", f.Retryable)
	flag("lost", f.Lost)
	flag("not_started", f.NotStarted)
	if f.After > 0 {
		ms = append(ms, value.Member{Key: "after_ms", Value: value.Int(f.After.Milliseconds())})
	}
	if f.Stack != "" {
		ms = append(ms, value.Member{Key: "stack", Value: text(f.Stack)})
	}
	return value.ObjectOf(ms...)
}

// Lost implements [run.Recorder].
func (w *writer) Lost(ctx context.Context, step string, attempt int) error {
	return w.run.AppendWait(ctx, journal.Record{Kind: kindLost, Body: value.ObjectOf(
		value.Member{Key: "step", Value: text(step)},
		value.Member{Key: "attempt", Value: value.Int(int64(attempt))},
	)})
}

// Reused implements [run.Recorder].
func (w *writer) Reused(step string, t *tool.Declaration, args, output value.Value) error {
	kept := value.Member{Key: "output", Value: output}
	if w.opt.Contents != Full {
		kept = value.Member{Key: "output_digest", Value: text(output.Digest().String())}
	}
	return w.run.Append(journal.Record{Kind: kindReused, Deferred: true, Tool: t.Name, Body: value.ObjectOf(
		value.Member{Key: "step", Value: text(step)},
		value.Member{Key: "args_digest", Value: w.seal.digest(t, args)},
		kept,
	)}).Err()
}

func toUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
