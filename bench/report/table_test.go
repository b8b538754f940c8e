package main

import (
	"strings"
	"testing"
)

func TestFiguresAreTheBestOfAllTimes(t *testing.T) {
	f := figures{}
	for _, out := range []string{
		"goos: linux\nBenchmarkX/workers=8-2   \t 10\t 37065815 ns/op\t 3707 ns/step\t 269790 steps/s\nPASS\n",
		"BenchmarkX/workers=8-2   \t 12\t 31000000 ns/op\t 3100 ns/step\t 322580 steps/s\n",
	} {
		if err := f.read([]byte(out)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := f.least("X/workers=8", "ns/step"); err != nil || got != 3100 {
		t.Errorf("least = %v, %v, want 3100", got, err)
	}
	if got, err := f.most("X/workers=8", "steps/s"); err != nil || got != 322580 {
		t.Errorf("most = %v, %v, want 322580", got, err)
	}
	if _, err := f.most("X", "steps/s"); err == nil {
		t.Error("a benchmark that did not run has a figure")
	}
}

func TestNumber(t *testing.T) {
	for x, want := range map[float64]string{
		0: "< 0.001", 0.0146: "0.0146", 1: "1.00", 1.808: "1.81", 41.44: "41.4", 999.6: "1 000", 29_512: "29 500", 1_234_567: "1 230 000",
	} {
		if got := number(x); got != want {
			t.Errorf("number(%v) = %q, want %q", x, got, want)
		}
	}
}

func TestTableMarksWhatMissesItsTarget(t *testing.T) {
	measured := map[*suite]figures{}
	for _, s := range suites {
		measured[s] = figures{}
	}
	for _, r := range rows { // every figure is 20, so every ratio 1
		for _, m := range []metric{r.of, r.over} {
			measured[r.suite][figure{m.name, m.unit}] = []float64{20}
		}
	}
	table, err := tableOf(measured)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| ≥ 300 000 steps/s | 20.0 steps/s | **missed** |\n",
		"| ≤ 2 × | 1.00 × |  |\n",
		"| ≥ 15 × | 20.0 × |  |\n",
		"⁸ `go -C bench/dbos test -run '^$' -bench . -benchtime 8x`",
	} {
		if !strings.Contains(table, want) {
			t.Errorf("no %q in\n%s", want, table)
		}
	}
}
