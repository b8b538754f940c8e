// Package npmservers finds the MCP servers from npm that tests talk to.
//
// They are installed with
//
//	mkdir -p .cache/npm && cp tool/mcp/testdata/npm/package.json .cache/npm/
//	npm install --prefix .cache/npm --no-package-lock --ignore-scripts --no-audit --no-fund
//
// into .cache/npm of the repository, or wherever CALLSHEET_NPM says.
package npmservers

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Env names the directory in which the servers are installed. When it is set a
// server that is missing fails the test instead of skipping it.
const Env = "CALLSHEET_NPM"

// Command is the argv that starts a server, as in Command(t, "filesystem", dir).
// Without node, or without the servers, it skips the test.
func Command(t testing.TB, server string, args ...string) []string {
	t.Helper()
	dir, required := os.LookupEnv(Env)
	missing := t.Skipf
	if required {
		missing = t.Fatalf
	} else {
		dir = filepath.Join(root(t), ".cache", "npm")
	}
	node, err := exec.LookPath("node")
	if err != nil {
		missing("node is not installed, and the servers are written for it: %v", err)
	}
	home := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "server-"+server)
	manifest, err := os.ReadFile(filepath.Join(home, "package.json"))
	if err != nil {
		missing("the npm servers are not installed (the doc of package npmservers says how): %v", err)
	}
	var pkg struct {
		Bin map[string]string `json:"bin"`
	}
	if err := json.Unmarshal(manifest, &pkg); err != nil {
		t.Fatalf("package.json of server-%s: %v", server, err)
	}
	script, ok := pkg.Bin["mcp-server-"+server]
	if !ok {
		t.Fatalf("server-%s has no program mcp-server-%s", server, server)
	}
	return append([]string{node, filepath.Join(home, script)}, args...)
}

// root is the directory of go.mod.
func root(t testing.TB) string {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the working directory")
		}
		dir = up
	}
}
