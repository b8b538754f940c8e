package mcp_test

import (
	"path/filepath"
	"testing"

	"github.com/callsheet/callsheet/tool"
)

func TestHostile032_ChangedAtRestart(t *testing.T) {
	cfg := fakeConfig(t, "rugpull")
	cfg.Prefix = "p_"
	cfg.Env[fakeState] = filepath.Join(t.TempDir(), "starts")
	src := open(t, cfg)
	succeed(t, src, "p_echo", `{}`)
	failing(t, src, "p_die", `{}`)
	for range 2 {
		if f := failing(t, src, "p_echo", `{}`); f.Code != tool.CodeToolChanged || f.Lost || f.Retryable {
			t.Errorf("%+v, want %s", f, tool.CodeToolChanged)
		}
	}
	succeed(t, src, "p_text", `{"text":"others go on"}`)
	if got := find(t, src, "p_echo").Description; got != "gives its arguments back" {
		t.Errorf("the frozen description became %q", got)
	}
}

func TestHostile033_ListChanged(t *testing.T) {
	src := open(t, fakeConfig(t, ""))
	before := len(src.Tools())
	for range 5 {
		succeed(t, src, "change", `{}`)
		if f := failing(t, src, "echo", `{}`); f.Code != tool.CodeToolChanged {
			t.Fatalf("%+v, want %s at once after the notification", f, tool.CodeToolChanged)
		}
		succeed(t, src, "change", `{}`)
		succeed(t, src, "echo", `{}`) // defined as it was
	}
	if got := len(src.Tools()); got != before {
		t.Errorf("%d tools, want the frozen %d", got, before)
	}
}

func TestListChangedFlood(t *testing.T) {
	src := open(t, fakeConfig(t, ""))
	// The answer comes right behind the flood and may or may not be read.
	do(t, t.Context(), src, "flood", request(`{}`))
	succeed(t, src, "echo", `{}`)
	if got := src.Stats().Restarts; got != 1 {
		t.Errorf("%d restarts, want the server stopped once", got)
	}
}
