package record

import (
	"context"
	"errors"
	"fmt"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// RunAgent records and runs an agent on a task. The Tools, Caller and Recorder
// of c are set here. The result is never nil; its Run is empty when the run was
// refused before it began. Errors are those of [agent.Agent.Run].
//
// A reply is on the disk before any of its calls is made; calls go through the
// same door, and leave the same records, as those of a plan. Secrets of the vault
// are in neither.
func RunAgent[T any](ctx context.Context, store *journal.Store, tools *tool.Set, c agent.Config[T], t agent.Task, opt Options) (*agent.Result[T], error) {
	opt.defaults()
	if opt.Parent == "" {
		opt.Parent = Parent(ctx)
	}
	k := newKeeper(tools, &opt)
	redacting(&c, &opt)
	if c.Redactor != nil {
		t.System, t.User, opt.Name = c.Redactor.RedactText(t.System), c.Redactor.RedactText(t.User), c.Redactor.RedactText(opt.Name)
	}
	a, err := build(&c, tools, k)
	if err != nil {
		return &agent.Result[T]{}, err
	}
	body, identity, err := agentStart(&c, t, tools.Catalogue(), &opt)
	if err != nil {
		return &agent.Result[T]{}, err
	}
	jr, err := store.Create(ctx, journal.Start{
		Kind: KindAgent, Name: opt.Name, Plan: identity, Catalogue: tools.Catalogue().Digest(), Policy: opt.Policy, Body: body,
	})
	if err != nil {
		return &agent.Result[T]{}, err
	}
	return driveAgent(ctx, store, jr, a, t, k, &opt)
}

// ResumeAgent goes on with an agent's run that crashed, paused or was
// interrupted. Task, settings, schema, role and the submission's names are those
// of the record; of c the Model, the Validate and the Watch count. The transcript
// is rebuilt byte for byte, and no call with a durable outcome is made again.
func ResumeAgent[T any](ctx context.Context, store *journal.Store, id string, tools *tool.Set, c agent.Config[T], opt Options) (*agent.Result[T], error) {
	opt.defaults()
	jr, err := store.OpenRun(ctx, id)
	if err != nil {
		return &agent.Result[T]{}, err
	}
	h, err := LoadAgent(ctx, store, id)
	if err == nil {
		err = fits(h.Summary, h.Contents, h.Tools, jr.Header(), tools.Catalogue(), opt)
	}
	k := newKeeper(tools, &opt)
	redacting(&c, &opt)
	var a *agent.Agent[T]
	if err == nil {
		c.Settings, c.Role = h.Settings, h.Role
		short := c.Submission.Short
		c.Submission = h.Submission
		c.Submission.Short = short
		if c.Schema, err = schema.Compile(h.Schema); err == nil {
			a, err = build(&c, tools, k)
		}
	}
	if err == nil {
		err = jr.AppendWait(ctx, journal.Record{Kind: kindResumed, Status: StatusRunning})
	}
	if err != nil {
		return &agent.Result[T]{}, errors.Join(err, jr.Close())
	}
	return driveAgent(ctx, store, jr, a, h.Task, k, &opt)
}

// redacting keeps the secrets of the vault out of the conversation too, unless
// the agent has a redactor of its own.
func redacting[T any](c *agent.Config[T], opt *Options) {
	if r, ok := opt.Run.Vault.(agent.Redactor); ok && c.Redactor == nil {
		c.Redactor = r
	}
}

// build makes the agent over the record.
func build[T any](c *agent.Config[T], tools *tool.Set, k *keeper) (*agent.Agent[T], error) {
	c.Tools, c.Caller, c.Recorder = tools.Catalogue(), k, k
	if c.Schema == nil {
		var err error
		if c.Schema, err = schema.For[T](); err != nil {
			return nil, err
		}
	}
	return agent.New(*c)
}

// agentStart is the body of record 0 and the digest of what the run is: it goes
// on only with the same.
func agentStart[T any](c *agent.Config[T], t agent.Task, catalogue *tool.Catalogue, opt *Options) (body value.Value, identity value.Digest, err error) {
	settings, err := c.Settings.Value()
	if err != nil {
		return body, identity, err
	}
	var aliases value.Value // none is not the same as an empty list
	if c.Submission.Aliases != nil {
		if aliases, err = value.Of(c.Submission.Aliases); err != nil {
			return body, identity, err
		}
	}
	for _, s := range []string{t.System, t.User, c.Role} {
		if _, err := value.Text(s); err != nil {
			return body, identity, fmt.Errorf("the task: %w", err)
		}
	}
	what := []value.Member{
		{Key: "task", Value: of(value.Member{Key: "system", Value: optional(t.System)}, value.Member{Key: "user", Value: text(t.User)})},
		{Key: "role", Value: optional(c.Role)},
		{Key: "settings", Value: settings},
		{Key: "schema", Value: c.Schema.Value()},
		{Key: "submission", Value: of(
			value.Member{Key: "name", Value: optional(c.Submission.Name)},
			value.Member{Key: "aliases", Value: aliases},
			value.Member{Key: "description", Value: optional(c.Submission.Description)},
			value.Member{Key: "shown", Value: c.Submission.Shown},
		)},
	}
	definitions := make([]value.Member, len(catalogue.All()))
	declared := make([]value.Value, len(catalogue.All()))
	for i, d := range catalogue.All() {
		definitions[i] = value.Member{Key: d.Name, Value: text(d.Digest().String())}
		declared[i] = declaration(d)
	}
	identity = of(append([]value.Member(nil), what...)...).Digest()
	return of(append(what,
		value.Member{Key: "setup", Value: opt.Setup},
		value.Member{Key: "contents", Value: text(string(opt.Contents))},
		value.Member{Key: "tools", Value: value.ObjectOf(definitions...)},
		value.Member{Key: "declared", Value: value.ListOf(declared...)},
		value.Member{Key: "parent", Value: optional(opt.Parent)},
	)...), identity, nil
}

// driveAgent runs until the end or a pause that no answer in the inbox ends.
func driveAgent[T any](ctx context.Context, store *journal.Store, jr *journal.Run, a *agent.Agent[T], t agent.Task, k *keeper, opt *Options) (*agent.Result[T], error) {
	k.open(store, jr, opt)
	if opt.OnStart != nil {
		opt.OnStart(Live{jr})
	}
	ctx = context.WithValue(ctx, runKey{}, jr.ID())
	for {
		res, err := stepAgent(ctx, store, jr, a, t, k)
		res.Run = jr.ID()
		var waiting *agent.WaitingError
		if errors.As(err, &waiting) && ctx.Err() == nil {
			// Answers that came while the run went on are taken in now.
			came, failed := jr.Inbox(ctx)
			if failed == nil && len(came) > 0 {
				continue
			}
			if failed != nil {
				err = failed
			}
		}
		return res, errors.Join(err, finishAgent(ctx, jr, res, err, opt))
	}
}

// stepAgent runs once from what is recorded.
func stepAgent[T any](ctx context.Context, store *journal.Store, jr *journal.Run, a *agent.Agent[T], t agent.Task, k *keeper) (*agent.Result[T], error) {
	var recorded agent.Recorded
	if jr.Head().Records > 1 {
		h, err := LoadAgent(ctx, store, jr.ID())
		if err != nil {
			return &agent.Result[T]{}, err
		}
		recorded = k.recall(h)
	}
	return a.Resume(ctx, t, recorded)
}

// finishAgent writes the last record of this part of the run and gives it back.
// A model that failed or a cancellation only stops the run: it can go on.
func finishAgent[T any](ctx context.Context, jr *journal.Run, res *agent.Result[T], failure error, opt *Options) error {
	ctx = context.WithoutCancel(ctx)
	var protocol *agent.ProtocolError
	var waiting *agent.WaitingError
	body := []value.Member{
		{Key: "rounds", Value: value.Int(int64(res.Rounds))},
		{Key: "calls", Value: value.Int(int64(res.Calls))},
		{Key: "usage", Value: res.Usage.Value()},
	}
	status := StatusOK
	switch {
	case failure == nil && opt.Contents == Digests:
		body = append(body, value.Member{Key: "submission_digest", Value: text(res.Submitted.Digest().String())})
	case failure == nil:
		body = append(body, value.Member{Key: "submission", Value: res.Submitted})
	case errors.As(failure, &protocol):
		status = StatusFailed
		body = append(body, value.Member{Key: "error", Value: value.ObjectOf(
			value.Member{Key: "code", Value: text(protocol.Code)}, value.Member{Key: "message", Value: text(protocol.Message)},
		)})
	case errors.Is(failure, journal.ErrJournal):
		return jr.Close()
	case errors.As(failure, &waiting):
		return stop(ctx, jr, StatusWaiting, whyAsked, value.Value{})
	default:
		return stop(ctx, jr, StatusInterrupted, failure.Error(), value.Value{})
	}
	_, err := jr.Finish(ctx, journal.Record{Kind: kindEnd, Status: status, Body: of(append(body, value.Member{Key: "status", Value: text(status)})...)})
	return errors.Join(err, jr.Close())
}

// newKeeper makes the caller and recorder of an agent's run before there is one.
func newKeeper(tools *tool.Set, opt *Options) *keeper {
	return &keeper{through: agent.Through{
		Door: &call.Door{Tools: tools, Gate: opt.Run.Gate, Grace: opt.Run.Grace, Limits: opt.Run.Limits, Vault: opt.Run.Vault},
	}}
}
