package mcp_test

import (
	"context"
	"fmt"
	"os"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/mcp"
	"github.com/callsheet/callsheet/value"
)

func Example() {
	self, _ := os.Executable() // stands for a real server
	ctx := context.Background()
	src, err := mcp.Open(ctx, mcp.Config{
		Name:    "fake",
		Command: []string{self},
		Env:     map[string]string{fakeEnv: ""},
		Trust:   true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer src.Close()

	echo := src.Tools()[0]
	out, err := echo.Handler(ctx, &tool.Call{
		Args:     value.MustParse(`{"n":9007199254740993}`),
		Key:      func() string { return "" },
		Progress: func(tool.Progress) {},
	})
	fmt.Println(echo.Name, echo.Effects.ReadOnly, out, err)
	// Output: echo true {"n":9007199254740993} <nil>
}
