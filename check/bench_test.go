package check_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/check"
)

// tenThousand is a plan of 10 000 steps, each of which reads one before it.
func tenThousand(wrong bool) []byte {
	var b strings.Builder
	b.WriteString(`[{"id": "step_0", "tool": "fetch", "args": {"doc": "first"}}`)
	for i := 1; i < 10_000; i++ {
		ref := fmt.Sprintf("step_%d", i/2)
		if wrong {
			ref = fmt.Sprintf("stp_%d", i)
		}
		fmt.Fprintf(&b, ",\n"+`  {"id": "step_%d", "tool": "fetch", "args": {"doc": "$%s.items.0.id", "note": "a few words about it", "limit": %d}, "after": ["step_%d"]}`, i, ref, i, i/3)
	}
	b.WriteString("]\n")
	return []byte(b.String())
}

func benchmark(b *testing.B, text []byte, o check.Options, ok bool) {
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, r := check.Text(text, o); r.OK != ok {
			b.Fatal(r.Diagnostics[0])
		}
	}
}

// Decoding included; the wanted bound is 50 ms.
func BenchmarkCheck10kFaultless(b *testing.B) {
	benchmark(b, tenThousand(false), check.Options{Catalogue: catalogue(b, []byte(`[{"name": "fetch"}]`))}, true)
}

func BenchmarkCheck10kFaultlessWithSchemas(b *testing.B) {
	benchmark(b, tenThousand(false), check.Options{Catalogue: catalogue(b, []byte(`[{"name": "fetch",
		"inputSchema": {"type": "object", "required": ["doc"], "properties": {"doc": {"type": "string"}, "note": {"type": "string"}, "limit": {"type": "integer"}}},
		"outputSchema": {"type": "object", "properties": {"items": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}}}}}}}]`))}, true)
}

// Every step has a finding; the search for near names is bounded.
func BenchmarkCheck10kFaulty(b *testing.B) {
	benchmark(b, tenThousand(true), check.Options{}, false)
}
