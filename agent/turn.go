package agent

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// turn is the calls of one reply. Their answers are appended when all of them
// are there, in the order of the calls, whatever the order in which they ran.
type turn struct {
	*loop
	ctx      context.Context
	why      force
	calls    []item
	waiting  []Pending
	struck   string // the first tool that was refused
	failed   bool   // some call other than a submission failed
	done     bool   // a submission was accepted
	siblings map[string]int
}

// An item is one call and what became of it.
type item struct {
	call    model.Call
	n       int    // index in the reply
	name    string // the contract's
	submits bool
	answer  *model.Message // nil until it is answered
	live    bool           // its end did not come from the record
}

func (t *turn) step(it *item) string {
	return strconv.Itoa(t.rounds) + "." + strconv.Itoa(it.n+1)
}

const (
	notRunAccepted  = "not run: a submission was accepted"
	notRunEnded     = "not run: the run has ended"
	notRunCancelled = "not run: the run was cancelled"
	noAnswer        = "no answer: the run ended during the call"
	notRunTruncated = "truncated, not run"
	notAccepted     = "not accepted: another call of this reply failed; see its answer, then submit again"
)

// take takes the calls as Mixed says. errDone is an accepted submission, nil a
// reply after which the model goes again.
func (t *turn) take() error {
	err := t.through()
	if err == nil && len(t.waiting) > 0 {
		return &WaitingError{t.waiting} // nothing is answered before everything is
	}
	t.close(err)
	switch {
	case err != nil:
		return err
	case t.done:
		return errDone
	}
	return t.strike()
}

func (t *turn) through() error {
	if t.s.Mixed == Graceful {
		for i := range t.calls {
			if it := &t.calls[i]; !it.submits {
				if err := t.other(it); err != nil {
					return err
				}
			}
		}
	}
	for i := range t.calls {
		it := &t.calls[i]
		var err error
		switch {
		case it.answer != nil:
		case t.done:
			t.after(it)
		case !it.submits && t.s.Mixed != Graceful:
			err = t.other(it)
		case !it.submits: // it waits
		case len(t.waiting) > 0 && t.s.Mixed != Sole:
			return nil // judged after the decision, and so is what follows it
		default:
			err = t.submission(it)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// close answers what has not been answered and appends the answers.
func (t *turn) close(err error) {
	why := notRunEnded
	if t.ctx.Err() != nil {
		why = notRunCancelled
	}
	for i := range t.calls {
		it := &t.calls[i]
		if it.answer == nil {
			t.say(it, why, true)
			t.record(it, Record{Error: why})
		}
		t.transcript.append(it.answer)
	}
}

// strike fails the run for calls that should not have been made.
func (t *turn) strike() error {
	if t.struck != "" && !t.s.source {
		if t.strikes++; t.strikes > 1 {
			return t.refusedError()
		}
	}
	if over := t.used - t.s.maxToolCalls(); over > 1 {
		return t.protocol(CodeOvershot, "the model exceeded its tool budget of %d by %d calls in one reply", t.s.maxToolCalls(), over)
	}
	return nil
}

func (t *turn) refusedError() error {
	e := t.protocol(CodeRefused, "%s, and the model was told so once; a further call of %s was refused", t.why.told, quote(t.struck))
	if t.why == forcedBudget {
		e.Message = fmt.Sprintf("tool budget of %d calls is exhausted; %s was refused", t.s.maxToolCalls(), quote(t.struck))
	}
	e.Tool = t.struck
	return e
}

// withhold answers the calls of a reply that was cut, filtered or refused.
func (t *turn) withhold(f model.Finish) error {
	for i := range t.calls {
		it := &t.calls[i]
		t.say(it, notRunTruncated, true)
		t.record(it, Record{Error: notRunTruncated})
	}
	t.lastInvalid = &InvalidSubmission{Round: t.rounds, Reason: "the reply ended with " + f.String()}
	err := t.countInvalid()
	t.close(err)
	return err
}

func (t *turn) countInvalid() error {
	t.invalid++
	if t.invalid > t.s.maxInvalid() {
		return t.protocol(CodeInvalid, "the model submitted an invalid %s %s", t.submit.noun(), count.Of(t.invalid, "time"))
	}
	return nil
}

// after is a call that follows the accepted submission.
func (t *turn) after(it *item) {
	t.say(it, notRunAccepted, true)
	if !t.s.source {
		t.record(it, Record{Error: notRunAccepted})
	}
}

// submission judges one submission.
func (t *turn) submission(it *item) error {
	if t.s.Mixed == Graceful && t.failed {
		t.say(it, notAccepted, true)
		t.record(it, Record{Error: notAccepted})
		return nil
	}
	var v value.Value
	var coerced []string
	var r *rejection
	if t.s.Mixed == Sole && len(t.calls) > 1 {
		v, r = shown(it.call.Arguments), reject("it must be the only call of its reply: send it alone")
	} else {
		v, coerced, r = t.judge(t.ctx, it.call)
	}
	t.noteCoercion(it, coerced)
	if r == nil {
		t.done, t.loop.submission = true, v
		t.record(it, Record{Arguments: t.submit.Short(v), Coerced: coerced})
		if t.s.source {
			t.sayValue(it, value.ObjectOf(value.Member{Key: "accepted", Value: value.BoolValue(true)}))
		} else {
			t.say(it, "accepted", false)
		}
		return nil
	}
	t.lastInvalid = &InvalidSubmission{Round: t.rounds, Arguments: v, Reason: r.text()}
	t.record(it, Record{Arguments: Clip(v, clipped), Error: r.trace, Coerced: coerced})
	switch {
	case t.s.source && r.data.IsZero():
		t.say(it, "Invalid submission: "+r.text(), true)
	case t.s.source:
		t.sayValue(it, value.ObjectOf(value.Member{Key: "error", Value: plainText("Invalid submission: " + r.text())}, value.Member{Key: "data", Value: r.data}))
	default:
		text := "invalid submission: " + r.text()
		if !r.data.IsZero() {
			text += "\n" + r.data.String()
		}
		t.say(it, text, true)
	}
	return t.countInvalid()
}

// other takes a call of anything but the submission.
func (t *turn) other(it *item) error {
	if t.why != notForced {
		return t.refuse(it)
	}
	if t.s.Burst == Refuse && t.used >= t.s.maxToolCalls() {
		t.failed = true
		t.say(it, forcedBudget.told+"; call "+t.submit.Name+" now with the complete submission", true)
		t.record(it, Record{Error: "refused: " + forcedBudget.traced})
		return nil
	}
	return t.spend(it)
}

// refuse answers a call that was made although the submission was forced.
func (t *turn) refuse(it *item) error {
	if t.struck == "" || t.s.source {
		t.struck = it.name
	}
	t.say(it, t.why.told+"; call "+t.submit.Name+" now with the complete submission", true)
	t.record(it, Record{Error: "refused: " + t.why.traced})
	if t.s.source {
		if t.strikes++; t.strikes > 1 {
			return t.refusedError()
		}
	}
	return nil
}

// spend spends one of the budget on a call and runs it.
func (t *turn) spend(it *item) error {
	decl := t.tools.Get(it.name)
	var args value.Value
	var coerced []string
	var failure *tool.Failure
	if t.s.source {
		args = sourceArguments(it.call.Arguments)
	} else {
		var doc value.Value
		if decl != nil {
			doc = decl.Input.Value()
		}
		var err error
		if args, coerced, err = decode(it.call.Arguments, doc, t.s.Coerce); err != nil {
			failure = &tool.Failure{Code: tool.CodeInvalidArgs, Message: err.Error()}
			args = shown(it.call.Arguments)
		}
		if decl == nil {
			failure = unknownTool(it.name, t.tools, t.submit.Name)
		}
	}
	key := it.name + "\x00" + args.Canonical()
	if t.s.Siblings == Once {
		if first, ok := t.siblings[key]; ok {
			return t.same(it, &t.calls[first], args)
		}
		if t.siblings == nil {
			t.siblings = map[string]int{}
		}
		t.siblings[key] = it.n
	}
	rec := Record{Arguments: Clip(args, clipped), Before: t.left(), Start: time.Now(), Coerced: coerced}
	t.used++
	t.noteCoercion(it, coerced)
	o := Outcome{Failure: failure}
	if failure == nil {
		var err error
		if o, err = t.outcome(it, decl, args); err != nil {
			t.say(it, noAnswer, true)
			rec.Error, rec.After = noAnswer, t.left()
			t.put(it, rec)
			return err
		}
		t.used += o.Again
		rec.Again = o.Again
	}
	if !o.Start.IsZero() {
		rec.Start = o.Start
	}
	end := o.End
	if end.IsZero() {
		end = time.Now()
	}
	rec.Duration = end.Sub(rec.Start)
	if o.Waiting != NotWaiting {
		if t.ctx.Err() == nil {
			t.waiting = append(t.waiting, Pending{t.step(it), it.name, args, o.Waiting, o.Reason})
			t.see(Event{Kind: CallWaits, Round: t.rounds, Step: t.step(it), Tool: it.name, Text: o.Reason})
			return nil
		}
		o = Outcome{Failure: &tool.Failure{Code: tool.CodeCancelled, Message: o.Reason, Lost: true}}
	}
	t.finish(it, rec, o, key)
	return context.Cause(t.ctx)
}

// outcome takes a call's end from the record, or makes the call.
func (t *turn) outcome(it *item, decl *tool.Declaration, args value.Value) (Outcome, error) {
	step := t.step(it)
	if o, ok := t.recorded.Outcomes[step]; ok {
		return o, nil
	}
	it.live = true
	o, err := t.caller.Call(t.ctx, Request{
		Step: step, Name: it.name, Tool: decl, Args: args, Left: t.left(), Unchecked: t.s.source,
		Begins: func() { t.see(Event{Kind: CallBegins, Round: t.rounds, Step: step, Tool: it.name, Args: args}) },
	})
	switch {
	case err != nil:
		return o, fmt.Errorf("call %s of %s: %w", step, quote(it.name), err)
	case o.Waiting == NotWaiting && o.Failure == nil && o.Output.IsZero():
		return o, fmt.Errorf("call %s of %s: the caller gave an outcome without an end", step, quote(it.name))
	}
	return o, nil
}

// finish answers a call that has ended.
func (t *turn) finish(it *item, rec Record, o Outcome, key string) {
	failed := o.Failure != nil
	var text string
	switch {
	case failed:
		rec.Error = o.Why()
		text = rec.Error
		t.failed = true
	case t.s.source:
		text = o.Output.String()
		if e, ok := o.Output.Get("error"); ok {
			rec.Error = plainOf(e)
		}
	default:
		text = plainOf(o.Output)
	}
	if !t.s.source && failed {
		text = "error: " + text
	}
	if !o.Edited.IsZero() {
		text += "\n\nnote: a person changed the arguments to " + clipText(o.Edited.String(), maxError)
	}
	if t.repeats(key, text) {
		text += fmt.Sprintf("\n\nnote: the same call has had the same result %s running; a repeat ends your tool calls", count.Of(t.repeat.times, "time"))
	}
	if failed || !t.s.source {
		t.say(it, text, failed)
	} else {
		it.answer = model.Answer(it.call, text, false)
	}
	rec.After = t.left()
	t.put(it, rec)
}

// same answers a call like the sibling that ran.
func (t *turn) same(it, first *item, args value.Value) error {
	if first.answer == nil { // it waits, and so does this one
		return nil
	}
	t.say(it, first.answer.Text, first.answer.Failed)
	t.record(it, Record{Arguments: Clip(args, clipped), SameAs: t.step(first)})
	return nil
}

// repeats counts a call and its answer; it reports that this one gets a note,
// and forces the submission after the one that follows it.
func (t *turn) repeats(key, answer string) bool {
	limit := t.s.repeatLimit()
	if limit == 0 {
		return false
	}
	if t.repeat.key != key || t.repeat.answer != answer {
		t.repeat.key, t.repeat.answer, t.repeat.times = key, answer, 0
	}
	t.repeat.times++
	if t.repeat.times > limit && t.forced == notForced {
		t.forced = forcedRepeats
	}
	return t.repeat.times == limit
}

func (t *turn) left() int { return t.s.maxToolCalls() - t.used }

// say answers a call in the form of the profile.
func (t *turn) say(it *item, text string, failed bool) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if t.s.source && failed {
		text = value.ObjectOf(value.Member{Key: "error", Value: value.MustText(text)}).String()
	}
	it.answer = model.Answer(it.call, text, failed)
}

func (t *turn) sayValue(it *item, v value.Value) {
	_, failed := v.Get("error")
	it.answer = model.Answer(it.call, v.String(), failed)
}

// record traces a call that cost nothing and took no time.
func (t *turn) record(it *item, r Record) {
	if r.Arguments.IsZero() && !t.s.source { // the source's have none
		r.Arguments = Clip(shown(it.call.Arguments), clipped)
	}
	r.Before, r.After, r.Start = t.left(), t.left(), time.Now()
	t.put(it, r)
}

func (t *turn) put(it *item, r Record) {
	r.Round, r.Step, r.Tool, r.source = t.rounds, t.step(it), it.name, t.s.source
	t.trace = append(t.trace, r)
	recorded := t.rounds <= len(t.recorded.Replies) && !it.live
	t.see(Event{Kind: CallEnds, Round: t.rounds, Step: r.Step, Tool: r.Tool, Record: &r, Recorded: recorded})
}

func (t *turn) noteCoercion(it *item, pointers []string) {
	for _, p := range pointers {
		t.degraded.add(CodeCoercion, t.rounds, fmt.Sprintf("call %s of %s: the string at %q was read as JSON", t.step(it), quote(it.name), p))
	}
}

// plainOf is a string's characters, and anything else as JSON.
func plainOf(v value.Value) string {
	if text, ok := v.Text(); ok {
		return text
	}
	return v.String()
}
