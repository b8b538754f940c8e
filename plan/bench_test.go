package plan

import (
	"fmt"
	"strings"
	"testing"
)

// tenThousand is a faultless plan as a model would write it: each step reads
// one of the steps before it.
func tenThousand() []byte {
	var b strings.Builder
	b.WriteString("[\n")
	for i := range 10_000 {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, `  {"id": "step_%d", "tool": "fetch", "args": {"doc": "$step_%d.items.0.id", "note": "a few words about it", "limit": %d}, "after": ["step_%d"]}`, i, i/2, i, i/3)
	}
	b.WriteString("\n]\n")
	text := strings.Replace(b.String(), "$step_0.items.0.id", "first", 1)
	return []byte(strings.Replace(text, `"after": ["step_0"]`, `"after": []`, 1))
}

func BenchmarkDecode10kSteps(b *testing.B) {
	text := tenThousand()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(text, Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

// A document of a million steps is refused by its size, before it is read.
func BenchmarkDecodeRefuses36MB(b *testing.B) {
	text := []byte("[" + strings.Repeat(`{"id":"s1","tool":"t","args":{"x":1}},`, 1_000_000))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(text, Limits{}); err == nil {
			b.Fatal("a document of 36 MB is a plan")
		}
	}
}

// A reference of nothing but dots is the worst case of the longest-id rule.
func BenchmarkReadDots(b *testing.B) {
	p, err := Decode([]byte(`[{"id":"`+strings.Repeat("a", 64)+`","tool":"t"}]`), Limits{})
	if err != nil {
		b.Fatal(err)
	}
	text := "$" + strings.Repeat("a.", 1<<20)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, _, isRef := p.Read(text); !isRef {
			b.Fatal("not read as a reference")
		}
	}
}

// A hundred positions cost one reading of the document.
func BenchmarkPositions100Of4MB(b *testing.B) {
	text := `[{"id":"a","tool":"t","args":{"x":[` + strings.Repeat(`"some text",`, 300_000) + `1]}}]`
	p, err := Decode([]byte(text), Limits{})
	if err != nil {
		b.Fatal(err)
	}
	var pointers []string
	for i := range 100 {
		pointers = append(pointers, fmt.Sprintf("/0/args/x/%d", i*3000))
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if at := p.Positions(pointers...); at[99].Column < 3_000_000 {
			b.Fatal(at[99])
		}
	}
}
