package planner_test

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"

	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/stub"
	"github.com/callsheet/callsheet/value"
)

// domains are the tools of TaskBench's domains.
func domains(t *testing.T) map[string]*tool.Catalogue {
	t.Helper()
	all := map[string]*tool.Catalogue{}
	for _, domain := range []string{"huggingface", "multimedia"} {
		text, err := os.ReadFile("../testdata/taskbench/" + domain + "_tool_desc.json")
		if err != nil {
			t.Fatal(err)
		}
		var desc struct{ Nodes []struct{ ID, Desc string } }
		if err := json.Unmarshal(text, &desc); err != nil {
			t.Fatal(err)
		}
		var decls []*tool.Declaration
		for _, n := range desc.Nodes {
			decls = append(decls, &tool.Declaration{Name: n.ID, Description: n.Desc, Source: domain})
		}
		if all[domain], err = tool.NewCatalogue(decls...); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// stubs answers for every step of p, so that every path that is referred to is
// there.
func stubs(t *testing.T, p *plan.Plan, c *tool.Catalogue) *tool.Set {
	t.Helper()
	outputs := make([]value.Value, len(p.Steps))
	for i := range outputs {
		outputs[i] = value.MustText("out of " + p.Steps[i].ID)
	}
	for i := range p.Steps {
		for _, r := range p.Steps[i].Refs {
			if r.Step >= 0 && r.HasPath {
				outputs[r.Step] = value.ObjectOf(value.Member{Key: r.Path, Value: value.MustText("a part")})
			}
		}
	}
	ms := make([]value.Member, len(outputs))
	for i, o := range outputs {
		ms[i] = value.Member{Key: p.Steps[i].ID, Value: value.ObjectOf(value.Member{Key: "$output", Value: o})}
	}
	answers, err := stub.Read([]byte(value.ObjectOf(ms...).String()))
	if err != nil {
		t.Fatal(err)
	}
	set, err := answers.Replace(c)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// runsOK reports whether every step of a plan ends ok on stubs.
func runsOK(t *testing.T, text []byte, c *tool.Catalogue) bool {
	t.Helper()
	p, err := plan.Decode(text, plan.Limits{})
	if err != nil {
		return false
	}
	report, err := run.Do(t.Context(), p, stubs(t, p, c), run.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return report.OK()
}

// What the checker's advice is worth without a model: how many of TaskBench's
// plans whose only faults are wrong references it turns into plans that run all
// ok on stubs. docs/agents.md has the numbers.
func TestTaskbenchPlansRunAfterFix(t *testing.T) {
	f, err := os.Open("../testdata/taskbench/plans.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tools := domains(t)
	wrong, before, after, turned, several := 0, 0, 0, 0, 0
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var one struct {
			ID, Domain string
			Plan       json.RawMessage
			Flags      []string
		}
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		has := func(flag string) bool { return slices.Contains(one.Flags, flag) }
		if has("unknown_tool") || !has("self_ref") && !has("cyclic") && !has("dangling_ref") && !has("embedded_ref") {
			continue
		}
		wrong++
		c := tools[one.Domain]
		fixed := check.Fix(one.Plan, check.Options{Catalogue: c})
		was, is := runsOK(t, one.Plan, c), runsOK(t, fixed.Text, c)
		if is != fixed.Report.OK {
			t.Errorf("plan %s: check says ok %v, and it runs ok %v:\n%s", one.ID, fixed.Report.OK, is, fixed.Text)
		}
		if was {
			before++
		}
		if is {
			after++
		}
		if is && len(fixed.Changes) > 0 {
			turned++
			if slices.ContainsFunc(fixed.Changes, func(ch check.Change) bool { return ch.Candidates > 1 }) {
				several++
			}
		}
	}
	t.Logf("%d plans have only wrong references; %d run all ok before, %d after; %d were changed and run all ok, of which %d had a reference with more than one candidate",
		wrong, before, after, turned, several)
	if wrong != 108 || turned < 80 {
		t.Errorf("%d plans, %d turned; want 108 and at least 80", wrong, turned)
	}
}
