// Package npmservers finds the MCP servers from npm that tests talk to.
//
// "make npm" installs them into .cache/npm of the repository, from
// tool/mcp/testdata/npm/package.json; CALLSHEET_NPM names another place.
package npmservers

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Env names the directory in which the servers are installed. Where it is set, a
// server that is missing although node is there fails the test: CI must not pass
// by having skipped it.
const Env = "CALLSHEET_NPM"

// Command is the argv that starts a server, as in Command(t, "filesystem", dir).
// Without node it skips the test.
func Command(t testing.TB, server string, args ...string) []string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skipf("node is not installed, and the servers are written for it: %v", err)
	}
	missing := t.Fatalf
	dir, ok := os.LookupEnv(Env)
	if !ok {
		missing, dir = t.Skipf, filepath.Join(root(t), ".cache", "npm")
	}
	home := filepath.Join(dir, "node_modules", "@modelcontextprotocol", "server-"+server)
	manifest, err := os.ReadFile(filepath.Join(home, "package.json"))
	if err != nil {
		missing("the npm servers are not installed; run make npm: %v", err)
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
