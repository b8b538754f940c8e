//go:build unix

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// canary is looked for in everything that is written. Its characters make its
// encodings differ from it.
const canary = "s3cr3t/canary+9f8e7d6c5b4a"

// forms are the canary as a tool may echo it.
var canaryForms = []string{
	canary,
	hex.EncodeToString([]byte(canary)),
	base64.StdEncoding.EncodeToString([]byte(canary)),
	"s3cr3t%2Fcanary%2B9f8e7d6c5b4a",
	`s3cr3t\/canary`,
}

// leak echoes what it reads in the way that its arg says.
const leak = `read -r user; read -r s
case "$user" in
hex) s=$(printf %s "$s" | od -An -v -tx1 | tr -d ' \n');;
base64) s=$(printf %s "$s" | base64 -w0);;
percent) s=$(printf %s "$s" | sed 's|/|%2F|g; s|+|%2B|g');;
json) s=$(printf %s "$s" | sed 's|/|\\/|g');;
esac
echo "401 for $s" >&2
echo "$TOKEN" >&2
[ "$user" = fails ] && exit 3
echo "welcome $s and $TOKEN"
`

// A cage is a directory in which a canary is a secret, and what was said there.
type cage struct {
	t   *testing.T
	dir string
	out bytes.Buffer
}

func newCage(t *testing.T) *cage {
	t.Helper()
	c := &cage{t: t, dir: t.TempDir()}
	c.write("leak.sh", leak)
	c.write("callsheet.yaml", `secrets: {pw: {env: CALLSHEET_CANARY}, unset: {env: CALLSHEET_CANARY_UNSET}}
policy: default
journal: {file: journal.db}
sources:
  local:
    commands:
      login:
        command: [/bin/sh, ./leak.sh]
        dir: .
        stdin: "{user}\n{password}\n{note}\n"
        input: {type: object, properties: {user: {type: string}, password: {type: string, minLength: 8}, note: {}}, required: [user, password, note]}
        args: {/user: neutral, /password: secret, /note: content}
        effects: {read_only: true}
        env: [PATH]
        env_secrets: {TOKEN: pw}
        params: {note: {json: true}}
      wipe: {command: [/bin/sh, ./leak.sh], dir: ., stdin: "plain\n{password}\n", args: {/password: secret}, env: [PATH]}
`)
	return c
}

func (c *cage) write(name, text string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

// run runs callsheet, keeps all that it says, and wants an exit code.
func (c *cage) run(code int, args ...string) string {
	c.t.Helper()
	self, err := exec.LookPath("callsheet")
	if err != nil {
		c.t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd := &exec.Cmd{Path: self, Args: append([]string{"callsheet"}, args...), Dir: c.dir, Stdout: &stdout, Stderr: &stderr, WaitDelay: time.Minute,
		Env: append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(c.dir, "state"), "CALLSHEET_CANARY="+canary)}
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		c.t.Fatal(err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		c.t.Fatalf("callsheet %s: exit %d, want %d; stdout %s, stderr %s", strings.Join(args, " "), got, code, &stdout, &stderr)
	}
	fmt.Fprintf(&c.out, "$ callsheet %s\n%s%s", strings.Join(args, " "), &stdout, &stderr)
	return stdout.String() + stderr.String()
}

// look greps everything that was said and written, but for the given inputs.
func (c *cage) look(inputs ...string) {
	c.t.Helper()
	find := func(where string, text []byte) {
		for _, f := range canaryForms {
			if i := bytes.Index(text, []byte(f)); i >= 0 {
				c.t.Errorf("%s holds the secret as %s: …%s…", where, f, text[max(0, i-200):min(len(text), i+100)])
			}
		}
	}
	find("what was said", c.out.Bytes())
	err := filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		for _, in := range inputs {
			if d.Name() == in {
				return nil
			}
		}
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		find(d.Name(), text)
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
}

// everything asks for all that the journal can tell of a run.
func (c *cage) everything(id string) {
	c.t.Helper()
	c.run(0, "show", id, "--full")
	c.run(0, "audit", "export", id)
	c.run(0, "audit", "verify", id)
}

func TestHostile030_ThePlansOfTheBinaryHoldNoSecret(t *testing.T) {
	c := newCage(t)
	modes := []string{"plain", "hex", "base64", "percent", "json", "fails"}
	for i, mode := range modes {
		// The output flows on, into args that are no secret.
		c.write("plan.json", fmt.Sprintf(`[{"id":"a","tool":"login","args":{"user":%q,"password":{"$secret":"pw"},"note":1}},
			{"id":"b","tool":"login","args":{"user":"plain","password":{"$secret":"pw"},"note":"$a"}}]`, mode))
		want := 0
		if mode == "fails" {
			want = 1
		}
		report := fmt.Sprintf("report%d.json", i)
		said := c.run(want, "run", "plan.json", "--report", report)
		if mode != "fails" && !strings.Contains(c.run(want, "run", "plan.json", "--json"), "[secret:pw]") {
			t.Errorf("%s: the tool's echo is not marked: %s", mode, said)
		}
		c.run(want, "run", "plan.json", "--no-journal", "--parallel", "2")
		c.everything(runID.FindString(said))
		c.run(want, "tools", "call", "login", fmt.Sprintf(`{"user":%q,"password":{"$secret":"pw"},"note":1}`, mode))
	}
	// Asked about, approved, and gone on with.
	c.write("ask.json", `[{"id":"w","tool":"wipe","args":{"password":{"$secret":"pw"}}}]`)
	said := c.run(4, "run", "ask.json")
	id := runID.FindString(said)
	c.run(0, "approvals")
	c.run(0, "approve", id, "w", "--resume")
	c.run(0, "policy", "explain", id, "w")
	c.everything(id)
	// Refused before any call.
	for _, bad := range []struct{ args, code string }{
		{`{"user":"u","password":{"$secret":"nope"},"note":1}`, "unknown_secret"},
		{`{"user":"u","password":{"$secret":"unset"},"note":1}`, "unknown_secret"},
		{`{"user":{"$secret":"pw"},"password":{"$secret":"pw"},"note":1}`, "secret_misplaced"},
		{`{"user":"u","password":{"$secret":"pw"},"note":"it is ` + canary + `"}`, "secret_literal"},
	} {
		c.write("bad.json", `[{"id":"a","tool":"login","args":`+bad.args+`}]`)
		for _, cmd := range []struct {
			code int
			args []string
		}{{2, []string{"run", "bad.json"}}, {1, []string{"check", "bad.json"}}} {
			if said := c.run(cmd.code, cmd.args...); !strings.Contains(said, bad.code) {
				t.Errorf("%s of %s says %s, want %s", cmd.args[0], bad.args, said, bad.code)
			}
		}
	}
	c.look("bad.json")
}

func TestHostile030_TheAgentsOfTheBinaryHoldNoSecret(t *testing.T) {
	c := newCage(t)
	c.write("answer.json", `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)
	n := 0
	for _, mode := range []string{"plain", "hex", "base64", "percent", "json", "fails"} {
		n++
		// The model writes the secret wherever it can: it was told.
		c.write("script.json", fmt.Sprintf(`[
			{"content":"I was told %[1]s","tool_calls":[{"id":"a","name":"login","arguments":{"user":%[2]q,"password":{"$secret":"pw"},"note":"%[1]s"}}]},
			{"content":"so %[1]s","tool_calls":[{"id":"b","name":"login","arguments":{"user":"%[1]s","password":"%[1]s","note":"%[1]s"}}]},
			{"tool_calls":[{"id":"c","name":"submit","arguments":{"text":7,"why":"%[1]s"}}]},
			{"tool_calls":[{"id":"d","name":"submit","arguments":{"text":"the password is %[1]s"}}]}]`, canary, mode))
		args := []string{"agent", "--task", "log in with " + canary, "--system", "the password is " + canary, "--schema", "answer.json", "--model", "scripted:script.json"}
		from := c.out.Len()
		said := c.run(0, append(args, "--trace", fmt.Sprintf("trace%d.json", n))...)
		c.run(0, append(args, "--json")...)
		c.run(0, append(args, "--no-journal", "--record", fmt.Sprintf("cassette%d", n), "--trace", fmt.Sprintf("trace%dn.json", n))...)
		// What was typed is not what was said.
		typed := strings.ReplaceAll(string(c.out.Bytes()[from:]), strings.Join(args, " "), "")
		c.out.Truncate(from)
		c.out.WriteString(typed)
		c.everything(runID.FindString(said))
	}
	c.write("script.json", fmt.Sprintf(`[{"content":"with %[1]s","tool_calls":[{"id":"c","name":"submit_plan","arguments":{"name":"%[1]s","steps":[{"id":"a","tool":"login","args":{"user":"plain","password":{"$secret":"pw"},"note":"%[1]s"}}]}}]}]`, canary))
	from := c.out.Len()
	args := []string{"plan", "log in with " + canary, "--run", "--model", "scripted:script.json"}
	c.run(0, append(args, "--out", "plan.json", "--trace", "trace.json")...)
	typed := strings.ReplaceAll(string(c.out.Bytes()[from:]), strings.Join(args, " "), "")
	c.out.Truncate(from)
	c.out.WriteString(typed)
	c.look("script.json")
}
