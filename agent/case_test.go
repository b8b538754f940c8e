package agent_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/scripted"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
	"github.com/go-json-experiment/json"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what the cases want anew")

// TestCases runs testdata/cases: each file is one rule of spec/agent.md, one
// row of spec/loop-cases.md (b01-…), or one behaviour of the world-model agent
// (w14-…). A file holds the model's replies, the tools, the settings and what
// is wanted; its comment says what it is about. It runs on a fake clock.
func TestCases(t *testing.T) {
	paths, err := filepath.Glob("testdata/cases/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no cases", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			c := parseCase(t, archive)
			var got string
			synctest.Test(t, func(t *testing.T) { got = c.run(t) })
			if !*update {
				if got != c.want {
					t.Errorf("got:\n%s\nwant:\n%s", got, c.want)
				}
				return
			}
			files := archive.Files[:0]
			for _, f := range archive.Files {
				if f.Name != "want" {
					files = append(files, f)
				}
			}
			archive.Files = append(files, txtar.File{Name: "want", Data: []byte(got)})
			if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A testCase is one file.
type testCase struct {
	replies   []byte
	tools     []standIn
	config    agent.Config[value.Value]
	decisions map[string]string // by step, in order of the file
	sleep     time.Duration     // of each model call
	cancelAt  string            // step during which the run is cancelled
	noted     int
	want      string
}

// A standIn is a tool that does what a case says.
type standIn struct {
	Name        string        `json:"name"`
	Description string        `json:"description"`
	Input       value.Value   `json:"input"`
	Output      value.Value   `json:"output"`
	Outputs     []value.Value `json:"outputs"` // one for each call, the last for ever
	Error       string        `json:"error"`
	Panic       string        `json:"panic"`
	SleepMS     int           `json:"sleep_ms"`
	Lost        bool          `json:"lost"` // there is no answer
	Ask         bool          `json:"ask"`  // the gate wants a decision
	Deny        string        `json:"deny"` // the gate's reason
}

const answerSchema = `{"type":"object","properties":{"answer":{"type":"string"},"list":{"type":"array","items":{"type":"string"}}},"required":["answer"],"additionalProperties":false}`

func parseCase(t *testing.T, archive *txtar.Archive) *testCase {
	t.Helper()
	c := &testCase{decisions: map[string]string{}}
	doc := answerSchema
	for _, f := range archive.Files {
		switch f.Name {
		case "replies":
			c.replies = f.Data
		case "tools":
			v, err := value.Parse(f.Data)
			if err == nil {
				err = v.Decode(&c.tools, json.RejectUnknownMembers(true))
			}
			if err != nil {
				t.Fatalf("tools: %v", err)
			}
		case "settings":
			for line := range strings.Lines(string(f.Data)) {
				c.set(t, strings.TrimSpace(line))
			}
		case "schema":
			doc = string(f.Data)
		case "decisions":
			for line := range strings.Lines(string(f.Data)) {
				step, decision, _ := strings.Cut(strings.TrimSpace(line), " ")
				c.decisions[step] = decision
			}
		case "want":
			c.want = string(f.Data)
		default:
			t.Fatalf("unknown file %s", f.Name)
		}
	}
	if c.config.Submission.Name == "submit_transition" {
		text, err := os.ReadFile("testdata/transition.schema.json")
		if err != nil {
			t.Fatal(err)
		}
		doc = string(text)
	}
	var err error
	if c.config.Schema, err = schema.Compile(value.MustParse(doc)); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *testCase) set(t *testing.T, line string) {
	t.Helper()
	key, text, _ := strings.Cut(line, " ")
	s := &c.config.Settings
	n := 0
	if text != "" {
		n, _ = strconv.Atoi(text)
	}
	switch key {
	case "":
	case "source": // must come first
		*s = agent.Source()
		c.config.Submission = agent.SubmitTransition()
	case "transition":
		c.config.Submission = agent.SubmitTransition()
	case "plan":
		c.config.Submission = agent.SubmitPlan()
	case "max_tool_calls":
		s.MaxToolCalls = &n
	case "max_invalid_submissions":
		s.MaxInvalidSubmissions = &n
	case "max_rounds":
		s.MaxRounds = &n
	case "max_nudges":
		s.MaxNudges = &n
	case "max_tokens":
		s.MaxTokens = n
	case "max_bytes":
		s.MaxBytes = &n
	case "max_transcript":
		s.MaxTranscript = n
	case "max_reply_tokens":
		s.MaxReplyTokens = n
	case "min_tool_calls":
		s.MinToolCalls = n
	case "repeat_limit":
		s.RepeatLimit = &n
	case "deadline":
		s.Deadline = duration(t, text)
	case "model_sleep":
		c.sleep = duration(t, text)
	case "require_observation":
		s.RequireObservation = true
	case "coerce":
		s.Coerce = true
	case "mixed":
		s.Mixed = map[string]agent.Mixed{"graceful": agent.Graceful, "sole": agent.Sole}[text]
	case "burst":
		s.Burst = map[string]agent.Burst{"overshoot": agent.Overshoot}[text]
	case "siblings":
		s.Siblings = map[string]agent.Siblings{"once": agent.Once}[text]
	case "placeholders":
		s.Placeholders = agent.Placeholders(strings.Fields(text)...)
	case "placeholders_wide":
		fields := strings.Fields(text)
		if len(fields) == 0 {
			fields = []string{""}
		}
		s.Placeholders = agent.Placeholders(fields...).Wide()
	case "validate": // refuses an answer of this text
		c.config.Validate = func(_ context.Context, v value.Value) error {
			if a, _ := v.Get("answer"); a.String() == text {
				return &agent.Invalid{Errors: []string{"first", "second", "third", "fourth"}, Data: value.MustParse(`[{"advice":"write another"}]`)}
			}
			return nil
		}
	case "cancel_at":
		c.cancelAt = text
	default:
		t.Fatalf("unknown setting %q", key)
	}
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// watched is the model of a case: it takes its time, notes the choices, and
// holds the loop to the transcript's invariant.
type watched struct {
	model.Model
	t       *testing.T
	sleep   time.Duration
	choices []string
}

func (w *watched) Ask(ctx context.Context, req *model.Request) (*model.Reply, error) {
	if err := agent.CheckTranscript(req.Messages); err != nil {
		w.t.Errorf("a broken transcript was sent: %v", err)
	}
	choice := req.Choice.Mode.String()
	if req.Choice.Name != "" {
		choice = "forced " + req.Choice.Name
	}
	w.choices = append(w.choices, choice)
	if last := req.Tools[len(req.Tools)-1].Name; !strings.HasPrefix(last, "submit") {
		w.t.Errorf("the last tool is %s", last)
	}
	if w.sleep > 0 {
		select {
		case <-time.After(w.sleep):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return w.Model.Ask(ctx, req)
}

// taped makes calls through the door and keeps their outcomes, as a journal
// would.
type taped struct {
	agent.Through
	tape *agent.Recorded
}

func (c *taped) Call(ctx context.Context, r agent.Request) (agent.Outcome, error) {
	o, err := c.Through.Call(ctx, r)
	if err == nil && o.Waiting == agent.NotWaiting {
		c.tape.Outcomes[r.Step] = o
	}
	return o, err
}

// Reply makes the tape a recorder, through the form in which a journal keeps it.
func (c *taped) Reply(_ context.Context, e agent.ReplyEvent) error {
	v, err := e.Value()
	if err != nil {
		return err
	}
	back, err := agent.ParseReplyEvent(value.MustParse(v.String()))
	c.tape.Replies = append(c.tape.Replies, back)
	return err
}

// Judge is the gate of a case.
func (c *testCase) Judge(_ context.Context, r call.Request) (call.Decision, error) {
	for _, s := range c.tools {
		if s.Name != r.Tool.Name {
			continue
		}
		switch {
		case s.Deny != "":
			return call.Decision{Verdict: machine.Deny, Message: s.Deny}, nil
		case s.Ask && c.decisions[r.Step] == "deny" && c.noted > 0:
			return call.Decision{Verdict: machine.Deny, Message: "a person said no"}, nil
		case s.Ask && (c.decisions[r.Step] == "" || c.noted == 0):
			return call.Decision{Verdict: machine.Ask, Message: "may it?"}, nil
		}
	}
	return call.Decision{Verdict: machine.Allow}, nil
}

func (c *testCase) standIns(made *[]string, cancel context.CancelCauseFunc) (*tool.Set, error) {
	var tools []tool.Tool
	for _, s := range c.tools {
		d := tool.Declaration{Name: s.Name, Description: s.Description, Source: "case", Effects: tool.Effects{ReadOnly: !s.Lost}}
		if !s.Input.IsZero() {
			d.Input = schema.MustCompile(s.Input.String())
		}
		n := 0
		tools = append(tools, tool.Tool{Declaration: d, Handler: func(ctx context.Context, call *tool.Call) (value.Value, error) {
			*made = append(*made, call.Step+" "+s.Name)
			if s.SleepMS > 0 {
				time.Sleep(time.Duration(s.SleepMS) * time.Millisecond)
			}
			if c.cancelAt == call.Step {
				cancel(errors.New("the user pressed ctrl-c"))
			}
			switch {
			case s.Panic != "":
				panic(s.Panic)
			case s.Lost:
				return value.Value{}, tool.Lost(errors.New("the connection broke"))
			case s.Error != "":
				return value.Value{}, errors.New(s.Error)
			case len(s.Outputs) > 0:
				n++
				return s.Outputs[min(n, len(s.Outputs))-1], nil
			case s.Output.IsZero():
				return value.MustText("ok"), nil
			}
			return s.Output, nil
		}})
	}
	return tool.NewSet(tools...)
}

// run runs the case, once more after a decision, and writes down everything
// that came of it.
func (c *testCase) run(t *testing.T) string {
	var out strings.Builder
	script, err := scripted.Parse(c.replies)
	if err != nil {
		t.Fatalf("replies: %v", err)
	}
	tape := &agent.Recorded{Outcomes: map[string]agent.Outcome{}}
	for {
		ctx, cancel := context.WithCancelCause(t.Context())
		var made []string
		set, err := c.standIns(&made, cancel)
		if err != nil {
			t.Fatal(err)
		}
		w := &watched{Model: script, t: t, sleep: c.sleep}
		caller := &taped{Through: agent.Through{Door: &call.Door{Tools: set, Gate: c}}, tape: tape}
		config := c.config
		config.Model, config.Tools, config.Caller, config.Recorder = w, set.Catalogue(), caller, caller
		a, err := agent.New(config)
		if err != nil {
			fmt.Fprintf(&out, "refused: %v\n", err)
			return out.String()
		}
		task := agent.Task{System: "S", User: "U"}
		before := *tape
		res, err := a.Resume(ctx, task, before)
		cancel(nil)
		write(&out, res, err, w.choices, made)
		var waiting *agent.WaitingError
		if errors.As(err, &waiting) && len(c.decisions) > 0 && c.noted == 0 {
			c.noted++
			for step, d := range c.decisions {
				if text, ok := strings.CutPrefix(d, "resolve "); ok {
					tape.Outcomes[step] = agent.Outcome{Output: value.MustParse(text)}
				}
			}
			fmt.Fprintln(&out, "\n--- resumed")
			continue
		}
		if waiting == nil {
			c.replay(t, config, task, tape, res, err)
		}
		return out.String()
	}
}

// replay takes the whole record once more, without a model or tools, and wants
// the same.
func (c *testCase) replay(t *testing.T, config agent.Config[value.Value], task agent.Task, tape *agent.Recorded, want *agent.Result[value.Value], wantErr error) {
	var p *agent.ProtocolError
	if c.cancelAt != "" || errors.As(wantErr, &p) && p.Round > want.Rounds {
		return // what was cut off has no outcome, and no reply
	}
	config.Model = scripted.New()
	a, err := agent.New(config)
	if err != nil {
		t.Fatal(err)
	}
	got, err := a.Resume(t.Context(), task, *tape)
	if fmt.Sprint(err) != fmt.Sprint(wantErr) {
		var e *model.Error
		if !errors.As(wantErr, &e) && !errors.As(err, &e) {
			t.Errorf("replayed: got error %v, want %v", err, wantErr)
		}
	}
	var g, w strings.Builder
	transcript(&g, got.Transcript)
	transcript(&w, want.Transcript)
	if g.String() != w.String() {
		t.Errorf("replayed transcript:\n%s\nwant:\n%s", g.String(), w.String())
	}
	if got.Usage.Value().String() != want.Usage.Value().String() || got.Calls != want.Calls {
		t.Errorf("replayed: usage %s, %d calls; want %s, %d", got.Usage.Value(), got.Calls, want.Usage.Value(), want.Calls)
	}
}

func transcript(out *strings.Builder, messages []*model.Message) {
	for _, m := range messages {
		fmt.Fprintf(out, "  %s", m.From)
		if m.From == model.FromTool {
			fmt.Fprintf(out, " %s", m.CallID)
			if m.Failed {
				out.WriteString(" failed")
			}
		}
		out.WriteString(":")
		if m.Text != "" {
			out.WriteString(" " + short(m.Text))
		}
		for _, c := range m.Calls {
			fmt.Fprintf(out, "\n    call %s %s %s", c.ID, name(c.Name), short(c.Arguments))
		}
		out.WriteString("\n")
	}
}

func name(s string) string {
	if strings.ContainsAny(s, " \t\n") {
		return strconv.Quote(s)
	}
	return s
}

// short keeps cases readable; what is longer shows how long it is.
func short(s string) string {
	s = strings.ReplaceAll(s, "\n", "\\n")
	if n := len(s); n > 700 {
		return fmt.Sprintf("%s…%d bytes", s[:80], n)
	}
	return s
}

func write(out *strings.Builder, res *agent.Result[value.Value], err error, choices, made []string) {
	fmt.Fprintf(out, "choices: %s\n", strings.Join(choices, ", "))
	fmt.Fprintf(out, "made: %s\n", strings.Join(made, ", "))
	out.WriteString("transcript:\n")
	transcript(out, res.Transcript)
	out.WriteString("trace:\n")
	for i := range res.Trace {
		fmt.Fprintf(out, "  %s\n", short(res.Trace[i].Value().String()))
	}
	fmt.Fprintf(out, "rounds: %d, calls: %d\nusage: %s\n", res.Rounds, res.Calls, res.Usage.Value())
	for _, d := range res.Degraded {
		fmt.Fprintf(out, "degraded: %s in round %d, %d times: %s\n", d.Code, d.Round, d.Times, d.Message)
	}
	if !res.Submitted.IsZero() {
		fmt.Fprintf(out, "submission: %s\n", res.Submission)
	}
	var p *agent.ProtocolError
	switch {
	case errors.As(err, &p):
		fmt.Fprintf(out, "protocol error %s in round %d: %s\n", p.Code, p.Round, p.Message)
		if res.LastInvalid != nil {
			fmt.Fprintf(out, "last invalid: round %d, %s: %s\n", res.LastInvalid.Round, short(res.LastInvalid.Arguments.String()), short(res.LastInvalid.Reason))
		}
		if res.LastText != "" {
			fmt.Fprintf(out, "last text: %s\n", res.LastText)
		}
	case err != nil:
		fmt.Fprintf(out, "error: %v\n", err)
	}
}
