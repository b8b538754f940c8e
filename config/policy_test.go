package config_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/policy"
)

func TestAPolicyIsRefusedWithItsPlace(t *testing.T) {
	for _, c := range []struct{ name, policy, want string }{
		{"another word", "policy: defualt", `callsheet.yaml:3:9: policy: policy is "default" or a mapping`},
		{"nothing", "policy:", `callsheet.yaml:3:1: policy: this is a null; write a mapping`},
		{"an unknown key", "policy:\n  rulez: []", `callsheet.yaml:4:3: policy: /rulez: unknown key; there is base, lists, accept, outputs, rules, tests`},
		{"an unknown tool", "policy:\n  rules:\n    - id: r\n      effect: deny\n      tools: [serch]", `callsheet.yaml:5:9: policy: rule r: unknown tool "serch"; there is search`},
		{"a condition", "policy:\n  rules:\n    - id: r\n      effect: deny\n      tools: [search]\n      when: args.qery == \"x\"", `callsheet.yaml:8:17: policy: rule r: `},
		{"a condition on lines of its own", "policy:\n  rules:\n    - id: r\n      effect: deny\n      tools: [search]\n      when: |\n        args.query == \"x\" &&\n        args.qery == \"x\"", `callsheet.yaml:9:`},
		{"a tool to accept from", "policy:\n  lists: {known: [x]}\n  accept:\n    - {tool: serch, arg: /query, list: known}", `callsheet.yaml:6:7: policy: accept: unknown tool "serch"; there is search`},
		{"an output of an unknown tool", "policy:\n  outputs:\n    serch: {trusted: [/*/id]}", `callsheet.yaml:5:5: policy: outputs: unknown tool "serch"; there is search`},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "\nsources: {a: {builtin: demo}}\n" + c.policy
			_, err := load(t, text)
			if err == nil {
				_, err = open(t, text, config.Options{})
			}
			if err == nil {
				t.Fatal("the policy was accepted")
			}
			if !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// A policy that speaks of an arg or an output that the tool does not have would
// leave the one that was meant as it is.
func TestAPolicySpeaksOfArgsThatThereAre(t *testing.T) {
	const tools = "sources:\n  local:\n    commands:\n      read: {command: [/bin/echo, \"{doc}\"], output_schema: {type: array, items: {type: object, properties: {id: {}, title: {}}}}}\n"
	const lists = "policy:\n  lists: {known: [x]}\n  accept:\n"
	for _, c := range []struct{ name, policy, want string }{
		{"of a tool", lists + "    - {tool: read, arg: /dco, list: known}", `callsheet.yaml:8:25: policy: accept: tool "read" has no arg /dco; there is /doc; did you mean /doc?`},
		{"inside of one", lists + "    - tool: read\n      arg: /doc/0\n      list: known", `callsheet.yaml:9:12: policy: accept: tool "read" has no arg /doc/0; there is nothing inside /doc`},
		{"of every tool", lists + "    - {tool: \"*\", arg: /dco, list: known}", `callsheet.yaml:8:24: policy: accept: no tool has an arg /dco`},
		{"that there is", lists + "    - {tool: \"*\", arg: /doc, list: known}", ""},
		{"of an output", "policy:\n  outputs:\n    read:\n      trusted: [/*/id]\n      secret: [/*/titel]",
			`callsheet.yaml:9:16: policy: outputs: tool "read" returns no /*/titel; there is /*/id, /*/title; did you mean /*/title?`},
		{"of an output that there is", "policy:\n  outputs:\n    read: {trusted: [/*/id], secret: [/0]}", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := open(t, tools+c.policy, config.Options{})
			if err == nil {
				defer o.Close()
			}
			if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestAPolicyIsCompiledAgainstTheTools(t *testing.T) {
	for text, want := range map[string]bool{
		"sources: {a: {builtin: demo}}":                  false,
		"sources: {a: {builtin: demo}}\npolicy: default": true,
	} {
		o, err := open(t, text, config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		if got := o.Policy != nil; got != want {
			t.Errorf("%s: there is a policy: %v, want %v", text, got, want)
		}
		if want && o.Policy.Document().Digest() != policy.Default().Digest() {
			t.Error("policy: default is another policy")
		}
	}
}

func TestSecretsAreReadFromTheEnvironment(t *testing.T) {
	t.Setenv("CALLSHEET_TEST_LONG", "long-enough-1")
	t.Setenv("CALLSHEET_TEST_SHORT", "short")
	o, err := open(t, "secrets: {a: {env: CALLSHEET_TEST_LONG}, b: {env: CALLSHEET_TEST_NONE}}", config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if o.Secrets["a"] != "long-enough-1" || len(o.Unset) != 1 || o.Unset[0] != "b" {
		t.Errorf("secrets %v, unset %v", o.Secrets, o.Unset)
	}
	_, err = open(t, "secrets:\n  a: {env: CALLSHEET_TEST_SHORT}", config.Options{})
	want := "callsheet.yaml:2:3: secret a: the value of CALLSHEET_TEST_SHORT has 5 characters; a secret shorter than 8 cannot be kept out of records"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestHostile030_WhatAServerSaysOfItselfHoldsNoSecret(t *testing.T) {
	t.Setenv("CALLSHEET_TEST_TOKEN", "s3cret-token-9f8e")
	_, err := open(t, "secrets: {hub: {env: CALLSHEET_TEST_TOKEN}}\nsources:\n  server: {mcp: {command: [/bin/sh, -c, 'echo my token is $TOKEN >&2; exit 3'], env_secrets: {TOKEN: hub}}}", config.Options{})
	if err == nil || strings.Contains(err.Error(), "s3cret-token-9f8e") || !strings.Contains(err.Error(), "[secret:hub]") {
		t.Errorf("a server that does not start: %v, want its stderr with a mark", err)
	}
}

func TestHostile031_LogsOfServersHoldNoSecret(t *testing.T) {
	t.Setenv("CALLSHEET_TEST_TOKEN", "s3cret-token-9f8e")
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	_, err := open(t, "secrets: {hub: {env: CALLSHEET_TEST_TOKEN}}\nsources:\n  server: {mcp: {command: [/bin/sh, -c, 'echo my token is $TOKEN >&2; exit 3'], env_secrets: {TOKEN: hub}}}", config.Options{Log: log})
	if err == nil {
		t.Fatal("the server started")
	}
	if got := logged.String(); strings.Contains(got, "s3cret-token-9f8e") || !strings.Contains(got, "[secret:hub]") {
		t.Errorf("logged %s", got)
	}
}

func TestToolsOfUntrustedServersAreNamed(t *testing.T) {
	for _, trust := range []string{"", ", trust: true"} {
		o, err := open(t, "sources:\n  demo: {builtin: demo}\n  server: {mcp: {command: [$SELF, serve]"+trust+"}, prefix: m_}", config.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		served := 0
		for _, d := range o.Set.Catalogue().All() {
			if strings.HasPrefix(d.Name, "m_") {
				served++
			}
		}
		want := served
		if trust != "" {
			want = 0
		}
		if served == 0 || len(o.Untrusted) != want {
			t.Errorf("trust %q: untrusted %v of %d tools", trust, o.Untrusted, served)
		}
	}
}
