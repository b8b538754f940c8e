package rehearsal

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
)

// A Receipt says what was rehearsed, on what, and how each step went. It is kept
// with the rehearsal, and a real run may require one that counts.
type Receipt struct {
	Run       string `json:"-"`         // id of the rehearsal; "" when it was not recorded
	Plan      string `json:"plan"`      // digest
	Catalogue string `json:"catalogue"` // digest of the tools that the plan uses
	Policy    string `json:"policy"`    // digest of what the gate decides by
	World     World  `json:"world"`
	Agent     bool   `json:"agent_allowed"`

	// Initial is the state that rules began with because somebody said so; null
	// without one. What follows from it nobody has seen.
	Initial value.Value `json:"initial_state"`

	Steps   []Played `json:"steps"`
	Answers string   `json:"answers"` // digest of the steps and their provenance
	Counts  bool     `json:"counts"`
	Reasons []string `json:"reasons"` // why it does not count
}

// World names a worldbook.
type World struct {
	Digest string `json:"digest"`
	Name   string `json:"name"`
	Status string `json:"status"` // how far it may be trusted: candidate, validated or authored
}

// Played is how one step went on the stage.
type Played struct {
	Step     string   `json:"step"`
	Tool     string   `json:"tool"`
	Status   string   `json:"status"`
	Args     string   `json:"args"`     // digest of the resolved args without secrets; "" when there was no call
	Way      Way      `json:"way"`      // what answered; "" when there was no call
	Evidence []string `json:"evidence"` // ids of recorded turns, rules, and what an agent cited
	Reason   string   `json:"reason"`   // why the ways before did not answer
	Asked    string   `json:"asked"`    // what policy would have asked a person, taken as approved
}

// CatalogueDigest covers the tools that a plan uses, as they are declared: those
// of others may change without making a rehearsal worthless.
func CatalogueDigest(p *plan.Plan, c *tool.Catalogue) value.Digest {
	var used []*tool.Declaration
	for i := range p.Steps {
		if d := c.Get(p.Steps[i].Tool); d != nil && !slices.Contains(used, d) {
			used = append(used, d)
		}
	}
	sub, err := tool.NewCatalogue(used...)
	if err != nil {
		panic("rehearsal: a part of a catalogue is none: " + err.Error())
	}
	return sub.Digest()
}

func (s *Stage) receipt(p *plan.Plan, c *tool.Catalogue, o PerformOptions, report *machine.Report, answers map[string]Provenance, asked map[string]string) *Receipt {
	r := &Receipt{
		Plan: p.Digest().String(), Catalogue: CatalogueDigest(p, c).String(), Policy: o.Record.Policy.String(), Agent: o.AllowAgent,
		World:   World{Digest: s.b.Digest(), Name: s.b.Manifest.Name, Status: string(s.b.Manifest.Status())},
		Initial: value.NullValue(),
		Reasons: []string{},
	}
	if s.o.Initial != nil {
		r.Initial = s.o.Initial.Value()
	}
	for i := range report.Steps {
		step := &report.Steps[i]
		y := Played{Step: step.ID, Tool: step.Tool, Status: string(step.Status), Evidence: []string{}, Asked: asked[step.ID]}
		if a, called := answers[step.ID]; called {
			y.Args = argsDigest(step.Args)
			y.Way, y.Reason = a.Way, a.Reason
			y.Evidence = append(y.Evidence, a.Evidence...)
		}
		r.Steps = append(r.Steps, y)
		switch {
		case y.Way == Missed:
			r.Reasons = append(r.Reasons, fmt.Sprintf("step %s had no answer: %s", y.Step, y.Reason))
		case step.Status != machine.OK:
			r.Reasons = append(r.Reasons, fmt.Sprintf("step %s is %s", y.Step, y.Status))
		case y.Way == Agent && !o.AllowAgent:
			r.Reasons = append(r.Reasons, fmt.Sprintf("step %s was answered by the agent, which was not allowed to count", y.Step))
		case y.Way == Ruled || y.Way == Agent:
			if o := answers[step.ID].Outcome; o != world.Success {
				r.Reasons = append(r.Reasons, fmt.Sprintf("step %s has an answer, but whether the call succeeds is %s to what answered: %s", y.Step, o, strings.Join(y.Evidence, " ")))
			}
		}
	}
	r.Counts = len(r.Reasons) == 0
	r.Answers = r.answers().Digest().String()
	return r
}

// argsDigest is the digest of args as a report has them: without secrets.
func argsDigest(args value.Value) string { return args.Digest().String() }

func (r *Receipt) answers() value.Value { return asValue(r.Steps) }

// asValue is x as a value.
func asValue(x any) value.Value {
	text, err := world.AppendDocument(nil, x)
	if err != nil {
		panic("rehearsal: a receipt cannot be written: " + err.Error())
	}
	return value.MustParse(string(text))
}

// Value is the receipt as it is kept.
func (r *Receipt) Value() value.Value { return asValue(r) }

// ParseReceipt reads what [Receipt.Value] wrote. A receipt that is not what its
// own digest says is an error.
func ParseReceipt(v value.Value) (*Receipt, error) {
	r := &Receipt{Initial: value.NullValue()}
	if err := world.DecodeValue(v, r); err != nil {
		return nil, fmt.Errorf("receipt of a rehearsal: %w", err)
	}
	if got := r.answers().Digest().String(); got != r.Answers {
		return nil, fmt.Errorf("receipt of a rehearsal: its answers have the digest %s, and it says %s", got, r.Answers)
	}
	return r, nil
}

// Step is how a step went, nil without one of this id.
func (r *Receipt) Step(id string) *Played {
	if i := slices.IndexFunc(r.Steps, func(p Played) bool { return p.Step == id }); i >= 0 {
		return &r.Steps[i]
	}
	return nil
}

// Summary is the receipt in one sentence, for people who are asked about a call.
func (r *Receipt) Summary() string {
	n := map[Way]int{}
	calls := 0
	for i := range r.Steps {
		if r.Steps[i].Way != "" {
			n[r.Steps[i].Way]++
			calls++
		}
	}
	var parts []string
	for _, w := range []struct {
		way  Way
		noun string
	}{{Recorded, "from recordings"}, {Ruled, "by rules"}, {Agent, "by the agent"}, {Missed, "not at all"}} {
		if n[w.way] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[w.way], w.noun))
		}
	}
	text := fmt.Sprintf("rehearsed on world %s (%s): of %s answered %s", r.World.Name, short(r.World.Digest), count.Of(calls, "call"), strings.Join(parts, ", "))
	if given := r.given(); given != "" {
		text += "; the state to begin with was given, not recorded: " + given
	}
	return text
}

// maxGiven is how much of a given state a summary shows, in code points.
const maxGiven = 200

// given is what was said of the state that rules began with, "" if nothing was.
func (r *Receipt) given() string {
	if r.Initial.IsNull() {
		return ""
	}
	var ms []value.Member
	for _, name := range world.Namespaces {
		if v, ok := r.Initial.Get(name); ok && v.Len() > 0 {
			ms = append(ms, value.Member{Key: name, Value: v})
		}
	}
	text := []rune(value.ObjectOf(ms...).String())
	if len(text) > maxGiven {
		text = append(text[:maxGiven], '…')
	}
	return string(text)
}

// shortDigest is how many characters of a digest people compare.
const shortDigest = 12

func short(digest string) string { return digest[:min(len(digest), shortDigest)] }

// CodeDiffers is the code of the question that a real run asks when it does
// something else than its rehearsal did.
const CodeDiffers = "not_as_rehearsed"

// Differs says how a real call is not the one that was rehearsed: then a person
// is asked (spec/hostile.md 92). message is "" when it is the same.
func (r *Receipt) Differs(c call.Request) (code, message string) {
	y := r.Step(c.Step)
	switch {
	case y == nil || y.Way == "":
		return CodeDiffers, fmt.Sprintf("step %s was not called in the rehearsal", c.Step)
	case y.Args != argsDigest(c.Tool.Redact(c.Args)):
		return CodeDiffers, fmt.Sprintf("step %s had other args in the rehearsal", c.Step)
	}
	return "", ""
}

// A Claim is what a real run is about to do: a receipt counts for it only when
// all that it names is the same.
type Claim struct {
	Plan      *plan.Plan
	Catalogue *tool.Catalogue
	Policy    value.Digest
	World     string // digest of the worldbook that is required; "": any
}

// Missing is the error of a run that requires a rehearsal and has none that
// counts.
type Missing struct {
	Reasons []string // of the rehearsals of this plan, the latest first; none: there were none
}

// maxNamed bounds the rehearsals that a refusal names.
const maxNamed = 3

// Error says why each rehearsal does not count.
func (m *Missing) Error() string {
	if len(m.Reasons) == 0 {
		return "a rehearsal is required, and none of this very plan has ended with every step ok"
	}
	return "a rehearsal is required, and none counts: " + strings.Join(m.Reasons[:min(len(m.Reasons), maxNamed)], "; ")
}

// Find is the latest receipt that counts for a claim. The error is a [*Missing]
// when there is none.
func Find(ctx context.Context, store *journal.Store, c Claim) (*Receipt, error) {
	kept, err := record.Receipts(ctx, store, c.Plan.Digest())
	if err != nil {
		return nil, err
	}
	m := &Missing{}
	for _, k := range kept {
		r, err := ParseReceipt(k.Receipt)
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", k.Run, err)
		}
		r.Run = k.Run
		why := r.against(c)
		if len(why) == 0 {
			return r, nil
		}
		m.Reasons = append(m.Reasons, fmt.Sprintf("rehearsal %s: %s", k.Run, strings.Join(why, ", ")))
	}
	return nil, m
}

// against says why the receipt does not count for a claim.
func (r *Receipt) against(c Claim) []string {
	why := slices.Clone(r.Reasons)
	if r.Plan != c.Plan.Digest().String() {
		why = append(why, "the plan is another")
	}
	if r.Catalogue != CatalogueDigest(c.Plan, c.Catalogue).String() {
		why = append(why, "the tools are declared otherwise now")
	}
	if r.Policy != c.Policy.String() {
		why = append(why, "the policy is another")
	}
	if c.World != "" && r.World.Digest != c.World {
		why = append(why, "the worldbook is another: "+short(r.World.Digest)+", and "+short(c.World)+" is required")
	}
	if !r.Counts && len(why) == 0 {
		why = append(why, "it does not count")
	}
	return why
}
