package stub_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/stub"
	"github.com/callsheet/callsheet/value"
)

const file = `{
	"s1": ["a.txt", 9007199254740993],
	"s2": {"$error": "the disk is full", "retryable": true},
	"s3": {"$error": "no"},
	"s4": {"$output": {"$error": "an output"}},
	"s5": {"nested": {"$error": "data", "x": 1}},
	"s6": null
}`

func TestHandler(t *testing.T) {
	a, err := stub.Read([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	h := a.Handler()
	for _, tt := range []struct{ step, want string }{
		{"s1", `["a.txt",9007199254740993]`},
		{"s2", `tool_error retryable=true the disk is full`},
		{"s3", `tool_error retryable=false no`},
		{"s4", `{"$error":"an output"}`},
		{"s5", `{"nested":{"$error":"data","x":1}}`},
		{"s6", `null`},
		{"s7", `no_stub retryable=false the stub file has no answer for step "s7"; near to it are "s1", "s2", "s3"`},
	} {
		out, err := h(context.Background(), &tool.Call{Step: tt.step})
		got := out.String()
		var f *tool.Failure
		if errors.As(err, &f) {
			got = fmt.Sprintf("%s retryable=%v %s", f.Code, f.Retryable, f.Message)
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.step, got, tt.want)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{`[]`, "the file is a JSON array"},
		{`{"s1": 1, "s1": 2}`, "stands twice"},
		{`{"s1": 1} x`, "line 1, column 11"},
		{`{"s/1": {"$error": 5}}`, "at /s~11/$error: is number"},
		{`{"s1": {"$error": "x", "retryable": "yes"}}`, "at /s1/retryable: is string"},
		{`{"s1": {"$error": "x", "retry": true}}`, `at /s1/retry: beside "$error"`},
		{`{"s1": {"$output": 1, "x": 2}}`, `at /s1: an object with "$output" has nothing else`},
		{`{"s1": {"$output": 1, "$error": "x"}}`, `at /s1`},
	} {
		if _, err := stub.Read([]byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.text, err, tt.want)
		}
	}
	_, err := stub.Read([]byte(`{"a": {"$error": 1}, "b": {"$error": 2}}`))
	if err == nil || !strings.Contains(err.Error(), "/a/$error") || !strings.Contains(err.Error(), "/b/$error") {
		t.Errorf("got %v, want both faults", err)
	}
}

func TestReplaceKeepsNamesAndSchemas(t *testing.T) {
	live := &tool.Declaration{
		Name: "send", Source: "mcp:mail", Effects: tool.Undeclared(),
		Input: schema.MustCompile(`{"type":"object","properties":{"to":{"type":"string"}}}`),
		Args:  []tool.Arg{{Pattern: "/to", Role: tool.Target}, {Pattern: "/key", Role: tool.Secret}},
	}
	c, err := tool.NewCatalogue(live)
	if err != nil {
		t.Fatal(err)
	}
	a, err := stub.Read([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	set, err := a.Replace(c)
	if err != nil {
		t.Fatal(err)
	}
	d := set.Catalogue().Get("send")
	if !d.Effects.ReadOnly || d.Effects.Destructive || d.Input != live.Input {
		t.Errorf("got %+v", d)
	}
	if got := [2]tool.Role{d.RoleOf("/to"), d.RoleOf("/key")}; got != [2]tool.Role{tool.Neutral, tool.Secret} {
		t.Errorf("roles %v, want neutral and secret", got)
	}
	if live.Effects != tool.Undeclared() {
		t.Error("the live declaration was changed")
	}
	if d.Digest() == live.Digest() {
		t.Error("a stub has the digest of the live tool")
	}
}

func TestToolsOfAPlan(t *testing.T) {
	a, err := stub.Read([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	set, err := a.Tools([]string{"x", "y", "x"})
	if err != nil || len(set.Catalogue().All()) != 2 || set.Handler("y") == nil {
		t.Errorf("got %v, %v", set, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(file))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := stub.Read(text)
		if (a == nil) == (err == nil) {
			t.Errorf("got %v and %v", a, err)
		}
	})
}

func ExampleRead() {
	answers, _ := stub.Read([]byte(`{"s1": {"total": 3}}`))
	set, _ := answers.Tools([]string{"sum"})
	out, _ := set.Handler("sum")(context.Background(), &tool.Call{Step: "s1", Args: value.MustParse(`{}`)})
	fmt.Println(out)
	// Output: {"total":3}
}
