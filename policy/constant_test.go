package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/tool"
)

func TestConstantConditionsAreRefused(t *testing.T) {
	cat := bank(t)
	for _, c := range []struct{ when, want string }{
		{`args.to == args.to`, "condition is always the same: true"},
		{`has(args.meta) && "x" in args.meta && args.meta.x != args.meta["x"]`, "operand is always the same: false"},
		{`args.amount > 5 && args.amount < 3`, "condition is always the same: false"},
		{`args.amount > 5.0 || args.amount <= 5`, "condition is always the same: true"},
		{`args.to == "ann" && args.to == "bob"`, "condition is always the same: false"},
		{`args.to != "ann" || args.to != "bob"`, "condition is always the same: true"},
		{`args.to in [] && before("search")`, "operand is always the same: false"},
		{`before("search") || !before("search")`, "condition is always the same: true"},
		{`(args.to == "a" ? args.amount > 5 : args.amount < 3) && args.amount == 4.0 && args.to == "a"`, "always the same: false"},
		{`has(args.id) && args.id > 5 && args.id < 6`, "always the same: false"}, // an integer
		{`has(args.id) && (args.id > 5 || args.id == 5 || args.id <= 4)`, "operand is always the same: true"},
		{`has(args.kind) && (args.kind == "fast" || args.kind != "fast")`, "operand is always the same: true"},
		{`has(args.kind) && args.kind in ["fast", "slow"]`, "operand is always the same: true"}, // all that it can be
		{`size(args.to) >= 0 && tool.destructive`, "operand is always the same: true"},
		{`times("search") < 0`, "condition is always the same: false"},
		{`between(args.amount, 5.0, 1.0)`, "condition is always the same: false"},
		{`args.amount < 100 && !(5 < args.amount) && 7 <= args.amount`, "condition is always the same: false"},
		{`labels.to.integrity != "user" && labels.to.integrity != "trusted" && labels.to.integrity != "untrusted"`, "always the same: false"},
		{`tool.read_only == true || tool.read_only == false`, "condition is always the same: true"},
		{`has(args.parts) && args.parts.exists(p, p.sum > 5 && p.sum < 3)`, "operand is always the same: false"},
		{`args.to.startsWith("a") && !args.to.startsWith("a")`, "condition is always the same: false"},
		{`[1, 2].exists(x, x > 1)`, "always the same"},
		{`args.to == "x" && [1, 2].exists(x, x > 1)`, "operand is always the same"},
		{`args.to < step.id && step.id < args.to`, "condition is always the same: false"},
		{`args.to == step.id || step.id != args.to`, "condition is always the same: true"},
	} {
		_, err := rule(c.when).Compile(cat)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n got %v\nwant an error with %q", c.when, err, c.want)
		}
	}
	for _, varies := range []string{
		`args.amount > 3 && args.amount < 5`,
		`args.amount > 5 && args.amount < 6`, // 5.5
		`args.to == "a" || args.to == "b"`,
		`args.to < "a" && args.to > "z" || tool.destructive`, // text is not put in order: not decided
		`(args.amount > 5) == before("search")`,
		`has(args.id) && args.id >= 5 && args.id < 6`,
		`size(args.to) > 0`,
		`tool.name == "transfer"`, // of the one tool that the rule is about, but that is what it says
		`history.exists(h, h.tool == "search" && h.status == "ok")`,
		// Beyond the bound nothing is decided, and nothing takes long.
		"args.to == \"x\"" + strings.Repeat(` || ((args.to.startsWith("a") && args.to.endsWith("b")) && args.to.contains("c"))`, 80),
		strings.Repeat("(", 40) + `args.to == "x"` + strings.Repeat(` && before("search")) || times("search") > 1`, 20) + strings.Repeat(` || before("fetch"))`, 20),
	} {
		if _, err := rule(varies).Compile(cat); err != nil {
			t.Errorf("%.80s: %v", varies, err)
		}
	}
}

// Over comparisons with what is written out, a condition is refused for being
// constant exactly when it is: these args are all the cases that there are.
func TestConstantsAreFoundExactly(t *testing.T) {
	type args struct {
		x    float64
		n    int
		text string
		kind string
		on   bool
	}
	var all []args
	for _, x := range []float64{-1, 0, 0.5, 1, 1.5, 2, 3} {
		for n := -1; n <= 3; n++ {
			for _, text := range []string{"a", "b", "c"} {
				for _, kind := range []string{"fast", "slow"} {
					all = append(all, args{x, n, text, kind, true}, args{x, n, text, kind, false})
				}
			}
		}
	}
	cat, err := tool.NewCatalogue(&tool.Declaration{Name: "transfer", Input: compile(t, `{"type":"object","required":["x","n","text","kind","on"],"properties":{
		"x":{"type":"number"},"n":{"type":"integer"},"text":{"type":"string"},"kind":{"enum":["fast","slow"]},"on":{"type":"boolean"}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	compare := func(op string, order int) bool {
		switch op {
		case "==":
			return order == 0
		case "!=":
			return order != 0
		case "<":
			return order < 0
		case "<=":
			return order <= 0
		case ">":
			return order > 0
		}
		return order >= 0
	}
	sign := func(f float64) int {
		switch {
		case f < 0:
			return -1
		case f > 0:
			return 1
		}
		return 0
	}
	rapid.Check(t, func(t *rapid.T) {
		var draw func(depth int) (string, func(args) bool)
		draw = func(depth int) (string, func(args) bool) {
			op := rapid.SampledFrom([]string{"==", "!=", "<", "<=", ">", ">="}).Draw(t, "op")
			kind := rapid.IntRange(0, 8).Draw(t, "kind")
			if depth == 0 {
				kind %= 5
			}
			switch kind {
			case 0:
				c := rapid.IntRange(0, 2).Draw(t, "c")
				return fmt.Sprintf("args.x %s %d.0", op, c), func(a args) bool { return compare(op, sign(a.x-float64(c))) }
			case 1:
				c := rapid.SampledFrom([]float64{0, 1, 1.5, 2}).Draw(t, "c")
				if c == 1.5 && (op == "==" || op == "!=") {
					op = "<" // CEL takes no other number for an integer's equal
				}
				return fmt.Sprintf("%v %s args.n", c, op), func(a args) bool { return compare(op, sign(c-float64(a.n))) }
			case 2:
				c := rapid.SampledFrom([]string{"a", "b"}).Draw(t, "c")
				return fmt.Sprintf("args.text == %q", c), func(a args) bool { return a.text == c }
			case 3:
				c := rapid.SampledFrom([]string{"fast", "slow"}).Draw(t, "c")
				return fmt.Sprintf("one_of(args.kind, [%q])", c), func(a args) bool { return a.kind == c }
			case 4:
				return "args.on", func(a args) bool { return a.on }
			}
			l, f := draw(depth - 1)
			r, g := draw(depth - 1)
			switch kind {
			case 5:
				return "(" + l + " && " + r + ")", func(a args) bool { return f(a) && g(a) }
			case 6:
				return "(" + l + " || " + r + ")", func(a args) bool { return f(a) || g(a) }
			case 7:
				return "!(" + l + ")", func(a args) bool { return !f(a) }
			}
			return "((" + l + ") == (" + r + "))", func(a args) bool { return f(a) == g(a) }
		}
		text, holds := draw(3)
		// Wrapped, so that only the whole can be what is constant.
		varies := false
		for _, a := range all {
			varies = varies || holds(a) != holds(all[0])
		}
		doc := &policy.Document{Rules: []policy.Rule{{ID: "r", Effect: policy.Deny, Tools: []string{"transfer"}, When: "(" + text + ") == true"}}}
		_, err := doc.Compile(cat)
		says := fmt.Sprintf("condition is always the same: %t", holds(all[0]))
		switch refused := err != nil; {
		case refused && strings.Contains(err.Error(), "operand is always"): // a part of it
		case refused && varies:
			t.Fatalf("%s: %v, and it varies", text, err)
		case !refused && !varies:
			t.Fatalf("%s: taken, and it is always %t", text, holds(all[0]))
		case refused && !strings.Contains(err.Error(), says):
			t.Fatalf("%s: %v, want %s", text, err, says)
		}
	})
}
