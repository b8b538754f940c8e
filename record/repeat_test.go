package record_test

import (
	"context"
	"testing"

	guard "github.com/callsheet/callsheet/gate"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// A fork of a plan that was written anew takes over what is the same, asks about
// effects on the same targets, also after a resume, and does the rest.
func TestAForkAsksAboutRepeatedEffects(t *testing.T) {
	w := newWorld(t, func(x *tool.Tool) {
		if x.Name == "send" {
			x.Args = []tool.Arg{{Pattern: "/body", Role: tool.Content}}
		}
		if x.Name == "put" {
			x.Handler = func(context.Context, *tool.Call) (value.Value, error) { return value.Value{}, tool.Errorf("full") }
		}
	})
	first := decode(t, `[
		{"id":"look","tool":"read","args":{"q":1}},
		{"id":"mail","tool":"send","args":{"to":"ann","body":"one"}},
		{"id":"keep","tool":"put","after":["mail"]}]`)
	r, err := record.Run(t.Context(), w.store, first, w.tools, record.Options{})
	if err != nil || r.OK() {
		t.Fatal(err, r.OK())
	}
	second := decode(t, `[
		{"id":"look","tool":"read","args":{"q":1}},
		{"id":"same","tool":"send","args":{"to":"ann","body":"one"}},
		{"id":"again","tool":"send","args":{"body":"another","to":"ann"}},
		{"id":"other","tool":"send","args":{"to":"bob","body":"one"}},
		{"id":"later","tool":"send","args":{"to":"ann","body":"third"},"after":["again"]}]`)
	var asked []record.Ask
	opt := record.Options{AskRepeats: true, OnAsk: func(a record.Ask) { asked = append(asked, a) }}
	r, err = record.Fork(t.Context(), w.store, r.Run, second, w.tools, opt)
	if err != nil {
		t.Fatal(err)
	}
	want(t, r, `{"status":{"look":"ok","same":"ok","again":"waiting","other":"ok","later":"waiting"},"outputs":{"look":"out of look","same":"out of mail","other":"out of other"},"waves":[["look","same","again","other"]],"calls":1}`)
	if len(asked) != 1 || asked[0].Step != "again" || asked[0].Code != record.CodeRepeatedEffect {
		t.Fatalf("asked %+v", asked)
	}
	opt.AskRepeats = false // the record knows
	if err := record.Decide(t.Context(), w.store, r.Run, "again", record.Answer{Allow: true}, opt); err != nil {
		t.Fatal(err)
	}
	if r, err = record.Resume(t.Context(), w.store, r.Run, w.tools, opt); err != nil {
		t.Fatal(err)
	}
	if len(asked) != 2 || asked[1].Step != "later" || r.Steps[4].Status != machine.Waiting || r.Steps[2].Status != machine.OK {
		t.Errorf("after the resume: asked %+v, %s", asked, r.AppendJSON(nil))
	}
	// The next fork knows the first run too.
	third := decode(t, `[{"id":"x","tool":"send","args":{"to":"ann","body":"x"}},{"id":"y","tool":"send","args":{"to":"carl","body":"x"}}]`)
	if r, err = record.Fork(t.Context(), w.store, r.Run, third, w.tools, record.Options{AskRepeats: true}); err != nil {
		t.Fatal(err)
	}
	want(t, r, `{"status":{"x":"waiting","y":"ok"},"outputs":{"y":"out of y"},"waves":[["x","y"]],"calls":1}`)
}

// A repeated effect is asked about in the way of the gate: where nobody is asked,
// it is denied.
func TestARepeatedEffectIsDeniedWhereNobodyIsAsked(t *testing.T) {
	w := newWorld(t, func(x *tool.Tool) {
		if x.Name == "send" {
			x.Args = []tool.Arg{{Pattern: "/body", Role: tool.Content}}
		}
	})
	first := decode(t, `[{"id":"mail","tool":"send","args":{"to":"ann","body":"one"}}]`)
	r, err := record.Run(t.Context(), w.store, first, w.tools, record.Options{})
	if err != nil {
		t.Fatal(err)
	}
	second := decode(t, `[{"id":"again","tool":"send","args":{"to":"ann","body":"two"}},{"id":"other","tool":"send","args":{"to":"bob","body":"two"}}]`)
	opt := record.Options{AskRepeats: true, Run: run.Options{Gate: guard.New(guard.Options{Plan: second, OnAsk: guard.Refuse})}}
	if r, err = record.Fork(t.Context(), w.store, r.Run, second, w.tools, opt); err != nil {
		t.Fatal(err)
	}
	want(t, r, `{"status":{"again":"denied","other":"ok"},"outputs":{"other":"out of other"},"waves":[["again","other"]],"calls":1}`)
}
