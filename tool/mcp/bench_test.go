package mcp_test

import (
	"fmt"
	"strings"
	"testing"
)

// One call over stdio, to a process that does nothing.
func BenchmarkCall(b *testing.B) {
	src := open(b, fakeConfig(b, ""))
	h, c := find(b, src, "echo").Handler, request(`{"n":1}`)
	for b.Loop() {
		if _, err := h(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}

// A result of a megabyte over stdio.
func BenchmarkResult1MB(b *testing.B) {
	src := open(b, fakeConfig(b, ""))
	h, c := find(b, src, "text").Handler, request(fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 1<<20)))
	b.SetBytes(1 << 20)
	for b.Loop() {
		if _, err := h(b.Context(), c); err != nil {
			b.Fatal(err)
		}
	}
}
