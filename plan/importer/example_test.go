package importer_test

import (
	"fmt"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/plan/importer"
)

func ExampleImport() {
	doc, err := importer.Import("nestful", []byte(`[
		{"name": "multiply", "label": "$var_1", "arguments": {"arg_0": 49, "arg_1": 16}},
		{"name": "divide", "label": "$var_2", "arguments": {"arg_0": "$var_1.result$", "arg_1": 56}}
	]`), plan.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(string(doc))
	// Output:
	// [
	//   {"id":"var_1","tool":"multiply","args":{"arg_0":49,"arg_1":16}},
	//   {"id":"var_2","tool":"divide","args":{"arg_0":"$var_1.result","arg_1":56}}
	// ]
}
