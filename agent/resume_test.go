package agent_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/scripted"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// errKilled is where the process of a test dies.
var errKilled = errors.New("killed")

// journal keeps replies and outcomes, and dies after a number of them.
type journal struct {
	agent.Recorded
	lives int // records before it dies
	made  []string
}

func (j *journal) dies() bool { j.lives--; return j.lives < 0 }

func (j *journal) Reply(_ context.Context, e agent.ReplyEvent) error {
	if j.dies() {
		return errKilled
	}
	j.Replies = append(j.Replies, e)
	return nil
}

func (j *journal) Call(_ context.Context, r agent.Request) (agent.Outcome, error) {
	j.made = append(j.made, r.Step)
	r.Begins()
	if j.dies() {
		return agent.Outcome{}, errKilled // made, and nothing recorded of it
	}
	o := agent.Outcome{Output: value.MustText("result of " + r.Step)}
	if r.Step == "2.1" {
		o = agent.Outcome{Failure: tool.Errorf("2.1 broke")}
	}
	j.Outcomes[r.Step] = o
	return o, nil
}

// A run that is killed after any of its records ends as if it had not been: the
// same transcript byte for byte, and no call with a durable outcome is made
// again.
func TestKilledAnywhere(t *testing.T) {
	replies := []*model.Reply{
		says(calling("a", "search", `{"q":"x"}`), calling("b", "search", `{"q":"y"}`)),
		{Text: "thinking"},
		says(calling("c", "search", `{"q":"z"}`), calling("c", "nosuch", `{`), calling("s", "submit", `{}`)),
		says(calling("d", "search", `{}`), final),
	}
	replies[1], replies[2] = replies[2], replies[1]
	config := func(j *journal) agent.Config[answer] {
		return agent.Config[answer]{Model: scripted.New(replies...), Tools: catalogue(t, "search"), Caller: j, Recorder: j}
	}
	task := agent.Task{System: "S", User: "U"}
	whole := &journal{Recorded: agent.Recorded{Outcomes: map[string]agent.Outcome{}}, lives: 100}
	want, err := build(t, config(whole)).Run(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	records := 100 - whole.lives
	if records != 8 {
		t.Fatalf("%d records, want 4 replies and 4 outcomes", records)
	}
	for lives := range records {
		j := &journal{Recorded: agent.Recorded{Outcomes: map[string]agent.Outcome{}}, lives: lives}
		if _, err := build(t, config(j)).Run(t.Context(), task); !errors.Is(err, errKilled) {
			t.Fatalf("killed after %d records: got %v", lives, err)
		}
		durable := len(j.Outcomes)
		j.lives, j.made = 100, nil
		var begun, ended []string
		c := config(j)
		c.Watch = func(e agent.Event) {
			switch {
			case e.Kind == agent.CallBegins:
				begun = append(begun, e.Step)
			case e.Kind == agent.CallEnds && e.Recorded:
				ended = append(ended, e.Step)
			}
		}
		kept, replies := maps.Clone(j.Outcomes), len(j.Replies)
		got, err := build(t, c).Resume(t.Context(), task, j.Recorded)
		if err != nil {
			t.Fatalf("killed after %d records: resumed: %v", lives, err)
		}
		if len(j.made) != len(whole.made)-durable {
			t.Errorf("killed after %d records, %d outcomes: the resumed run made %q", lives, durable, j.made)
		}
		// Whoever watches sees which calls are made now, and which were before.
		if !slices.Equal(begun, j.made) {
			t.Errorf("killed after %d records: shown as made %q, made %q", lives, begun, j.made)
		}
		for step := range kept {
			if !slices.Contains(ended, step) {
				t.Errorf("killed after %d records: %s is not shown as recorded, but %q", lives, step, ended)
			}
		}
		for _, step := range ended {
			if slices.Contains(j.made, step) || step > fmt.Sprintf("%d.9", replies) {
				t.Errorf("killed after %d records: %s is shown as recorded, and was not", lives, step)
			}
		}
		var g, w strings.Builder
		transcript(&g, got.Transcript)
		transcript(&w, want.Transcript)
		if g.String() != w.String() || fmt.Sprint(got.Usage.Value()) != fmt.Sprint(want.Usage.Value()) || len(got.Trace) != len(want.Trace) {
			t.Errorf("killed after %d records:\n%s\nwant\n%s", lives, g.String(), w.String())
		}
	}
}

// B1: after a cancelled call the run can be taken up, and what is sent then
// passes the check.
func TestB01_ResumedAfterCancel(t *testing.T) {
	j := &journal{Recorded: agent.Recorded{Outcomes: map[string]agent.Outcome{}}, lives: 100}
	ctx, cancel := context.WithCancel(t.Context())
	c := agent.Config[answer]{
		Model: scripted.New(says(calling("a", "search", "{}"), calling("b", "search", "{}")), says(final)),
		Tools: catalogue(t, "search"), Recorder: j,
		Caller: calls(func(context.Context, agent.Request) (agent.Outcome, error) {
			cancel()
			return agent.Outcome{Waiting: agent.ForResolution, Reason: "no answer within the grace"}, nil
		}),
	}
	res, err := build(t, c).Run(ctx, agent.Task{User: "U"})
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := agent.CheckTranscript(res.Transcript); err != nil {
		t.Error(err)
	}
	if first := res.Transcript[2]; !first.Failed || !strings.Contains(first.Text, "cancelled: no answer within the grace") {
		t.Errorf("the cancelled call is answered %q", first.Text)
	}
	c.Caller = j
	if res, err = build(t, c).Resume(t.Context(), agent.Task{User: "U"}, j.Recorded); err != nil {
		t.Fatal(err)
	}
	if err := agent.CheckTranscript(res.Transcript); err != nil || res.Submission.Answer != "done" {
		t.Errorf("resumed: %v, %+v", err, res.Submission)
	}
}

// The deadline of a resumed run counts the time before, and not the pause.
func TestDeadlineAcrossAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recorded agent.Recorded
		var choices []model.Choice
		replies := []*model.Reply{says(calling("a", "pay", "{}")), says(calling("b", "pay", "{}")), says(final)}
		c := agent.Config[answer]{
			Tools:    catalogue(t, "pay"),
			Settings: agent.Settings{Deadline: time.Minute},
			Recorder: tape(func(e agent.ReplyEvent) error { recorded.Replies = append(recorded.Replies, e); return nil }),
			Model: asks(func(_ context.Context, req *model.Request) (*model.Reply, error) {
				time.Sleep(25 * time.Second)
				choices = append(choices, req.Choice)
				return replies[req.Round-1], nil
			}),
			Caller: calls(func(context.Context, agent.Request) (agent.Outcome, error) {
				return agent.Outcome{Waiting: agent.ForDecision}, nil
			}),
		}
		var waiting *agent.WaitingError
		if _, err := build(t, c).Run(t.Context(), agent.Task{User: "U"}); !errors.As(err, &waiting) {
			t.Fatal(err)
		}
		time.Sleep(24 * time.Hour) // the person sleeps
		c.Caller = calls(func(context.Context, agent.Request) (agent.Outcome, error) {
			time.Sleep(15 * time.Second)
			return ok, nil
		})
		res, err := build(t, c).Resume(t.Context(), agent.Task{User: "U"}, recorded)
		if err != nil {
			t.Fatal(err)
		}
		want := []model.Choice{{}, {}, model.Force("submit")} // after 25, 65, and then it is late
		if fmt.Sprint(choices) != fmt.Sprint(want) || res.Rounds != 3 {
			t.Errorf("choices: got %v, want %v", choices, want)
		}
		if last := recorded.Replies[len(recorded.Replies)-1]; !last.Late {
			t.Errorf("the last reply is recorded as %+v", last)
		}
	})
}

func TestRecordedThatMakesNoSense(t *testing.T) {
	a := build(t, agent.Config[answer]{Model: scripted.New()})
	for name, r := range map[string]agent.Recorded{
		"a gap":        {Replies: []agent.ReplyEvent{{Round: 2, Reply: says()}}},
		"no reply":     {Replies: []agent.ReplyEvent{{Round: 1}}},
		"still waits":  {Outcomes: map[string]agent.Outcome{"1.1": {Waiting: agent.ForDecision}}},
		"neither ends": {Outcomes: map[string]agent.Outcome{"1.1": {}}},
	} {
		if res, err := a.Resume(t.Context(), agent.Task{User: "U"}, r); err == nil || res == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A journal that fails stops the run before a call is made.
func TestAReplyThatIsNotDurable(t *testing.T) {
	made := 0
	a := build(t, agent.Config[answer]{
		Model: scripted.New(says(calling("a", "search", "{}"))), Tools: catalogue(t, "search"),
		Caller:   calls(func(context.Context, agent.Request) (agent.Outcome, error) { made++; return ok, nil }),
		Recorder: tape(func(agent.ReplyEvent) error { return errors.New("disk full") }),
	})
	if _, err := a.Run(t.Context(), agent.Task{User: "U"}); err == nil || !strings.Contains(err.Error(), "disk full") || made != 0 {
		t.Errorf("got %v after %d calls", err, made)
	}
}
