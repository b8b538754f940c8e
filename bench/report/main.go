// Command report runs the benchmarks and writes the table of
// docs/performance.md, so that no figure there is typed by hand.
//
//	go run ./bench/report
//
// It is to be run in the root of the module.
package main

import (
	"bytes"
	"fmt"
	"log"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

const page = "docs/performance.md"

// What lies between these lines of the page is this program's.
const (
	begin = "<!-- figures: written by go run ./bench/report -->\n"
	end   = "<!-- end of figures -->\n"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("report: ")
	text, err := os.ReadFile(page)
	if err != nil {
		log.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		log.Fatalf("%s: want the lines %q and %q, which enclose the figures", page, begin, end)
	}
	measured := map[*suite]figures{}
	for _, s := range suites {
		if measured[s], err = s.run(); err != nil {
			log.Fatal(err)
		}
	}
	table, err := tableOf(measured)
	if err != nil {
		log.Fatal(err)
	}
	about := fmt.Sprintf("%s, %s/%s, %d cores, %s.\n\n",
		runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), time.Now().UTC().Format(time.DateOnly))
	if err := os.WriteFile(page, []byte(head+begin+about+table+end+tail), 0o644); err != nil {
		log.Fatal(err)
	}
}

// A suite is one go test.
type suite struct {
	dir  string // of the module
	args []string
}

func (s *suite) run() (figures, error) {
	log.Print(s)
	cmd := exec.Command("go", append([]string{"test", "-run", "^$"}, s.args...)...)
	cmd.Dir, cmd.Stderr = s.dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", s, err, out)
	}
	f := figures{}
	return f, f.read(out)
}

// String is the command as it is typed in the root of the module.
func (s *suite) String() string {
	c := "go "
	if s.dir != "." {
		c += "-C " + s.dir + " "
	}
	c += "test -run '^$'"
	for _, a := range s.args {
		if strings.ContainsAny(a, "|$*") {
			a = "'" + a + "'"
		}
		c += " " + a
	}
	return c
}

// figures are what the benchmarks said: by name and unit, once for every
// time that it ran.
type figures map[figure][]float64

type figure struct{ name, unit string }

// read takes in the output of go test.
func (f figures) read(out []byte) error {
	for line := range bytes.Lines(out) {
		w := strings.Fields(string(line))
		if len(w) < 4 || !strings.HasPrefix(w[0], "Benchmark") {
			continue
		}
		name := strings.TrimPrefix(w[0], "Benchmark")
		if i := strings.LastIndexByte(name, '-'); i > 0 { // the number of cores
			name = name[:i]
		}
		for i := 2; i+1 < len(w); i += 2 {
			v, err := strconv.ParseFloat(w[i], 64)
			if err != nil {
				return fmt.Errorf("%q: %w", line, err)
			}
			k := figure{name, w[i+1]}
			f[k] = append(f[k], v)
		}
	}
	return nil
}

// most and least are the best of all times: what else a machine does only ever
// makes one worse.
func (f figures) most(name, unit string) (float64, error)  { return f.pick(name, unit, slices.Max) }
func (f figures) least(name, unit string) (float64, error) { return f.pick(name, unit, slices.Min) }

func (f figures) pick(name, unit string, pick func([]float64) float64) (float64, error) {
	all := f[figure{name, unit}]
	if len(all) == 0 {
		return 0, fmt.Errorf("no benchmark %s said anything in %s", name, unit)
	}
	return pick(all), nil
}
