package state_test

import (
	"fmt"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/state"
)

// Changing a state gives a new one; the old one stays as it is.
func Example() {
	s, err := state.Parse(value.MustParse(`{"world":{"files":{}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := s.Apply([]world.Mutation{
		{Op: world.Create, Path: "world.files./app/report.txt", Value: value.MustParse(`{"content":"x"}`)},
		{Op: world.Set, Path: "world.files./app/report.txt.content", Value: value.MustText("y")},
	})
	fmt.Println(s.Namespace("world"), t.Namespace("world"), err)
	// Output: {"files":{}} {"files":{"/app/report.txt":{"content":"y"}}} <nil>
}
