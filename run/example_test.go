package run_test

import (
	"context"
	"fmt"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/run"
	"github.com/callsheet/callsheet/tool"
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
