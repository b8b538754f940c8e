package run_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/demo"
	"github.com/callsheet/callsheet/value"
)

func ExampleDo() {
	type Query struct {
		City string `json:"city"`
	}
	weather, err := tool.Func("weather", "The weather of a city.", func(_ context.Context, q Query) (string, error) {
		return "rain in " + q.City, nil
	}, tool.Options{Effects: &tool.Effects{ReadOnly: true}})
	if err != nil {
		panic(err)
	}
	set, err := tool.NewSet(weather)
	if err != nil {
		panic(err)
	}
	p, err := plan.Decode([]byte(`[
		{"id": "w", "tool": "weather", "args": {"city": "Bergen"}},
		{"id": "x", "tool": "weather", "args": {"town": "$w"}}
	]`), plan.Limits{})
	if err != nil {
		panic(err)
	}
	report, err := run.Do(context.Background(), p, set, run.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(report.AppendJSON(nil)))
	fmt.Println(report.Steps[1].Cause.Message)
	// Output:
	// {"status":{"w":"ok","x":"invalid_args"},"outputs":{"w":"rain in Bergen"},"waves":[["w"],["x"]],"calls":1}
	// missing property "city"; /town: property "town" is not declared; the schema has "city"
}

// The raw door takes and gives values as they are; what a tool declares is written
// out, and a failure says what may be done about it.
func ExampleDo_handler() {
	stock := tool.Tool{
		Declaration: tool.Declaration{
			Name:        "stock",
			Description: "How many are left.",
			Input:       mustCompile(`{"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}`),
			Effects:     tool.Effects{ReadOnly: true},
		},
		Handler: func(_ context.Context, c *tool.Call) (value.Value, error) {
			item, _ := c.Args.Get("item")
			if c.Attempt == 1 {
				return value.Value{}, tool.Retryable(fmt.Errorf("the shelf of %s is being counted", item))
			}
			return value.ObjectOf(value.Member{Key: "item", Value: item}, value.Member{Key: "left", Value: value.Int(9007199254740993)}), nil
		},
	}
	set, err := tool.NewSet(stock)
	if err != nil {
		panic(err)
	}
	p, err := plan.Decode([]byte(`[{"id": "s", "tool": "stock", "args": {"item": "screws"}}]`), plan.Limits{})
	if err != nil {
		panic(err)
	}
	report, err := run.Do(context.Background(), p, set, run.Options{})
	if err != nil {
		panic(err)
	}
	fmt.Println(report.Steps[0].Output)
	fmt.Println(report.Steps[0].Attempts[0].Failure.Message)
	// Output:
	// {"item":"screws","left":9007199254740993}
	// the shelf of "screws" is being counted
}

// An observer is told what happens, in order and from one goroutine at a time.
func ExampleDo_observer() {
	set, err := tool.NewSet(demo.New()...)
	if err != nil {
		panic(err)
	}
	p, err := plan.Decode([]byte(`[
		{"id": "a", "tool": "flaky", "args": {"key": "k"}},
		{"id": "b", "tool": "nobody"}
	]`), plan.Limits{})
	if err != nil {
		panic(err)
	}
	_, err = run.Do(context.Background(), p, set, run.Options{Observer: func(e run.Event) {
		switch e.Kind {
		case run.Called:
			fmt.Println(e.Kind, e.Step, e.Attempt)
		case run.Returned:
			fmt.Println(e.Kind, e.Step, "failed:", e.Failure != nil)
		case run.Settled:
			fmt.Println(e.Kind, e.Step, e.Status)
		}
	}})
	if err != nil {
		panic(err)
	}
	// Unordered output:
	// called a 1
	// returned a failed: true
	// called a 2
	// returned a failed: false
	// settled a ok
	// settled b unknown_tool
}

// Workers run the steps of a wave side by side. The report is the same as without.
func ExampleDo_parallel() {
	var both sync.WaitGroup
	both.Add(2)
	meet, err := tool.Func("meet", "Waits for the other.", func(_ context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		both.Done()
		both.Wait() // nobody would come if calls were made one after the other
		return in.Name + " met", nil
	}, tool.Options{Effects: &tool.Effects{ReadOnly: true}})
	if err != nil {
		panic(err)
	}
	set, err := tool.NewSet(meet)
	if err != nil {
		panic(err)
	}
	p, err := plan.Decode([]byte(`[
		{"id": "a", "tool": "meet", "args": {"name": "Ann"}},
		{"id": "b", "tool": "meet", "args": {"name": "Bob"}}
	]`), plan.Limits{})
	if err != nil {
		panic(err)
	}
	report, err := run.Do(context.Background(), p, set, run.Options{Workers: 2})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(report.AppendJSON(nil)))
	// Output:
	// {"status":{"a":"ok","b":"ok"},"outputs":{"a":"Ann met","b":"Bob met"},"waves":[["a","b"]],"calls":2}
}

func mustCompile(text string) *schema.Schema {
	s, err := schema.Compile(value.MustParse(text))
	if err != nil {
		panic(err)
	}
	return s
}
