package runs

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world/book"
	"github.com/callsheet/callsheet/world/build"
	"github.com/callsheet/callsheet/world/episode"
	"github.com/callsheet/callsheet/world/rehearsal"
)

// Runs become a world on which the same calls have the same answers, a varied
// one is a miss, and no tool is touched any more.
func TestRunsBecomeAWorld(t *testing.T) {
	store, err := journal.Open(filepath.Join(t.TempDir(), "journal.db"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	stock, live := 5, true
	touch := func() {
		if !live {
			t.Error("a live tool was touched by a rehearsal")
		}
	}
	tools, err := tool.NewSet(
		tool.Tool{Declaration: tool.Declaration{Name: "stock", Effects: tool.Effects{ReadOnly: true}}, Handler: func(context.Context, *tool.Call) (value.Value, error) {
			touch()
			return value.MustParse(fmt.Sprintf(`{"content":[%d],"exact":9007199254740993}`, stock)), nil
		}},
		tool.Tool{Declaration: tool.Declaration{Name: "order", Effects: tool.Effects{Destructive: true}}, Handler: func(_ context.Context, c *tool.Call) (value.Value, error) {
			touch()
			n, _ := c.Args.Get("n")
			k, _ := n.Int()
			if int(k) > stock {
				return value.Value{}, &tool.Failure{Code: "sold_out", Message: "not enough"}
			}
			stock -= int(k)
			return value.MustText("ordered"), nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Decode([]byte(`[{"id":"a","tool":"stock","args":{}},{"id":"b","tool":"order","args":{"n":2},"after":["a"]},
		{"id":"c","tool":"stock","args":{},"after":["b"]},{"id":"d","tool":"order","args":{"n":9},"after":["c"]}]`), plan.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record.Run(t.Context(), store, p, tools, record.Options{}); err != nil {
		t.Fatal(err)
	}
	live = false
	found, err := store.Runs(t.Context(), journal.Filter{})
	if err != nil || len(found) != 1 {
		t.Fatalf("%d runs, %v", len(found), err)
	}
	rec, err := episode.ReadFrom(t.Context(), Exporter{Store: store, IDs: []string{found[0].ID}}, episode.Options{})
	if err != nil || len(rec.Faults) > 0 {
		t.Fatal(err, rec.Faults)
	}
	c := book.Defaults()
	c.EnvironmentID, c.Name = "shop", "Shop"
	a, _, err := build.Build(rec, &c, build.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "shop")
	if err := book.Write(dir, a, &c, book.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	b, err := book.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	stage, err := rehearsal.New(b, rehearsal.Options{Effectful: func(name string) bool { return !tools.Catalogue().Get(name).Effects.ReadOnly }})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []struct{ calls, want []string }{
		{[]string{"stock {}", `order {"n":2.0}`, "stock {}", `order {"n":9}`},
			[]string{`{"content":[5],"exact":9007199254740993}`, `"ordered"`, `{"content":[3],"exact":9007199254740993}`, "sold_out: not enough"}},
		{[]string{`order {"n":1}`, "stock {}"}, []string{"rehearsal_miss", "rehearsal_miss"}},
	} {
		run, err := stage.Begin(t.Context(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for i, call := range r.calls {
			name, args, _ := strings.Cut(call, " ")
			ans, err := run.Answer(t.Context(), name, value.MustParse(args))
			if err != nil {
				t.Fatal(err)
			}
			got := ans.Output.String()
			if ans.Failure != nil {
				got = ans.Failure.Error()
			}
			if !strings.HasPrefix(got, r.want[i]) {
				t.Errorf("%s: %s, want %s", call, got, r.want[i])
			}
		}
		run.Close()
	}
}

func TestARunOfDigestsIsRefused(t *testing.T) {
	store, err := journal.Open(filepath.Join(t.TempDir(), "journal.db"), journal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	tools, err := tool.NewSet(tool.Tool{Declaration: tool.Declaration{Name: "now"}, Handler: func(context.Context, *tool.Call) (value.Value, error) { return value.Int(1), nil }})
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Decode([]byte(`[{"id":"a","tool":"now","args":{}}]`), plan.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record.Run(t.Context(), store, p, tools, record.Options{Contents: record.Digests}); err != nil {
		t.Fatal(err)
	}
	found, err := store.Runs(t.Context(), journal.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = episode.ReadFrom(t.Context(), Exporter{Store: store, IDs: []string{found[0].ID}}, episode.Options{})
	if err == nil || !strings.Contains(err.Error(), "only the digest") {
		t.Errorf("got %v", err)
	}
	if _, err := episode.ReadFrom(t.Context(), Exporter{Store: store, IDs: []string{"none"}}, episode.Options{}); err == nil {
		t.Error("an unknown run was exported")
	}
}
