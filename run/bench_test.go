package run_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// noop returns its arg x as it is: what remains is the executor's own cost.
func noop(t testing.TB) *tool.Set {
	set, err := tool.NewSet(tool.Tool{
		Declaration: tool.Declaration{Name: "noop", Effects: tool.Effects{ReadOnly: true}, MaxOutput: 64 << 20},
		Handler: func(_ context.Context, c *tool.Call) (value.Value, error) {
			x, _ := c.Args.Get("x")
			return x, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func decode(t testing.TB, text string) *plan.Plan {
	p, err := plan.Decode([]byte(text), plan.Limits{Steps: 1 << 20, Bytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// chain is a plan of n steps, each taking the one before it.
func chain(t testing.TB, n int) *plan.Plan { return decode(t, chainText(n)) }

// dag is a random plan of n steps, each taking up to three that come before it.
func dag(t testing.TB, n int) *plan.Plan {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	b.WriteByte('[')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":"s%d","tool":"noop","args":{"x":%d`, i, i)
		for k := range min(i, r.IntN(4)) {
			fmt.Fprintf(&b, `,"r%d":"$s%d"`, k, r.IntN(i))
		}
		b.WriteString("}}")
	}
	return decode(t, b.String()+"]")
}

func perStep(b *testing.B, steps int, do func()) {
	b.ReportAllocs()
	for b.Loop() {
		do()
	}
	b.ReportMetric(float64(b.N)*float64(steps)/b.Elapsed().Seconds(), "steps/s")
	b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/float64(steps), "ns/step")
}

func execute(b *testing.B, p *plan.Plan, set *tool.Set, opt run.Options) {
	r, err := run.Do(context.Background(), p, set, opt)
	if err != nil || !r.OK() {
		b.Fatalf("run: %v", err)
	}
}

func BenchmarkSequentialChain(b *testing.B) {
	set := noop(b)
	const n = 10_000
	p := chain(b, n)
	perStep(b, n, func() { execute(b, p, set, run.Options{}) })
}

func BenchmarkDAG(b *testing.B) {
	const n = 10_000
	set, p := noop(b), dag(b, n)
	b.Run("sequential", func(b *testing.B) { perStep(b, n, func() { execute(b, p, set, run.Options{}) }) })
	b.Run("workers=8", func(b *testing.B) { perStep(b, n, func() { execute(b, p, set, run.Options{Workers: 8}) }) })
	b.Run("eager=8", func(b *testing.B) { perStep(b, n, func() { execute(b, p, set, run.Options{Eager: true}) }) })
}

// BenchmarkOverFloor has the DAG run by eight workers and by the floor in turn,
// the best of each.
func BenchmarkOverFloor(b *testing.B) {
	const n = 10_000
	set, p := noop(b), dag(b, n)
	ours, theirs := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for b.Loop() {
		ours = min(ours, took(func() { execute(b, p, set, run.Options{Workers: 8}) }))
		theirs = min(theirs, took(func() { floor(b, p) }))
	}
	b.ReportMetric(float64(ours.Nanoseconds())/n, "ns/step")
	b.ReportMetric(float64(theirs.Nanoseconds())/n, "floor-ns/step")
}

// BenchmarkLength is the cost of a step in a chain of 1 000 and in one of
// 100 000, in turn, the best of each.
func BenchmarkLength(b *testing.B) {
	const short, long = 1_000, 100_000
	set, a, z := noop(b), chain(b, short), chain(b, long)
	atShort, atLong := time.Duration(math.MaxInt64), time.Duration(math.MaxInt64)
	for b.Loop() {
		for range 10 {
			atShort = min(atShort, took(func() { execute(b, a, set, run.Options{}) }))
		}
		atLong = min(atLong, took(func() { execute(b, z, set, run.Options{}) }))
	}
	b.ReportMetric(float64(atShort.Nanoseconds())/short, "ns/step@1000")
	b.ReportMetric(float64(atLong.Nanoseconds())/long, "ns/step@100000")
}

func took(do func()) time.Duration {
	start := time.Now()
	do()
	return time.Since(start)
}

// floor is what a Go programmer writes by hand for the same DAG: an errgroup of
// eight, maps, and no check of anything: no budget, no deadline, no report, no
// schema, no retry.
func floor(b *testing.B, p *plan.Plan) {
	type node struct {
		mu   sync.Mutex
		open int
		next []int
	}
	nodes := make([]node, len(p.Steps))
	outputs := make(map[string]any, len(p.Steps))
	var mu sync.Mutex
	for i := range p.Steps {
		nodes[i].open = len(p.Steps[i].Deps)
		for _, d := range p.Steps[i].Deps {
			nodes[d].next = append(nodes[d].next, i)
		}
	}
	ready := make(chan int, len(p.Steps))
	for i := range nodes {
		if nodes[i].open == 0 {
			ready <- i
		}
	}
	var g errgroup.Group
	g.SetLimit(8)
	var wg sync.WaitGroup
	wg.Add(len(p.Steps))
	go func() { wg.Wait(); close(ready) }()
	for i := range ready {
		g.Go(func() error {
			s := &p.Steps[i]
			args := map[string]any{"x": i}
			mu.Lock()
			for k := range s.Refs {
				args[s.Refs[k].Pointer] = outputs[p.Steps[s.Refs[k].Step].ID]
			}
			mu.Unlock()
			out := func(_ context.Context, args map[string]any) any { return args["x"] }(context.Background(), args)
			mu.Lock()
			outputs[s.ID] = out
			mu.Unlock()
			for _, n := range nodes[i].next {
				nodes[n].mu.Lock()
				nodes[n].open--
				if nodes[n].open == 0 {
					ready <- n
				}
				nodes[n].mu.Unlock()
			}
			wg.Done()
			return nil
		})
	}
	if err := g.Wait(); err != nil || len(outputs) != len(p.Steps) {
		b.Fatal("the floor lost a step", err)
	}
}

// tenMegabytes is a plan whose first step makes a text of 10 MB, which a
// hundred steps hand down, with its tools.
func tenMegabytes(t testing.TB) (*plan.Plan, *tool.Set) {
	set, err := tool.NewSet(
		tool.Tool{
			Declaration: tool.Declaration{Name: "big", Effects: tool.Effects{ReadOnly: true}, MaxOutput: 64 << 20},
			Handler: func(context.Context, *tool.Call) (value.Value, error) {
				return value.Text(strings.Repeat("x", 10<<20))
			},
		},
		tool.Tool{
			Declaration: tool.Declaration{Name: "noop", Effects: tool.Effects{ReadOnly: true}, MaxOutput: 64 << 20},
			Handler: func(_ context.Context, c *tool.Call) (value.Value, error) {
				x, _ := c.Args.Get("x")
				return x, nil
			},
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, strings.Replace(chainText(101), `"tool":"noop","args":{"x":1}`, `"tool":"big","args":{}`, 1)), set
}

// TestTenMegabytesDownAHundredSteps holds what the benchmark shows: a large
// output is passed on and never copied.
func TestTenMegabytesDownAHundredSteps(t *testing.T) {
	p, set := tenMegabytes(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := run.Do(context.Background(), p, set, run.Options{})
	runtime.ReadMemStats(&after)
	if err != nil || !r.OK() {
		t.Fatalf("run: %v", err)
	}
	if got, limit := after.TotalAlloc-before.TotalAlloc, uint64(100<<20); got > limit {
		t.Errorf("passing 10 MB down 100 steps allocated %d bytes, want at most %d", got, limit)
	}
}

func BenchmarkTenMegabytesDownAHundredSteps(b *testing.B) {
	p, set := tenMegabytes(b)
	b.ReportAllocs()
	for b.Loop() {
		execute(b, p, set, run.Options{})
	}
}

func chainText(n int) string {
	var b strings.Builder
	b.WriteString(`[{"id":"s0","tool":"noop","args":{"x":1}}`)
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, `,{"id":"s%d","tool":"noop","args":{"x":"$s%d"}}`, i, i-1)
	}
	return b.String() + "]"
}
