package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Many short times rather than one long one: the best of them is what counts.
// Benchmarks that take turns keep their best by themselves.
var (
	inRun = &suite{dir: ".", args: []string{"-bench", "SequentialChain|TenMegabytes", "-benchtime", "3x", "-count", "20", "./run"}}
	turns = &suite{dir: ".", args: []string{"-bench", "OverFloor|BenchmarkLength", "-benchtime", "25x", "./run"}}
	check = &suite{dir: ".", args: []string{"-bench", "10kFaultless$", "-benchtime", "3x", "-count", "20", "./check"}}
	size  = &suite{dir: ".", args: []string{"-bench", "Refuses36MB", "-benchtime", "100x", "./plan"}}
	whole = &suite{dir: ".", args: []string{"-bench", "Binary", "-benchtime", "10x", "-count", "10", "./cmd/callsheet"}}
	lone  = &suite{dir: ".", args: []string{"-bench", "^BenchmarkDurable|LoneChain|Journalling", "-benchtime", "3x", "-count", "8", "./record"}}
	grown = &suite{dir: ".", args: []string{"-bench", "StoredRuns|Length", "-benchtime", "8x", "./record"}}
	loop  = &suite{dir: ".", args: []string{"-bench", "Round|ThousandAgents", "-benchtime", "20x", "-count", "5", "./agent"}}
	rules = &suite{dir: ".", args: []string{"-bench", "Decision$|Check500|LargeOutput", "-benchtime", "200ms", "-count", "10", "./policy"}}
	dbos  = &suite{dir: "bench/dbos", args: []string{"-bench", ".", "-benchtime", "8x"}}

	plays = &suite{dir: ".", args: []string{"-bench", "BenchmarkStep$", "-benchtime", "3000x", "-count", "3", "./world/session"}}
	reads = &suite{dir: ".", args: []string{"-bench", "BenchmarkRead$|BenchmarkVerify$", "-benchtime", "3x", "-count", "3", "./world/episode", "./world/book"}}

	suites = []*suite{inRun, turns, check, size, whole, lone, grown, dbos, loop, rules, plays, reads}
)

// A row of the table. Its figure is the best value of one metric, over that of
// another where there is one.
type row struct {
	what   string
	target target
	unit   string
	of     metric
	over   metric
	suite  *suite
}

// A metric is what a benchmark reports, times scale; 0: 1.
type metric struct {
	name, unit string
	most       bool // more is better
	scale      float64
}

// A target is a bound of a figure; the zero target is none.
type target struct {
	sign  string
	bound float64
}

func atLeast(x float64) target { return target{"≥", x} }
func atMost(x float64) target  { return target{"≤", x} }

func (t target) missedBy(x float64) bool {
	return t.sign == "≥" && x < t.bound || t.sign == "≤" && x > t.bound
}

const milli, million = 1e-6, 1e-6 // of ns, of bytes

var rows = []row{
	{what: "a chain of 10 000 steps, sequential", target: atLeast(300_000), unit: "steps/s", of: metric{name: "SequentialChain", unit: "steps/s", most: true}, suite: inRun},
	{what: "a random DAG of 10 000 steps, 8 workers, over a hand-written errgroup without any check", target: atMost(2), unit: "×", of: metric{name: "OverFloor", unit: "ns/step"}, over: metric{name: "OverFloor", unit: "floor-ns/step"}, suite: turns},
	{what: "a step of a chain of 100 000 over one of 1 000", target: atMost(1.5), unit: "×", of: metric{name: "Length", unit: "ns/step@100000"}, over: metric{name: "Length", unit: "ns/step@1000"}, suite: turns},
	{what: "`check` of a faultless plan of 10 000 steps, text in, report out", target: atMost(50), unit: "ms", of: metric{name: "Check10kFaultless", unit: "ns/op", scale: milli}, suite: check},
	{what: "10 MB handed down 100 steps: all memory allocated", target: atMost(100), unit: "MB", of: metric{name: "TenMegabytesDownAHundredSteps", unit: "B/op", scale: million}, suite: inRun},
	{what: "a document of 36 MB refused: memory allocated", target: atMost(16), unit: "MB", of: metric{name: "DecodeRefuses36MB", unit: "B/op", scale: million}, suite: size},
	{what: "a document of 36 MB refused by the binary, its start and the reading included", target: atMost(50), unit: "ms", of: metric{name: "Binary/refuse", unit: "ns/op", scale: milli}, suite: whole},
	{what: "the binary's whole run of a plan of 10 steps", target: atMost(30), unit: "ms", of: metric{name: "Binary/run", unit: "ns/op", scale: milli}, suite: whole},

	{what: "the disk: a page written and synced, again and again", unit: "syncs/s", of: metric{name: "Durable", unit: "fsyncs/s", most: true}, suite: dbos},
	{what: "500 plans × 10 read-only steps at once, journaled", target: atLeast(25_000), unit: "steps/s", of: metric{name: "Durable", unit: "callsheet-steps/s", most: true}, suite: dbos},
	{what: "the same on DBOS Transact with SQLite, commits synced as ours are", unit: "steps/s", of: metric{name: "Durable", unit: "dbos-full-steps/s", most: true}, suite: dbos},
	{what: "ours over that", target: atLeast(15), unit: "×", of: metric{name: "Durable", unit: "×dbos-full", most: true}, suite: dbos},
	{what: "the same on DBOS Transact with SQLite as it comes, commits not synced", unit: "steps/s", of: metric{name: "Durable", unit: "dbos-steps/s", most: true}, suite: dbos},
	{what: "ours, synced, over that", target: atLeast(15), unit: "×", of: metric{name: "Durable", unit: "×dbos", most: true}, suite: dbos},

	{what: "syncs of a lone chain of read-only steps", target: atMost(1), unit: "a step", of: metric{name: "LoneChain/read", unit: "syncs/step"}, suite: lone},
	{what: "syncs of a lone chain of effects", target: atMost(2), unit: "a step", of: metric{name: "LoneChain/write", unit: "syncs/step"}, suite: lone},
	{what: "syncs of 500 runs side by side", unit: "a step", of: metric{name: "Durable", unit: "syncs/step"}, suite: lone},
	{what: "CPU time that journalling adds, 500 runs side by side", target: atMost(40), unit: "µs a step", of: metric{name: "Journalling/500x10", unit: "added-cpu-µs/step"}, suite: lone},
	{what: "CPU time that journalling adds, a lone chain", target: atMost(40), unit: "µs a step", of: metric{name: "Journalling/1x1000", unit: "added-cpu-µs/step"}, suite: lone},
	{what: "CPU time of one raw write and sync, which each step of a lone chain has to pay", unit: "µs", of: metric{name: "Journalling/1x1000", unit: "cpu-µs/raw-sync"}, suite: lone},
	{what: "a step on a journal of 100 000 runs over one on a journal of 10", target: atMost(1.25), unit: "×", of: metric{name: "StoredRuns", unit: "µs/step@100000"}, over: metric{name: "StoredRuns", unit: "µs/step@10"}, suite: grown},
	{what: "the same in CPU time", target: atMost(1.25), unit: "×", of: metric{name: "StoredRuns", unit: "cpu-µs/step@100000"}, over: metric{name: "StoredRuns", unit: "cpu-µs/step@10"}, suite: grown},
	{what: "a step of a journaled run of 10 000 over one of 100", target: atMost(1.25), unit: "×", of: metric{name: "Length", unit: "µs/step@10000"}, over: metric{name: "Length", unit: "µs/step@100"}, suite: grown},
	{what: "the same in CPU time", target: atMost(1.25), unit: "×", of: metric{name: "Length", unit: "cpu-µs/step@10000"}, over: metric{name: "Length", unit: "cpu-µs/step@100"}, suite: grown},

	{what: "a round of an agent with a scripted model and one call, without a journal", target: atMost(20), unit: "µs", of: metric{name: "Round/1000", unit: "ns/round", scale: 1e-3}, suite: loop},
	{what: "a round of 1 000 over one of 10", target: atMost(1.25), unit: "×", of: metric{name: "Round/1000", unit: "ns/round"}, over: metric{name: "Round/10", unit: "ns/round"}, suite: loop},
	{what: "1 000 agents at once, in their 20th round: memory held", target: atMost(1000), unit: "MB", of: metric{name: "ThousandAgents", unit: "MiB", scale: 1.048576}, suite: loop},

	{what: "a decision of the policy, with labels and five rules", target: atMost(5), unit: "µs", of: metric{name: "Decision", unit: "ns/op", scale: 1e-3}, suite: rules},
	{what: "what the policy says of a plan of 500 steps before it runs", target: atMost(10), unit: "ms", of: metric{name: "Check500", unit: "ns/op", scale: milli}, suite: rules},
	{what: "a decision about one value of an output of 10 MB, its label included", unit: "µs", of: metric{name: "LargeOutput", unit: "ns/op", scale: 1e-3}, suite: rules},
	{what: "a step of a world by a rule, of 10 000 rules, on a state of 1 MB, without fsync", target: atMost(200), unit: "µs", of: metric{name: "Step/after=10", unit: "ns/op", scale: 1e-3}, suite: plays},
	{what: "a step after 100 000 steps over one after 10", target: atMost(1.25), unit: "×", of: metric{name: "Step/after=100000", unit: "ns/op"}, over: metric{name: "Step/after=10", unit: "ns/op"}, suite: plays},
	{what: "recordings read into episodes and slices", target: atLeast(50), unit: "MB/s", of: metric{name: "Read", unit: "MB/s", most: true}, suite: reads},
	{what: "a worldbook of 1 GB opened and verified", target: atLeast(400), unit: "MB/s", of: metric{name: "Verify", unit: "MB/s", most: true}, suite: reads},
}

func tableOf(measured map[*suite]figures) (string, error) {
	var b strings.Builder
	b.WriteString("| what | target | measured | |\n|---|---|---|---|\n")
	for _, r := range rows {
		x, err := r.figure(measured[r.suite])
		if err != nil {
			return "", err
		}
		wanted, verdict := "", ""
		if r.target != (target{}) {
			wanted = fmt.Sprintf("%s %s %s", r.target.sign, grouped(strconv.FormatFloat(r.target.bound, 'f', -1, 64)), r.unit)
			if r.target.missedBy(x) {
				verdict = "**missed**"
			}
		}
		fmt.Fprintf(&b, "| %s %s | %s | %s %s | %s |\n", r.what, mark(r.suite), wanted, number(x), r.unit, verdict)
	}
	b.WriteByte('\n')
	for _, s := range suites {
		fmt.Fprintf(&b, "%s `%s`  \n", mark(s), s)
	}
	return b.String(), nil
}

// mark names a suite: ¹, ², …
func mark(s *suite) string {
	for i, t := range suites {
		if s == t {
			return []string{"¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹", "¹⁰", "¹¹", "¹²"}[i]
		}
	}
	return ""
}

func (r *row) figure(f figures) (float64, error) {
	x, err := r.of.best(f)
	if err != nil || r.over == (metric{}) {
		return x, err
	}
	y, err := r.over.best(f)
	return x / y, err
}

func (m metric) best(f figures) (float64, error) {
	pick := f.least
	if m.most {
		pick = f.most
	}
	x, err := pick(m.name, m.unit)
	if m.scale != 0 {
		x *= m.scale
	}
	return x, err
}

// number writes three digits.
func number(x float64) string {
	const small = 0.001 // what is less is as good as nothing here
	if x < small {
		return "< " + strconv.FormatFloat(small, 'f', -1, 64)
	}
	unit := math.Pow(10, math.Floor(math.Log10(x))-2)
	decimals := max(0, -int(math.Round(math.Log10(unit))))
	return grouped(strconv.FormatFloat(math.Round(x/unit)*unit, 'f', decimals, 64))
}

// grouped puts spaces between the thousands.
func grouped(s string) string {
	whole, _, _ := strings.Cut(s, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}
