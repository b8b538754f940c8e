package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestHostile013_WavesAndCycles(t *testing.T) {
	for _, c := range []struct {
		name, plan string
		waves      []int
		cycles     [][]int
	}{
		{"a later step in the file", `[{"id":"b","tool":"t","args":{"x":"$a"}},{"id":"a","tool":"t"}]`, []int{1, 0}, nil},
		{"itself", `[{"id":"a","tool":"t","args":{"x":"$a"}},{"id":"b","tool":"t","after":["a"]}]`, []int{-1, -1}, [][]int{{0}}},
		{"itself by after", `[{"id":"a","tool":"t","after":["a"]}]`, []int{-1}, [][]int{{0}}},
		{"through args and after", `[{"id":"a","tool":"t","after":["c"]},{"id":"b","tool":"t","args":{"x":["$a.y"]}},{"id":"c","tool":"t","after":["b"]},{"id":"d","tool":"t"}]`, []int{-1, -1, -1, 0}, [][]int{{0, 2, 1}}},
		{"unknown in after", `[{"id":"a","tool":"t","after":["ghost"]},{"id":"b","tool":"t","after":["a"]},{"id":"c","tool":"t"}]`, []int{-1, -1, 0}, nil},
		{"unknown reference", `[{"id":"a","tool":"t","args":{"x":"$ghost"}},{"id":"b","tool":"t","after":["a"]}]`, []int{0, 1}, nil},
		{"a self-reference inside a cycle", `[{"id":"a","tool":"t","after":["a","b"]},{"id":"b","tool":"t","after":["a"]}]`, []int{-1, -1}, [][]int{{0}, {0, 1}}},
	} {
		p := decode(t, c.plan)
		var waves []int
		for _, s := range p.Steps {
			waves = append(waves, s.Wave)
		}
		if diff := cmp.Diff(c.waves, waves); diff != "" {
			t.Errorf("%s: waves (-want +got):\n%s", c.name, diff)
		}
		if diff := cmp.Diff(c.cycles, p.Cycles()); diff != "" {
			t.Errorf("%s: cycles (-want +got):\n%s", c.name, diff)
		}
	}
	p := decode(t, `[{"id":"a","tool":"t","after":["x","y","x"]}]`)
	if diff := cmp.Diff([]string{"x", "y"}, p.Steps[0].Unknown); diff != "" {
		t.Errorf("unknown ids (-want +got):\n%s", diff)
	}
}

// anyPlan draws a plan of steps s0, s1, … with random dependencies, also
// unknown ones, and its dependencies as drawn.
func anyPlan(t *rapid.T) string {
	n := rapid.IntRange(0, 12).Draw(t, "steps")
	steps := make([]string, n)
	for i := range steps {
		args, after := []string{}, []string{}
		for j := range rapid.IntRange(0, 3).Draw(t, "deps") {
			// Mostly backwards, so that most plans have sound parts.
			d := rapid.OneOf(rapid.IntRange(0, max(i-1, 0)), rapid.IntRange(0, n)).Draw(t, "dep")
			if rapid.Bool().Draw(t, "byRef") {
				args = append(args, fmt.Sprintf(`"a%d":["$s%d.x"]`, j, d))
			} else {
				after = append(after, fmt.Sprintf(`"s%d"`, d))
			}
		}
		steps[i] = fmt.Sprintf(`{"id":"s%d","tool":"t","args":{%s},"after":[%s]}`, i, strings.Join(args, ","), strings.Join(after, ","))
	}
	return "[" + strings.Join(steps, ",\n") + "]"
}

func TestWavesAndCyclesOfEveryPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := anyPlan(t)
		p, err := Decode([]byte(text), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		onCycle := make([]bool, len(p.Steps))
		for i := range p.Steps {
			onCycle[i] = reaches(p, i, i)
		}
		for i, s := range p.Steps {
			want, stuck := 0, len(s.Unknown) > 0 || onCycle[i]
			for _, d := range s.Deps {
				want = max(want, p.Steps[d].Wave+1)
				stuck = stuck || p.Steps[d].Wave < 0
			}
			if stuck {
				want = -1
			}
			if s.Wave != want {
				t.Errorf("%s\nstep %d is in wave %d, want %d", text, i, s.Wave, want)
			}
		}
		named := make([]bool, len(p.Steps))
		for _, c := range p.Cycles() {
			for k, s := range c {
				if next := c[(k+1)%len(c)]; !slices.Contains(p.Steps[s].Deps, next) {
					t.Errorf("%s\n%v is no cycle: %d does not depend on %d", text, c, s, next)
				}
				named[s] = true
			}
			if c[0] != slices.Min(c) {
				t.Errorf("%s\n%v does not start with its first step", text, c)
			}
		}
		for i, on := range onCycle {
			if named[i] && !on {
				t.Errorf("%s\nstep %d is not on a cycle", text, i)
			}
			if on && !slices.ContainsFunc(p.Cycles(), func(c []int) bool { return c[0] == i || reaches(p, i, c[0]) && reaches(p, c[0], i) }) {
				t.Errorf("%s\nstep %d is on a cycle of which none is named: %v", text, i, p.Cycles())
			}
		}
		if got, want := fmt.Sprint(p.Waves()), fmt.Sprint(wavesOf(p)); got != want {
			t.Errorf("Waves() = %s, want %s", got, want)
		}
	})
}

// reaches reports whether to is reached from from over at least one dependency.
func reaches(p *Plan, from, to int) bool {
	seen := make([]bool, len(p.Steps))
	todo := []int{from}
	for len(todo) > 0 {
		s := todo[0]
		todo = todo[1:]
		for _, d := range p.Steps[s].Deps {
			if d == to {
				return true
			}
			if !seen[d] {
				seen[d] = true
				todo = append(todo, d)
			}
		}
	}
	return false
}

func wavesOf(p *Plan) (waves [][]int) {
	for w := 0; ; w++ {
		var in []int
		for i, s := range p.Steps {
			if s.Wave == w {
				in = append(in, i)
			}
		}
		if in == nil {
			return waves
		}
		waves = append(waves, in)
	}
}

func TestALongChainNeedsNoStack(t *testing.T) {
	var b strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&b, `,{"id":"s%d","tool":"t","after":["s%d"]}`, i, (i+1)%10_000)
	}
	p := decode(t, "["+b.String()[1:]+"]")
	if c := p.Cycles(); len(c) != 1 || len(c[0]) != 10_000 || p.Steps[5].Wave != -1 {
		t.Errorf("%d cycles, want one of 10 000 steps", len(c))
	}
}
