//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// twoSteps is callsheet run, in a directory with a plan of two steps.
func twoSteps(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"plan.json":      `[{"id":"a","tool":"say"},{"id":"b","tool":"say","after":["a"]}]`,
		"callsheet.yaml": `sources: {local: {commands: {say: {command: [/bin/sh, -c, "echo said"]}}}}`,
		"report.json":    "of before\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &exec.Cmd{Path: self, Args: append([]string{"callsheet", "run", "plan.json", "--report", "report.json"}, args...), Dir: dir, WaitDelay: time.Minute,
		Env: append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, ".state"))}
}

func keptReport(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cmd.Dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Nobody reads what a run shows: it goes on, and is reported.
func TestARunOutlivesItsReader(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		code int
	}{"shown": {nil, exitOK}, "a result that nobody got": {[]string{"--json"}, exitFailed}} {
		t.Run(name, func(t *testing.T) {
			cmd := twoSteps(t, c.args...)
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			r.Close()
			var stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = w, &stderr
			cmd.Run()
			w.Close()
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("ended with %v, want %d; stderr: %s", cmd.ProcessState, c.code, &stderr)
			}
			if got := keptReport(t, cmd); !strings.HasPrefix(got, `{"status":{"a":"ok","b":"ok"}`) {
				t.Errorf("the report is %s, want both steps ok", got)
			}
		})
	}
}

// A report takes the place of that of before when it is whole, and leaves
// nothing beside it.
func TestAReportReplacesTheOneOfBefore(t *testing.T) {
	cmd := twoSteps(t, "--quiet")
	link := filepath.Join(cmd.Dir, "link.json")
	if err := os.Symlink("report.json", link); err != nil {
		t.Fatal(err)
	}
	cmd.Args[4] = "link.json"
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := keptReport(t, cmd); !strings.HasPrefix(got, `{"status":`) || !strings.HasSuffix(got, "}\n") {
		t.Errorf("the report is %s", got)
	}
	if at, err := os.Readlink(link); err != nil || at != "report.json" {
		t.Errorf("the link leads to %q, %v", at, err)
	}
	refused := twoSteps(t, "--quiet", "--strict", "--budget", "1")
	if err := refused.Run(); refused.ProcessState.ExitCode() != exitRefused {
		t.Fatalf("%v, want a refused run", err)
	}
	if got := keptReport(t, refused); got != "of before\n" {
		t.Errorf("a run that was refused leaves %s", got)
	}
	for _, cmd := range []*exec.Cmd{cmd, refused} {
		if left, _ := filepath.Glob(filepath.Join(cmd.Dir, ".*report*")); len(left) > 0 {
			t.Errorf("%v is left behind", left)
		}
	}
}

// A killed run leaves the report of before as it was.
func TestAKilledRunLeavesTheReportOfBefore(t *testing.T) {
	r := startCommand(t, `exec 3>$1; echo begun >&3; exec sleep 1000`, "commands: {hang: {command: [/bin/sh, ./hang.sh, BEGUN], dir: .}}", "run", "plan.json", "--report", "plan.json")
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.cmd.Wait()
	r.gone(t)
	if text, err := os.ReadFile(filepath.Join(r.cmd.Dir, "plan.json")); err != nil || !strings.HasPrefix(string(text), `[{"id":"a"`) {
		t.Errorf("the file has %q, %v; want what it had", text, err)
	}
}

// A terminal that goes away is an interrupt, however often it says so.
func TestHostile061_AHangupSettles(t *testing.T) {
	r := start(t, `trap 'sleep 0.2; echo done; exit 0' TERM; echo begun > $1; while :; do sleep 0.05; done`)
	for range 3 {
		if err := r.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond) // or they would be one
	}
	r.cmd.Wait()
	if code := r.cmd.ProcessState.ExitCode(); code != exitInterrupted || !strings.HasPrefix(r.stdout.String(), `{"status":{"a":`) {
		t.Errorf("got exit %d, stdout %s, stderr %s; want 130 and a report", code, &r.stdout, &r.stderr)
	}
}

// A run that is interrupted while a server starts was interrupted, and not
// refused.
func TestHostile061_ARunInterruptedWhileServersStart(t *testing.T) {
	r := startCommand(t, `exec 3>$1; echo begun >&3; exec sleep 1000`, "mcp: {command: [/bin/sh, ./hang.sh, BEGUN], dir: .}", "run", "plan.json", "--json")
	r.interrupt(t)
	r.cmd.Wait()
	if code := r.cmd.ProcessState.ExitCode(); code != exitInterrupted || r.stdout.Len() != 0 {
		t.Errorf("got exit %d, stdout %s, stderr %s; want 130 and nothing", code, &r.stdout, &r.stderr)
	}
	r.gone(t)
}
