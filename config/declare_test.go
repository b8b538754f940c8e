package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/tool"
)

// Nothing is started and no secret is read to know what tools there are; in the
// place of a server's tools stand those that were recorded.
func TestDeclareStartsNothing(t *testing.T) {
	touched := filepath.Join(t.TempDir(), "touched")
	c, err := load(t, `
secrets: {key: {env: CALLSHEET_TEST_NOT_SET}}
sources:
  demo: {builtin: demo, only: [search]}
  server: {mcp: {command: [/bin/sh, -c, "echo > `+touched+`"], env_secrets: {KEY: key}}}
  local: {commands: {say: {command: [/bin/echo, "{x}"], env_secrets: {KEY: key}, effects: {read_only: true}, approve: always}}}
overrides: {of_the_server: {approve: always, effects: {read_only: true}}, never_recorded: {approve: always}}
policy: {rules: [{id: r, effect: ask, tools: [of_the_server]}]}
`)
	if err != nil {
		t.Fatal(err)
	}
	recorded := []*tool.Declaration{{Name: "of_the_server", Effects: tool.Effects{ReadOnly: true}}, {Name: "say", Description: "another"}}
	o, err := config.Declare(c, config.Options{}, recorded)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(o), "search say of_the_server"; got != want {
		t.Errorf("got the tools %s, want %s", got, want)
	}
	for _, d := range o.Set.Catalogue().All() {
		if o.Set.Handler(d.Name) != nil {
			t.Errorf("%s can be called", d.Name)
		}
	}
	if d := o.Set.Catalogue().Get("of_the_server"); d.Digest() != recorded[0].Digest() {
		t.Error("a recorded tool was changed")
	}
	if !o.Approve["say"] || !o.Approve["of_the_server"] || o.Policy == nil || len(o.Untrusted) != 1 {
		t.Errorf("approve %v, policy %v, untrusted %v", o.Approve, o.Policy, o.Untrusted)
	}
	if _, err := os.Stat(touched); err == nil {
		t.Error("the server was started")
	}
	if o, err = config.Declare(nil, config.Options{}, recorded); err != nil || names(o) != "of_the_server say" {
		t.Errorf("without a configuration: %v, %v", o, err)
	}
	if o, err = config.Declare(nil, config.Options{Tools: []string{"demo"}}, recorded); err != nil || o.Set.Catalogue().Get("of_the_server") != nil {
		t.Errorf("with another source: %v, %v", o, err)
	}
	// What is declared is what would be opened.
	c, err = load(t, `sources: {local: {commands: {say: {command: [/bin/echo, "{x}"], args: {/x: content}}}}}`)
	if err != nil {
		t.Fatal(err)
	}
	declared, err := config.Declare(c, config.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := config.Open(t.Context(), c, config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if declared.Set.Catalogue().Digest() != opened.Set.Catalogue().Digest() {
		t.Error("a tool is declared otherwise than it is opened")
	}
}
