package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/model/scripted"
	"github.com/callsheet/callsheet/tool"
)

// A weather question: one tool, and a struct as the answer.
func Example() {
	type place struct {
		City string `json:"city"`
	}
	type forecast struct {
		Umbrella bool   `json:"umbrella"`
		Why      string `json:"why"`
	}
	weather, err := tool.Func("weather", "tells the weather of a city", func(_ context.Context, p place) (string, error) {
		return "rain in " + p.City, nil
	}, tool.Options{})
	if err != nil {
		log.Fatal(err)
	}
	set, err := tool.NewSet(weather)
	if err != nil {
		log.Fatal(err)
	}
	m, err := scripted.Parse([]byte(`[
		{"tool_calls": [{"id": "1", "name": "weather", "arguments": {"city": "Bergen"}}]},
		{"tool_calls": [{"id": "2", "name": "submit", "arguments": {"umbrella": true, "why": "it rains in Bergen"}}]}
	]`))
	if err != nil {
		log.Fatal(err)
	}
	a, err := agent.New(agent.Config[forecast]{Model: m, Tools: set.Catalogue(), Caller: agent.Direct(set)})
	if err != nil {
		log.Fatal(err)
	}
	res, err := a.Run(context.Background(), agent.Task{User: "Do I need an umbrella in Bergen?"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Submission.Umbrella, res.Submission.Why)
	fmt.Println(res.Trace[0].Step, res.Trace[0].Tool, res.Trace[0].Arguments)
	// Output:
	// true it rains in Bergen
	// 1.1 weather {"city":"Bergen"}
}

// A check after the schema's sends the submission back with what is wrong.
func ExampleConfig_validate() {
	type count struct {
		Legs int `json:"legs"`
	}
	m, err := scripted.Parse([]byte(`[
		{"tool_calls": [{"id": "1", "name": "submit", "arguments": {"legs": 5}}]},
		{"tool_calls": [{"id": "2", "name": "submit", "arguments": {"legs": 4}}]}
	]`))
	if err != nil {
		log.Fatal(err)
	}
	a, err := agent.New(agent.Config[count]{Model: m, Validate: func(_ context.Context, c count) error {
		if c.Legs%2 != 0 {
			return fmt.Errorf("%d legs are odd; count again", c.Legs)
		}
		return nil
	}})
	if err != nil {
		log.Fatal(err)
	}
	res, err := a.Run(context.Background(), agent.Task{User: "How many legs has the table?"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Submission.Legs)
	fmt.Println(res.LastInvalid.Reason)
	// Output:
	// 4
	// 5 legs are odd; count again
}

// A model that does not come to a submission is an error that says how far it
// came.
func ExampleProtocolError() {
	m, err := scripted.Parse([]byte(`[{"content": "It is 42."}, {"content": "As I said: 42."}]`))
	if err != nil {
		log.Fatal(err)
	}
	a, err := agent.New(agent.Config[struct{}]{Model: m})
	if err != nil {
		log.Fatal(err)
	}
	res, err := a.Run(context.Background(), agent.Task{User: "What is the answer?"})
	var p *agent.ProtocolError
	if errors.As(err, &p) {
		fmt.Println(p.Code, "after", res.Rounds, "rounds:", res.LastText)
	}
	// Output:
	// no_call after 2 rounds: As I said: 42.
}

// Placeholders refuses filler in the fields that are named.
func ExamplePlaceholders() {
	type report struct {
		Summary string `json:"summary"`
	}
	m, err := scripted.Parse([]byte(`[
		{"tool_calls": [{"id": "1", "name": "submit", "arguments": {"summary": "TBD"}}]},
		{"tool_calls": [{"id": "2", "name": "submit", "arguments": {"summary": "All trains ran."}}]}
	]`))
	if err != nil {
		log.Fatal(err)
	}
	a, err := agent.New(agent.Config[report]{Model: m, Settings: agent.Settings{Placeholders: agent.Placeholders("/summary")}})
	if err != nil {
		log.Fatal(err)
	}
	res, err := a.Run(context.Background(), agent.Task{User: "Summarise the day."})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Submission.Summary)
	fmt.Println(res.LastInvalid.Reason)
	// Output:
	// All trains ran.
	// /summary: it is a placeholder ("TBD"); give the real text
}
