package episode_test

import (
	"fmt"

	"github.com/callsheet/callsheet/world/episode"
)

// Each action is paired with what came back, and keeps its type and arguments.
func Example() {
	eps, err := episode.Parse("trace.txt", []byte("Action: {\"type\":\"deposit\",\"arguments\":{\"amount\":20}}\nObservation: done\nAction: balance\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range episode.Segment(&eps[0], episode.MaxHistory) {
		a, _ := episode.ReadAction(s.ActionOf(&eps[0]))
		fmt.Println(a.Type, a.Arguments, s.Alignment, len(s.Results), s.Ambiguities)
	}
	// Output:
	// deposit {"amount":20} sequential 1 []
	// balance {} ambiguous 0 [No unambiguous observation is available for this action.]
}
