package tool_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

type transfer struct {
	To     string `json:"to" jsonschema:"who gets it"`
	Amount int64  `json:"amount"`
	Note   string `json:"note,omitempty"`
}

type receipt struct {
	ID    int64       `json:"id"`
	Extra value.Value `json:"extra"`
}

func transferTool(t testing.TB) tool.Tool {
	tl, err := tool.Func("transfer", "Sends money.", func(_ context.Context, in transfer) (receipt, error) {
		switch in.To {
		case "busy":
			return receipt{}, tool.Retryable(errors.New("try again"))
		case "nobody":
			return receipt{}, fmt.Errorf("no account %q", in.To)
		}
		return receipt{9007199254740993, value.MustParse(`{"n":1e400}`)}, nil
	}, tool.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

func TestFunc(t *testing.T) {
	tl := transferTool(t)
	if tl.Effects != tool.Undeclared() || tl.Source != "go" {
		t.Errorf("got %+v, want the worst effects", tl.Declaration)
	}
	for _, tt := range []struct{ args, want string }{
		{`{"to":"a","amount":1}`, `{"id":9007199254740993,"extra":{"n":1e400}}`},
		{`{"to":"a","amount":5.0}`, `{"id":9007199254740993,"extra":{"n":1e400}}`},
		{`{"to":"a","amount":1E2,"note":"x"}`, `{"id":9007199254740993,"extra":{"n":1e400}}`},
		{`{"to":"a"}`, `invalid_args: missing property "amount"`},
		{`{"To":"a","to":"b","amount":1}`, `invalid_args: /To: property "To" is not declared; the schema has "amount", "note", "to"`},
		{`{"to":"a","amount":1.5}`, `invalid_args: /amount: property "amount" is the number 1.5, the schema says integer`},
		{`{"to":"busy","amount":1}`, `try again`},
		{`{"to":"nobody","amount":1}`, `no account "nobody"`},
	} {
		args := value.MustParse(tt.args)
		var out value.Value
		f := tl.CheckArgs(args)
		if f == nil {
			var err error
			if out, err = tl.Handler(context.Background(), &tool.Call{Args: args}); err != nil {
				f = tool.AsFailure(err)
			} else {
				f = tl.CheckOutput(out)
			}
		}
		got := out.String()
		if f != nil {
			got = f.Error()
		}
		if got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.args, got, tt.want)
		}
	}
}

// What the schema cannot say is still refused, not rounded or cut.
func TestFuncDecodesStrictly(t *testing.T) {
	tl := transferTool(t)
	for _, args := range []string{
		`{"to":"a","amount":9223372036854775808}`, `{"to":"a","amount":1e400000000}`, `{"to":"a","amount":1,"bcc":1}`, `{"TO":"a","amount":1}`,
		`{"to":"a","amount":9223372036854775807.0000000000000000001}`,
	} {
		_, err := tl.Handler(context.Background(), &tool.Call{Args: value.MustParse(args)})
		if f := tool.AsFailure(err); f.Code != tool.CodeInvalidArgs {
			t.Errorf("%s: got %v, want invalid_args", args, err)
		}
	}
}

func TestHostile018_NotFinite(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		tl, err := tool.Func("f", "", func(context.Context, struct{}) (map[string]float64, error) { return map[string]float64{"x": x}, nil }, tool.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = tl.Handler(context.Background(), &tool.Call{Args: value.MustParse(`{}`)})
		if f := tool.AsFailure(err); f.Code != tool.CodeToolError || f.Retryable {
			t.Errorf("%v: got %v, want a tool_error for good", x, err)
		}
		if _, err := value.Parse(fmt.Sprintf(`{"x": %v}`, x)); err == nil {
			t.Errorf("%v parses as JSON", x)
		}
	}
}

func TestFuncOptions(t *testing.T) {
	tl, err := tool.Func("any", "", func(_ context.Context, in value.Value) (value.Value, error) { return in, nil }, tool.Options{
		Effects: new(tool.Effects{ReadOnly: true}), Input: schema.MustCompile(`{"required":["x"]}`), Attempts: 1, Source: "plug-in",
	})
	if err != nil {
		t.Fatal(err)
	}
	if !tl.Effects.ReadOnly || tl.MaxAttempts() != 1 || tl.Source != "plug-in" || tl.CheckArgs(value.MustParse(`{}`)) == nil {
		t.Errorf("got %+v", tl.Declaration)
	}
	if out, err := tl.Handler(context.Background(), &tool.Call{Args: value.MustParse(`{"x":1.0}`)}); err != nil || out.String() != `{"x":1.0}` {
		t.Errorf("got %v, %v", out, err)
	}
	if _, err := tool.Func("bad", "", func(context.Context, struct{ C chan int }) (int, error) { return 0, nil }, tool.Options{}); err == nil {
		t.Error("a channel has a schema")
	}
}

func ExampleFunc() {
	type In struct {
		City string `json:"city" jsonschema:"name of the city"`
	}
	type Out struct {
		Celsius float64 `json:"celsius"`
	}
	weather, err := tool.Func("weather", "The weather in a city.", func(_ context.Context, in In) (Out, error) {
		if in.City == "" {
			return Out{}, tool.Errorf("no city")
		}
		return Out{21.5}, nil
	}, tool.Options{Effects: new(tool.Effects{ReadOnly: true})})
	if err != nil {
		panic(err)
	}
	set, err := tool.NewSet(weather)
	if err != nil {
		panic(err)
	}
	fmt.Println(set.Catalogue().Get("weather").CheckArgs(value.MustParse(`{"town": "Oslo"}`)))
	out, err := weather.Handler(context.Background(), &tool.Call{Args: value.MustParse(`{"city": "Oslo"}`)})
	fmt.Println(out, err)
	// Output:
	// invalid_args: missing property "city"; /town: property "town" is not declared; the schema has "city"
	// {"celsius":21.5} <nil>
}

func TestFuncRefusesWhatCannotWork(t *testing.T) {
	fine := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	bad := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	_, err := tool.Func[transfer, int]("x", "", nil, tool.Options{})
	bad(err, "the function is nil")
	_, err = tool.Func("x", "", func(context.Context, int) (int, error) { return 0, nil }, tool.Options{})
	bad(err, "args are an object, and int is not read from one")
	_, err = tool.Func("x", "", func(context.Context, []string) (int, error) { return 0, nil }, tool.Options{})
	bad(err, "args are an object")
	_, err = tool.Func("x", "", func(context.Context, chan int) (int, error) { return 0, nil }, tool.Options{})
	bad(err, "args are an object")
	_, err = tool.Func("x", "", func(context.Context, *transfer) (int, error) { return 0, nil }, tool.Options{})
	fine(err)
	_, err = tool.Func("x", "", func(context.Context, map[string]int) (int, error) { return 0, nil }, tool.Options{})
	fine(err)
	_, err = tool.Func("x", "", func(context.Context, value.Value) (int, error) { return 0, nil }, tool.Options{})
	fine(err)
	_, err = tool.Func("x", "", func(context.Context, any) (int, error) { return 0, nil }, tool.Options{})
	fine(err)
}
