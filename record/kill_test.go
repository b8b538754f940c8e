package record_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// The test kills copies of its own binary. What a copy does, and where it ends
// itself, comes in these variables.
const (
	childDir    = "CALLSHEET_TEST_DIR"
	childResume = "CALLSHEET_TEST_RESUME" // id of a run to go on with; "" starts one
	childDeath  = "CALLSHEET_TEST_DEATH"  // "commit N", "before N", "after N": of commits, effects and answers
	childKind   = "CALLSHEET_TEST_KIND"   // "agent", otherwise a plan
	childSlow   = "CALLSHEET_TEST_SLOW"
	childMode   = "CALLSHEET_TEST_MODE" // "", "parallel", "eager"
	childBudget = "CALLSHEET_TEST_BUDGET"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		live := child
		if os.Getenv(childKind) == record.KindAgent {
			live = agentChild
		}
		if err := live(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// twenty is a plan of 20 steps: reads, effects that must not be doubled, and
// effects that may.
func twenty() string {
	var b strings.Builder
	b.WriteByte('[')
	for i := range 20 {
		if i > 0 {
			b.WriteByte(',')
		}
		name := []string{"read", "send", "put", "keyed"}[i%4]
		fmt.Fprintf(&b, `{"id":"s%d","tool":%q,"args":{"n":%d`, i, name, i)
		if i >= 3 {
			fmt.Fprintf(&b, `,"of":"$s%d.step"`, i-3)
		}
		b.WriteString("}}")
	}
	return b.String() + "]"
}

// effects is the world: a line for every effect that happened, in a file that
// the journal knows nothing of.
type effects struct{ path string }

func (e effects) add(step string) error {
	f, err := os.OpenFile(e.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(step + "\n")
	return errors.Join(err, f.Close())
}

func (e effects) count() map[string]int {
	text, _ := os.ReadFile(e.path)
	n := map[string]int{}
	for _, line := range strings.Fields(string(text)) {
		n[line]++
	}
	return n
}

// death ends the process by a signal that nothing can catch when it is the n-th
// time at this place.
type death struct {
	place string
	n     int
}

func (d *death) at(place string) {
	if d == nil || d.place != place {
		return
	}
	if d.n--; d.n == 0 {
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Hour)
	}
}

func killTools(e effects, d *death, slow time.Duration) (*tool.Set, error) {
	do := func(_ context.Context, c *tool.Call) (value.Value, error) {
		d.at("before")
		time.Sleep(slow)
		if err := e.add(c.Step); err != nil {
			return value.Value{}, err
		}
		d.at("after")
		return value.ObjectOf(value.Member{Key: "step", Value: value.MustText(c.Step)}), nil
	}
	return tool.NewSet(
		tool.Tool{Declaration: tool.Declaration{Name: "read", Effects: tool.Effects{ReadOnly: true}}, Handler: do},
		tool.Tool{Declaration: tool.Declaration{Name: "send", Effects: tool.Effects{Destructive: true}}, Handler: do},
		tool.Tool{Declaration: tool.Declaration{Name: "put", Effects: tool.Effects{Idempotent: true}}, Handler: do},
		tool.Tool{Declaration: tool.Declaration{Name: "keyed", Effects: tool.Effects{Keyed: true}}, Handler: do},
	)
}

func killOptions(mode, budget string) record.Options {
	var o record.Options
	switch mode {
	case "parallel":
		o.Run.Workers = 4
	case "eager":
		o.Run.Eager = true
	}
	if n, err := strconv.Atoi(budget); err == nil {
		o.Run.Budget = &n
	}
	return o
}

// child runs or resumes the plan in dir, and dies where it is told to.
func child(dir string) error {
	var d *death
	if s := os.Getenv(childDeath); s != "" {
		d = &death{}
		if _, err := fmt.Sscanf(s, "%s %d", &d.place, &d.n); err != nil {
			return err
		}
	}
	store, err := journal.Open(filepath.Join(dir, "journal.db"), journal.Options{BeforeCommit: func() error {
		d.at("commit")
		return nil
	}})
	if err != nil {
		return err
	}
	defer store.Close()
	slow, _ := time.ParseDuration(os.Getenv(childSlow))
	tools, err := killTools(effects{filepath.Join(dir, "effects")}, d, slow)
	if err != nil {
		return err
	}
	opt := killOptions(os.Getenv(childMode), os.Getenv(childBudget))
	if id := os.Getenv(childResume); id != "" {
		_, err = record.Resume(context.Background(), store, id, tools, opt)
		return err
	}
	p, err := plan.Decode([]byte(twenty()), plan.Limits{})
	if err != nil {
		return err
	}
	_, err = record.Run(context.Background(), store, p, tools, opt)
	return err
}

// spawn runs a child to its death or end.
func spawn(t *testing.T, dir string, env map[string]string, kill time.Duration) (killed bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if kill > 0 {
		timer := time.AfterFunc(kill, func() { cmd.Process.Kill() })
		defer timer.Stop()
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ProcessState.Sys().(syscall.WaitStatus).Signaled()) {
		t.Fatalf("the child failed by itself: %v: %s", err, stderr.String())
	}
	return err != nil
}

// TestKilledRunsGoOn kills a run of 20 steps with effects at every commit,
// before and after every effect, and at random instants, some of them twice,
// resumes it, and holds what must hold (spec/hostile.md 53, 54).
func TestKilledRunsGoOn(t *testing.T) {
	if testing.Short() {
		t.Skip("kills some two hundred processes; the full run does it")
	}
	const undisturbed = 20
	rnd := rand.New(rand.NewPCG(1, 1))
	kills := 0
	try := func(t *testing.T, mode string, budget int, deaths []string, random bool) {
		t.Helper()
		dir := t.TempDir()
		world := effects{filepath.Join(dir, "effects")}
		env := map[string]string{childMode: mode}
		if budget > 0 {
			env[childBudget] = strconv.Itoa(budget)
		}
		id := ""
		var settled map[string]int // effects of steps with a durable outcome, as of the last death
		for _, d := range deaths {
			env[childResume] = id
			env[childDeath] = d
			kill := time.Duration(0)
			if random {
				env[childDeath], env[childSlow] = "", "5ms"
				kill = time.Duration(5+rnd.IntN(50)) * time.Millisecond
			}
			if spawn(t, dir, env, kill) {
				kills++
			}
			store, h := reopen(t, dir)
			if h == nil {
				store.Close()
				continue // it died before it had begun
			}
			id = h.Summary.ID
			now := world.count()
			for step, n := range settled {
				if now[step] != n {
					t.Errorf("step %s had a durable outcome after %d calls and was called again: %d", step, n, now[step])
				}
			}
			settled = map[string]int{}
			for _, p := range h.Past {
				if p.Event.Kind == machine.Answered && !p.Begun {
					settled[p.Step] = now[p.Step]
				}
			}
			answer(t, store, h, world)
			store.Close()
			if h.Summary.Finished {
				break // it came to its end before the kill
			}
		}
		// The last life is here.
		store, h := reopen(t, dir)
		defer store.Close()
		tools, err := killTools(world, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		opt := killOptions(mode, env[childBudget])
		if h == nil {
			return
		}
		before := world.count()
		var r *machine.Report
		for lives := 0; ; lives++ {
			if h.Summary.Finished {
				if r, err = h.Report(); err != nil {
					t.Fatal(err)
				}
				break
			}
			if r, err = record.Resume(t.Context(), store, id, tools, opt); err != nil {
				t.Fatal(err)
			}
			if h, err = record.Load(t.Context(), store, id); err != nil {
				t.Fatal(err)
			}
			if !answer(t, store, h, world) || lives > 40 {
				break
			}
		}
		now := world.count()
		for step, n := range settled {
			if now[step] != n {
				t.Errorf("step %s had a durable outcome and was called again", step)
			}
		}
		for step, n := range before {
			if now[step] < n {
				t.Errorf("an effect of step %s was lost", step)
			}
		}
		reruns := 0
		for i := range r.Steps {
			s := &r.Steps[i]
			for _, a := range s.Attempts {
				if a.Rerun {
					reruns++
				}
			}
			if s.Tool == "send" && now[s.ID] > 1 {
				t.Errorf("step %s, which must not be doubled, happened %d times", s.ID, now[s.ID])
			}
			if s.Status == machine.OK && now[s.ID] == 0 {
				t.Errorf("step %s is ok and never happened", s.ID)
			}
		}
		if budget > 0 {
			if r.Calls > budget {
				t.Errorf("%d calls under a budget of %d", r.Calls, budget)
			}
			for i := range r.Steps {
				if s := r.Steps[i].Status; s != machine.OK && s != machine.BudgetExhausted && s != machine.Skipped {
					t.Errorf("step %s is %s", r.Steps[i].ID, s)
				}
			}
		} else if !r.OK() || r.Calls != undisturbed+reruns {
			t.Errorf("%d calls with %d reruns: %s", r.Calls, reruns, r.AppendJSON(nil))
		}
		rep, err := store.Verify(t.Context(), id, journal.Trust{})
		if err != nil || !rep.OK() {
			t.Errorf("the chain does not hold: %v, %+v", err, rep)
		}
	}
	modes := []string{"", "parallel", "eager"}
	for n := 1; n <= 46; n++ {
		t.Run(fmt.Sprint("commit/", n), func(t *testing.T) { try(t, "", 0, []string{fmt.Sprint("commit ", n)}, false) })
	}
	for n := 1; n <= 20; n++ {
		for i, place := range []string{"before", "after"} {
			t.Run(fmt.Sprint(place, "/", n), func(t *testing.T) { try(t, modes[(n+i)%3], 0, []string{fmt.Sprint(place, " ", n)}, false) })
		}
	}
	for n := 1; n <= 30; n++ {
		t.Run(fmt.Sprint("thrice/", n), func(t *testing.T) {
			try(t, modes[n%3], 0, []string{fmt.Sprint("after ", 1+n%20), fmt.Sprint("commit ", 1+n%5), fmt.Sprint("before ", 1+n%3)}, false)
		})
	}
	for n := 1; n <= 20; n++ {
		t.Run(fmt.Sprint("budget/", n), func(t *testing.T) { try(t, modes[n%3], undisturbed, []string{fmt.Sprint("after ", n)}, false) })
	}
	for n := range 30 {
		t.Run(fmt.Sprint("random/", n), func(t *testing.T) { try(t, modes[n%3], 0, []string{"", ""}, true) })
	}
	t.Logf("%d kills", kills)
	if kills < 200 {
		t.Errorf("%d kills, want at least 200", kills)
	}
}

// reopen loads the only run of a journal; nil if it never was on the disk.
func reopen(t *testing.T, dir string) (*journal.Store, *record.History) {
	t.Helper()
	store, err := journal.Open(filepath.Join(dir, "journal.db"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	runs, err := store.Runs(t.Context(), journal.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) == 0 {
		return store, nil
	}
	h, err := record.Load(t.Context(), store, runs[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	return store, h
}

// answer settles what waits for a resolution by looking at the world.
func answer(t *testing.T, store *journal.Store, h *record.History, world effects) (any bool) {
	t.Helper()
	happened := world.count()
	for _, s := range h.Lost() {
		r := record.Resolution{What: machine.DidNotHappen}
		if happened[s] > 0 {
			r = record.Resolution{What: machine.Happened, Output: value.ObjectOf(value.Member{Key: "step", Value: value.MustText(s)})}
		}
		err := record.Resolve(t.Context(), store, h.Summary.ID, s, r)
		if errors.Is(err, record.ErrNotLost) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		any = true
	}
	return any
}
