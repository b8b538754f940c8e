//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sheet is a directory with a configuration, and a journal of its own.
type sheet struct {
	t   *testing.T
	dir string
}

// newSheet writes files, and callsheet.yaml with these commands: append writes
// the word that it is given to the file "effects" and may not be doubled, put
// does the same and may; slow says in the fifo "gate" that it began, waits at the
// fifo "go" and is read-only; pause does and is not.
func newSheet(t *testing.T, files map[string]string) *sheet {
	t.Helper()
	s := &sheet{t, t.TempDir()}
	files["append.sh"] = `echo "$1" >> effects; echo "did $1"`
	files["slow.sh"] = `echo begun > gate; read x < go; echo waited`
	files["callsheet.yaml"] = `sources:
  local:
    commands:
      append: {command: [/bin/sh, ./append.sh, "{word}"], dir: .}
      put: {command: [/bin/sh, ./append.sh, "{word}"], dir: ., effects: {idempotent: true, destructive: false}}
      slow: {command: [/bin/sh, ./slow.sh], dir: ., effects: {read_only: true}}
      pause: {command: [/bin/sh, ./slow.sh], dir: .}
      ask: {command: [/bin/sh, ./append.sh, asked], dir: ., approve: always}
`
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, fifo := range []string{"gate", "go"} {
		if err := syscall.Mkfifo(filepath.Join(s.dir, fifo), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// command is callsheet with these arguments.
func (s *sheet) command(args ...string) *exec.Cmd {
	// Not this binary under its own name: a callsheet below one approves nothing.
	self, err := exec.LookPath("callsheet")
	if err != nil {
		s.t.Fatal(err)
	}
	return &exec.Cmd{
		Path: self, Args: append([]string{"callsheet"}, args...), Dir: s.dir, WaitDelay: time.Minute,
		Env: append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(s.dir, "state")),
	}
}

// run runs callsheet to its end.
func (s *sheet) run(code int, args ...string) (stdout, stderr string) {
	s.t.Helper()
	var out, err bytes.Buffer
	cmd := s.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &err
	if e := cmd.Run(); e != nil && cmd.ProcessState == nil {
		s.t.Fatal(e)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		s.t.Fatalf("callsheet %s: exit %d, want %d; stdout %s, stderr %s", strings.Join(args, " "), got, code, &out, &err)
	}
	return out.String(), err.String()
}

// begin starts callsheet and returns when its tool waits at the gate.
func (s *sheet) begin(args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := s.command(args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.atGate()
	return cmd
}

func (s *sheet) atGate() {
	s.t.Helper()
	s.within("the tool begins", func() error {
		f, err := os.Open(filepath.Join(s.dir, "gate")) // waits for a writer
		if err != nil {
			return err
		}
		defer f.Close()
		if line, _ := bufio.NewReader(f).ReadString('\n'); line != "begun\n" {
			return fmt.Errorf("the tool wrote %q", line)
		}
		return nil
	})
}

// open lets the tool at the gate go on.
func (s *sheet) open() {
	s.t.Helper()
	s.within("the tool goes on", func() error {
		f, err := os.OpenFile(filepath.Join(s.dir, "go"), os.O_WRONLY, 0) // waits for a reader
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(f, "go")
		return errors.Join(err, f.Close())
	})
}

// within fails the test when what another process must allow does not come.
func (s *sheet) within(what string, do func() error) {
	s.t.Helper()
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		if err != nil {
			s.t.Fatalf("%s: %v", what, err)
		}
	case <-time.After(time.Minute):
		s.t.Fatalf("%s: nothing happened within a minute", what)
	}
}

func (s *sheet) kill(cmd *exec.Cmd) {
	s.t.Helper()
	if err := cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	cmd.Wait()
}

// id is that of the only run.
func (s *sheet) id() string {
	s.t.Helper()
	out, _ := s.run(0, "runs", "--json")
	id := runID.FindString(out)
	if id == "" {
		s.t.Fatalf("no run is recorded: %s", out)
	}
	return id
}

func (s *sheet) effects() string {
	text, _ := os.ReadFile(filepath.Join(s.dir, "effects"))
	return strings.Join(strings.Fields(string(text)), " ")
}

func (s *sheet) want(what, got, want string) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

const slowPlan = `[{"id":"a","tool":"append","args":{"word":"a"}},{"id":"s","tool":"slow","after":["a"]},{"id":"b","tool":"append","args":{"word":"b"},"after":["s"]}]`

// An effect's outcome must be on the disk while a read that follows it takes its
// time: the process is killed there, and the effect is not made again.
func TestHostile053_KilledBehindASlowRead(t *testing.T) {
	for _, mode := range [][]string{nil, {"--parallel", "4"}, {"--eager"}} {
		t.Run(strings.Join(mode, " "), func(t *testing.T) {
			s := newSheet(t, map[string]string{"plan.json": slowPlan})
			cmd := s.begin(append([]string{"run", "plan.json", "--quiet"}, mode...)...)
			s.kill(cmd)
			id := s.id()
			out, _ := s.run(0, "runs", "--status", "crashed", "--json")
			if !strings.Contains(out, id) {
				t.Errorf("a killed run is not listed as crashed: %s", out)
			}
			if out, _ := s.run(0, "audit", "verify", id); !strings.Contains(out, "unfinished: no final checkpoint") {
				t.Errorf("verify of a killed run says %s", out)
			}
			again := s.begin("resume", id, "--json", "--report", "full.json")
			s.open()
			if err := again.Wait(); err != nil {
				t.Fatal(err)
			}
			s.want("effects", s.effects(), "a b")
			full, _ := os.ReadFile(filepath.Join(s.dir, "full.json"))
			// The intent of a read need not be on the disk when the process dies: where
			// it was, the call made again is counted.
			want := regexp.MustCompile(`^\{"status":\{"a":"ok","s":"ok","b":"ok"\},.*"calls":[34],`)
			if !want.Match(full) {
				t.Errorf("the report is %s, want it to match %s", full, want)
			}
			s.run(0, "audit", "verify", id)
		})
	}
}

// A call that may not be doubled and whose outcome is lost waits for a person,
// who may say any of three things.
func TestHostile053_ALostEffectWaitsForResolve(t *testing.T) {
	for _, c := range []struct {
		name    string
		resolve []string
		gate    bool // it is called again
		code    int
		status  string
	}{
		{"happened", []string{"--happened", `"by hand"`}, false, 0, `{"status":{"p":"ok","b":"ok"},"outputs":{"p":"by hand","b":"did b"},"waves":[["p"],["b"]],"calls":2}`},
		{"did not happen", []string{"--did-not-happen"}, true, 0, `{"status":{"p":"ok","b":"ok"},"outputs":{"p":"waited","b":"did b"},"waves":[["p"],["b"]],"calls":3}`},
		{"give up", []string{"--give-up"}, false, 1, `{"status":{"p":"uncertain","b":"skipped"},"outputs":{},"waves":[["p"]],"calls":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSheet(t, map[string]string{"plan.json": `[{"id":"p","tool":"pause"},{"id":"b","tool":"append","args":{"word":"b"},"after":["p"]}]`})
			s.kill(s.begin("run", "plan.json", "--quiet"))
			id := s.id()
			out, stderr := s.run(4, "resume", id, "--json")
			s.want("paused", out, `{"status":{"p":"waiting","b":"waiting"},"outputs":{},"waves":[["p"]],"calls":1}`+"\n")
			if !strings.Contains(stderr, "callsheet resolve "+id+" p --happened") {
				t.Errorf("it does not say how to settle it: %s", stderr)
			}
			if out, _ := s.run(0, "approvals"); !strings.Contains(out, "callsheet resolve "+id+" p") {
				t.Errorf("approvals does not list it: %s", out)
			}
			s.run(2, "resolve", id, "p", "--happened", "by hand") // no JSON
			s.run(2, "resolve", id, "b", "--give-up")             // not lost
			s.run(0, append([]string{"resolve", id, "p"}, c.resolve...)...)
			s.run(2, "resolve", id, "p", "--give-up") // the first answer holds
			if c.gate {
				cmd := s.command("resume", id, "--json")
				var b bytes.Buffer
				cmd.Stdout = &b
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				s.atGate()
				s.open()
				if err := cmd.Wait(); err != nil {
					t.Fatal(err)
				}
				out = b.String()
			} else {
				out, _ = s.run(c.code, "resume", id, "--json")
			}
			s.want("report", out, c.status+"\n")
			s.run(2, "resume", id)
			s.run(0, "audit", "verify", id)
		})
	}
}

// While one process works on a run, another is told so, and can watch it.
func TestHostile058_OneRunInTwoProcesses(t *testing.T) {
	s := newSheet(t, map[string]string{"plan.json": slowPlan})
	cmd := s.begin("run", "plan.json", "--quiet")
	id := s.id()
	for _, args := range [][]string{{"resume", id}, {"rm", id}} {
		if _, stderr := s.run(2, args...); !strings.Contains(stderr, "run.conflict") {
			t.Errorf("callsheet %s: %s", strings.Join(args, " "), stderr)
		}
	}
	told := s.watch(id[:8], "call             s slow")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	s.want("watched", told, "call ok call ok call ok run output 3 head")
}

// The run of an agent is watched like that of a plan.
func TestWatchFollowsAnAgent(t *testing.T) {
	s := newSheet(t, map[string]string{
		"answer.json": `{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}`,
		"model.json": `[{"tool_calls": [{"name": "append", "arguments": {"word": "a"}}, {"name": "slow", "arguments": {}}]},
			{"tool_calls": [{"name": "submit", "arguments": {"city": "Oslo"}}]}]`,
	})
	cmd := s.begin("agent", "--task", "x", "--schema", "answer.json", "--model", "scripted:model.json", "--quiet")
	told := s.watch(s.id(), "call             1.2 slow")
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	s.want("watched", told, "round call ok call ok round run submitted head")
	over, _ := s.run(0, "watch", s.id())
	s.want("watched when it is over", firsts(over), told)
}

// watch follows a run to its end, and lets the tool at the gate go on once that
// line was seen. It returns the first words of the lines.
func (s *sheet) watch(id, gate string) string {
	s.t.Helper()
	watch := s.command("watch", id)
	lines, err := watch.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		s.t.Fatal(err)
	}
	seen := bufio.NewScanner(lines)
	var told []string
	for seen.Scan() {
		told = append(told, seen.Text())
		if seen.Text() == gate {
			s.open() // what it sees is live
		}
	}
	if err := watch.Wait(); err != nil {
		s.t.Errorf("watch: %v", err)
	}
	return firsts(strings.Join(told, "\n"))
}

// firsts are the first words of lines.
func firsts(lines string) string {
	var words []string
	for line := range strings.Lines(lines) {
		words = append(words, strings.Fields(line)[0])
	}
	return strings.Join(words, " ")
}

// A run that dies is not watched for ever.
func TestWatchEndsWithTheProcess(t *testing.T) {
	s := newSheet(t, map[string]string{"plan.json": slowPlan})
	cmd := s.begin("run", "plan.json", "--quiet")
	id := s.id()
	watch := s.command("watch", id)
	var out bytes.Buffer
	watch.Stdout = &out
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	s.kill(cmd)
	watch.Wait()
	if !strings.Contains(out.String(), "run "+id+"  crashed") {
		t.Errorf("watch says %s", &out)
	}
}

func TestHostile061_TwoInterruptsAreRecorded(t *testing.T) {
	s := newSheet(t, map[string]string{"plan.json": `[{"id":"a","tool":"stubborn"}]`, "stubborn.sh": `trap 'echo asked > asked' TERM; echo begun > gate; while :; do sleep 0.05; done`})
	f, err := os.OpenFile(filepath.Join(s.dir, "callsheet.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, "      stubborn: {command: [/bin/sh, ./stubborn.sh], dir: .}")
	f.Close()
	cmd := s.begin("run", "plan.json", "--json")
	cmd.Process.Signal(os.Interrupt)
	for range 1000 {
		if _, err := os.Stat(filepath.Join(s.dir, "asked")); err == nil {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit %d, want 130", code)
	}
	id := s.id()
	out, _ := s.run(0, "runs", "--status", "aborted")
	if !strings.Contains(out, id) {
		t.Errorf("the run is not listed as aborted: %s", out)
	}
	if out, _ := s.run(0, "show", id); !strings.Contains(out, "why aborted") {
		t.Errorf("show does not say so: %s", out)
	}
	s.run(4, "resume", id, "--quiet") // the call was lost
}

// An interrupted run goes on where it was.
func TestAnInterruptedRunGoesOn(t *testing.T) {
	s := newSheet(t, map[string]string{"plan.json": slowPlan})
	cmd := s.begin("run", "plan.json", "--json")
	cmd.Process.Signal(os.Interrupt)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Fatalf("exit %d, want 130", code)
	}
	again := s.begin("resume", s.id(), "--quiet")
	s.open()
	if err := again.Wait(); err != nil {
		t.Error(err)
	}
	s.want("effects", s.effects(), "a b")
}

// A run's deadline leaves it to be resumed.
func TestTheDeadlineOfARun(t *testing.T) {
	s := newSheet(t, map[string]string{"plan.json": slowPlan})
	cmd := s.begin("run", "plan.json", "--json", "--deadline", "300ms")
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitNotOK {
		t.Fatalf("exit %d, want 1", code)
	}
	again := s.begin("resume", s.id(), "--quiet")
	s.open()
	if err := again.Wait(); err != nil {
		t.Error(err)
	}
	s.want("effects", s.effects(), "a b")
}

// A disk that is full before the intent of an effect: the call is not made, and
// the run stops with exit 3; what was recorded stays good, and the run goes on
// when there is room. The limit is on the size of files.
func TestHostile056_NoRoomForTheJournal(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("needs a shell to set the limit")
	}
	var plan strings.Builder
	plan.WriteString(`[{"id":"s0","tool":"append","args":{"word":"s0"}}`)
	const steps = 60
	for i := 1; i < steps; i++ {
		fmt.Fprintf(&plan, `,{"id":"s%d","tool":"append","args":{"word":"s%d"},"after":["s%d"]}`, i, i, i-1)
	}
	plan.WriteString("]")
	s := newSheet(t, map[string]string{"plan.json": plan.String()})
	limited := s.command()
	// ulimit -f counts 512 bytes in POSIX shells; SIGXFSZ is ignored so that the
	// write fails, as it does on a full disk.
	limited.Path, limited.Args = "/bin/sh", []string{"sh", "-c", `trap '' XFSZ; ulimit -f 400; exec callsheet run plan.json --quiet --report full.json`}
	var stderr bytes.Buffer
	limited.Stderr = &stderr
	limited.Run()
	if code := limited.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(stderr.String(), "journal.failed") {
		t.Fatalf("exit %d, stderr %s; want 3 and journal.failed", code, &stderr)
	}
	made := len(strings.Fields(s.effects()))
	full, _ := os.ReadFile(filepath.Join(s.dir, "full.json"))
	if made == 0 || made == steps || strings.Count(string(full), `"outcome":"`) != made {
		t.Fatalf("%d effects were made, and the report has %s", made, full)
	}
	id := s.id()
	s.run(0, "audit", "verify", id)
	for range 2 { // the last call may have been lost
		out, _ := s.resume(id)
		if strings.Contains(out, `"waiting"`) {
			s.run(0, "resolve", id, fmt.Sprintf("s%d", made-1), "--happened", fmt.Sprintf(`"did s%d"`, made-1))
			continue
		}
		break
	}
	var want []string
	for i := range steps {
		want = append(want, fmt.Sprintf("s%d", i))
	}
	s.want("effects", s.effects(), strings.Join(want, " "))
}

// resume resumes to whatever end.
func (s *sheet) resume(id string) (string, int) {
	var out bytes.Buffer
	cmd := s.command("resume", id, "--json")
	cmd.Stdout = &out
	cmd.Run()
	return out.String(), cmd.ProcessState.ExitCode()
}
