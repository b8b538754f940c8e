package mcp_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/mcp"
	"github.com/callsheet/callsheet/value"
)

// fakeConfig is a source whose server is this test binary.
func fakeConfig(t testing.TB, modes string) mcp.Config {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return mcp.Config{
		Name:      "fake",
		Command:   []string{self},
		Env:       map[string]string{fakeEnv: modes},
		StopGrace: 10 * time.Second, // a busy machine must not turn a clean end into a kill
	}
}

func open(t testing.TB, cfg mcp.Config) *mcp.Source {
	t.Helper()
	src, err := mcp.Open(t.Context(), cfg)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := src.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return src
}

// find is the tool of a name.
func find(t testing.TB, src *mcp.Source, name string) tool.Tool {
	t.Helper()
	for _, tl := range src.Tools() {
		if tl.Name == name {
			return tl
		}
	}
	t.Fatalf("the source has no tool %q", name)
	return tool.Tool{}
}

func request(args string) *tool.Call {
	return &tool.Call{
		Args:     value.MustParse(args),
		Key:      func() string { return "" },
		Progress: func(tool.Progress) {},
	}
}

// do calls a tool; exactly one of the results is set.
func do(t testing.TB, ctx context.Context, src *mcp.Source, name string, c *tool.Call) (value.Value, *tool.Failure) {
	t.Helper()
	out, err := find(t, src, name).Handler(ctx, c)
	if err == nil {
		return out, nil
	}
	var f *tool.Failure
	if !errors.As(err, &f) {
		t.Fatalf("%s: error %v of type %T, want a *tool.Failure", name, err, err)
	}
	return value.Value{}, f
}

func succeed(t testing.TB, src *mcp.Source, name, args string) value.Value {
	t.Helper()
	out, f := do(t, t.Context(), src, name, request(args))
	if f != nil {
		t.Fatalf("%s(%s): %v", name, args, f)
	}
	return out
}

func failing(t testing.TB, src *mcp.Source, name, args string) *tool.Failure {
	t.Helper()
	out, f := do(t, t.Context(), src, name, request(args))
	if f == nil {
		t.Fatalf("%s(%s) = %s, want a failure", name, args, out)
	}
	return f
}
