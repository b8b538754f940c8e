package engine

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/state"
	"github.com/google/go-cmp/cmp"
)

const shop = `{
"actions": [{"name": "buy", "aliases": ["purchase"], "arguments": {"item": {"type": "string", "required": true}, "n": {"type": "integer"}, "how": {"enum": ["cash", 1]}, "o": {"type": "object"}}},
	{"name": "look"}],
"fields": [{"path": "world.stock", "type": "object"}, {"path": "world.count", "type": "integer"}, {"path": "world.log", "type": "array"},
	{"path": "world.name", "type": "string", "default": "shop"}, {"path": "world.fixed.rate", "type": "number", "mutable": false}, {"path": "session.user", "type": "any", "visibility": "session"}],
"renderers": [{"id": "default"}, {"id": "shop", "action_types": ["buy"], "template": "{outcome} {action.arguments.item}", "required_fields": ["state_after.world.name"]}],
"invariants": [{"id": "few", "description": "at most nine", "condition": {"left": {"path": "world.count"}, "op": "lte", "right": {"literal": 9}}},
	{"id": "named", "description": "it has a name", "severity": "warning", "condition": {"left": {"path": "world.name"}, "op": "exists"}}]}`

func engine(t testing.TB, rules string, edit func(*Knowledge)) *Engine {
	t.Helper()
	var doc struct {
		Actions    []world.ActionSpec     `json:"actions"`
		Fields     []world.StateField     `json:"fields"`
		Renderers  []world.RenderContract `json:"renderers"`
		Invariants []world.Invariant      `json:"invariants"`
	}
	if err := world.Decode([]byte(shop), &doc); err != nil {
		t.Fatal(err)
	}
	k := Knowledge{Actions: doc.Actions, Fields: doc.Fields, Renderers: doc.Renderers, Invariants: doc.Invariants, Scope: map[string]string{"environment_id": "shop", "tenant": "a"}, MinConfidence: 0.5}
	if err := world.Decode([]byte("["+rules+"]"), &k.Rules); err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(&k)
	}
	e, err := New(k)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func at(t testing.TB, text string) state.State {
	t.Helper()
	s, err := state.Parse(value.MustParse(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func act(typ, args string) world.Action {
	return world.Action{Type: typ, Arguments: value.MustParse(args), Raw: value.NullValue()}
}

func rule(id, more string) string {
	return fmt.Sprintf(`{"id":%q,"action_type":"buy","description":"","renderer":"shop"%s}`, id, more)
}

func TestActionsAreTyped(t *testing.T) {
	e := engine(t, "", nil)
	for args, want := range map[string]string{
		`{"item":"x"}`: "", `{"item":"x","n":2,"how":1.0,"extra":[]}`: "",
		`{}`:                        "Missing required argument 'item' for action 'buy'",
		`{"item":1}`:                "Argument 'item' must be string, got int",
		`{"item":"x","n":2.0}`:      "Argument 'n' must be integer, got float",
		`{"item":"x","n":true}`:     "Argument 'n' must be integer, got bool",
		`{"item":"x","o":null}`:     "Argument 'o' must be object, got NoneType",
		`{"item":"x","how":"card"}`: "Argument 'how' must be one of ['cash', 1]",
	} {
		a, err := e.Canonical(act("purchase", args))
		if want == "" && (err != nil || a.Type != "buy") || want != "" && (!world.IsFault(err, world.InvalidAction) || err.Error() != want) {
			t.Errorf("%s: %v, %v; want %q", args, a.Type, err, want)
		}
	}
	if a, err := e.Canonical(act("fly", `{"x":1}`)); err != nil || a.Type != "fly" {
		t.Errorf("an unknown action: %v, %v", a, err)
	}
}

func TestScopeAndStatusDecideEligibility(t *testing.T) {
	e := engine(t, "", nil)
	s := at(t, `{"session":{"user":7}}`)
	for more, want := range map[string]bool{
		``: true, `,"status":"tentative"`: false, `,"confidence":0.4`: false, `,"confidence":0.5`: true,
		`,"scope":{"tenant_scope":"a","environment_id":"shop"}`: true, `,"scope":{"tenant":"b"}`: false, `,"scope":{"region":"x"}`: false,
		`,"scope":{"session.user":7}`: true, `,"scope":{"session.user":"8"}`: false, `,"scope":{"session.zzz":"7"}`: false,
	} {
		var r world.Rule
		if err := world.Decode([]byte(rule("r", more)), &r); err != nil {
			t.Fatal(err)
		}
		if got := e.Eligible(&r, s, false); got != want {
			t.Errorf("%s: %v", more, got)
		}
		if strings.Contains(more, "session.") && !e.Eligible(&r, s, true) {
			t.Errorf("%s is not eligible in any state", more)
		}
	}
}

func TestSelection(t *testing.T) {
	s := at(t, `{"world":{"count":1}}`)
	for _, c := range []struct{ name, rules, want string }{
		{"priority", rule("low", `,"priority":1`) + "," + rule("high", `,"priority":2,"outcome":"failure"`), "high"},
		{"confidence, then id, of equal plans", rule("a", "") + "," + rule("c", `,"confidence":0.9`) + "," + rule("b", ""), "b"},
		{"conditions", rule("yes", "") + "," + rule("no", `,"priority":9,"conditions":[{"left":{"path":"world.count"},"op":"gt","right":{"literal":1}}]`), "yes"},
		{"a missing argument", rule("yes", "") + "," + rule("no", `,"priority":9,"effects":[{"op":"set","path":"world.count","value":{"$action_arg":"n"}}]`), "yes"},
		{"conflict", rule("a", "") + "," + rule("b", `,"outcome":"partial"`), "Incompatible rules apply at the same priority: b, a"},
		{"25 and 25.0", rule("a", `,"effects":[{"op":"set","path":"world.count","value":25}]`) + "," + rule("b", `,"effects":[{"op":"set","path":"world.count","value":25.0}]`), "Incompatible rules apply at the same priority: b, a"},
		{"none", rule("a", `,"status":"deprecated"`), ""},
	} {
		r, _, err := engine(t, c.rules, nil).Select(s, act("buy", `{"item":"x"}`), false)
		got := ""
		switch {
		case err != nil:
			got = err.Error()
		case r != nil:
			got = r.ID
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	vacuous := engine(t, `{"id":"v","action_type":"look","description":""}`, nil)
	if r, _, err := vacuous.Select(s, act("look", `{}`), true); r != nil || err != nil {
		t.Errorf("a rule that can produce nothing was selected: %v, %v", r, err)
	}
}

func TestEffectsAreValidated(t *testing.T) {
	e := engine(t, "", nil)
	for effect, want := range map[string]string{
		`{"op":"set","path":"world.count","value":1}`:                                                                      "",
		`{"op":"set","path":"world.stock.{action.arguments.item}.n","value":"{action.arguments.n}"}`:                       "",
		`{"op":"increment","path":"world.count","value":{"$action_arg":"n"}}`:                                              "",
		`{"op":"append","path":"world.log","value":null}`:                                                                  "",
		`{"op":"remove","path":"world.stock","value":["a","b"]}`:                                                           "",
		`{"op":"schedule","path":"world.count","delay_steps":1,"value":{"effects":[{"op":"delete","path":"world.name"}]}}`: "",
		`{"op":"set","path":"world.zzz","value":1}`:                                                                        "Undeclared state path: world.zzz",
		`{"op":"set","path":"world.name.x","value":1}`:                                                                     "Undeclared state path: world.name.x",
		`{"op":"set","path":"world.stock..x","value":1}`:                                                                   "Invalid state path: world.stock..x",
		`{"op":"set","path":"world.stock.{x}","value":1}`:                                                                  "Invalid state path: world.stock.{x}",
		`{"op":"set","path":"world.fixed.rate","value":1}`:                                                                 "Effect modifies immutable state: world.fixed.rate",
		`{"op":"set","path":"world.stock","value":1}`:                                                                      "Effect type integer does not match object: world.stock",
		`{"op":"set","path":"world.count","value":null}`:                                                                   "Effect type null does not match integer: world.count",
		`{"op":"set","path":"world.count","value":1.0}`:                                                                    "Effect type number does not match integer: world.count",
		`{"op":"increment","path":"world.count","value":0.5}`:                                                              "Fractional effect on integer state: world.count",
		`{"op":"increment","path":"world.name","value":1}`:                                                                 "Non-numeric arithmetic effect: world.name",
		`{"op":"append","path":"world.count","value":1}`:                                                                   "Append requires array state: world.count",
		`{"op":"merge","path":"world.stock","value":[]}`:                                                                   "merge requires an object value: world.stock",
		`{"op":"merge","path":"world.count","value":{}}`:                                                                   "merge requires object state: world.count",
		`{"op":"remove","path":"world.stock","value":1}`:                                                                   "remove requires a key or a list of keys: world.stock",
		`{"op":"set","path":"world.name","value":"{action.arguments.zzz}"}`:                                                "Undeclared action argument: zzz",
		`{"op":"set","path":"world.name","value":"{action.arguments.item.x}"}`:                                             "Cannot traverse argument: item.x",
		`{"op":"set","path":"world.name","value":"{state_after.world.count}"}`:                                             "State-value interpolation is not implemented",
		`{"op":"set","path":"world.name","value":{"$state_path":"world.name"}}`:                                            "State-value interpolation is not implemented",
		`{"op":"set","path":"world.stock.a","value":{"$action_arg":"n","x":1}}`:                                            "Dynamic argument values cannot contain extra fields",
		`{"op":"schedule","path":"world.count","value":1}`:                                                                 "Scheduled effects require delay_steps",
		`{"op":"schedule","path":"world.count","delay_steps":1,"value":{"effects":[{"op":"set","path":"world.zzz"}]}}`:     "Undeclared state path: world.zzz",
	} {
		var m world.Mutation
		if err := world.Decode([]byte(effect), &m); err != nil {
			t.Errorf("%s: %v", effect, err)
			continue
		}
		err := e.ValidateEffects([]world.Mutation{m}, e.Action("buy"), false)
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
			t.Errorf("%s: got %v, want %q", effect, err, want)
		}
	}
	// Data that looks like a reference is data.
	m := world.Mutation{Op: world.Set, Path: "world.name", Value: value.MustText("{state_after.world.x} {action.arguments.zzz}")}
	if err := e.ValidateEffects([]world.Mutation{m}, nil, true); err != nil {
		t.Errorf("resolved: %v", err)
	}
}

func TestVerificationCodes(t *testing.T) {
	rules := rule("up", `,"effects":[{"op":"increment","path":"world.count","value":1}],"observation_template":"up"`) + "," +
		rule("off", `,"status":"deprecated"`) + "," + rule("never", `,"conditions":[{"left":{"path":"world.count"},"op":"lt","right":{"literal":0}}]`)
	e := engine(t, rules, nil)
	s := at(t, `{"world":{"count":1,"name":"s"}}`)
	up := "up"
	one := []world.Mutation{{Op: world.Increment, Path: "world.count", Value: value.Int(1)}}
	known := []*world.Rule{e.Rule("up"), e.Rule("off"), e.Rule("never")}
	text := "x"
	base := Plan{Action: act("buy", `{"item":"i"}`), Outcome: world.Success, RendererID: "shop", ObservationTemplate: &up, RuleIDs: []string{"up"}, Effects: one}
	for _, c := range []struct {
		name  string
		state string
		edit  func(*Plan)
		trust Trust
		want  string
	}{
		{"good", "", func(p *Plan) {}, RulesOnly, ""},
		{"no rule", "", func(p *Plan) { p.RuleIDs = nil }, RulesOnly, "error unsupported_plan"},
		{"no rule, trusted", "", func(p *Plan) { p.RuleIDs = nil }, SchemaChecked, "warning model_proposed_effects"},
		{"no rule, no effects", "", func(p *Plan) { p.RuleIDs, p.Effects = nil, nil }, RulesOnly, "warning unsupported_plan"},
		{"unknown", "", func(p *Plan) { p.RuleIDs = []string{"zzz"} }, RulesOnly, "error unknown_rule"},
		{"twice", "", func(p *Plan) { p.RuleIDs = []string{"up", "up"} }, RulesOnly, "error duplicate_rule"},
		{"ineligible", "", func(p *Plan) { p.RuleIDs = []string{"off"} }, RulesOnly, "error ineligible_rule"},
		{"inapplicable", "", func(p *Plan) { p.RuleIDs = []string{"never"} }, RulesOnly, "error inapplicable_rule"},
		{"outcome", "", func(p *Plan) { p.Outcome = world.Failed }, SchemaChecked, "error unsupported_outcome"},
		{"effect", "", func(p *Plan) {
			p.Effects = []world.Mutation{{Op: world.Increment, Path: "world.count", Value: value.MustParse("1.0")}}
		}, SchemaChecked, "error unsupported_effect"},
		{"sequence", "", func(p *Plan) { p.Effects = append(one, one...) }, SchemaChecked, "error effect_sequence_mismatch"},
		{"rendering", "", func(p *Plan) { p.ObservationTemplate = &text }, SchemaChecked, "error unsupported_rendering"},
		{"field", `{"world":{"count":1}}`, func(p *Plan) {}, RulesOnly, "warning invariant:named|error missing_render_field"},
		{"broken", `{"world":{"count":9,"name":"s"}}`, func(p *Plan) {}, RulesOnly, "error invariant:few"},
		{"broken before", `{"world":{"count":10,"name":"s"}}`, func(p *Plan) {}, RulesOnly, "warning invariant_preexisting:few"},
	} {
		before := s
		if c.state != "" {
			before = at(t, c.state)
		}
		p := base
		c.edit(&p)
		after, err := before.Apply(p.Effects)
		if err != nil {
			t.Fatal(err)
		}
		v := e.Verify(&p, before, after, c.trust, known, nil)
		var got []string
		for _, is := range v.Issues {
			got = append(got, is.Severity+" "+is.Code)
		}
		if strings.Join(got, "|") != c.want || v.Accepted == strings.Contains(c.want, "error") {
			t.Errorf("%s: got %v (accepted %v), want %s", c.name, got, v.Accepted, c.want)
		}
	}
	v := e.Verify(&Plan{Action: base.Action, Outcome: world.Success, RendererID: "default", Observation: &text, Citations: []string{"note:a", "note:b"}}, s, s, RulesOnly, known, map[string]bool{"note:a": true})
	if is := v.Issues[len(v.Issues)-1]; is.Code != "uncited_reference" || !strings.Contains(is.Message, "note:b") || strings.Contains(is.Message, "note:a") {
		t.Errorf("citations: %+v", v.Issues)
	}
}

func TestRendering(t *testing.T) {
	e := engine(t, "", nil)
	before, after := at(t, `{"world":{"count":1}}`), at(t, `{"step":2,"world":{"count":100.0,"l":[1,true,null,"it's"]}}`)
	c := Context{Action: act("buy", `{"item":"{outcome}","o":{"k":25}}`), Before: before, After: after, Outcome: world.Success}
	for template, want := range map[string]string{
		"{state_before.world.count} {state_after.world.count} {state_after.step}": "1 100.0 2",
		"{action.type} {action.arguments.item} {action.arguments.o.k}":            "buy {outcome} 25", // what is put in is data
		"{state_after.world.l} {outcome}":                                         `[1, True, None, "it's"] success`,
		"{not a token} {} {a-b} {":                                                "{not a token} {} {a-b} {",
	} {
		if got, err := Fill(template, c); err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", template, got, err, want)
		}
	}
	for _, template := range []string{"{state_after.world.zzz}", "{action.arguments.zzz}", "{nothing}", "{outcome.x}"} {
		if _, err := Fill(template, c); !world.IsFault(err, world.KeyError) {
			t.Errorf("%s: got %v", template, err)
		}
	}
	p := &Plan{Action: c.Action, Outcome: world.Success, RendererID: "default"}
	if got, err := e.Render(p, before, at(t, `{"world":{"a":1.0}}`)); err != nil || got != `{"outcome": "success", "state": {"revision": 0, "step": 0, "world": {"a": 1.0}, "session": {}, "surface": {}, "epistemic": {}, "pending_events": []}}` {
		t.Errorf("without a template: %s, %v", got, err)
	}
	p.RendererID = "shop"
	if got, err := e.Render(p, before, after); err != nil || got != "success {outcome}" {
		t.Errorf("the contract's: %s, %v", got, err)
	}
}

func TestKnowledgeThatDoesNotHangTogether(t *testing.T) {
	for name, edit := range map[string]func(*Knowledge){
		"alias": func(k *Knowledge) { k.Actions[1].Aliases = []string{"buy"} },
		"action": func(k *Knowledge) {
			k.Rules = append(k.Rules, world.Rule{ID: "r", ActionType: "zzz", Renderer: "shop"})
		},
		"renderer": func(k *Knowledge) { k.Rules = append(k.Rules, world.Rule{ID: "r", ActionType: "buy", Renderer: "zzz"}) },
		"twice": func(k *Knowledge) {
			r := world.Rule{ID: "r", ActionType: "buy", Renderer: "shop"}
			k.Rules = append(k.Rules, r, r)
		},
	} {
		k := *engine(t, "", nil).Knowledge()
		edit(&k)
		if _, err := New(k); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestCheckRuleListsEverything(t *testing.T) {
	e := engine(t, "", nil)
	var r world.Rule
	if err := world.Decode([]byte(rule("r", `,"effects":[{"op":"set","path":"world.zzz"}],"conditions":[{"left":{"action_arg":"q"},"op":"exists"},{"any":[]}],"observation_template":"{state_after.world.q} {x}"`)), &r); err != nil {
		t.Fatal(err)
	}
	want := []string{"effects: Undeclared state path: world.zzz", "condition: Undeclared action argument: q",
		"condition: any, all and not are an extension that this package does not declare",
		"template: Undeclared state path: world.q", "template: Unsupported renderer reference: x"}
	if d := cmp.Diff(want, e.CheckRule(&r)); d != "" {
		t.Error(d)
	}
}
