package demo_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/demo"
	"github.com/callsheet/callsheet/value"
)

func newSet(t testing.TB) *tool.Set {
	set, err := tool.NewSet(demo.New()...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func call(set *tool.Set, run, name, args string) (value.Value, *tool.Failure) {
	out, err := set.Handler(name)(context.Background(), &tool.Call{Run: run, Args: value.MustParse(args)})
	if err != nil {
		return value.Value{}, tool.AsFailure(err)
	}
	return out, nil
}

func TestTools(t *testing.T) {
	for _, tt := range []struct{ tool, args, want string }{
		{"search", `{"query":"go"}`, `["go-doc1","go-doc2"]`},
		{"search", `{"query":""}`, `["-doc1","-doc2"]`},
		{"search", `{"query":1E2}`, `["1E2-doc1","1E2-doc2"]`},
		{"search", `{"query":null}`, `["null-doc1","null-doc2"]`},
		{"search", `{"query":true}`, `["true-doc1","true-doc2"]`},
		{"search", `{"query":"\u0000\"$s1"}`, `["\u0000\"$s1-doc1","\u0000\"$s1-doc2"]`},
		{"search", `{"query":[]}`, "query is an array; it must be a scalar"},
		{"search", `{}`, `the argument "query" is missing`},
		{"search", `{"query":"a","extra":1}`, `the argument "extra" is one too many; there is only "query"`},
		{"search", `{"extra":1,"query":"a"}`, `the argument "extra" is one too many; there is only "query"`},
		{"fetch", `{"doc":"naïve"}`, `{"doc":"naïve","words":50}`},
		{"fetch", `{"doc":[1,2]}`, `{"doc":[1,2],"words":20}`},
		{"fetch", `{"doc":{}}`, `{"doc":{},"words":0}`},
		{"fetch", `{"doc":5}`, "doc is a number; it must be a text, a list or an object"},
		{"sum", `{"values":[]}`, `{"total":0}`},
		{"sum", `{"values":[9007199254740993,1]}`, `{"total":9007199254740994}`},
		{"sum", `{"values":[0.1,0.2]}`, `{"total":0.3}`},
		{"sum", `{"values":[1,true]}`, "values has a boolean at 1; it must be a list of numbers"},
		{"sum", `{"values":"12"}`, "values is a string; it must be a list of numbers"},
		{"flaky", `{"key":{}}`, "key is an object; it must be a scalar"},
		{"broken", `{"x":1}`, "broken: this tool always fails"},
		{"broken", `{}`, "broken: this tool always fails"},
	} {
		out, f := call(newSet(t), "r", tt.tool, tt.args)
		got := out.String()
		if f != nil {
			got = f.Error()
			if f.Retryable || f.Code != tool.CodeToolError {
				t.Errorf("%s%s: the failure is %+v, want a tool_error for good", tt.tool, tt.args, f)
			}
		}
		if got != tt.want {
			t.Errorf("%s%s: got %s, want %s", tt.tool, tt.args, got, tt.want)
		}
	}
}

func TestFlakyPerRunAndKey(t *testing.T) {
	set := newSet(t)
	for _, tt := range []struct {
		run, key string
		fails    bool
	}{
		{"r1", `"k"`, true}, {"r1", `"k"`, false}, {"r1", `"k"`, false},
		{"r1", `1`, true}, {"r1", `"1"`, true}, {"r1", `1`, false},
		{"r2", `"k"`, true}, {"r2", `"k"`, false},
	} {
		out, f := call(set, tt.run, "flaky", `{"key":`+tt.key+`}`)
		if (f != nil) != tt.fails || f != nil && !f.Retryable {
			t.Errorf("run %s, key %s: got %v, %v; want failure %v, retryable", tt.run, tt.key, out, f, tt.fails)
		}
	}
	if out, f := call(set, "r1", "flaky", `{"key":"k"}`); f != nil || out.String() != `"ok:k"` {
		t.Errorf("got %v, %v", out, f)
	}
	if _, f := call(newSet(t), "r1", "flaky", `{"key":"k"}`); f == nil {
		t.Error("two sets share what flaky has seen")
	}
}

func TestFlakyForgetsOldRuns(t *testing.T) {
	set := newSet(t)
	for i := range 1001 {
		call(set, fmt.Sprint("r", i), "flaky", `{"key":"k"}`)
	}
	if _, f := call(set, "r1000", "flaky", `{"key":"k"}`); f != nil {
		t.Errorf("the last run is forgotten: %v", f)
	}
	if _, f := call(set, "r0", "flaky", `{"key":"k"}`); f == nil {
		t.Error("the first of 1001 runs is still remembered")
	}
}

func TestDownIsRetryable(t *testing.T) {
	set := newSet(t)
	for range 3 {
		if _, f := call(set, "r", "down", `{"any":[1]}`); f == nil || !f.Retryable {
			t.Errorf("got %v, want a retryable failure", f)
		}
	}
}

func TestHostile017_SumOfHugeExponents(t *testing.T) {
	set := newSet(t)
	for _, args := range []string{`{"values":[1e400000000]}`, `{"values":[1,1e-99999999999999999999]}`} {
		if out, f := call(set, "r", "sum", args); f == nil {
			t.Errorf("%s: got %v, want a failure", args, out)
		}
	}
}

func TestDeclarations(t *testing.T) {
	decls := newSet(t).Catalogue().All()
	if len(decls) != 6 {
		t.Errorf("%d tools, want 6", len(decls))
	}
	for _, d := range decls {
		if !d.Effects.ReadOnly || d.RoleOf("/doc/0") != tool.Neutral || d.Input != nil || d.Output != nil {
			t.Errorf("%s: got %+v; want read-only, neutral, without schemas", d.Name, d)
		}
	}
}

func ExampleNew() {
	set, _ := tool.NewSet(demo.New()...)
	flaky := set.Handler("flaky")
	call := &tool.Call{Run: "r1", Args: value.MustParse(`{"key": "k"}`)}
	_, err := flaky(context.Background(), call)
	var f *tool.Failure
	fmt.Println(errors.As(err, &f), f.Retryable)
	out, _ := flaky(context.Background(), call)
	fmt.Println(out)
	// Output:
	// true true
	// "ok:k"
}
