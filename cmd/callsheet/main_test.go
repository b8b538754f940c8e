package main

import (
	"bufio"
	"bytes"
	"database/sql"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain lets the test binary be callsheet.
func TestMain(m *testing.M) { testscript.Main(m, map[string]func(){"callsheet": main}) }

// TestScripts runs the real binary on testdata/script, one behaviour a file.
// "exits N command…" is exec with the wanted exit code.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, ".state"))
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: exits N command [args]")
				}
				got := 0
				var failed *exec.ExitError
				if err := ts.Exec(args[1], args[2:]...); errors.As(err, &failed) {
					got = failed.ExitCode()
				} else if err != nil {
					ts.Fatalf("%v", err)
				}
				if strconv.Itoa(got) != args[0] {
					ts.Fatalf("exit code %d, want %s", got, args[0])
				}
			},
			// id VAR FILE: VAR is the first id of a run in the file.
			"id": func(ts *testscript.TestScript, neg bool, args []string) {
				id := runID.FindString(ts.ReadFile(args[1]))
				if id == "" {
					ts.Fatalf("no id of a run in %s", args[1])
				}
				ts.Setenv(args[0], id)
			},
			// mode FILE MODE: the permissions of a file, in octal.
			"mode": func(ts *testscript.TestScript, neg bool, args []string) {
				info, err := os.Stat(ts.MkAbs(args[0]))
				ts.Check(err)
				if got := strconv.FormatUint(uint64(info.Mode().Perm()), 8); got != args[1] {
					ts.Fatalf("%s has mode %s, want %s", args[0], got, args[1])
				}
			},
			// canary TEXT: no file below the working directory has the text in it, but
			// for the script's own.
			"canary": func(ts *testscript.TestScript, neg bool, args []string) {
				looked := 0
				ts.Check(filepath.WalkDir(ts.MkAbs("."), func(path string, d fs.DirEntry, err error) error {
					if err != nil || !d.Type().IsRegular() {
						return err
					}
					text, err := os.ReadFile(path)
					if bytes.Contains(text, []byte(args[0])) {
						ts.Fatalf("%s is in %s", args[0], path)
					}
					looked++
					return err
				}))
				if looked == 0 {
					ts.Fatalf("there is no file")
				}
			},
			// sql DATABASE STATEMENT: changes a journal behind callsheet's back.
			"sql": func(ts *testscript.TestScript, neg bool, args []string) {
				db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
				ts.Check(err)
				defer db.Close()
				_, err = db.Exec(args[1])
				ts.Check(err)
			},
			// ruin DATABASE NAME: overwrites the page where a table or an index begins.
			"ruin": func(ts *testscript.TestScript, neg bool, args []string) {
				path := ts.MkAbs(args[0])
				db, err := sql.Open("sqlite", path)
				ts.Check(err)
				var page, size int64
				ts.Check(db.QueryRow("SELECT rootpage FROM sqlite_schema WHERE name = ?", args[1]).Scan(&page))
				ts.Check(db.QueryRow("PRAGMA page_size").Scan(&size))
				_, err = db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
				ts.Check(errors.Join(err, db.Close()))
				f, err := os.OpenFile(path, os.O_WRONLY, 0)
				ts.Check(err)
				_, err = f.WriteAt(bytes.Repeat([]byte{0xa5}, int(size)), (page-1)*size)
				ts.Check(errors.Join(err, f.Close()))
			},
			// lines FILE N: the file has exactly N lines.
			"lines": func(ts *testscript.TestScript, neg bool, args []string) {
				if got := strings.Count(ts.ReadFile(args[0]), "\n"); strconv.Itoa(got) != args[1] {
					ts.Fatalf("%s has %d lines, want %s", args[0], got, args[1])
				}
			},
		},
	})
}

var runID = regexp.MustCompile(`\b[a-z2-7]{26}\b`)

// running is a callsheet that runs a plan whose only call has begun.
type running struct {
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
	pipe           *os.File // which the script may hold open
}

// start runs a plan that calls script, a shell script that must write "begun" to
// the file that is its first argument.
func start(t *testing.T, script string) *running {
	return startCommand(t, script, "commands: {hang: {command: [/bin/sh, ./hang.sh, BEGUN], dir: .}}", "run", "plan.json", "--json")
}

// startCommand runs callsheet with args, with the source in the configuration; BEGUN
// stands for the file.
func startCommand(t *testing.T, script, source string, args ...string) *running {
	t.Helper()
	dir := t.TempDir()
	begun := filepath.Join(dir, "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"plan.json":      `[{"id":"a","tool":"hang"},{"id":"b","tool":"hang","after":["a"]}]`,
		"callsheet.yaml": "sources: {local: {" + strings.Replace(source, "BEGUN", begun, 1) + "}}",
		"hang.sh":        script,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &running{}
	r.cmd = &exec.Cmd{Path: self, Args: append([]string{"callsheet"}, args...), Dir: dir, Stdout: &r.stdout, Stderr: &r.stderr, WaitDelay: time.Minute,
		Env: append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, ".state"))}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(begun) // waits for the script
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	r.pipe = f
	if line, _ := bufio.NewReader(f).ReadString('\n'); line != "begun\n" {
		t.Fatalf("the script wrote %q; stderr: %s", line, &r.stderr)
	}
	return r
}

// gone waits for the end of the pipe: whatever the tool started has ended with the
// command.
func (r *running) gone(t *testing.T) {
	t.Helper()
	if err := r.pipe.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(r.pipe); err != nil || len(rest) > 0 {
		t.Errorf("after the end: %q, %v; want the end of the pipe", rest, err)
	}
}

func (r *running) interrupt(t *testing.T) {
	t.Helper()
	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
}

func TestHostile061_OneInterruptSettles(t *testing.T) {
	r := start(t, "echo begun > $1; exec sleep 1000")
	r.interrupt(t)
	r.cmd.Wait()
	want := `{"status":{"a":"uncertain","b":"skipped"},"outputs":{},"waves":[["a"]],"calls":1}` + "\n"
	if code := r.cmd.ProcessState.ExitCode(); code != exitInterrupted || r.stdout.String() != want {
		t.Errorf("got exit %d, stdout %s, stderr %s; want 130 and %s", code, &r.stdout, &r.stderr, want)
	}
	if want := "stopping; press Ctrl-C again to leave now\n"; !strings.HasPrefix(r.stderr.String(), want) {
		t.Errorf("stderr %q, want %q first", &r.stderr, want)
	}
}

func TestHostile061_TwoInterruptsLeave(t *testing.T) {
	// The tool says when it was asked to stop, and then does not: without the
	// second interrupt the report would come.
	r := start(t, `exec 3>$1; trap 'echo asked > asked' TERM; (trap '' TERM; exec sleep 1000) & echo begun >&3; while :; do sleep 0.05; done`)
	r.interrupt(t)
	asked := filepath.Join(r.cmd.Dir, "asked")
	for range 1000 {
		if _, err := os.Stat(asked); err == nil {
			break
		}
		time.Sleep(2 * time.Millisecond)
	}
	r.interrupt(t)
	r.cmd.Wait()
	if code := r.cmd.ProcessState.ExitCode(); code != exitInterrupted || r.stdout.Len() != 0 {
		t.Errorf("got exit %d, stdout %s, stderr %s; want 130 and nothing", code, &r.stdout, &r.stderr)
	}
	r.gone(t)
}

// A command that has nothing to settle leaves at the first interrupt, and no server
// behind.
func TestHostile061_InterruptWhileServersStart(t *testing.T) {
	r := startCommand(t, `exec 3>$1; trap '' TERM; (trap '' TERM; exec sleep 1000) & echo begun >&3; while :; do sleep 0.05; done`,
		"mcp: {command: [/bin/sh, ./hang.sh, BEGUN], dir: .}", "tools")
	r.interrupt(t)
	r.cmd.Wait()
	if code := r.cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("got exit %d, stderr %s; want 130", code, &r.stderr)
	}
	r.gone(t)
}
