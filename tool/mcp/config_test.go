package mcp_test

import (
	"strings"
	"testing"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/mcp"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  mcp.Config
		want string // "" for valid
	}{
		{"command", mcp.Config{Name: "a", Command: []string{"x"}}, ""},
		{"url", mcp.Config{Name: "a", URL: "https://example.com/mcp", Headers: map[string]mcp.Header{"Authorization": {Prefix: "Bearer ", Env: "T"}}}, ""},
		{"no name", mcp.Config{Command: []string{"x"}}, "Name: "},
		{"neither", mcp.Config{Name: "a"}, "neither a command nor a URL"},
		{"both", mcp.Config{Name: "a", Command: []string{"x"}, URL: "http://h"}, "set only one"},
		{"scheme", mcp.Config{Name: "a", URL: "file:///etc/passwd"}, "http or https"},
		{"credentials", mcp.Config{Name: "a", URL: "https://u:p@h/"}, "holds credentials"},
		{"relative dir", mcp.Config{Name: "a", Command: []string{"x"}, Dir: "."}, "not absolute"},
		{"variable", mcp.Config{Name: "a", Command: []string{"x"}, EnvAllow: []string{"A=B"}}, "EnvAllow: "},
		{"environment of a URL", mcp.Config{Name: "a", URL: "http://h", EnvAllow: []string{"A"}}, "for a command"},
		{"protocol header", mcp.Config{Name: "a", URL: "http://h", Headers: map[string]mcp.Header{"mcp-session-id": {Env: "T"}}}, "belongs to the protocol"},
		{"header without a variable", mcp.Config{Name: "a", URL: "http://h", Headers: map[string]mcp.Header{"X": {}}}, "names no environment variable"},
		{"headers of a command", mcp.Config{Name: "a", Command: []string{"x"}, Headers: map[string]mcp.Header{"X": {Env: "T"}}}, "for a URL"},
		{"pool", mcp.Config{Name: "a", Command: []string{"x"}, Pool: 65}, "Pool: 65"},
		{"negative", mcp.Config{Name: "a", Command: []string{"x"}, MaxOutput: -1}, "MaxOutput: is negative"},
		{"override", mcp.Config{Name: "a", Command: []string{"x"}, MaxOutput: 10, Overrides: map[string]mcp.Override{"t": {Override: tool.Override{MaxOutput: 11}}}}, "over the source's 10"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.cfg.Validate()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("Validate: %v, want %q", err, c.want)
			}
		})
	}
}
