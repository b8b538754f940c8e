package record

import (
	"slices"
	"time"

	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// withheld stands for an output that is not in the record.
var withheld = value.MustParse(`{"$withheld":true}`)

// keptReport is the report of a run whose record does not hold what a replay
// needs, without outputs and args that the record must not hold. It is no value
// when a replay can rebuild the report.
func keptReport(r *machine.Report, contents Contents, seal sealer) value.Value {
	if r == nil || contents == Full && len(seal.feeds) == 0 {
		return value.Value{}
	}
	kept := *r
	kept.Steps = slices.Clone(r.Steps)
	for i := range kept.Steps {
		s := &kept.Steps[i]
		if contents != Full {
			s.Args = value.Value{}
		}
		if contents != Full || seal.feedsSecret(s.ID) {
			s.Output = withheld
		}
	}
	v, err := value.Parse(kept.AppendFullJSON(nil))
	if err != nil {
		return value.Value{} // nothing is lost but what show can tell
	}
	return v
}

// readReport reads a full report.
func readReport(id string, v value.Value) *machine.Report {
	r := &machine.Report{Run: id, Calls: num(v, "calls"), Waves: [][]string{}}
	outputs, _ := v.Get("outputs")
	waves, _ := v.Get("waves")
	for _, w := range waves.Elements() {
		ids := make([]string, 0, w.Len())
		for _, e := range w.Elements() {
			s, _ := e.Text()
			ids = append(ids, s)
		}
		r.Waves = append(r.Waves, ids)
	}
	steps, _ := v.Get("steps")
	for _, sv := range steps.Elements() {
		s := machine.StepReport{ID: str(sv, "id"), Tool: str(sv, "tool"), Status: machine.Status(str(sv, "status")), Wave: -1}
		if w, ok := sv.Get("wave"); ok && !w.IsNull() {
			s.Wave = num(sv, "wave")
		}
		s.Args, _ = sv.Get("args")
		s.Output, _ = outputs.Get(s.ID)
		attempts, _ := sv.Get("attempts")
		for _, av := range attempts.Elements() {
			s.Attempts = append(s.Attempts, readAttempt(av))
		}
		if c, ok := sv.Get("cause"); ok {
			s.Cause = &machine.Cause{Step: str(c, "step"), Code: str(c, "code"), Message: str(c, "message")}
		}
		r.Steps = append(r.Steps, s)
	}
	return r
}

func readAttempt(v value.Value) machine.Attempt {
	at := func(key string) time.Time {
		t, _ := time.Parse(time.RFC3339Nano, str(v, key))
		return t
	}
	a := machine.Attempt{
		N: num(v, "n"), Start: at("start"), End: at("end"), Rerun: flag(v, "rerun"), Crashed: str(v, "outcome") == "crashed",
		Resolved: str(v, "resolved"), MayHaveHappened: flag(v, "may_have_happened"),
	}
	if f, ok := v.Get("error"); ok {
		a.Failure = &tool.Failure{Code: str(f, "code"), Message: str(f, "message"), Lost: str(v, "outcome") == "lost"}
	}
	if recorded, ok := v.Get("recorded"); ok {
		b, _ := recorded.Bool()
		a.Unrecorded = !b
	}
	return a
}
