package run_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/arith"
	"github.com/callsheet/callsheet/tool/demo"
	"github.com/callsheet/callsheet/tool/stub"
	"github.com/callsheet/callsheet/value"
)

// modes are the ways to run a plan that must all give the same report.
var modes = []run.Options{{}, {Workers: 4}, {Eager: true}}

// lines decodes a file of one JSON value a line.
func lines[T any](t *testing.T, path ...string) []T {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{"..", "testdata"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	for line := range bytes.Lines(text) {
		var x T
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatalf("%v: %v", path, err)
		}
		all = append(all, x)
	}
	return all
}

// inEveryMode runs a plan in each mode with fresh tools and returns the report
// of the sequential run, to which the others must be equal byte by byte.
func inEveryMode(t *testing.T, name string, p *plan.Plan, budget *int, tools func() *tool.Set) string {
	t.Helper()
	var first string
	for i, opt := range modes {
		opt.Budget = budget
		r, err := run.Do(t.Context(), p, tools(), opt)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := string(r.AppendJSON(nil))
		if i == 0 {
			first = got
		} else if got != first {
			t.Errorf("%s with %+v:\ngot        %s\nsequential %s", name, opt, got, first)
		}
	}
	return first
}

func TestPlansOfTheContract(t *testing.T) {
	type row struct {
		Name   string
		Plan   json.RawMessage
		Budget *int
		Want   json.RawMessage
	}
	rows := append(lines[row](t, "plans", "named.jsonl"), lines[row](t, "plans", "seed-tools.jsonl")...)
	if len(rows) != 424 {
		t.Fatalf("%d cases, want 424", len(rows))
	}
	for _, r := range rows {
		p, err := plan.Decode(r.Plan, plan.Limits{})
		if err != nil {
			t.Errorf("%s: %v", r.Name, err)
			continue
		}
		got := inEveryMode(t, r.Name, p, r.Budget, func() *tool.Set { return set(t, demo.New()...) })
		// The data lists outputs in the order of the calls; the contract says
		// plan order (spec/plan.md §5), which the order of statuses shows.
		if want := value.MustParse(string(r.Want)); !value.Equal(value.MustParse(got), want) {
			t.Errorf("%s:\ngot  %s\nwant %s", r.Name, got, want)
		}
		if out, _ := value.MustParse(got).Get("outputs"); !inPlanOrder(p, out) {
			t.Errorf("%s: outputs are not in plan order: %s", r.Name, out)
		}
	}
}

func inPlanOrder(p *plan.Plan, outputs value.Value) bool {
	last := -1
	for id := range outputs.Members() {
		if p.Index(id) <= last {
			return false
		}
		last = p.Index(id)
	}
	return true
}

func TestNestfulGoldAnswers(t *testing.T) {
	type row struct {
		ID    string `json:"sample_id"`
		Plan  json.RawMessage
		Basic bool
		Gold  json.RawMessage `json:"gold_answer"`
	}
	rows := lines[row](t, "nestful", "plans.jsonl")
	if len(rows) != 216 {
		t.Fatalf("%d plans, want 216", len(rows))
	}
	basic := 0
	for _, r := range rows {
		p, err := plan.Decode(r.Plan, plan.Limits{})
		if err != nil {
			t.Errorf("%s: %v", r.ID, err)
			continue
		}
		if !r.Basic {
			continue
		}
		basic++
		report := inEveryMode(t, r.ID, p, nil, func() *tool.Set { return set(t, arith.New()...) })
		var got struct {
			Outputs map[string]map[string]json.Number
		}
		d := json.NewDecoder(strings.NewReader(report))
		d.UseNumber()
		if err := d.Decode(&got); err != nil {
			t.Fatal(err)
		}
		last := p.Steps[len(p.Steps)-1].ID
		for _, n := range got.Outputs[last] {
			if !equalRounded(n.String(), string(r.Gold)) {
				t.Errorf("%s: the last step gives %s, the gold answer is %s", r.ID, n, r.Gold)
			}
		}
		if len(got.Outputs[last]) != 1 {
			t.Errorf("%s: the last step has no one result: %s", r.ID, report)
		}
	}
	if basic == 0 {
		t.Fatal("no plan was basic")
	}
	t.Logf("%d basic plans give their gold answers", basic)
}

// equalRounded compares after rounding to the decimals that the gold has.
func equalRounded(got, gold string) bool {
	var g, w float64
	if _, err := fmt.Sscan(got, &g); err != nil {
		return false
	}
	if _, err := fmt.Sscan(gold, &w); err != nil {
		return false
	}
	decimals := 0
	if i := strings.IndexByte(gold, '.'); i >= 0 {
		decimals = len(gold) - i - 1
	}
	return math.Abs(g-w) <= 0.5*math.Pow10(-decimals)*(1+1e-9)
}

func TestNestoolsArgsAreExact(t *testing.T) {
	type row struct {
		ID      int `json:"test_id"`
		Plan    json.RawMessage
		Outputs json.RawMessage            `json:"mock_outputs"`
		Args    map[string]json.RawMessage `json:"expected_args"`
	}
	rows := lines[row](t, "nestools", "plans.jsonl")
	if len(rows) != 500 {
		t.Fatalf("%d plans, want 500", len(rows))
	}
	for _, r := range rows {
		p, err := plan.Decode(r.Plan, plan.Limits{})
		if err != nil {
			t.Errorf("%d: %v", r.ID, err)
			continue
		}
		answers, err := stub.Read([]byte(r.Outputs))
		if err != nil {
			t.Fatalf("%d: %v", r.ID, err)
		}
		report, err := run.Do(t.Context(), p, stubs(t, answers, p), run.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range report.Steps {
			if want := value.MustParse(string(r.Args[s.ID])); !value.Equal(s.Args, want) {
				t.Errorf("plan %d, step %s: args %s, want %s", r.ID, s.ID, s.Args, want)
			}
		}
		inEveryMode(t, fmt.Sprint(r.ID), p, nil, func() *tool.Set { return stubs(t, answers, p) })
	}
}

func TestTaskbenchPlansAllGetAReport(t *testing.T) {
	type row struct {
		ID   string
		Plan json.RawMessage
	}
	rows := lines[row](t, "taskbench", "plans.jsonl")
	if len(rows) != 985 {
		t.Fatalf("%d plans, want 985", len(rows))
	}
	for _, r := range rows {
		p, err := plan.Decode(r.Plan, plan.Limits{})
		if err != nil {
			t.Errorf("%s: %v", r.ID, err)
			continue
		}
		var b strings.Builder
		b.WriteByte('{')
		for i := range p.Steps {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%q:{\"out\":%d}", p.Steps[i].ID, i)
		}
		answers, err := stub.Read([]byte(b.String() + "}"))
		if err != nil {
			t.Fatalf("%s: %v", r.ID, err)
		}
		report := inEveryMode(t, r.ID, p, nil, func() *tool.Set { return stubs(t, answers, p) })
		if strings.Contains(report, `"waiting"`) || strings.Contains(report, `"cancelled"`) {
			t.Errorf("%s: unfinished: %s", r.ID, report)
		}
	}
}

// stubs answers every tool of a plan.
func stubs(t *testing.T, a *stub.Answers, p *plan.Plan) *tool.Set {
	t.Helper()
	var names []string
	for i := range p.Steps {
		names = append(names, p.Steps[i].Tool)
	}
	s, err := a.Tools(names)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
