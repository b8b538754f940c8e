package agent_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// caller is a model that calls a tool in every round but the last.
type caller struct {
	rounds  int
	replies []*model.Reply
}

func newCaller(rounds int) *caller {
	c := &caller{rounds: rounds}
	for i := range 7 { // not the same call running
		c.replies = append(c.replies, &model.Reply{
			Calls: []model.Call{calling("c", "search", fmt.Sprintf(`{"q":"%d"}`, i))}, Finish: model.FinishCalls,
			Usage: model.Usage{Prompt: agent.Int(100), Completion: agent.Int(10)},
		})
	}
	return c
}

func (c *caller) Ask(_ context.Context, req *model.Request) (*model.Reply, error) {
	if req.Round == c.rounds {
		return says(final), nil
	}
	return c.replies[req.Round%len(c.replies)], nil
}

type query struct {
	Q string `json:"q"`
}

func searching(b testing.TB, rounds int) *agent.Agent[answer] {
	b.Helper()
	search, err := tool.Func("search", "finds", func(_ context.Context, q query) (value.Value, error) {
		return value.MustParse(`{"hits":["a","b"]}`), nil
	}, tool.Options{Effects: &tool.Effects{ReadOnly: true}})
	if err != nil {
		b.Fatal(err)
	}
	set, err := tool.NewSet(search)
	if err != nil {
		b.Fatal(err)
	}
	return build(b, agent.Config[answer]{
		Model: newCaller(rounds), Tools: set.Catalogue(), Caller: agent.Direct(set),
		Settings: agent.Settings{MaxToolCalls: agent.Int(rounds), MaxRounds: agent.Int(rounds)},
	})
}

// A round of a long run does what a round of a short one does: the transcript
// is appended to, not made again.
func TestCostOfARoundDoesNotGrow(t *testing.T) {
	perRound := func(rounds int) float64 {
		a := searching(t, rounds)
		return testing.AllocsPerRun(3, func() {
			if _, err := a.Run(context.Background(), agent.Task{User: "U"}); err != nil {
				t.Fatal(err)
			}
		}) / float64(rounds)
	}
	short, long := perRound(10), perRound(1000)
	if long > 1.2*short {
		t.Errorf("a round of 1000 makes %.1f allocations, one of 10 makes %.1f", long, short)
	}
}

// BenchmarkRound is what the loop costs per round: one reply with one call, its
// arguments judged, the tool called through the door, the answer appended and
// the transcript checked. ns/round must not grow with the number of rounds.
func BenchmarkRound(b *testing.B) {
	for _, rounds := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(rounds), func(b *testing.B) {
			a := searching(b, rounds)
			b.ReportAllocs()
			for b.Loop() {
				res, err := a.Run(context.Background(), agent.Task{System: "S", User: "U"})
				if err != nil || res.Rounds != rounds {
					b.Fatal(res.Rounds, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*rounds), "ns/round")
		})
	}
}

// BenchmarkThousandAgents runs a thousand agents of twenty rounds at once and
// reports the heap that they held while all of them were in their last round.
func BenchmarkThousandAgents(b *testing.B) {
	const agents, rounds = 1000, 20
	for b.Loop() {
		var inLast, done sync.WaitGroup
		inLast.Add(agents)
		gate := make(chan struct{})
		for range agents {
			inner := newCaller(rounds)
			m := asks(func(ctx context.Context, req *model.Request) (*model.Reply, error) {
				if req.Round == rounds {
					inLast.Done()
					<-gate
				}
				return inner.Ask(ctx, req)
			})
			search := tool.Tool{Declaration: tool.Declaration{Name: "search", Source: "bench"}, Handler: func(context.Context, *tool.Call) (value.Value, error) {
				return value.MustText("a result of some length, as tools give them"), nil
			}}
			set, err := tool.NewSet(search)
			if err != nil {
				b.Fatal(err)
			}
			a := build(b, agent.Config[answer]{Model: m, Tools: set.Catalogue(), Caller: agent.Direct(set), Settings: agent.Settings{MaxToolCalls: agent.Int(rounds)}})
			done.Go(func() {
				if _, err := a.Run(context.Background(), agent.Task{User: "U"}); err != nil {
					b.Error(err)
				}
			})
		}
		inLast.Wait()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.HeapInuse+m.StackInuse)/(1<<20), "MiB")
		close(gate)
		done.Wait()
	}
}
