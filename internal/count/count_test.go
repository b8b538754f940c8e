package count_test

import (
	"fmt"

	"github.com/callsheet/callsheet/internal/count"
)

func ExampleOf() {
	for _, n := range []int64{-1, 0, 1, 2, 1 << 62} {
		fmt.Println(count.Of(n, "stored part"))
	}
	// Output:
	// -1 stored parts
	// 0 stored parts
	// 1 stored part
	// 2 stored parts
	// 4611686018427387904 stored parts
}
