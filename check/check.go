// Package check finds everything about a plan that can be known before its
// first call (spec/plan.md §7). It is pure and total: the same plan, catalogue
// and options give the same diagnostics in the same order, and no tool is
// called.
//
//	_, report := check.Text([]byte(`[
//		{"id": "s1", "tool": "search", "args": {"query": "go"}},
//		{"id": "s2", "tool": "fetch", "args": {"doc": "$s2.0"}}
//	]`), check.Options{})
//	for _, d := range report.Diagnostics {
//		fmt.Println(d) // 3:49 error self_reference s2: …
//	}
//
// Where it is known how to remove a finding, the diagnostic carries an advice
// as an RFC 6902 patch of the document; applied, it gives a plan without that
// finding. [Fix] applies the advice that only names another step.
package check

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// Options say what a plan is judged against. The zero value judges everything
// but tools.
type Options struct {
	Catalogue *tool.Catalogue // nil: tools and their schemas are not judged
	Budget    *int            // replaces the plan's own, in calls
	Ceiling   *int            // on both budgets, in calls; nil: none
	Limits    plan.Limits     // of the document
	Strict    bool            // unknown fields and a worst case over the budget are errors
	// Policy says what the policy will ask or refuse, as diagnostics with the
	// codes needs_approval and denied. Steps with an error of its are taken to
	// fail. Lines and columns are filled in here. nil: no policy.
	Policy func(*plan.Plan) []Diagnostic
}

// A Severity says what a finding means for a run.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // a step fails, or never runs, for certain
	Warning Severity = "warning" // probably not meant
	Info    Severity = "info"    // worth knowing
)

// Codes of diagnostics (spec/plan.md §7), beside those of a document's faults,
// which are in package plan.
const (
	UnknownTool       = "unknown_tool"
	UnknownReference  = "unknown_reference"
	UnknownDependency = "unknown_dependency"
	SelfReference     = "self_reference"
	Cycle             = "cycle"
	InvalidArgs       = "invalid_args"
	ImpossiblePath    = "impossible_path"
	EmbeddedReference = "embedded_reference"
	ForeignReference  = "foreign_reference"
	NeverRuns         = "never_runs"
	OverBudget        = "over_budget"
	NeedsApproval     = "needs_approval"
	Denied            = "denied"

	BudgetLowered   = "budget_lowered"    // the configured ceiling is below the budget
	LookalikeID     = "lookalike_id"      // ids that a reader cannot tell apart, or that mix scripts
	OpenSchema      = "open_schema"       // a tool that takes any arg, so that a mistyped one is not found
	NoTools         = "no_tools"          // no catalogue was given
	BadLimits       = "bad_limits"        // Options.Limits make no sense; the document was not read
	TooManyFindings = "too_many_findings" // more than MaxDiagnostics
	TooMuchWork     = "too_much_work"     // some args or paths were not judged by their schemas: it would take too long
)

// MaxDiagnostics is how many findings of one plan are listed. A schema can give
// many for one step; this many are still read by nobody.
const MaxDiagnostics = 10_000

// A Diagnostic is one finding.
type Diagnostic struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Step     string   `json:"step"`    // id, "" for the document
	Pointer  string   `json:"pointer"` // RFC 6901, into the document
	Line     int      `json:"line"`    // where the value at Pointer starts, from 1
	Column   int      `json:"column"`  // from 1, in bytes
	Message  string   `json:"message"` // a sentence
	Advice   Patch    `json:"advice"`  // removes the finding; empty when nothing is known to

	// Candidates is how many replacements the advice was chosen from, 0 when it
	// does not choose.
	Candidates int `json:"-"`
}

// String is the diagnostic on one line.
func (d Diagnostic) String() string {
	step := ""
	if d.Step != "" {
		step = " " + d.Step
	}
	return fmt.Sprintf("%d:%d %s %s%s: %s", d.Line, d.Column, d.Severity, d.Code, step, d.Message)
}

// Calls bound how many calls a run makes.
type Calls struct {
	Min int `json:"min"` // every step that can run succeeds at once
	Max int `json:"max"` // the worst case: for each step with a known tool, its attempts
}

// A Report is everything that was found.
type Report struct {
	OK          bool         `json:"ok"`          // no error
	Diagnostics []Diagnostic `json:"diagnostics"` // in the order of the document
	Calls       Calls        `json:"calls"`
	Waves       [][]string   `json:"waves"` // as predicted: without the steps that never run
}

// Count is the number of diagnostics of a severity.
func (r *Report) Count(s Severity) int {
	n := 0
	for _, d := range r.Diagnostics {
		if d.Severity == s {
			n++
		}
	}
	return n
}

// Text checks a document. The plan is nil when the document is refused whole;
// the report then says why.
func Text(text []byte, o Options) (*plan.Plan, *Report) {
	p, err := plan.Decode(text, o.Limits)
	var refused *plan.Error
	if errors.As(err, &refused) {
		return nil, &Report{Diagnostics: refusal(text, refused.Faults), Waves: [][]string{}}
	} else if err != nil {
		return nil, &Report{Diagnostics: []Diagnostic{{Code: BadLimits, Severity: Error, Line: 1, Column: 1, Message: err.Error(), Advice: Patch{}}}, Waves: [][]string{}}
	}
	return p, Plan(p, o)
}

// Plan checks a plan that was decoded.
func Plan(p *plan.Plan, o Options) *Report {
	c := newChecker(p, o)
	c.fields()
	c.steps()
	c.cycles()
	c.policy()
	c.fates()
	c.budget()
	return c.report()
}

// The work of judging one plan by the schemas of its tools, which anybody may
// have written, is bounded: so much, and so much more for each step. A step of
// the plans in our test data takes about a hundred units; all of it for a plan of
// 10 000 steps is about half a second.
const (
	planWork = 1 << 22
	stepWork = 1 << 9
)

// checker holds what the parts of one check share.
type checker struct {
	*graph
	opt   Options
	names *names
	found []Diagnostic
	more  bool                       // there are findings beyond MaxDiagnostics
	wrong bool                       // an error was found
	fails []string                   // by step: the code for which it fails for certain when its turn comes
	fate  []fate                     // by step
	open  map[*tool.Declaration]bool // warned of already
	// numbers are the steps by the number in which their ids end, -1 for several;
	// nil until asked for.
	numbers map[string]int
	work    *schema.Work // of judging by schemas
	parts   map[origin]part
	// branches says of a tool whether its schema may allow undeclared args in one
	// of its branches.
	branches map[*tool.Declaration]bool
	source   value.Value // the document, parsed when it is asked for
}

// document is the text of the plan as it stands, unknown fields included.
func (c *checker) document() value.Value {
	if c.source.IsZero() {
		c.source = value.MustParse(string(c.Source()))
	}
	return c.source
}

func newChecker(p *plan.Plan, o Options) *checker {
	return &checker{
		graph: &graph{Plan: p},
		opt:   o,
		names: &names{plan: p},
		fails: make([]string, len(p.Steps)),
		fate:  make([]fate, len(p.Steps)),
		open:  make(map[*tool.Declaration]bool),

		work:     schema.NewWork(planWork + stepWork*len(p.Steps)),
		parts:    make(map[origin]part),
		branches: make(map[*tool.Declaration]bool),
	}
}

func (c *checker) add(d Diagnostic) {
	c.wrong = c.wrong || d.Severity == Error
	if c.full() {
		c.more = true
		return
	}
	c.found = append(c.found, d)
}

// full reports that no more findings are listed, so that no work is put into
// their words and advice; a document can have a million.
func (c *checker) full() bool { return len(c.found) == MaxDiagnostics }

// at is a finding about a part of step i, where rest is the part's pointer.
func (c *checker) at(i int, rest, code string, severity Severity, format string, args ...any) Diagnostic {
	if c.full() {
		return Diagnostic{Severity: severity}
	}
	return Diagnostic{Code: code, Severity: severity, Step: c.Steps[i].ID,
		Pointer: c.Pointer(i) + rest, Message: fmt.Sprintf(format, args...)}
}

// policy takes in what the policy will say.
func (c *checker) policy() {
	if c.opt.Policy == nil {
		return
	}
	for _, d := range c.opt.Policy(c.Plan) {
		if i := c.Index(d.Step); i >= 0 && d.Severity == Error {
			c.fail(i, d.Code)
		}
		c.add(d)
	}
}

// fail notes that step i cannot end ok; the first reason stands.
func (c *checker) fail(i int, code string) {
	if c.fails[i] == "" {
		c.fails[i] = code
	}
}

// budget holds the worst case against the budget that binds.
func (c *checker) budget() {
	budget, lowered := machine.EffectiveBudget(c.Plan, c.opt.Budget, c.opt.Ceiling)
	if budget == nil {
		return
	}
	pointer := ""
	if c.opt.Budget == nil && c.Budget != nil {
		pointer = "/budget"
	}
	if lowered {
		c.add(Diagnostic{Code: BudgetLowered, Severity: Warning, Pointer: pointer,
			Message: fmt.Sprintf("the budget is above the configured limit and is lowered to %d", *budget)})
	}
	if worst := c.worst(); worst > *budget {
		d := Diagnostic{Code: OverBudget, Severity: Warning, Pointer: pointer,
			Message: fmt.Sprintf("the plan can need %s and the budget is %d; the steps that come last may go without", count.Of(worst, "call"), *budget)}
		if c.opt.Strict {
			d.Severity = Error
		}
		c.add(d)
	}
}

func (c *checker) worst() int {
	if c.opt.Catalogue == nil {
		return tool.DefaultAttempts * len(c.Steps)
	}
	return machine.WorstCase(c.Plan, c.opt.Catalogue)
}

// report puts the findings in the order of the document, with their places.
func (c *checker) report() *Report {
	if c.work.Over() {
		c.found = append(c.found, Diagnostic{Code: TooMuchWork, Severity: Warning,
			Message: "the schemas of the tools ask for so much work that not all args and references were judged by them; what was not is judged in the run"})
	}
	if c.more {
		c.found = append(c.found, Diagnostic{Code: TooManyFindings, Severity: Info,
			Message: fmt.Sprintf("only the first %d findings are listed", MaxDiagnostics)})
	}
	place(c.found, c.Positions)
	r := &Report{OK: !c.wrong, Diagnostics: c.found, Calls: Calls{Max: c.worst()}, Waves: [][]string{}}
	if r.Diagnostics == nil {
		r.Diagnostics = []Diagnostic{}
	}
	for _, wave := range c.Waves() {
		var ids []string
		for _, i := range wave {
			if c.fate[i] == skipped {
				continue
			}
			ids = append(ids, c.Steps[i].ID)
			if c.fate[i] == runs {
				r.Calls.Min++
			}
		}
		if ids != nil {
			r.Waves = append(r.Waves, ids)
		}
	}
	return r
}

// place fills in lines and columns and sorts by them; findings of one place
// keep the order in which they were made.
func place(ds []Diagnostic, positions func(...string) []plan.Position) {
	if len(ds) == 0 {
		return
	}
	pointers := make([]string, len(ds))
	for i, d := range ds {
		pointers[i] = d.Pointer
	}
	for i, at := range positions(pointers...) {
		ds[i].Line, ds[i].Column = at.Line, at.Column
		if ds[i].Advice == nil {
			ds[i].Advice = Patch{}
		}
	}
	slices.SortStableFunc(ds, func(a, b Diagnostic) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
}
