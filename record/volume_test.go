package record_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/run"
)

// attempts is how many calls the hostile model of case 87 wants denied.
const attempts = 100_000

// no denies every call.
var no = judge(func(call.Request) call.Decision {
	return call.Decision{Verdict: machine.Deny, Code: "rule", Message: "never"}
})

// deniedSteps is a plan of n calls, each of its own args.
func deniedSteps(n int) string {
	steps := make([]string, n)
	for i := range steps {
		steps[i] = fmt.Sprintf(`{"id":"s%d","tool":"send","args":{"n":%d}}`, i, i)
	}
	return "[" + strings.Join(steps, ",") + "]"
}

// A plan cannot fill the journal with denials: its length bounds them, each is
// one record, and they share their commits.
func TestHostile087_DenialsOfAPlanAreBoundedAndShareCommits(t *testing.T) {
	if _, err := plan.Decode([]byte(deniedSteps(attempts)), plan.Limits{Bytes: 1 << 30}); !refusedAs(err, plan.CodeTooManySteps) {
		t.Fatalf("a plan of %d steps: got %v, want %s", attempts, err, plan.CodeTooManySteps)
	}
	const steps = plan.DefaultSteps
	w := newWorld(t)
	report, err := record.Run(t.Context(), w.store, decode(t, deniedSteps(steps)), w.tools, record.Options{Run: run.Options{Gate: no}})
	if err != nil {
		t.Fatal(err)
	}
	if report.Calls != 0 || len(w.calls) != 0 {
		t.Errorf("%d calls counted, %d made, want none", report.Calls, len(w.calls))
	}
	for i := range report.Steps {
		if got := report.Steps[i].Status; got != machine.Denied {
			t.Fatalf("step %d is %s, want denied", i, got)
		}
	}
	if kinds := recordsOf(t, w, report.Run); kinds["decision"] != steps || kinds["start"] != 1 || kinds["end"] != 1 || len(kinds) != 4 {
		t.Errorf("records: got %v, want one decision for each of %d steps, and checkpoints", kinds, steps)
	}
	// The exact number hangs on the speed of the disk; one sync for each would be
	// what the attack wants.
	if syncs := w.store.Stats().Syncs; syncs > steps/2 {
		t.Errorf("%d denials cost %d syncs", steps, syncs)
	}
}

// The asks of a wave share their commits, and nobody is told of one before it is
// in the file.
func TestAsksOfAWaveShareCommits(t *testing.T) {
	const steps, looked = 2_000, 400
	w := newWorld(t)
	var told []string
	opt := record.Options{Run: run.Options{Gate: asksSend{}}}
	opt.OnAsk = func(a record.Ask) {
		if told = append(told, a.Step); len(told)%looked != 1 {
			return
		}
		q, err := record.LoadQuestions(t.Context(), w.store, a.Run)
		if err != nil || q.Refuses(a.Step, record.Answer{Ask: a.Digest, Allow: true}, time.Now()) != nil {
			t.Errorf("told of %s, which cannot be answered: %v", a.Step, err)
		}
	}
	report, err := record.Run(t.Context(), w.store, decode(t, deniedSteps(steps)), w.tools, opt)
	if err != nil {
		t.Fatal(err)
	}
	if len(told) != steps {
		t.Fatalf("told of %d asks, want %d", len(told), steps)
	}
	for i, step := range told {
		if report.Steps[i].ID != step || report.Steps[i].Status != machine.Waiting {
			t.Fatalf("told of %s as number %d, which is %s, %s", step, i, report.Steps[i].ID, report.Steps[i].Status)
		}
	}
	if kinds := recordsOf(t, w, report.Run); kinds["decision"] != steps {
		t.Errorf("records: got %v, want a decision for each of %d steps", kinds, steps)
	}
	if syncs := w.store.Stats().Syncs; syncs > steps/2 {
		t.Errorf("%d asks cost %d syncs", steps, syncs)
	}
}

// Of an ask that could not be written nobody is told, and the run stops.
func TestAnAskThatIsNotRecordedIsNotTold(t *testing.T) {
	w := newWorld(t)
	disk := errors.New("no space left on device")
	store, err := journal.Open(filepath.Join(t.TempDir(), "full.db"), journal.Options{BeforeCommit: func() error { return disk }})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	opt := record.Options{Run: run.Options{Gate: asksSend{}}, OnAsk: func(a record.Ask) { t.Errorf("told of %s", a.Step) }}
	opt.Run.Observer = func(e run.Event) {
		if e.Kind == run.Asked {
			t.Errorf("shown that %s asks", e.Step)
		}
	}
	r, err := record.Run(t.Context(), store, decode(t, deniedSteps(3)), w.tools, opt)
	if !errors.Is(err, journal.ErrJournal) || !errors.Is(err, disk) || len(w.calls) != 0 {
		t.Errorf("got %v and calls %v, want %v because of %v and none; report %s", err, w.calls, journal.ErrJournal, disk, r.AppendJSON(nil))
	}
}

// An error of a step names the steps that ask, but not all of many.
func TestAnAnswerToNothingNamesWhatAsks(t *testing.T) {
	w := newWorld(t)
	opt := record.Options{Run: run.Options{Gate: asksSend{}}}
	report, err := record.Run(t.Context(), w.store, decode(t, deniedSteps(23)), w.tools, opt)
	if err != nil {
		t.Fatal(err)
	}
	err = record.Decide(t.Context(), w.store, report.Run, "nope", record.Answer{Allow: true}, opt)
	if !errors.Is(err, record.ErrNoAsk) || !strings.Contains(err.Error(), `what asks is "s0", "s1", `) || !strings.HasSuffix(err.Error(), `"s19" and 3 more`) {
		t.Errorf("got %v, want the first 20 steps that ask and how many more", err)
	}
}

// An agent's denials spend its budget like calls, so that the reply of 10^5 is
// kept once and judged only as far as the budget goes.
func TestHostile087_DenialsOfAnAgentSpendItsBudget(t *testing.T) {
	calls := make([]string, attempts)
	for i := range calls {
		calls[i] = fmt.Sprintf(`{"id": "c%d", "name": "send", "arguments": {"n": %d}}`, i, i)
	}
	script := `[{"tool_calls": [` + strings.Join(calls, ", ") + `]}, {"tool_calls": [{"name": "submit", "arguments": {"answer": "done"}}]}]`
	w := newWorld(t)
	c := agentConfig(t, script)
	res, err := record.RunAgent(t.Context(), w.store, w.tools, c, agentTask, record.Options{Run: run.Options{Gate: no}})
	if err != nil {
		t.Fatal(err)
	}
	if res.Calls != agent.DefaultMaxToolCalls || len(w.calls) != 0 {
		t.Errorf("%d calls spent, %d made, want %d and none", res.Calls, len(w.calls), agent.DefaultMaxToolCalls)
	}
	if kinds := recordsOf(t, w, res.Run); kinds["decision"] != agent.DefaultMaxToolCalls || kinds["reply"] != 2 || len(kinds) != 5 {
		t.Errorf("records: got %v, want a decision for each of %d calls and two replies", kinds, agent.DefaultMaxToolCalls)
	}
}

func refusedAs(err error, code string) bool {
	var e *plan.Error
	return errors.As(err, &e) && len(e.Faults) > 0 && e.Faults[0].Code == code
}

// recordsOf counts the records of a run by kind; the chain must hold.
func recordsOf(t *testing.T, w *world, id string) map[string]int {
	t.Helper()
	if rep, err := w.store.Verify(t.Context(), id, journal.Trust{}); err != nil || !rep.OK() {
		t.Errorf("the chain does not hold: %v, %+v", err, rep)
	}
	kinds := map[string]int{}
	for e, err := range w.store.Entries(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		kinds[e.Kind]++
	}
	return kinds
}
