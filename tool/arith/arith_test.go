package arith_test

import (
	"bufio"
	"context"
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/arith"
	"github.com/callsheet/callsheet/value"
)

func newSet(t testing.TB) *tool.Set {
	set, err := tool.NewSet(arith.New()...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// call goes through the judgements that a run makes.
func call(set *tool.Set, name string, args value.Value) (value.Value, error) {
	d := set.Catalogue().Get(name)
	if d == nil {
		return value.Value{}, fmt.Errorf("no tool %q", name)
	}
	if f := d.CheckArgs(args); f != nil {
		return value.Value{}, f
	}
	out, err := set.Handler(name)(context.Background(), &tool.Call{Args: args})
	if err != nil {
		return out, err
	}
	if f := d.CheckOutput(out); f != nil {
		return out, f
	}
	return out, nil
}

func get(v value.Value, key string) value.Value { m, _ := v.Get(key); return m }

// Every plan of NESTFUL that uses only these tools gives its gold answer, after
// rounding to the digits that the gold answer has.
func TestNestful(t *testing.T) {
	f, err := os.Open("testdata/nestful.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	set := newSet(t)
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	rows := 0
	for lines.Scan() {
		row, err := value.Parse(lines.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		rows++
		id := get(row, "sample_id").String()
		outputs := make(map[string]value.Value)
		var last value.Value
		for _, step := range get(row, "plan").Elements() {
			tpl := value.NewTemplate(get(step, "args"), func(_, text string) value.Answer {
				if name, path, ok := strings.Cut(strings.TrimPrefix(text, "$"), "."); ok && text[0] == '$' {
					v, err := outputs[name].Lookup(path)
					if err != nil {
						t.Fatalf("%s: %v", id, err)
					}
					return value.Answer{Literal: v}
				}
				return value.Answer{}
			})
			name, _ := get(step, "tool").Text()
			out, err := call(set, name, tpl.Fill(nil))
			if err != nil {
				t.Fatalf("%s: %s: %v", id, name, err)
			}
			key, _ := get(get(row, "output_params"), name).Text()
			if last = get(out, key); last.IsZero() {
				t.Fatalf("%s: %s: output %v has no %q", id, name, out, key)
			}
			stepID, _ := get(step, "id").Text()
			outputs[stepID] = out
		}
		gold := get(row, "gold_answer").String()
		_, decimals, _ := strings.Cut(gold, ".")
		if got := ratOf(last.String()).FloatString(len(decimals)); got != ratOf(gold).FloatString(len(decimals)) {
			t.Errorf("%s: got %s, want %s", id, last, gold)
		}
	}
	if err := lines.Err(); err != nil || rows != 155 {
		t.Errorf("%d rows, want 155; %v", rows, err)
	}
}

func ratOf(s string) *big.Rat { r, _ := new(big.Rat).SetString(s); return r }

func TestOperations(t *testing.T) {
	set := newSet(t)
	if got := len(set.Catalogue().All()); got != 20 {
		t.Errorf("%d tools, want 20", got)
	}
	for _, tt := range []struct{ tool, args, want string }{
		{"add", `{"arg_0":9007199254740993,"arg_1":1}`, "9007199254740994"},
		{"add", `{"arg_0":0.1,"arg_1":0.2}`, "0.30000000000000004"},
		{"add", `{"arg_0":1.0,"arg_1":1E2}`, "101"},
		{"subtract", `{"arg_1":1,"arg_0":10}`, "9"},
		{"subtract", `{"whole":10,"part":1}`, "9"},
		{"multiply", `{"arg_0":99999999999999999999,"arg_1":99999999999999999999}`, "9999999999999999999800000000000000000001"},
		{"divide", `{"arg_0":1,"arg_1":8}`, "0.125"},
		{"divide", `{"arg_0":7,"arg_1":15}`, "0.4666666666666667"},
		{"divide", `{"arg_0":6,"arg_1":3}`, "2"},
		{"divide", `{"arg_0":1,"arg_1":0}`, "division by zero"},
		{"divide", `{"arg_0":1.5,"arg_1":0.0}`, "division by zero"},
		{"speed", `{"arg_0":100,"arg_1":8}`, "12.5"},
		{"inverse", `{"arg_0":4}`, "0.25"},
		{"inverse", `{"arg_0":0}`, "division by zero"},
		{"negate", `{"arg_0":-3}`, "3"},
		{"floor", `{"arg_0":-2.5}`, "-3"},
		{"floor", `{"arg_0":-0.0}`, "0"},
		{"reminder", `{"arg_0":-7,"arg_1":3}`, "2"},
		{"reminder", `{"arg_0":7,"arg_1":-3}`, "-2"},
		{"reminder", `{"arg_0":7.5,"arg_1":-2}`, "-0.5"},
		{"power", `{"arg_0":2,"arg_1":100}`, "1267650600228229401496703205376"},
		{"power", `{"arg_0":2,"arg_1":-2}`, "0.25"},
		{"power", `{"arg_0":-1,"arg_1":99999999999999999999}`, "-1"},
		{"power", `{"arg_0":0,"arg_1":0}`, "1"},
		{"power", `{"arg_0":0,"arg_1":-1}`, "division by zero"},
		{"power", `{"arg_0":4,"arg_1":0.5}`, "2"},
		{"power", `{"arg_0":-8,"arg_1":0.5}`, "the result is not a finite number"},
		{"sqrt", `{"arg_0":99}`, "9"},
		{"sqrt", `{"arg_0":10.9}`, "3"},
		{"sqrt", `{"arg_0":-1}`, "the number is negative, and its root is not real"},
		{"gcd", `{"arg_0":-12,"arg_1":18}`, "6"},
		{"gcd", `{"arg_0":1.5,"arg_1":18}`, "gcd is defined for integers only"},
		{"lcm", `{"arg_0":4,"arg_1":-6}`, "12"},
		{"lcm", `{"arg_0":0,"arg_1":6}`, "0"},
		{"factorial", `{"arg_0":20}`, "2432902008176640000"},
		{"factorial", `{"arg_0":0}`, "1"},
		{"factorial", `{"arg_0":-1}`, "the factorial of a negative number is not defined"},
		{"choose", `{"arg_0":52,"arg_1":5}`, "2598960"},
		{"choose", `{"arg_0":5,"arg_1":6}`, "0"},
		{"square_area", `{"arg_0":1.5}`, "2.25"},
		{"square_perimeter", `{"arg_0":2.5}`, "10"},
		{"square_edge_by_area", `{"arg_0":144}`, "12"},
		{"square_edge_by_area", `{"arg_0":2}`, "1.4142135623730951"},
		{"rectangle_area", `{"arg_0":3,"arg_1":4}`, "12"},
		{"circle_area", `{"arg_0":1}`, "3.141592653589793"},
	} {
		out, err := call(set, tt.tool, value.MustParse(tt.args))
		got := get(out, "result").String()
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s%s: got %s, want %s", tt.tool, tt.args, got, tt.want)
		}
	}
}

// Small texts that stand for huge numbers end as tool errors at once.
func TestHostile017_HugeArithmetic(t *testing.T) {
	set := newSet(t)
	for _, tt := range []struct{ tool, args string }{
		{"add", `{"arg_0":1e400000000,"arg_1":1}`},
		{"multiply", `{"arg_0":1e-400000000,"arg_1":1}`},
		{"add", `{"arg_0":1e99999999999999999999,"arg_1":1}`},
		{"power", `{"arg_0":10,"arg_1":1000000000}`},
		{"power", `{"arg_0":2,"arg_1":99999999999999999999}`},
		{"power", `{"arg_0":2,"arg_1":-99999999999999999999}`},
		{"multiply", `{"arg_0":1e300,"arg_1":1e300}`},
		{"multiply", `{"arg_0":1.5e300,"arg_1":1.7e-300,"x":1}`},
		{"factorial", `{"arg_0":1000000000}`},
		{"factorial", `{"arg_0":1e300}`},
		{"choose", `{"arg_0":1e300,"arg_1":1e299}`},
		{"choose", `{"arg_0":100000,"arg_1":50000}`},
		{"square_area", `{"arg_0":1e399}`},
	} {
		if out, err := call(set, tt.tool, value.MustParse(tt.args)); err == nil {
			t.Errorf("%s%s: got %v, want a failure", tt.tool, tt.args, out)
		}
	}
	// What is below the bound is exact.
	out, err := call(set, "add", value.MustParse(`{"arg_0":1e400,"arg_1":1}`))
	if want := "1" + strings.Repeat("0", 399) + "1"; err != nil || get(out, "result").String() != want {
		t.Errorf("1e400 + 1: got %v, %v", out, err)
	}
}

func ExampleNew() {
	set, _ := tool.NewSet(arith.New()...)
	out, _ := set.Handler("multiply")(context.Background(), &tool.Call{Args: value.MustParse(`{"arg_0": 49, "arg_1": 16}`)})
	fmt.Println(out)
	// Output: {"result":784}
}
