//go:build unix

package record_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/callsheet/callsheet/call"
	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// openStore opens a new journal that counts its commits, each of which is one
// sync of the log.
func openStore(b *testing.B) (*journal.Store, *atomic.Int64) {
	commits := new(atomic.Int64)
	s, err := journal.Open(filepath.Join(b.TempDir(), "journal.db"), journal.Options{
		BeforeCommit: func() error { commits.Add(1); return nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s, commits
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
	p, err := plan.Decode([]byte(t.String()+"]"), plan.Limits{Steps: n})
	if err != nil {
		b.Fatal(err)
	}
	return p
}

// recorded runs a plan n times at once in a store.
func recorded(b *testing.B, store *journal.Store, p *plan.Plan, tools *tool.Set, n int) {
	atOnce(n, func() {
		if r, err := record.Run(context.Background(), store, p, tools, record.Options{}); err != nil || !r.OK() {
			b.Error(err)
		}
	})
}

func atOnce(n int, do func()) {
	var wg sync.WaitGroup
	for range n {
		wg.Go(do)
	}
	wg.Wait()
}

// BenchmarkDurable runs 500 plans of 10 read-only steps at once.
func BenchmarkDurable(b *testing.B) {
	const plans, steps = 500, 10
	store, commits := openStore(b)
	tools, p := noopTools(b), chainOf(b, "read", steps)
	b.ReportAllocs()
	commits.Store(0)
	for b.Loop() {
		recorded(b, store, p, tools, plans)
	}
	b.ReportMetric(float64(b.N)*plans*steps/b.Elapsed().Seconds(), "steps/s")
	b.ReportMetric(float64(commits.Load())/float64(b.N)/plans/steps, "syncs/step")
}

// BenchmarkLoneChain runs one plan alone: what remains is the disk. The end of
// the run is one more sync.
func BenchmarkLoneChain(b *testing.B) {
	for _, name := range []string{"read", "write"} {
		b.Run(name, func(b *testing.B) {
			const steps = 100
			store, commits := openStore(b)
			tools, p := noopTools(b), chainOf(b, name, steps)
			commits.Store(0)
			for b.Loop() {
				recorded(b, store, p, tools, 1)
			}
			b.ReportMetric(float64(b.N)*steps/b.Elapsed().Seconds(), "steps/s")
			b.ReportMetric((float64(commits.Load())/float64(b.N)-1)/steps, "syncs/step")
		})
	}
}

// BenchmarkAsks runs a plan of which every step asks a person.
func BenchmarkAsks(b *testing.B) {
	const steps = 10_000
	store, commits := openStore(b)
	tools := noopTools(b)
	var t strings.Builder
	for i := range steps {
		fmt.Fprintf(&t, `,{"id":"s%d","tool":"write","args":{"x":%d}}`, i, i)
	}
	p, err := plan.Decode([]byte("["+t.String()[1:]+"]"), plan.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	opt := record.Options{Run: run.Options{Gate: judge(func(call.Request) call.Decision {
		return call.Decision{Verdict: machine.Ask, Message: "may it?"}
	})}}
	commits.Store(0)
	for b.Loop() {
		if _, err := record.Run(context.Background(), store, p, tools, opt); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*steps/b.Elapsed().Seconds(), "asks/s")
	b.ReportMetric(float64(commits.Load())/float64(b.N)/steps, "syncs/ask")
}

// BenchmarkJournalling is what a journal adds to the CPU time of a step: the
// same work without one and with one in turn, the least of each. Beside it, what
// one raw write and sync of a page costs in CPU time: a lone chain pays that for
// every step, runs side by side share it.
func BenchmarkJournalling(b *testing.B) {
	const syncs = 200
	for _, load := range []struct{ plans, steps int }{{500, 10}, {1, 1_000}} {
		b.Run(fmt.Sprintf("%dx%d", load.plans, load.steps), func(b *testing.B) {
			store, _ := openStore(b)
			tools, p := noopTools(b), chainOf(b, "read", load.steps)
			without, with, sync := math.Inf(1), math.Inf(1), math.Inf(1)
			raw := rawFile(b)
			perStep := func(do func()) float64 { return cpu(do) / float64(load.plans*load.steps) }
			for b.Loop() {
				without = min(without, perStep(func() {
					atOnce(load.plans, func() {
						if r, err := run.Do(context.Background(), p, tools, run.Options{}); err != nil || !r.OK() {
							b.Error(err)
						}
					})
				}))
				with = min(with, perStep(func() { recorded(b, store, p, tools, load.plans) }))
				sync = min(sync, cpu(func() { writeAndSync(b, raw, syncs) })/syncs)
			}
			b.ReportMetric(with, "cpu-µs/step")
			b.ReportMetric(with-without, "added-cpu-µs/step")
			b.ReportMetric(sync, "cpu-µs/raw-sync")
		})
	}
}

// BenchmarkStoredRuns is what runs that are already stored add to the cost of
// others: 500 plans of 10 steps on a journal that holds 10 runs, and on one that
// holds 100 000, in turn, the best of each.
func BenchmarkStoredRuns(b *testing.B) {
	const plans, steps, few, many = 500, 10, 10, 100_000
	tools, one, p := noopTools(b), chainOf(b, "read", 1), chainOf(b, "read", steps)
	large, _ := openStore(b)
	for range many / 1000 {
		recorded(b, large, one, tools, 1000)
	}
	type cost struct{ wall, cpu float64 }
	least := func(c cost, store *journal.Store) cost {
		start := time.Now()
		used := cpu(func() { recorded(b, store, p, tools, plans) })
		return cost{min(c.wall, time.Since(start).Seconds()*1e6/plans/steps), min(c.cpu, used/plans/steps)}
	}
	atFew, atMany := cost{math.Inf(1), math.Inf(1)}, cost{math.Inf(1), math.Inf(1)}
	for b.Loop() {
		small, _ := openStore(b)
		recorded(b, small, one, tools, few)
		atFew = least(atFew, small)
		small.Close()
		atMany = least(atMany, large)
	}
	b.ReportMetric(atFew.wall, "µs/step@10")
	b.ReportMetric(atMany.wall, "µs/step@100000")
	b.ReportMetric(atFew.cpu, "cpu-µs/step@10")
	b.ReportMetric(atMany.cpu, "cpu-µs/step@100000")
}

// BenchmarkLength is the cost of a step of a lone run of 100 steps, and of one
// of 10 000, in turn, the best of each.
func BenchmarkLength(b *testing.B) {
	const short, long = 100, 10_000
	store, _ := openStore(b)
	tools, a, z := noopTools(b), chainOf(b, "read", short), chainOf(b, "read", long)
	type cost struct{ wall, cpu float64 }
	least := func(c cost, p *plan.Plan, times int) cost {
		start, steps := time.Now(), float64(times*len(p.Steps))
		used := cpu(func() {
			for range times {
				recorded(b, store, p, tools, 1)
			}
		})
		return cost{min(c.wall, time.Since(start).Seconds()*1e6/steps), min(c.cpu, used/steps)}
	}
	atShort, atLong := cost{math.Inf(1), math.Inf(1)}, cost{math.Inf(1), math.Inf(1)}
	for b.Loop() {
		atShort = least(atShort, a, long/short)
		atLong = least(atLong, z, 1)
	}
	b.ReportMetric(atShort.wall, "µs/step@100")
	b.ReportMetric(atLong.wall, "µs/step@10000")
	b.ReportMetric(atShort.cpu, "cpu-µs/step@100")
	b.ReportMetric(atLong.cpu, "cpu-µs/step@10000")
}

func rawFile(b *testing.B) *os.File {
	f, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	return f
}

func writeAndSync(b *testing.B, f *os.File, times int) {
	page := make([]byte, 4096)
	for range times {
		if _, err := f.Write(page); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

// cpu is the CPU time, in microseconds, that this process used during do.
func cpu(do func()) float64 {
	before := used()
	do()
	return float64((used() - before).Microseconds())
}

func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
