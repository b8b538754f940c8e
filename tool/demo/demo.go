// Package demo has the six demonstration tools: small, read-only, without
// schemas, and failing in every way that a plan must survive.
//
//	set, err := tool.NewSet(demo.New()...)
//
// search(query) gives two texts; fetch(doc) measures what it is given; sum(values)
// adds exactly; flaky(key) fails retryably the first time that it sees a key in a
// run; broken(…) always fails for good and down(…) always fails retryably. A
// missing or extra argument is a tool error, and so counts as a call.
package demo

import (
	"context"
	"math/big"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/internal/number"
	"github.com/callsheet/callsheet/value"
)

// New makes the six tools. What flaky has seen is theirs alone; it is kept per
// run ([tool.Call].Run).
func New() []tool.Tool {
	f := &flaky{runs: make(map[string]map[string]bool)}
	return []tool.Tool{
		demo("search", "Two documents for a query. Args: query, any scalar.", one("query", search)),
		demo("fetch", "A document and its number of words. Args: doc, a text, list or object.", one("doc", fetch)),
		demo("sum", "The total of a list of numbers, exact. Args: values.", one("values", sum)),
		demo("flaky", "Fails the first time that it sees a key in a run, then gives ok:<key>. Args: key, any scalar.", one("key", f.call)),
		demo("broken", "Always fails for good. Any args.", func(*tool.Call, value.Value) (value.Value, error) {
			return value.Value{}, tool.Errorf("broken: this tool always fails")
		}),
		demo("down", "Always fails, and says that another try may work. Any args.", func(*tool.Call, value.Value) (value.Value, error) {
			return value.Value{}, tool.Retryable(tool.Errorf("down: this tool is never available"))
		}),
	}
}

type handler func(call *tool.Call, arg value.Value) (value.Value, error)

func demo(name, description string, h handler) tool.Tool {
	return tool.Tool{
		Declaration: tool.Declaration{
			Name: name, Description: description, Source: "demo",
			Effects: tool.Effects{ReadOnly: true, Idempotent: true},
			Args:    []tool.Arg{{Pattern: "/*", Role: tool.Neutral}},
		},
		Handler: func(_ context.Context, call *tool.Call) (value.Value, error) { return h(call, call.Args) },
	}
}

// one gives h the only argument that its tool has.
func one(name string, h handler) handler {
	return func(call *tool.Call, args value.Value) (value.Value, error) {
		arg, ok := args.Get(name)
		switch {
		case !ok:
			return value.Value{}, tool.Errorf("the argument %q is missing", name)
		case args.Len() > 1:
			extra := args.Key(0)
			if extra == name {
				extra = args.Key(1)
			}
			return value.Value{}, tool.Errorf("the argument %.80q is one too many; there is only %q", extra, name)
		}
		return h(call, arg)
	}
}

// scalar is a value as it stands inside a text: JSON, but text without quotes.
func scalar(name string, v value.Value) (string, error) {
	switch v.Kind() {
	case value.List, value.Object:
		return "", tool.Errorf("%s is an %s; it must be a scalar", name, v.Kind())
	case value.String:
		s, _ := v.Text()
		return s, nil
	}
	return v.String(), nil
}

func search(_ *tool.Call, query value.Value) (value.Value, error) {
	s, err := scalar("query", query)
	if err != nil {
		return value.Value{}, err
	}
	return value.ListOf(value.MustText(s+"-doc1"), value.MustText(s+"-doc2")), nil
}

func fetch(_ *tool.Call, doc value.Value) (value.Value, error) {
	var length int
	switch doc.Kind() {
	case value.String:
		s, _ := doc.Text()
		length = utf8.RuneCountInString(s)
	case value.List, value.Object:
		length = doc.Len()
	default:
		return value.Value{}, tool.Errorf("doc is a %s; it must be a text, a list or an object", doc.Kind())
	}
	return value.ObjectOf(
		value.Member{Key: "doc", Value: doc},
		value.Member{Key: "words", Value: value.Int(10 * int64(length))}), nil
}

func sum(_ *tool.Call, values value.Value) (value.Value, error) {
	if values.Kind() != value.List {
		return value.Value{}, tool.Errorf("values is a %s; it must be a list of numbers", values.Kind())
	}
	total := new(big.Rat)
	for i, v := range values.Elements() {
		literal, ok := v.Number()
		if !ok {
			return value.Value{}, tool.Errorf("values has a %s at %d; it must be a list of numbers", v.Kind(), i)
		}
		r, err := number.Parse(literal)
		if err != nil {
			return value.Value{}, tool.Errorf("values at %d: %v", i, err)
		}
		total.Add(total, r)
	}
	t, err := number.Text(total)
	if err != nil {
		return value.Value{}, tool.Errorf("%v", err)
	}
	return value.ObjectOf(value.Member{Key: "total", Value: t}), nil
}

const (
	// maxRuns is how many runs flaky remembers, the oldest forgotten first: a
	// server's demonstration must not grow for ever.
	maxRuns = 1000
	// maxKeys bounds one run: ten times the steps that a plan may have.
	maxKeys = 100_000
)

type flaky struct {
	mu    sync.Mutex
	runs  map[string]map[string]bool // by run and key, the key as JSON
	order []string                   // of runs, oldest first
}

func (f *flaky) call(call *tool.Call, key value.Value) (value.Value, error) {
	s, err := scalar("key", key)
	if err != nil {
		return value.Value{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := f.runs[call.Run]
	if seen == nil {
		if len(f.order) == maxRuns {
			delete(f.runs, f.order[0])
			f.order = f.order[1:]
		}
		seen = make(map[string]bool)
		f.runs[call.Run] = seen
		// The text may be a part of something large that it would keep alive.
		f.order = append(f.order, strings.Clone(call.Run))
	}
	if id := key.String(); !seen[id] {
		if len(seen) == maxKeys {
			return value.Value{}, tool.Errorf("flaky has seen %d keys in this run and takes no more", maxKeys)
		}
		seen[strings.Clone(id)] = true
		return value.Value{}, tool.Retryable(tool.Errorf("flaky: the first call with the key %.80s fails", s))
	}
	return value.MustText("ok:" + s), nil
}
