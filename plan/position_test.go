package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/value"
)

func TestPositions(t *testing.T) {
	p := decode(t, "{\n \"steps\" :\n  [ {\"id\":\"a\",\t\"tool\":\"t\",\n\"args\": {\"k/~\" : [ 1,\r\n\"x\" ]}}]}")
	pointers := []string{"/steps/0/args/k~1~0/1", "", "/steps", "/steps/0", "/steps/0/tool", "/steps/0/args/k~1~0", "/steps/0/nope/x", "/steps/7", "/steps/0/tool/x"}
	want := []Position{{5, 1, 63}, {1, 1, 0}, {3, 3, 15}, {3, 5, 17}, {3, 23, 35}, {4, 18, 57}, {3, 5, 17}, {3, 3, 15}, {3, 23, 35}}
	if diff := cmp.Diff(want, p.Positions(pointers...)); diff != "" {
		t.Errorf("positions (-want +got):\n%s", diff)
	}
	if line, column := p.Position("/steps/0/tool"); line != 3 || column != 23 {
		t.Errorf("Position = %d, %d; want 3, 23", line, column)
	}
}

// The text at a position starts with the value at the pointer.
func TestEveryPositionIsWhereTheValueStarts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.NewReplacer(",", rapid.SampledFrom([]string{",", " ,\n", ",\r\n\t"}).Draw(t, "comma"),
			":", rapid.SampledFrom([]string{":", " :\n"}).Draw(t, "colon")).Replace(anyPlan(t))
		doc := value.MustParse(text)
		var pointers []string
		var walk func(v value.Value, pointer string)
		walk = func(v value.Value, pointer string) {
			pointers = append(pointers, pointer)
			for k, m := range v.Members() {
				walk(m, pointer+"/"+k)
			}
			for i, e := range v.Elements() {
				walk(e, fmt.Sprintf("%s/%d", pointer, i))
			}
		}
		walk(doc, "")
		lines := strings.SplitAfter(text, "\n")
		for i, at := range locate([]byte(text), pointers) {
			rest := lines[at.Line-1][at.Column-1:] + strings.Join(lines[at.Line:], "")
			if rest != text[at.Offset:] {
				t.Fatalf("at %s: %+v is two places", pointers[i], at)
			}
			want, _ := doc.AtPointer(pointers[i])
			got := rest
			for n := 1; n <= len(rest); n++ {
				if v, err := value.Parse(rest[:n]); err == nil {
					got = v.String()
					if got == want.String() {
						break
					}
				}
			}
			if got != want.String() {
				t.Fatalf("at %s: %d:%d starts %.40q, want %s", pointers[i], at.Line, at.Column, rest, want)
			}
		}
	})
}
