package check_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/callsheet/callsheet/check"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

var update = flag.Bool("update", false, "write what was found into the cases of testdata")

// catalogue reads tools as MCP lists them: [{"name", "inputSchema", "outputSchema"}].
func catalogue(t testing.TB, text []byte) *tool.Catalogue {
	t.Helper()
	var list []struct {
		Name         string
		InputSchema  value.Value
		OutputSchema value.Value
		Attempts     int
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	var decls []*tool.Declaration
	for _, one := range list {
		d := &tool.Declaration{Name: one.Name, Source: "test", Attempts: one.Attempts}
		for _, s := range []struct {
			doc value.Value
			to  **schema.Schema
		}{{one.InputSchema, &d.Input}, {one.OutputSchema, &d.Output}} {
			if s.doc.IsZero() {
				continue
			}
			compiled, err := schema.Compile(s.doc)
			if err != nil {
				t.Fatalf("tool %s: %v", one.Name, err)
			}
			*s.to = compiled
		}
		decls = append(decls, d)
	}
	c, err := tool.NewCatalogue(decls...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Each case of testdata is a plan, perhaps tools and options, and what is found.
func TestCases(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	advised := make(map[string]bool)
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var o check.Options
			var text []byte
			want := -1
			for i, f := range ar.Files {
				switch f.Name {
				case "plan.json":
					text = f.Data
				case "tools.json":
					o.Catalogue = catalogue(t, f.Data)
				case "options.json":
					var given struct {
						Budget, Ceiling *int
						Strict          bool
					}
					if err := json.Unmarshal(f.Data, &given); err != nil {
						t.Fatal(err)
					}
					o.Budget, o.Ceiling, o.Strict = given.Budget, given.Ceiling, given.Strict
				case "want":
					want = i
				default:
					t.Fatalf("what is %s?", f.Name)
				}
			}
			_, r := check.Text(text, o)
			for _, d := range r.Diagnostics {
				advised[d.Code] = advised[d.Code] || len(d.Advice) > 0
			}
			got := told(r)
			if want < 0 {
				want = len(ar.Files)
				ar.Files = append(ar.Files, txtar.File{Name: "want"})
			}
			if *update {
				ar.Files[want].Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(ar.Files[want].Data), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", ar.Comment, diff)
			}
		})
	}
	for _, code := range []string{plan.CodeBadDocument, plan.CodeDuplicateID, plan.CodeUnknownField, check.UnknownTool, check.UnknownReference,
		check.UnknownDependency, check.SelfReference, check.Cycle, check.InvalidArgs, check.ForeignReference} {
		if !advised[code] {
			t.Errorf("no case shows the advice of %s", code)
		}
	}
}

// told is a report as the cases write it.
func told(r *check.Report) string {
	var b strings.Builder
	for _, d := range r.Diagnostics {
		fmt.Fprintf(&b, "%s\n", d)
		if len(d.Advice) > 0 {
			advice, err := json.Marshal(d.Advice)
			if err != nil {
				panic(err)
			}
			fmt.Fprintf(&b, "\t%s\n", advice)
		}
	}
	waves, err := json.Marshal(r.Waves)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(&b, "ok %v, %d to %d calls, waves %s\n", r.OK, r.Calls.Min, r.Calls.Max, waves)
	return b.String()
}

func TestLimitsThatMakeNoSense(t *testing.T) {
	p, r := check.Text([]byte(`[]`), check.Options{Limits: plan.Limits{Steps: -1}})
	if p != nil || r.OK || len(r.Diagnostics) != 1 || r.Diagnostics[0].Code != check.BadLimits {
		t.Errorf("got %v, %+v", p, r)
	}
}
