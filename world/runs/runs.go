// Package runs hands over Callsheet's own runs as recordings, so that what was
// run becomes the next stage.
//
//	rec, err := episode.ReadFrom(ctx, runs.Exporter{Store: store, IDs: []string{id}}, episode.Options{})
//	a, report, err := build.Build(rec, &config, build.Options{})
package runs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/callsheet/callsheet/journal"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world/episode"
)

// An Exporter reads plan runs from a journal. Each run is an episode: an action
// where a call was begun, and its result where it ended, so that calls that
// were under way together are seen to have been. A call without a certain
// outcome has no result. What the journal withholds — secrets, and the outputs
// that feed them — stays withheld.
type Exporter struct {
	Store *journal.Store
	IDs   []string
}

var _ episode.Exporter = Exporter{}

// ErrReused is a fork that took outcomes of the run that it was forked from: its own
// calls were made in a state that its record does not show.
var ErrReused = errors.New("the run is a fork that reuses outcomes of another one, so its record does not show the state in which its calls were made; make the world of runs that made all their calls")

// Export hands over the runs in the order of their ids. A run whose journal
// holds only digests is an error: it has nothing to rehearse with. So is a
// rehearsal, and a fork that reuses outcomes.
func (x Exporter) Export(ctx context.Context, yield func(name string, episode value.Value) error) error {
	for _, id := range x.IDs {
		doc, err := x.run(ctx, id)
		if err != nil {
			return fmt.Errorf("run %s: %w", id, err)
		}
		if err := yield(id, doc); err != nil {
			return err
		}
	}
	return nil
}

func (x Exporter) run(ctx context.Context, id string) (value.Value, error) {
	sum, err := x.Store.Summary(ctx, id)
	if err != nil {
		return value.Value{}, err
	}
	if sum.Kind == record.KindRehearsal {
		return value.Value{}, record.ErrRehearsal // it would make a world of a world
	}
	var events []value.Value
	declared := value.ListOf()
	for e, err := range x.Store.Entries(ctx, id, 0) {
		if err != nil {
			return value.Value{}, err
		}
		if e.Kind == "reused" {
			return value.Value{}, ErrReused
		}
		if e.Kind != "start" && e.Kind != "intent" && e.Kind != "outcome" {
			continue
		}
		body, err := e.Body(ctx)
		if err != nil {
			return value.Value{}, err
		}
		if e.Kind == "start" {
			if ds, ok := body.Get("declared"); ok {
				declared = ds
			}
			continue
		}
		ev, err := event(e, body)
		if err != nil {
			return value.Value{}, fmt.Errorf("record %d (%s): %w", e.Index, e.Kind, err)
		}
		if !ev.IsZero() {
			events = append(events, ev)
		}
	}
	return object("id", value.MustText(id), declaredKey, declared, "events", value.ListOf(events...)), nil
}

// declaredKey is the member of an episode that holds the tools as they were.
const declaredKey = "callsheet_tools"

// Tools are the tools that recorded runs had, as they were declared then; where
// one changed, as the last episode that has it says. Episodes that are not of
// this package have none.
func Tools(eps []episode.Episode) ([]*tool.Declaration, error) {
	var decls []*tool.Declaration
	at := map[string]int{}
	for i := range eps {
		declared, _ := eps[i].Metadata.Get(declaredKey)
		for _, v := range declared.Elements() {
			definition, _ := v.Get("definition")
			d, err := tool.ParseDefinition(definition)
			if err != nil {
				return nil, fmt.Errorf("episode %s: a recorded tool: %w", eps[i].ID, err)
			}
			attempts, _ := v.Get("attempts")
			n, _ := attempts.Int()
			d.Attempts, d.Source = int(n), "recorded"
			if k, seen := at[d.Name]; seen {
				decls[k] = d
				continue
			}
			at[d.Name] = len(decls)
			decls = append(decls, d)
		}
	}
	return decls, nil
}

// event is one record as an event; no value for an outcome that says nothing.
func event(e journal.Entry, body value.Value) (value.Value, error) {
	step, _ := body.Get("step")
	attempt, _ := body.Get("attempt")
	s, _ := step.Text()
	n, _ := attempt.Int()
	// The colon is in no step's id, so no two calls have one.
	call := value.MustText(s + ":" + strconv.FormatInt(n, 10))
	at := value.MustText(e.Time.UTC().Format(time.RFC3339Nano))
	if e.Kind == "intent" {
		args, ok := body.Get("args")
		if !ok {
			return value.Value{}, fmt.Errorf("the journal holds only the digest of the args of step %s; record runs with their contents", s)
		}
		name, _ := body.Get("tool")
		return object("role", value.MustText("agent"), "kind", value.MustText("action"), "call_id", call, "timestamp", at,
			"content", object("name", name, "arguments", args)), nil
	}
	result := func(kind string, content value.Value) value.Value {
		return object("role", value.MustText("tool"), "kind", value.MustText(kind), "tool_call_id", call, "timestamp", at, "content", content,
			"metadata", object(episode.IsError, value.BoolValue(kind == "error")))
	}
	if f, ok := body.Get("failure"); ok {
		if lost, _ := f.Get("lost"); lost.Kind() == value.Bool && lost.String() == "true" {
			return value.Value{}, nil // nobody knows whether it happened
		}
		code, _ := f.Get("code")
		message, _ := f.Get("message")
		return result("error", object("code", code, "message", message)), nil
	}
	out, ok := body.Get("output")
	if !ok {
		return value.Value{}, nil // withheld
	}
	return result("observation", out), nil
}

// object is an object of alternating names and values.
func object(kv ...any) value.Value {
	ms := make([]value.Member, 0, len(kv)/2)
	for i := 0; i < len(kv); i += 2 {
		v := kv[i+1].(value.Value)
		if v.IsZero() {
			v = value.NullValue()
		}
		ms = append(ms, value.Member{Key: kv[i].(string), Value: v})
	}
	return value.ObjectOf(ms...)
}
