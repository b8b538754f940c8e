package agent

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// A Caller makes the calls of catalogue tools. It judges their arguments, asks
// whoever must be asked, and makes the call at most once.
//
// A tool's failure, a denial and a panic are outcomes. An error is the harness
// unable to do its work; it ends the run, and no further call is made. A call
// that was not made, or whose end is not known, because ctx was cancelled is an
// outcome too. Call does not panic.
type Caller interface {
	Call(ctx context.Context, r Request) (Outcome, error)
}

// A Request is one call of a catalogue tool.
type Request struct {
	Step string            // ROUND.N: the N-th call of that round's reply
	Name string            // of the tool, as the model wrote it
	Tool *tool.Declaration // nil only when Unchecked and the catalogue has no such tool
	Args value.Value       // an object
	// Left is what is left of the tool budget after this call: how often it may
	// be made again after a crash.
	Left int
	// Unchecked leaves arguments and unknown names to the tools themselves: the
	// profile of [Source].
	Unchecked bool
	// Begins is to be called when the tool is about to be called, and not when the
	// call is refused or waits; nil: nobody wants to know.
	Begins func()
}

// An Outcome is how a call ended. Exactly one of Output, Failure and Waiting is
// set.
type Outcome struct {
	Output  value.Value
	Failure *tool.Failure // the tool's, of its arguments, or with Denied the gate's
	Denied  bool          // the tool was not called
	Waiting Waiting       // the call is not over: a person has to say something
	Reason  string        // what the person is asked; with Waiting

	// Again is how often the call was made again because its outcome was lost;
	// each spends one more of the tool budget.
	Again int
	// Edited are the args that a person put in place of the model's, no value
	// where none did. The model is told.
	Edited value.Value

	Start, End time.Time // zero: as the loop saw it
}

// Why is the failure as it is traced and told, "" where there is none.
func (o *Outcome) Why() string {
	switch {
	case o.Failure == nil:
		return ""
	case o.Denied && o.Failure.Code != CodeDenied:
		return CodeDenied + ": " + o.Failure.Error()
	}
	return o.Failure.Error()
}

// Waiting is what a call waits for.
type Waiting uint8

// What there is to wait for.
const (
	NotWaiting    Waiting = iota
	ForDecision           // the gate answered "ask"
	ForResolution         // the call may or may not have happened
)

// String names it in a word.
func (w Waiting) String() string { return [...]string{"", "decision", "resolution"}[w] }

// Through makes calls through the one door.
type Through struct {
	Door *call.Door
	Run  string                                     // id of the run, "" outside one
	Key  func(step string, args value.Value) string // makes idempotency keys; nil: they are empty
	// Progress is told of a tool's progress; nil: nobody listens.
	Progress func(step string, p tool.Progress)
}

var _ Caller = Through{}

// Direct calls the tools of set through a door of its own: without a gate, and
// without a record.
func Direct(set *tool.Set) Caller { return Through{Door: &call.Door{Tools: set}} }

// Call judges the arguments, asks the gate, and makes the call once. That the
// outcome is durable is waited for.
func (t Through) Call(ctx context.Context, r Request) (Outcome, error) {
	if o, err := t.Judge(ctx, r, Attempt{}); o != nil || err != nil {
		return or(o, Outcome{}), err
	}
	return t.Make(ctx, r, Attempt{N: 1})
}

// An Attempt is what is known of a call besides what the model asked for.
type Attempt struct {
	N        int         // from 1
	Rerun    bool        // it was begun before a crash and has no outcome
	Before   value.Value // the args that a person changed; no value when nobody did
	Approved bool        // a person said yes
}

// Judge judges the arguments and asks the gate. nil means that the call may be
// made; otherwise the outcome is a failure, a denial, or that a person has to
// decide.
func (t Through) Judge(ctx context.Context, r Request, a Attempt) (*Outcome, error) {
	if r.Tool == nil {
		return &Outcome{Failure: unknownTool(r.Name, t.Door.Tools.Catalogue())}, nil
	}
	if !r.Unchecked {
		if f := r.Tool.CheckArgs(r.Args); f != nil {
			return &Outcome{Failure: f}, nil
		}
	}
	if t.Door.Gate == nil {
		return nil, nil
	}
	scope := t.Door.Scope(ctx)
	defer scope.Close()
	d, err := scope.Judge(t.request(r, a))
	switch {
	case err != nil:
		return nil, err
	case d.Verdict == machine.Ask:
		if d.Ticket != nil {
			if err := d.Ticket.Wait(context.WithoutCancel(ctx)); err != nil {
				return nil, err
			}
		}
		return &Outcome{Waiting: ForDecision, Reason: d.Message}, nil
	case d.Verdict != machine.Allow:
		return &Outcome{Denied: true, Failure: &tool.Failure{Code: cmp.Or(d.Code, CodeDenied), Message: d.Message}}, nil
	}
	return nil, nil
}

func (t Through) request(r Request, a Attempt) call.Request {
	req := call.Request{
		Run: t.Run, Step: r.Step, Attempt: a.N, Rerun: a.Rerun, Tool: r.Tool, Args: r.Args, Key: t.Key,
		Before: a.Before, Approved: a.Approved,
	}
	if t.Progress != nil {
		req.Progress = func(p tool.Progress) { t.Progress(r.Step, p) }
	}
	return req
}

// Make makes a call that may be made.
func (t Through) Make(ctx context.Context, r Request, a Attempt) (Outcome, error) {
	req := t.request(r, a)
	if g, ok := t.Door.Gate.(call.Follower); ok {
		g.Allowed(req)
	}
	if r.Begins != nil {
		r.Begins()
	}
	out, err := t.Door.Call(ctx, req)
	if err != nil {
		return Outcome{}, err
	}
	if out.NotMade {
		return Outcome{Failure: &tool.Failure{Code: tool.CodeCancelled, Message: "cancelled before the call"}}, nil
	}
	if out.Ticket != nil {
		if err := out.Ticket.Wait(context.WithoutCancel(ctx)); err != nil {
			return Outcome{}, err
		}
	}
	return Ended(r.Tool, out), nil
}

// Replay tells a gate that judges by what went before of a call that was made
// before this process took the run up. out is nil when its end is not known.
func (t Through) Replay(r Request, a Attempt, out *call.Outcome) {
	g, ok := t.Door.Gate.(call.Follower)
	if !ok {
		return
	}
	g.Allowed(t.request(r, a))
	if out != nil {
		g.Ended(t.request(r, a), *out)
	}
}

// Ended is the outcome of a call that the door made, also of one that was
// recorded: an output that does not fit is a failure, and the lost answer of a
// tool that is not safe to repeat waits for a person.
func Ended(d *tool.Declaration, out call.Outcome) Outcome {
	o := Outcome{Output: out.Output, Failure: out.Failure, Start: out.Start, End: out.End}
	switch {
	case o.Failure == nil:
		if o.Failure = d.CheckOutput(o.Output); o.Failure != nil {
			o.Output = value.Value{}
		}
	case o.Failure.Lost && !d.Effects.Repeatable():
		o.Waiting, o.Reason, o.Failure = ForResolution, o.Failure.Error(), nil
	}
	return o
}

// maxNames is how many names of tools an answer lists: as many as a model can
// choose from at a glance.
const maxNames = 20

// unknownTool is the failure of a name that nothing answers to. more are names
// besides the catalogue's.
func unknownTool(name string, c *tool.Catalogue, more ...string) *tool.Failure {
	var names []string
	for _, d := range c.All() {
		names = append(names, d.Name)
	}
	names = append(names, more...)
	near := tool.Nearest(name, names, 3)
	if len(near) == 0 { // f_submit_tool
		for _, n := range names {
			if strings.Contains(normal(name), normal(n)) && len(near) < 3 {
				near = append(near, n)
			}
		}
	}
	text := "there is no tool " + quote(name)
	if len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	} else {
		text += "."
	}
	if len(names) > maxNames {
		names = append(names[:maxNames:maxNames], "…")
	}
	return &tool.Failure{Code: CodeUnknownTool, Message: text + " The tools are " + strings.Join(names, ", ")}
}

// Codes of calls that reached no tool.
const (
	CodeUnknownTool = "unknown_tool" // there is no tool of that name
	CodeDenied      = "denied"       // by a gate that gave no code of its own
	// CodeExhausted is a call that was lost in a crash and may not be made again,
	// because no call is left in the tool budget.
	CodeExhausted = "budget_exhausted"
)
