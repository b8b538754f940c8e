// Command callsheet checks and runs the tool calls that a language model
// proposes.
//
//	callsheet check plan.json --tools demo
//	callsheet run plan.json --tools demo
//
// Exit codes: 0 everything ok; 1 a step is not, or check found errors; 2 the
// input, the flags or the configuration were refused before any call; 3 the
// harness failed; 4 paused for a person; 130 interrupted.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/alecthomas/kong"

	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/secret"
	"github.com/callsheet/callsheet/terminal"
	"github.com/callsheet/callsheet/tool/command"
	"github.com/callsheet/callsheet/tool/group"
)

// The exit codes.
const (
	exitOK          = 0
	exitNotOK       = 1
	exitRefused     = 2
	exitFailed      = 3
	exitPaused      = 4
	exitInterrupted = 130
)

// cli is the grammar of the command line.
type cli struct {
	Run       runCmd       `cmd:"" help:"Run a plan."`
	Plan      planCmd      `cmd:"" help:"Let a model write a plan for a task; run it with --run."`
	Agent     agentCmd     `cmd:"" help:"Let a model do a task with tools, and answer in the shape of a schema."`
	Check     checkCmd     `cmd:"" help:"Find what is wrong with a plan; nothing is called."`
	Graph     graphCmd     `cmd:"" help:"Draw the waves of a plan."`
	Rehearse  rehearseCmd  `cmd:"" help:"Run a plan on a stage made of recordings; nothing is called."`
	Diff      diffCmd      `cmd:"" help:"Compare two recorded runs step by step, as a rehearsal with the real run."`
	World     worldCmd     `cmd:"" help:"Make and play worlds: stages made of recordings."`
	Tools     toolsCmd     `cmd:"" help:"List the tools, or call one."`
	Runs      runsCmd      `cmd:"" help:"List the recorded runs."`
	Show      showCmd      `cmd:"" help:"Show a recorded run."`
	Watch     watchCmd     `cmd:"" help:"Follow a run that goes on elsewhere."`
	Resume    resumeCmd    `cmd:"" help:"Go on with a run that crashed, paused or was interrupted."`
	Approvals approvalsCmd `cmd:"" help:"List what waits for a person."`
	Approve   approveCmd   `cmd:"" help:"Approve the call of a step."`
	Deny      denyCmd      `cmd:"" help:"Refuse the call of a step."`
	Resolve   resolveCmd   `cmd:"" help:"Say what became of a call whose outcome was lost."`
	Rm        rmCmd        `cmd:"" help:"Remove recorded runs; a tombstone stays."`
	Prune     pruneCmd     `cmd:"" help:"Remove old runs; tombstones stay."`
	Audit     auditCmd     `cmd:"" help:"Verify or export the record of a run."`
	Init      initCmd      `cmd:"" help:"Write a first callsheet.yaml."`
	Policy    policyCmd    `cmd:"" help:"Check, test or explain the policy."`
	Import    importCmd    `cmd:"" help:"Make a plan of what others write."`
	Schema    schemaCmd    `cmd:"" help:"Print the JSON Schema of a plan or of callsheet.yaml."`
	Version   versionCmd   `cmd:"" help:"Print the version."`
}

// app is what a command works with.
type app struct {
	stdin          io.Reader
	stdout, stderr *os.File
	environ        []string
	redact         *secret.Redactor // of the secrets of the configuration, in what is said; nil: there are none
	running        group.List       // the programs and servers of the tools
	settles        atomic.Bool      // an interrupt is for the command to handle
}

// out shows things to people on standard output, err on standard error.
func (a *app) out() *terminal.Output { return terminal.Open(a.stdout, a.environ) }
func (a *app) err() *terminal.Output { return terminal.Open(a.stderr, a.environ) }

// exit is an exit code that is not 0, of a command that has said why.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// refusal is an error for which the input, the flags or the configuration are
// to blame.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func refuse(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

func main() {
	// What this process inherited must not reach the programs that it starts.
	if err := command.SealDescriptors(); err != nil {
		fmt.Fprintln(os.Stderr, "callsheet: close-on-exec:", err)
		os.Exit(exitFailed)
	}
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr, environ: os.Environ()}
	go a.leave()
	os.Exit(a.main(os.Args[1:]))
}

// leave ends the process at an interrupt, and the programs of its tools with it,
// unless the command has something to settle first.
func (a *app) leave() {
	signals := make(chan os.Signal, 1)
	notifyInterrupts(signals)
	for range signals {
		if !a.settles.Load() {
			a.running.Kill()
			os.Exit(exitInterrupted)
		}
	}
}

func (a *app) main(args []string) int {
	var grammar cli
	parser, err := kong.New(&grammar,
		kong.Name("callsheet"),
		kong.Description("Callsheet runs what a model wants done, and nothing else."),
		kong.Writers(a.stdout, a.stderr),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Vars{"formats": formats()},
		kong.Bind(a),
	)
	if err != nil {
		return a.fail(err)
	}
	args = rewritten(args)
	parsed, err := parser.Parse(args)
	if err != nil {
		err = refuse("%w; see callsheet --help", err)
	} else {
		err = parsed.Run()
	}
	if wantsJSON(args) {
		err = a.inJSON(err)
	}
	return a.fail(err)
}

// wantsJSON reports whether --json is among args, of which the parser may have
// understood nothing.
func wantsJSON(args []string) bool {
	for _, arg := range args {
		switch arg {
		case "--json":
			return true
		case "--":
			return false
		}
	}
	return false
}

// rewritten are args as the parser knows them: "help run" is "run --help", and a
// number after a flag is its value, even a negative one.
func rewritten(args []string) []string {
	if len(args) > 0 && args[0] == "help" {
		return append(slices.Clone(args[1:]), "--help")
	}
	var out []string
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			return append(out, args[i:]...)
		}
		if strings.HasPrefix(arg, "--") && !strings.Contains(arg, "=") && i+1 < len(args) && negative(args[i+1]) {
			i++
			arg += "=" + args[i]
		}
		out = append(out, arg)
	}
	return out
}

func negative(arg string) bool {
	return len(arg) > 1 && arg[0] == '-' && arg[1] >= '0' && arg[1] <= '9'
}

// inJSON says a refusal as the one line of JSON on standard error that --json
// promises.
func (a *app) inJSON(err error) error {
	var refused refusal
	if !errors.As(err, &refused) {
		return err
	}
	r := &check.Report{Waves: [][]string{}}
	var file *config.Error
	if errors.As(err, &file) {
		for _, f := range file.Faults {
			r.Diagnostics = append(r.Diagnostics, check.Diagnostic{
				Code: "bad_configuration", Severity: check.Error, Pointer: f.Pointer, Line: f.Line, Column: f.Column, Message: file.File + ": " + f.Message,
			})
		}
	} else {
		r.Diagnostics = []check.Diagnostic{{Code: "refused", Severity: check.Error, Message: a.redact.Text(refused.Error())}}
	}
	return a.refusedPlan("", r, true)
}

// fail says what went wrong and gives the exit code.
func (a *app) fail(err error) int {
	var code exit
	var refused refusal
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &refused):
		a.err().Lines("callsheet: ", a.redact.Text(refused.Error()))
		return exitRefused
	}
	a.err().Lines("callsheet: ", a.redact.Text(err.Error()))
	return exitFailed
}
