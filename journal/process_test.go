//go:build linux || darwin

package journal_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/value"
)

// TestMain lets the test binary be the other processes of a test.
func TestMain(m *testing.M) {
	if role := os.Getenv("JOURNAL_TEST_ROLE"); role != "" {
		if err := roles[role](os.Getenv("JOURNAL_TEST_PATH"), os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var roles = map[string]func(path string, args []string) error{
	"append": appendRole,
	"hold":   holdRole,
	"decide": decideRole,
	"full":   fullRole,
}

// process prepares another process of this test.
func process(t testing.TB, role, path string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], args...)
	c.Env = append(os.Environ(), "JOURNAL_TEST_ROLE="+role, "JOURNAL_TEST_PATH="+path)
	c.Stderr = os.Stderr
	return c
}

// appendRole appends to runs of its own and prints "<run> <records>" for every
// record that it was told is durable. It ends after args[1] records in each of
// args[0] runs, or when it is killed.
func appendRole(path string, args []string) error {
	runs, _ := strconv.Atoi(args[0])
	records, _ := strconv.Atoi(args[1])
	ctx := context.Background()
	s, err := journal.Open(path, journal.Options{})
	if err != nil {
		return err
	}
	errs := make(chan error)
	for range runs {
		go func() {
			r, err := s.Create(ctx, journal.Start{Kind: "plan"})
			for i := 1; err == nil && i <= records; i++ {
				r.Append(journal.Record{Kind: "intent", Deferred: true, Body: value.Int(int64(i))})
				if err = r.AppendWait(ctx, journal.Record{Kind: "outcome", Body: value.Int(int64(i))}); err == nil {
					fmt.Printf("%s %d\n", r.ID(), i)
				}
			}
			if err == nil {
				_, err = r.Finish(ctx, journal.Record{Kind: "end"})
			}
			errs <- err
		}()
	}
	for range runs {
		err = errors.Join(err, <-errs)
	}
	return errors.Join(err, s.Close())
}

func TestEightProcessesAppendAtOnce(t *testing.T) {
	s := newStore(t)
	const processes, runs, records = 8, 4, 25
	var wg sync.WaitGroup
	for range processes {
		wg.Go(func() {
			out, err := process(t, "append", s.Path(), strconv.Itoa(runs), strconv.Itoa(records)).Output()
			if err != nil || strings.Count(string(out), "\n") != runs*records {
				t.Errorf("%v, %d lines", err, strings.Count(string(out), "\n"))
			}
		})
	}
	wg.Wait()
	list, err := s.Runs(t.Context(), journal.Filter{})
	if err != nil || len(list) != processes*runs {
		t.Fatalf("%d runs, %v; want %d", len(list), err, processes*runs)
	}
	for _, r := range list {
		got, err := s.Verify(t.Context(), r.ID, journal.Trust{Keys: []string{s.Key().Fingerprint()}})
		if err != nil || !got.OK() || !got.Final || got.Head.Records != 2*records+3 {
			t.Errorf("run %s: %+v, %v", r.ID, got, err)
		}
	}
}

// TestKilledAtRandom kills writers and checks that what they were told is
// durable is there.
func TestKilledAtRandom(t *testing.T) {
	s := newStore(t)
	kills := 25
	if testing.Short() {
		kills = 4
	}
	for range kills {
		c := process(t, "append", s.Path(), "5", "1000000")
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		told := map[string]int{}
		in := bufio.NewScanner(out)
		for n := rand.IntN(1500) + 1; n > 0 && in.Scan(); n-- {
			note(told, in.Text())
		}
		c.Process.Kill()
		for in.Scan() { // what it had still been told
			note(told, in.Text())
		}
		c.Wait()
		for id, n := range told {
			report, err := s.Verify(t.Context(), id, journal.Trust{})
			if err != nil || !report.OK() || report.Final {
				t.Errorf("run %s: %+v, %v", id, report, err)
				continue
			}
			if !strings.Contains(strings.Join(report.Notes(), "\n"), "unfinished") {
				t.Errorf("run %s: notes %v", id, report.Notes())
			}
			outcomes := 0
			for e, err := range s.Entries(t.Context(), id, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if e.Kind == "outcome" {
					outcomes++
				}
			}
			if outcomes < n {
				t.Errorf("run %s: %d outcomes, but %d were acknowledged", id, outcomes, n)
			}
			// The kernel has given it back.
			r, err := s.OpenRun(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Finish(t.Context(), record("end", `1`)); err != nil {
				t.Error(err)
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if report, err := s.Verify(t.Context(), id, journal.Trust{}); err != nil || !report.OK() || !report.Final {
				t.Errorf("run %s after going on: %+v, %v", id, report, err)
			}
		}
	}
}

// note takes "<run> <records>", unless the kill cut it short.
func note(told map[string]int, line string) {
	id, n, ok := strings.Cut(line, " ")
	if i, err := strconv.Atoi(n); ok && err == nil && len(id) == 26 {
		told[id] = max(told[id], i)
	}
}

// holdRole opens the run args[0], says so, takes in its inbox when told to on
// stdin, and ends when stdin does.
func holdRole(path string, args []string) error {
	ctx := context.Background()
	s, err := journal.Open(path, journal.Options{})
	if err != nil {
		return err
	}
	r, err := s.Create(ctx, journal.Start{ID: args[0], Kind: "plan"})
	if errors.Is(err, journal.ErrRunTaken) {
		fmt.Println("taken")
		return s.Close()
	}
	if err == nil {
		err = r.AppendWait(ctx, journal.Record{Kind: "event"})
	}
	if err != nil {
		return err
	}
	fmt.Println("held")
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		entries, err := r.AwaitInbox(ctx)
		if err != nil {
			return err
		}
		for _, e := range entries {
			fmt.Println(e.Kind, e.Slim())
		}
	}
	return errors.Join(r.Close(), s.Close())
}

// hold starts a process that holds a run. say makes it take in its inbox.
func hold(t *testing.T, s *journal.Store, id string) (say func(), answers *bufio.Scanner, c *exec.Cmd, end func()) {
	t.Helper()
	c = process(t, "hold", s.Path(), id)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	answers = bufio.NewScanner(out)
	if !answers.Scan() || answers.Text() != "held" {
		t.Fatalf("the other process says %q", answers.Text())
	}
	end = func() {
		in.Close()
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
	return func() { io.WriteString(in, "\n") }, answers, c, end
}

func TestHostile058_OneRunInTwoProcesses(t *testing.T) {
	s := newStore(t)
	_, _, c, _ := hold(t, s, "r1")
	out, err := process(t, "hold", s.Path(), "r1").Output()
	if err != nil || string(out) != "taken\n" {
		t.Errorf("another process: %q, %v", out, err)
	}
	_, err = s.OpenRun(t.Context(), "r1")
	if !errors.Is(err, journal.ErrRunTaken) || !strings.Contains(err.Error(), "run.conflict") {
		t.Errorf("open here: %v", err)
	}
	if sum, err := s.Summary(t.Context(), "r1"); err != nil || !sum.Held {
		t.Errorf("summary: %+v, %v", sum, err)
	}
	c.Process.Kill()
	c.Wait()
	if sum, err := s.Summary(t.Context(), "r1"); err != nil || sum.Held {
		t.Errorf("summary after the kill: %+v, %v", sum, err)
	}
	// The same id with another plan is another run, and is refused.
	_, err = s.Create(t.Context(), journal.Start{ID: "r1", Kind: "plan", Plan: value.MustParse(`[1]`).Digest()})
	if !errors.Is(err, journal.ErrRunExists) {
		t.Errorf("same id, other plan: %v", err)
	}
	r, err := s.OpenRun(t.Context(), "r1")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// decideRole decides args[1] of the run args[0] as args[2].
func decideRole(path string, args []string) error {
	s, err := journal.Open(path, journal.Options{})
	if err != nil {
		return err
	}
	err = s.Decide(context.Background(), args[0], journal.Decision{Key: args[1], Kind: "decision", Body: value.MustText(args[2])})
	if errors.Is(err, journal.ErrDecided) {
		fmt.Println("late")
		err = nil
	} else if err == nil {
		fmt.Println("won")
	}
	return errors.Join(err, s.Close())
}

// race has several processes decide one question and returns what the winner said.
func race(t *testing.T, s *journal.Store, id, key string) string {
	t.Helper()
	const processes = 6
	var mu sync.Mutex
	var winners []string
	var wg sync.WaitGroup
	for i := range processes {
		wg.Go(func() {
			say := []string{"approve", "deny"}[i%2] + strconv.Itoa(i)
			out, err := process(t, "decide", s.Path(), id, key, say).Output()
			if err != nil {
				t.Error(err)
			}
			if string(out) == "won\n" {
				mu.Lock()
				defer mu.Unlock()
				winners = append(winners, say)
			}
		})
	}
	wg.Wait()
	if len(winners) != 1 {
		t.Fatalf("%d of %d decisions won: %v", len(winners), processes, winners)
	}
	return winners[0]
}

func TestHostile064_OneDecisionWins(t *testing.T) {
	s := newStore(t)
	r := create(t, s, journal.Start{ID: "r1"})
	appendWait(t, r, record("ask", `1`))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	won := race(t, s, "r1", "s1/nonce")
	var decisions []string
	for e, err := range s.Entries(t.Context(), "r1", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == "decision" {
			body, _ := e.Slim().Text()
			decisions = append(decisions, body)
		}
	}
	equal(t, decisions, []string{won})
	// A replay, also in another opening, finds it used; another run has its own.
	err := s.Decide(t.Context(), "r1", journal.Decision{Key: "s1/nonce", Kind: "decision"})
	if !errors.Is(err, journal.ErrDecided) {
		t.Errorf("replay: %v", err)
	}
	create(t, s, journal.Start{ID: "r2"}).Close()
	if err := s.Decide(t.Context(), "r2", journal.Decision{Key: "s1/nonce", Kind: "decision"}); err != nil {
		t.Errorf("another run: %v", err)
	}
	r, err = s.OpenRun(t.Context(), "r2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Finish(t.Context(), record("end", `1`)); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if err := s.Decide(t.Context(), "r2", journal.Decision{Key: "s2", Kind: "decision"}); !errors.Is(err, journal.ErrFinished) {
		t.Errorf("after the end: %v", err)
	}
	if err := s.Decide(t.Context(), "r3", journal.Decision{Key: "s2", Kind: "decision"}); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("no run: %v", err)
	}
}

func TestHostile065_ApproveAndDenyOfALiveRun(t *testing.T) {
	s := newStore(t)
	say, answers, _, end := hold(t, s, "r1")
	say() // it waits for its inbox from now on
	won := race(t, s, "r1", "s1/nonce")
	if !answers.Scan() || answers.Text() != `decision "`+won+`"` {
		t.Errorf("the holder saw %q, want the decision %s", answers.Text(), won)
	}
	end()
	report, err := s.Verify(t.Context(), "r1", journal.Trust{})
	if err != nil || !report.OK() {
		t.Errorf("verify: %+v, %v", report, err)
	}
	equal(t, lines(t, s, "r1", 2), []string{`2 decision "` + won + `"`, `3 checkpoint`})
}

func TestFollowSeesAnotherProcess(t *testing.T) {
	s := newStore(t)
	say, answers, _, end := hold(t, s, "r1")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var got []string
	for e, err := range s.Follow(ctx, "r1", 0) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, e.Kind)
		switch len(got) {
		case 2: // start, event
			say()
			if err := s.Decide(ctx, "r1", journal.Decision{Key: "k", Kind: "decision"}); err != nil {
				t.Fatal(err)
			}
			answers.Scan()
		case 3:
			end()
			r, err := s.OpenRun(ctx, "r1")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.Finish(ctx, record("end", `1`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	equal(t, got, []string{"start", "event", "decision", "checkpoint", "end", "checkpoint"})
}

// fullRole appends until the file size limit of args[0] bytes is met, and says
// how far it came and how it learned of it.
func fullRole(path string, args []string) error {
	limit, _ := strconv.ParseUint(args[0], 10, 64)
	signal.Ignore(syscall.SIGXFSZ)
	ctx := context.Background()
	s, err := journal.Open(path, journal.Options{})
	if err != nil {
		return err
	}
	r, err := s.Create(ctx, journal.Start{ID: "r1", Kind: "plan"})
	if err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		return err
	}
	pad := value.MustText(strings.Repeat("x", 1000))
	for n := 0; ; n++ {
		if err = r.AppendWait(ctx, journal.Record{Kind: "intent", Body: pad}); err == nil {
			continue
		}
		if !errors.Is(err, journal.ErrJournal) {
			return fmt.Errorf("intent %d: %w", n, err)
		}
		// For good: the next one fails at once.
		if again := r.Append(journal.Record{Kind: "intent"}).Wait(ctx); !errors.Is(again, journal.ErrJournal) {
			return fmt.Errorf("the append after the failure: %v", again)
		}
		if err := r.Close(); err != nil {
			return fmt.Errorf("close: %w", err)
		}
		fmt.Println(n)
		return nil
	}
}

func TestHostile056_DiskFull(t *testing.T) {
	s := newStore(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	out, err := process(t, "full", s.Path(), strconv.Itoa(512<<10)).Output()
	if err != nil {
		t.Fatal(err)
	}
	durable, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || durable == 0 {
		t.Fatalf("it wrote %q, %v", out, err)
	}
	s = open(t, s.Path(), journal.Options{})
	report, err := s.Verify(t.Context(), "r1", journal.Trust{})
	if err != nil || !report.OK() {
		t.Fatalf("verify: %+v, %v", report, err)
	}
	intents := 0
	for e, err := range s.Entries(t.Context(), "r1", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind == "intent" {
			intents++
		}
	}
	if intents < durable || intents > durable+1 {
		t.Errorf("%d intents, %d were acknowledged and one was not", intents, durable)
	}
}
