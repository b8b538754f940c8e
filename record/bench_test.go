package record_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

func openStore(b *testing.B) *journal.Store {
	s, err := journal.Open(filepath.Join(b.TempDir(), "journal.db"), journal.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

func noopTools(b *testing.B) *tool.Set {
	noop := func(_ context.Context, c *tool.Call) (value.Value, error) {
		x, _ := c.Args.Get("x")
		return x, nil
	}
	s, err := tool.NewSet(
		tool.Tool{Declaration: tool.Declaration{Name: "read", Effects: tool.Effects{ReadOnly: true}}, Handler: noop},
		tool.Tool{Declaration: tool.Declaration{Name: "write", Effects: tool.Effects{}}, Handler: noop},
	)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func chainOf(b *testing.B, name string, n int) *plan.Plan {
	var t strings.Builder
	fmt.Fprintf(&t, `[{"id":"s0","tool":%q,"args":{"x":1}}`, name)
	for i := 1; i < n; i++ {
		fmt.Fprintf(&t, `,{"id":"s%d","tool":%q,"args":{"x":"$s%d"}}`, i, name, i-1)
	}
	p, err := plan.Decode([]byte(t.String()+"]"), plan.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// BenchmarkDurable runs 500 plans of 10 read-only steps at once.
func BenchmarkDurable(b *testing.B) {
	const plans, steps = 500, 10
	store, tools, p := openStore(b), noopTools(b), chainOf(b, "read", steps)
	b.ReportAllocs()
	for b.Loop() {
		var wg sync.WaitGroup
		for range plans {
			wg.Go(func() {
				if r, err := record.Run(context.Background(), store, p, tools, record.Options{}); err != nil || !r.OK() {
					b.Error(err)
				}
			})
		}
		wg.Wait()
	}
	b.ReportMetric(float64(b.N)*plans*steps/b.Elapsed().Seconds(), "steps/s")
}

// BenchmarkLoneChain runs one plan alone: what remains is the disk.
func BenchmarkLoneChain(b *testing.B) {
	for _, name := range []string{"read", "write"} {
		b.Run(name, func(b *testing.B) {
			const steps = 100
			store, tools, p := openStore(b), noopTools(b), chainOf(b, name, steps)
			for b.Loop() {
				if r, err := record.Run(context.Background(), store, p, tools, record.Options{}); err != nil || !r.OK() {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*steps/b.Elapsed().Seconds(), "steps/s")
		})
	}
}
