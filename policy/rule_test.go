package policy_test

import (
	"strings"
	"testing"

	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

func compile(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile(value.MustParse(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bank is the catalogue of most tests.
func bank(t testing.TB) *tool.Catalogue {
	t.Helper()
	cat, err := tool.NewCatalogue(
		&tool.Declaration{
			Name: "transfer",
			Input: compile(t, `{"type":"object","required":["to","amount"],"properties":{
				"to":{"type":"string"},"amount":{"type":"number"},"id":{"type":"integer"},"note":{"type":"string"},
				"cc":{"anyOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}],"default":null},
				"via":{"type":"object","required":["bank"],"properties":{"bank":{"type":"string"},"code":{"type":"integer"}}},
				"parts":{"type":"array","items":{"type":"object","required":["sum"],"properties":{"sum":{"type":"number"},"memo":{"type":"string"}}}},
				"meta":{"type":"object"},"kind":{"enum":["fast","slow"]}}}`),
			Args: []tool.Arg{{Pattern: "/to", Role: tool.Target}, {Pattern: "/amount", Role: tool.Target}, {Pattern: "/cc", Role: tool.Target},
				{Pattern: "/*", Role: tool.Content}},
		},
		&tool.Declaration{
			Name:    "search",
			Input:   compile(t, `{"type":"object","required":["query"],"properties":{"query":{"type":"string"}}}`),
			Effects: tool.Effects{ReadOnly: true}, Args: []tool.Arg{{Pattern: "/*", Role: tool.Neutral}},
		},
		&tool.Declaration{
			Name:    "fetch",
			Input:   compile(t, `{"type":"object","required":["url"],"properties":{"url":{"type":"string","format":"uri"},"key":{"type":"string"}}}`),
			Effects: tool.Effects{ReadOnly: true, OpenWorld: true},
			Args:    []tool.Arg{{Pattern: "/url", Role: tool.Host}, {Pattern: "/key", Role: tool.Secret}},
		},
		&tool.Declaration{
			Name:    "write",
			Input:   compile(t, `{"type":"object","required":["file","text"],"properties":{"file":{"type":"string"},"text":{"type":"string"}}}`),
			Effects: tool.Effects{Idempotent: true}, Args: []tool.Arg{{Pattern: "/file", Role: tool.Path}, {Pattern: "/text", Role: tool.Content}},
		},
		&tool.Declaration{
			Name:    "delete",
			Input:   compile(t, `{"type":"object","required":["id"],"properties":{"id":{"type":"string"}}}`),
			Effects: tool.Effects{Destructive: true}, Args: []tool.Arg{{Pattern: "/id", Role: tool.Target}},
		},
		&tool.Declaration{Name: "ring", Effects: tool.Effects{}, Args: []tool.Arg{{Pattern: "/*", Role: tool.Neutral}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	return cat
}

func rule(when string) *policy.Document {
	return &policy.Document{Base: "allow", Rules: []policy.Rule{{ID: "r", Effect: policy.Deny, Tools: []string{"transfer"}, When: when}}}
}

func mustCompile(t testing.TB, d *policy.Document, cat *tool.Catalogue) *policy.Policy {
	t.Helper()
	p, err := d.Compile(cat)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestConditionsThatAreRefused(t *testing.T) {
	cat := bank(t)
	for _, c := range []struct{ when, want string }{
		{`args.recipient == "x"`, "undefined field 'recipient'"},
		{`args.amount == "x"`, "found no matching overload"},
		{`args.to > 5`, "found no matching overload"},
		{`args.note == "x"`, `"note" need not be there; write has(args.note)`},
		{`args.note == "x" && has(args.note)`, `"note" need not be there`},
		{`has(args.note) || args.note == "x"`, `"note" need not be there`},
		{`args.note == "x" || args.amount > 5.0`, `"note" need not be there`},
		{`has(args.via) && args.via.code == 5`, `"code" need not be there; write has(args.via.code)`},
		{`has(args.parts) && args.parts.exists(p, p.memo == "x")`, `"memo" need not be there; write has(p.memo)`},
		{`has(args.meta) && args.meta.x == 1`, `the schema does not say that "x" is there`},
		{`has(args.to) && args.to == "x"`, `has() of "to" is always true`},
		{`labels.note.integrity == "untrusted"`, `"note" need not be there`},
		{`labels.nothing.integrity == "untrusted"`, "undefined field 'nothing'"},
		{`1 < 2`, "always the same"},
		{`args.amount > 5.0 || true`, "always the same"},
		{`false && args.amount > 5.0`, "always the same"},
		{`(args.amount > 5.0 || 1 == 1) && tool.destructive`, "operand is always the same"},
		{`args.to`, "the condition is a string"},
		{`args.to.matches(args.to)`, "written out in the rule"},
		{`args.to.matches("[")`, "missing closing ]"},
		{`before("serch")`, `unknown tool "serch"; there is`},
		{`before(args.to)`, "written out in the rule"},
		{`sum("transfer", "to") > 5.0`, `declares no number "to"`},
		{`last("search", {"q": args.to}).status == "ok"`, `declares no arg "q"`},
		{`history.exists(h, h.tool == "serch")`, `unknown tool "serch"`},
		{`history.exists(h, h.tool in ["search", "serch"])`, `unknown tool "serch"`},
		{`history.exists(h, h.status == "OK")`, `status is never "OK"; it is running, ok,`},
		{`labels.to.integrity == "untrustd"`, `integrity is never "untrustd"; it is user, trusted, untrusted`},
		{`"private" != labels.to.secrecy`, `secrecy is never "private"; it is public, secret`},
		{`!(labels.to.integrity in ["user", "Trusted"])`, `integrity is never "Trusted"`},
		{`one_of(run.author, ["planner"])`, `author is never "planner"; it is user, model, agent`},
		{`has(args.kind) && args.kind == "fsat"`, `kind is never "fsat"; it is fast, slow`},
		{`args.amount < 9007199254740993.0`, "not exact as a double"},
		{`nothing > 5`, "unknown name 'nothing'"},
		{`lists.nobody.size() > 5`, "undefined field 'nobody'"},
		{`double(args.id) > 5.0`, "unknown name 'double'"},
		{`dyn(args.to) == 5`, "unknown name 'dyn'"},
		{`args.amount > `, "Syntax error"},
	} {
		_, err := rule(c.when).Compile(cat)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n got %v\nwant an error with %q", c.when, err, c.want)
		}
	}
}

func TestConditions(t *testing.T) {
	cat := bank(t)
	args := `{"to":"ann@example.com","amount":98.70,"id":9007199254740993,"via":{"bank":"b"},"parts":[{"sum":1},{"sum":2.5,"memo":"m"}],"meta":{"x":1},"cc":null}`
	for _, c := range []struct {
		when string
		want policy.Effect
		code string
	}{
		{`args.amount == 98.7`, policy.Deny, "denied"},
		{`args.amount <= 98`, policy.Allow, ""},
		{`args.to.matches("ann@example")`, policy.Allow, ""}, // anchored
		{`args.to.matches("ann@.*")`, policy.Deny, "denied"},
		{`matches(args.to, "a|ann.*com")`, policy.Deny, "denied"},
		{`domain_in(args.to, ["example.com"])`, policy.Deny, "denied"},
		{`domain_in(args.to, [".example.com"])`, policy.Allow, ""},
		{`one_of(args.to, ["ann@example.com"])`, policy.Deny, "denied"},
		{`one_of(args.to, ["ann"])`, policy.Allow, ""},
		{`between(args.amount, 1, 100)`, policy.Deny, "denied"},
		{`between(args.amount, 1.5, 98.6)`, policy.Allow, ""},
		{`has(args.id) && args.id == 9007199254740993`, policy.Deny, "denied"},
		{`has(args.id) && args.id == 9007199254740992`, policy.Allow, ""},
		{`has(args.note) && args.note == "x"`, policy.Allow, ""},
		{`!has(args.note) || args.note == "x"`, policy.Deny, "denied"},
		{`has(args.note) ? args.note == "x" : args.amount > 5`, policy.Deny, "denied"},
		{`has(args.cc)`, policy.Allow, ""}, // null is absent
		{`has(args.via) && args.via.bank == "b"`, policy.Deny, "denied"},
		{`has(args.parts) && args.parts.exists(p, has(p.memo) && p.memo == "m")`, policy.Deny, "denied"},
		{`has(args.parts) && args.parts.all(p, p.sum < 2)`, policy.Allow, ""},
		{`has(args.meta) && has(args.meta.x) && args.meta.x == 1`, policy.Deny, "denied"},
		{`has(args.meta) && "x" in args.meta && args.meta.x == 1`, policy.Deny, "denied"},
		{`labels.to.integrity == "user"`, policy.Deny, "denied"},
		{`tool.destructive`, policy.Allow, ""},
		{`step.id == "s1" && run.id == "run" && run.author == "user"`, policy.Deny, "denied"},
		{`times("transfer") < 1`, policy.Deny, "denied"},
		{`sum("transfer", "amount") + args.amount <= 500`, policy.Deny, "denied"},
		{`before("search")`, policy.Allow, ""},
		{`last("search").status == "ok"`, policy.Ask, "missing_fact"},
		{`last("search").status == "ok" || args.amount > 5`, policy.Deny, "denied"},
		{`history.exists(h, h.tool == "search")`, policy.Allow, ""},
		{`has(args.id) && args.id + 9223372036854775807 > 5`, policy.Deny, "rule_failed"},
		{`has(args.id) && (args.id / (args.id - 9007199254740993) > 1 || args.amount > 5)`, policy.Deny, "rule_failed"},
		{`has(args.parts) && args.parts[5].sum > 1`, policy.Deny, "rule_failed"},
		{`has(args.parts) && (args.parts[5].sum > 1 || args.amount < 5)`, policy.Deny, "rule_failed"},
		{`has(args.parts) && args.parts.all(p, has(args.parts) && args.parts[5].sum > p.sum && args.amount < 5)`, policy.Deny, "rule_failed"},
	} {
		p, err := rule(c.when).Compile(cat)
		if err != nil {
			t.Errorf("%s: %v", c.when, err)
			continue
		}
		d := p.Session("run", policy.Author{}).Judge(policy.Call{Step: "s1", Tool: cat.Get("transfer"), Args: value.MustParse(args)})
		if d.Effect != c.want || d.Code != c.code {
			t.Errorf("%s: got %s %q (%s), want %s %q", c.when, d.Effect, d.Code, d.Message, c.want, c.code)
		}
	}
}

// Two JSON numbers that differ never compare as equal: what is not exact is
// refused.
func TestInexactNumbersAreNotCompared(t *testing.T) {
	cat := bank(t)
	p := mustCompile(t, rule(`args.amount > 100 || has(args.id) && args.id > 5`), cat)
	for _, c := range []struct{ args, code string }{
		{`{"to":"a","amount":9007199254740993}`, "rule_failed"},
		{`{"to":"a","amount":0.1000000000000000055}`, "rule_failed"},
		{`{"to":"a","amount":1e400}`, "rule_failed"},
		{`{"to":"a","amount":1,"id":9223372036854775808}`, "rule_failed"},
		{`{"to":"a","amount":0.1}`, ""},
		{`{"to":"a","amount":1e2,"id":1.0}`, ""},
		{`{"to":"a","amount":1e2,"id":6.0}`, "denied"},
	} {
		d := p.Session("", policy.Author{}).Judge(policy.Call{Tool: cat.Get("transfer"), Args: value.MustParse(c.args)})
		if d.Code != c.code {
			t.Errorf("%s: got %q (%s), want %q", c.args, d.Code, d.Message, c.code)
		}
	}
}

func TestHistory(t *testing.T) {
	cat := bank(t)
	search := policy.Call{Step: "s1", Tool: cat.Get("search"), Args: value.MustParse(`{"query":"a"}`)}
	pay := func(id, amount string) policy.Call {
		return policy.Call{Step: id, Tool: cat.Get("transfer"), Args: value.MustParse(`{"to":"a","amount":` + amount + `}`)}
	}
	for _, c := range []struct {
		when string
		want policy.Effect
	}{
		{`before("search")`, policy.Deny},
		{`times("transfer") == 3`, policy.Deny}, // one that failed for good is not counted
		{`sum("transfer", "amount") == 60.3`, policy.Deny},
		{`json(last("search").output).owner == "ann"`, policy.Deny},
		{`json(last("search", {"query": "a"}).output).owner == "ann"`, policy.Deny},
		{`json(last("search", {"query": args.to}).output).owner == "ann"`, policy.Deny},
		{`json(last("search", {"query": "b"}).output).owner == "ann"`, policy.Ask},
		{`json(last("search").output).nobody == "ann"`, policy.Ask},
		{`has(json(last("search").output).nobody)`, policy.Allow},
		{`json(last("transfer").output).x == 1`, policy.Deny}, // its output is no JSON text: refused
		{`history.exists(h, h.tool == "transfer" && h.status == "running")`, policy.Deny},
		{`history.filter(h, h.tool == "transfer").size() == 4`, policy.Deny},
	} {
		p := mustCompile(t, rule(c.when), cat)
		s := p.Session("", policy.Author{})
		s.Begin(search)
		s.End(search, "ok", value.MustText(`{"owner":"ann"}`))
		s.End(pay("s2", "10.1"), "ok", value.MustText("done"))
		s.End(pay("s3", "20.1"), "tool_error", value.Value{})
		s.End(pay("s4", "20.1"), "uncertain", value.Value{})
		s.Begin(pay("s5", "30.1"))
		s.Begin(pay("s5", "30.1")) // a retry
		if d := s.Judge(pay("s6", "1")); d.Effect != c.want {
			t.Errorf("%s: got %s (%s %s), want %s", c.when, d.Effect, d.Code, d.Message, c.want)
		}
	}
}

func TestFaultsHavePlaces(t *testing.T) {
	section := value.MustParse(`{"rules":[{"id":"a","effect":"deny","tools":["transfer"],"when":"args.amount > 5.0 && args.nope == 1"},
		{"id":"b","effect":"deny","tools":["transfer"],"when":"args.amount > 5.0\n&& args.nope == 1\n"}]}`)
	doc, err := policy.Read(section, func(pointer string) (int, int) {
		return map[string]int{"/rules/0/when": 10, "/rules/1/when": 20}[pointer], 11
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = doc.Compile(bank(t))
	e, ok := policy.AsError(err)
	if !ok || len(e.Faults) != 2 {
		t.Fatalf("got %v, want two faults", err)
	}
	if f := e.Faults[0]; f.Line != 10 || f.Column != 11+25 {
		t.Errorf("got %v, want line 10, column 36", f)
	}
	if f := e.Faults[1]; f.Line != 22 || f.Column != 8 {
		t.Errorf("got %v, want line 22, column 8", f)
	}
}
