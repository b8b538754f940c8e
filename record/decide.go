package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// An Answer is what a person says to an ask.
type Answer struct {
	Ask   value.Digest // the ask that is answered, as it was shown; zero: whichever is open
	Allow bool
	Args  value.Value // args in place of those asked about; no value: none. The call is judged anew
	By    string      // who; empty: the user of this process
	Why   string
}

// Decide records a person's answer to the open ask of a step, in an agent's run ROUND.N. Of several
// answers the first recorded holds; later ones get [journal.ErrDecided]. It does
// not resume the run. The error is that of [Questions.Refuses].
func Decide(ctx context.Context, store *journal.Store, id, step string, a Answer, opt Options) error {
	opt.defaults()
	q, err := LoadQuestions(ctx, store, id)
	if err != nil {
		return err
	}
	if err := q.Refuses(step, a, opt.Now()); err != nil {
		return err
	}
	ask := q.asks[step]
	if a.By == "" {
		a.By = Whoami()
	}
	v := machine.Deny
	if a.Allow {
		v = machine.Allow
	}
	return decide(ctx, store, id, step, journal.Decision{
		Key:  "ask:" + ask.Digest.String(),
		Kind: kindAnswer,
		Body: of(
			value.Member{Key: "step", Value: text(step)},
			value.Member{Key: "verdict", Value: text(v.String())},
			value.Member{Key: "approves", Value: text(ask.Digest.String())},
			value.Member{Key: "args", Value: a.Args},
			value.Member{Key: "by", Value: text(a.By)},
			value.Member{Key: "why", Value: optional(a.Why)},
		),
	})
}

// Refuses says why an answer to the ask of a step would be refused, nil if it
// would not: [ErrDigestsOnly], [ErrNoAsk] with the steps that do ask,
// [journal.ErrDecided], [ErrExpired], or what is wrong with edited args.
func (q *Questions) Refuses(step string, a Answer, now time.Time) error {
	ask := q.asks[step]
	var err error
	switch {
	case q.Contents != Full:
		return fmt.Errorf("run %s: %w", q.run, ErrDigestsOnly)
	case ask == nil:
		err = fmt.Errorf("%w; %s", ErrNoAsk, q.asking())
	case a.Ask != value.Digest{} && a.Ask != ask.Digest:
		err = fmt.Errorf("%w like this: it was asked anew since", ErrNoAsk)
	case ask.decided:
		err = journal.ErrDecided
	case now.After(ask.Expires):
		err = ErrExpired
	case !a.Args.IsZero():
		err = q.checkEdit(ask, a.Args)
	}
	if err != nil {
		err = fmt.Errorf("run %s, step %q: %w", q.run, step, err)
	}
	return err
}

// asking names the steps that ask a person.
func (q *Questions) asking() string {
	var steps []string
	for _, a := range q.Asks() {
		steps = append(steps, a.Step)
	}
	return named(steps, "asks")
}

// maxSteps bounds the steps that an error names: a line of them.
const maxSteps = 20

// named says of which steps something holds: "what asks is step 1.1 or 1.2".
func named(steps []string, what string) string {
	if len(steps) == 0 {
		return "no step of the run " + what
	}
	more := ""
	if n := len(steps) - maxSteps; n > 0 {
		steps, more = steps[:maxSteps], fmt.Sprintf(" and %d more", n)
	}
	quoted := make([]string, len(steps))
	for i, s := range steps {
		quoted[i] = strconv.Quote(s)
	}
	return "what " + what + " is " + strings.Join(quoted, ", ") + more
}

// decide records a decision about a step, by which it is named where another was
// recorded before.
func decide(ctx context.Context, store *journal.Store, id, step string, d journal.Decision) error {
	err := store.Decide(ctx, id, d)
	if errors.Is(err, journal.ErrDecided) {
		err = fmt.Errorf("run %s, step %q: %w", id, step, journal.ErrDecided)
	}
	return err
}

// checkEdit judges args that a person wrote in place of those that were asked
// about: they must fit the tool, and hold no secret.
func (q *Questions) checkEdit(ask *openAsk, args value.Value) error {
	c, err := q.Catalogue()
	if err != nil {
		return err
	}
	d := c.Get(ask.Tool)
	if d == nil {
		return fmt.Errorf("tool %q: %w", ask.Tool, ErrChanged)
	}
	if args.Kind() != value.Object {
		return fmt.Errorf("%w: they are no object", ErrBadEdit)
	}
	if f := d.CheckArgs(args); f != nil {
		return fmt.Errorf("%w: %w", ErrBadEdit, f)
	}
	d.MapSecrets(args, func(pointer string, v value.Value) value.Value {
		if !tool.IsSecretName(v) && err == nil {
			err = fmt.Errorf("%w: %s is a secret, which a journal must not hold", ErrBadEdit, pointer)
		}
		return v
	})
	return err
}

// A Resolution is what a person knows of a call whose outcome was lost.
type Resolution struct {
	What   machine.Resolution
	Output value.Value // with machine.Happened
	By     string      // empty: the user of this process
}

// Resolve records what became of the lost call of a step. An output that does
// not fit the output schema that the tool had is refused with [ErrUnfit]. It does
// not resume the run.
func Resolve(ctx context.Context, store *journal.Store, id, step string, r Resolution) error {
	q, err := LoadQuestions(ctx, store, id)
	if err != nil {
		return err
	}
	c, err := q.Catalogue()
	if err != nil {
		return err
	}
	l := q.lost[step]
	if l == nil {
		return fmt.Errorf("run %s, step %q: %w; %s", id, step, ErrNotLost, q.waitingLost(c))
	}
	d := c.Get(l.tool)
	if d == nil {
		return fmt.Errorf("run %s, step %q: %w", id, step, ErrNotLost)
	}
	if d.Effects.Repeatable() {
		return fmt.Errorf("run %s, step %q: %w: its tool is safe to repeat, so resume calls it again", id, step, ErrNotLost)
	}
	feeds, err := q.feedsSecret(store, c, step)
	if err != nil {
		return err
	}
	word := "gave_up"
	switch r.What {
	case machine.Happened:
		word = "happened"
		if feeds {
			return fmt.Errorf("run %s, step %q: %w: its output feeds a secret arg; say that it did not happen, and it is called again, or give it up", id, step, ErrSecretOutput)
		}
		if f := d.CheckOutput(r.Output); f != nil {
			return fmt.Errorf("run %s, step %q: %w: %w", id, step, ErrUnfit, f)
		}
	case machine.DidNotHappen:
		word, r.Output = "did_not_happen", value.Value{}
	case machine.GiveUp:
		r.Output = value.Value{}
	}
	if r.By == "" {
		r.By = Whoami()
	}
	return decide(ctx, store, id, step, journal.Decision{
		Key:  "lost:" + strconv.Itoa(l.index),
		Kind: kindResolution,
		Body: of(
			value.Member{Key: "step", Value: text(step)},
			value.Member{Key: "of", Value: value.Int(int64(l.index))},
			value.Member{Key: "resolution", Value: text(word)},
			value.Member{Key: "output", Value: r.Output},
			value.Member{Key: "by", Value: text(r.By)},
		),
	})
}

// waitingLost names the steps that wait for a resolution.
func (q *Questions) waitingLost(c *tool.Catalogue) string {
	var steps []string
	for _, step := range q.Lost() {
		if d := c.Get(q.ToolOf(step)); d != nil && !d.Effects.Repeatable() {
			steps = append(steps, step)
		}
	}
	return named(steps, "waits for one")
}

// Whoami names the user of this process for a record: the login name, or the
// number where there is none.
func Whoami() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "uid " + strconv.Itoa(os.Getuid())
}
