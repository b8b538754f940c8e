package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// loop is one run, not generic: what a submission decodes to is accept's
// business. It takes the same path whether replies and outcomes are recorded or
// live, and nothing on that path depends on the clock but what a ReplyEvent
// keeps.
type loop struct {
	s        Settings
	model    model.Model
	caller   Caller
	recorder Recorder
	tools    *tool.Catalogue
	specs    []*model.Tool // the submission last
	submit   Submission
	schema   *schema.Schema
	accept   func(ctx context.Context, v value.Value) error
	role     string
	watch    func(Event)
	stream   bool
	redactor Redactor // nil: there are no secrets

	recorded Recorded
	begin    time.Time
	before   time.Duration // of the run, when this process took it up

	transcript transcript
	usage      Usage
	trace      []Record
	degraded   degraded
	rounds     int // model calls that were answered
	used       int // tool budget spent
	invalid    int
	nudges     int
	strikes    int
	forced     force // from now on
	last       *ProtocolError
	late       bool // the deadline has passed
	repeat     struct {
		key, answer string
		times       int
	}

	submission  value.Value
	lastInvalid *InvalidSubmission
	lastText    string
}

// A force is why only the submission may be called: how it is told and traced.
type force struct{ told, traced string }

var (
	notForced     = force{}
	forcedBudget  = force{"the tool budget is exhausted", "tool budget exhausted"}
	forcedTokens  = force{"the token budget is exhausted", "token budget exhausted"}
	forcedLate    = force{"the deadline has passed", "deadline"}
	forcedRepeats = force{"the same call was repeated too often", "repeated call"}
)

// errDone ends the run with a submission.
var errDone = errors.New("accepted")

// run goes round until the run ends: nil is an accepted submission.
func (l *loop) run(ctx context.Context) error {
	for {
		reply, why, err := l.ask(ctx)
		if err == nil {
			err = l.take(ctx, reply, why)
		}
		if err == errDone {
			return nil
		}
		if err != nil {
			return err
		}
		if l.last != nil && l.last.Round == l.rounds {
			return l.last
		}
	}
}

func (l *loop) protocol(code, format string, args ...any) *ProtocolError {
	return &ProtocolError{Code: code, Message: fmt.Sprintf(format, args...), Round: l.rounds}
}

// force is why the coming round is forced.
func (l *loop) force() force {
	if l.used >= l.s.maxToolCalls() {
		return forcedBudget
	}
	return l.forced
}

// ask makes one round's model call, or takes its reply from the record.
func (l *loop) ask(ctx context.Context) (*model.Reply, force, error) {
	if most := l.s.maxRounds(); l.rounds >= most {
		return nil, notForced, l.protocol(CodeMaxRounds, "the run made %s without a valid submission", count.Of(l.rounds, "model call"))
	}
	if cut := l.transcript.shorten(l.s.MaxTranscript); cut > 0 {
		l.degraded.count(CodeShortened, l.rounds+1, cut, "the oldest tool results were shortened")
	}
	if most := l.s.maxBytes(); most > 0 && l.transcript.size >= most {
		return nil, notForced, l.protocol(CodeMaxBytes, "the transcript has %s and may have %d", count.Of(l.transcript.size, "byte"), most)
	}
	if err := l.transcript.checker.check(l.transcript.messages); err != nil {
		return nil, notForced, err
	}
	event, why, err := l.event(ctx)
	if err != nil {
		return nil, why, err
	}
	l.rounds++
	l.usage.ModelCalls++
	reply := event.Reply
	missing, negative := l.usage.add(reply.Usage, l.s.source)
	if missing {
		l.degraded.count(CodeUsageMissing, l.rounds, 1, "the provider did not report its usage")
	}
	if negative {
		l.degraded.count(CodeUsageNegative, l.rounds, 1, "the provider reported a negative usage, which counts as 0")
	}
	for _, f := range reply.Fallbacks {
		l.degraded.add(CodeForcedChoice, l.rounds, f)
	}
	for _, e := range reply.Edits {
		l.degraded.add(CodeRawEdit, l.rounds, e)
	}
	if l.s.MaxTokens > 0 && l.usage.total() >= l.s.MaxTokens && l.last == nil {
		l.lastRound(forcedTokens, CodeMaxTokens, "the model used %s of %d without a valid submission", count.Of(l.usage.total(), "token"), l.s.MaxTokens)
	}
	return reply, why, nil
}

// lastRound forces the next round and makes it the last.
func (l *loop) lastRound(why force, code, format string, args ...any) {
	l.forced = why
	l.last = l.protocol(code, format, args...)
	l.last.Round = l.rounds + 1
}

// event is the reply of the coming round with what has to be kept of it. The
// reply is durable when it returns.
func (l *loop) event(ctx context.Context) (*ReplyEvent, force, error) {
	if l.rounds < len(l.recorded.Replies) {
		e := &l.recorded.Replies[l.rounds]
		if e.Late && !l.late {
			l.passDeadline()
		}
		if e.Cut {
			l.cutOff()
		}
		l.before, l.begin = e.Elapsed, time.Now()
		return e, l.force(), nil
	}
	e := &ReplyEvent{Round: l.rounds + 1}
	if l.s.Deadline > 0 && !l.late && l.elapsed() >= l.s.Deadline {
		l.passDeadline()
	}
	reply, err := l.live(ctx)
	if err != nil && l.s.Deadline > 0 && !l.late && l.elapsed() >= l.s.Deadline && ctx.Err() == nil {
		l.passDeadline()
		l.cutOff()
		e.Cut = true
		reply, err = l.live(ctx)
	}
	if err != nil {
		if l.late && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			l.cutOff()
			return nil, l.force(), l.last
		}
		return nil, l.force(), fmt.Errorf("round %d: %w", e.Round, err)
	}
	if e.Reply, err = l.adopt(reply); err != nil {
		return nil, l.force(), fmt.Errorf("round %d: %w", e.Round, err)
	}
	e.Late, e.Elapsed = l.late, l.elapsed()
	if l.recorder != nil {
		if err := l.recorder.Reply(ctx, *e); err != nil {
			return nil, l.force(), fmt.Errorf("round %d: recording the reply: %w", e.Round, err)
		}
	}
	l.see(Event{Kind: ModelReplied, Round: e.Round})
	return e, l.force(), nil
}

func (l *loop) elapsed() time.Duration { return l.before + time.Since(l.begin) }

func (l *loop) passDeadline() {
	l.late = true
	l.lastRound(forcedLate, CodeDeadline, "the deadline of %v passed without a valid submission", l.s.Deadline)
}

// cutOff counts a model call that was cut off by the clock.
func (l *loop) cutOff() {
	l.usage.ModelCalls++
	l.usage.Complete = false
	l.degraded.count(CodeCut, l.rounds+1, 1, "a model call was cut off by the clock; what it cost is not known")
}

// live asks the model.
func (l *loop) live(ctx context.Context) (*model.Reply, error) {
	if l.s.Deadline > 0 {
		left := l.s.Deadline - l.elapsed()
		if l.late {
			left = Grace
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, left)
		defer cancel()
	}
	req := &model.Request{
		Messages: l.transcript.messages, Tools: l.specs, Role: l.role, Round: l.rounds + 1, MaxTokens: l.s.MaxReplyTokens,
	}
	why := l.force()
	if why != notForced { // of this round only: the choice never sticks
		req.Choice = model.Force(l.submit.Name)
	}
	l.see(Event{Kind: RoundBegins, Round: req.Round, Forced: why.traced})
	if l.stream && l.watch != nil {
		s := &stream{redact: l.redactor, tell: func(text string) { l.see(Event{Kind: TextArrives, Round: req.Round, Text: text}) }}
		defer s.end()
		req.Progress = s.take
	}
	return l.model.Ask(ctx, req)
}

// adopt makes a reply of any model one that the transcript can hold.
func (l *loop) adopt(r *model.Reply) (*model.Reply, error) {
	if r == nil {
		return nil, errors.New("the model gave neither a reply nor an error")
	}
	own := *r
	own.Calls = slices.Clone(r.Calls)
	edits := model.FreshIDs(own.Calls, len(l.transcript.messages))
	if len(edits) > 0 && r.Raw != nil {
		return nil, fmt.Errorf("the model's adapter broke its contract: %s", edits[0])
	}
	own.Edits = append(slices.Clone(r.Edits), edits...)
	if l.redactor != nil {
		clean(&own, l.redactor)
	}
	return &own, nil
}

// take does what one reply asks for. nil means that another round follows.
func (l *loop) take(ctx context.Context, reply *model.Reply, why force) error {
	l.transcript.append(reply.Message())
	if len(reply.Calls) == 0 {
		return l.nudge(reply)
	}
	t := &turn{loop: l, ctx: ctx, why: why, calls: make([]item, len(reply.Calls))}
	for i, c := range reply.Calls {
		t.calls[i] = item{call: c, n: i, name: c.Name, submits: l.submits(c.Name)}
		if t.calls[i].submits {
			t.calls[i].name = l.submit.Name
		}
	}
	if reply.Finish.Withheld() && !l.s.source {
		return t.withhold(reply.Finish)
	}
	return t.take()
}

// nudge answers a reply without any call.
func (l *loop) nudge(reply *model.Reply) error {
	l.lastText = reply.Text
	l.nudges++
	if l.nudges > l.s.maxNudges() {
		return l.protocol(CodeNoCall, "the model replied %s without calling a tool, and never submitted a valid %s", count.Of(l.nudges, "time"), l.submit.noun())
	}
	l.transcript.append(model.User("call " + l.submit.Name + " to finish"))
	l.degraded.add(CodeNudge, l.rounds, "a reply without any call was answered with the request to submit")
	return nil
}

// submits reports whether a name means the submission.
func (l *loop) submits(name string) bool {
	n := normal(name)
	if n == normal(l.submit.Name) {
		return true
	}
	return slices.Contains(l.submit.Aliases, n) && (l.s.source || l.tools.Get(name) == nil)
}

func (l *loop) see(e Event) {
	if l.watch != nil {
		l.watch(e)
	}
}
