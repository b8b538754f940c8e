package gate_test

import (
	"context"
	"testing"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/gate"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// A limit counts what had its effect, may have had it, or will be tried again
// without another judgement.
func TestALimitCountsWhatMayHaveHappened(t *testing.T) {
	fails := func(f tool.Failure) call.Outcome { return call.Outcome{Failure: &f} }
	for _, c := range []struct {
		name    string
		effects tool.Effects
		agent   bool
		attempt int
		out     call.Outcome
		want    machine.Verdict // about a second call
	}{
		{"refused by the tool", tool.Effects{}, false, 1, fails(tool.Failure{Code: "no"}), machine.Allow},
		{"busy, and tried again", tool.Effects{}, false, 1, fails(tool.Failure{Code: "busy", Retryable: true}), machine.Deny},
		{"busy, and not tried again", tool.Effects{}, false, 2, fails(tool.Failure{Code: "busy", Retryable: true}), machine.Allow},
		{"busy, in an agent, which does not try again", tool.Effects{}, true, 1, fails(tool.Failure{Code: "busy", Retryable: true}), machine.Allow},
		{"lost, of a tool that is safe to repeat", tool.Effects{Idempotent: true}, false, 1, fails(tool.Failure{Code: "gone", Lost: true}), machine.Deny},
		{"lost for good, of a tool that is safe to repeat", tool.Effects{Idempotent: true}, false, 2, fails(tool.Failure{Code: "gone", Lost: true}), machine.Deny},
		{"lost for good", tool.Effects{}, true, 1, fails(tool.Failure{Code: "gone", Lost: true}), machine.Deny},
		{"given up by a person", tool.Effects{}, true, 1, fails(tool.Failure{Code: string(machine.Uncertain)}), machine.Deny},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := tool.NewSet(tool.Tool{Declaration: tool.Declaration{Name: "pay", Effects: c.effects, Attempts: 2}, Handler: silent})
			if err != nil {
				t.Fatal(err)
			}
			pol := ruled(t, s, `{"base":"allow","rules":[{"id":"once","effect":"deny","tools":["pay"],"when":"times(\"pay\") >= 1"}]}`)
			opt := gate.Options{Policy: pol, Author: policy.Author{Kind: policy.Agent}}
			if !c.agent {
				opt = gate.Options{Policy: pol, Plan: decode(t, `[{"id":"a","tool":"pay"},{"id":"b","tool":"pay"}]`)}
			}
			g := gate.New(opt)
			request := func(step string, attempt int) call.Request {
				return call.Request{Run: "r", Step: step, Attempt: attempt, Tool: s.Catalogue().Get("pay"), Args: value.ObjectOf()}
			}
			if d, err := g.Judge(t.Context(), request("a", 1)); err != nil || d.Verdict != machine.Allow {
				t.Fatalf("the first call: %v %v", d, err)
			}
			g.Ended(request("a", c.attempt), c.out)
			if d, err := g.Judge(t.Context(), request("b", 1)); err != nil || d.Verdict != c.want {
				t.Errorf("the second call: %v %v, want %v", d, err, c.want)
			}
		})
	}
}

func silent(context.Context, *tool.Call) (value.Value, error) { return value.NullValue(), nil }

// What a person says of a lost call is how it ended, to the rules too.
func TestAResolvedCallIsPartOfTheHistory(t *testing.T) {
	for _, c := range []struct {
		resolution machine.Resolution
		wipe       machine.Status
	}{{machine.Happened, machine.OK}, {machine.GiveUp, machine.Denied}} {
		var calls []string
		s := bank(t, &calls)
		pol := ruled(t, s, `{"base":"allow","rules":[{"id":"paid","effect":"deny","tools":["wipe"],"when":"times(\"read\") > 0 && !before(\"pay\")"}]}`)
		p := decode(t, `[{"id":"a","tool":"pay","args":{"to":"ann"}},{"id":"r","tool":"read"},{"id":"w","tool":"wipe","after":["r"]}]`)
		past := []run.Past{
			{Step: "a", Event: machine.Event{Kind: machine.Judged, Verdict: machine.Allow}},
			{Step: "a", Begun: true, Event: machine.Event{Attempt: 1}},
			{Step: "a", Event: machine.Event{Kind: machine.Lost, Attempt: 1}},
			{Step: "a", Event: machine.Event{Kind: machine.Resolved, Resolution: c.resolution, Output: value.MustText("paid")}},
		}
		r, err := run.Do(t.Context(), p, s, run.Options{Gate: gate.New(gate.Options{Policy: pol, Plan: p}), Past: past})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Steps[2].Status; got != c.wipe {
			t.Errorf("after resolution %v, wipe is %s, want %s: %s", c.resolution, got, c.wipe, r.AppendFullJSON(nil))
		}
	}
}
