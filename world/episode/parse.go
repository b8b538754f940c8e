package episode

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/internal/python"
)

// A Fault is a file, or a recording, that could not be read.
type Fault struct {
	File   string
	Line   int // counted from 1; 0 when the fault has no line
	Reason string
}

// Error puts the place before the reason.
func (f *Fault) Error() string {
	if f.Line == 0 {
		return f.File + ": " + f.Reason
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Reason)
}

// SourceID is the id of a source: "src_" and the SHA-256 of its bytes.
func SourceID(data []byte) string {
	sum := sha256.Sum256(data)
	return "src_" + hex.EncodeToString(sum[:])
}

// Parse reads the episodes of one file. The name's suffix says how: .json is
// one document, .jsonl one object on each line, anything else role-prefixed
// text. The error is a [*Fault] with the line.
func Parse(name string, data []byte) ([]Episode, error) {
	return parse(name, data, func(int) {})
}

func parse(name string, data []byte, progress func(read int)) ([]Episode, error) {
	if !utf8.Valid(data) {
		at := 0
		for at < len(data) {
			r, w := utf8.DecodeRune(data[at:])
			if r == utf8.RuneError && w == 1 {
				break
			}
			at += w
		}
		line, col := value.Position(data, at)
		return nil, &Fault{name, line, fmt.Sprintf("column %d: not UTF-8; convert the file first", col)}
	}
	source := SourceID(data)
	var eps []Episode
	switch strings.ToLower(filepath.Ext(name)) {
	case ".json":
		doc, err := value.Parse(data)
		if err != nil {
			return nil, faultOf(name, 0, err)
		}
		if eps, err = fromObjects(name, documents(doc), source); err != nil {
			return nil, err
		}
	case ".jsonl", ".ndjson":
		var err error
		if eps, err = fromLines(name, data, source, progress); err != nil {
			return nil, err
		}
	default:
		if bytes.HasPrefix(data, []byte("\xef\xbb\xbf")) {
			return nil, &Fault{name, 1, "the text starts with a byte order mark; remove it"}
		}
		eps = []Episode{fromText(string(data), source)}
	}
	for i := range eps {
		eps[i].Metadata = extend(eps[i].Metadata,
			value.Member{Key: "source_sha256", Value: value.MustText(strings.TrimPrefix(source, "src_"))},
			value.Member{Key: "source_locator", Value: textOf(filepath.Base(name))})
	}
	return eps, nil
}

func faultOf(name string, line int, err error) *Fault {
	if syn, ok := err.(*value.SyntaxError); ok {
		if line == 0 {
			return &Fault{name, syn.Line, fmt.Sprintf("column %d: %s", syn.Column, syn.Reason)}
		}
		return &Fault{name, line, fmt.Sprintf("column %d: %s", syn.Column, syn.Reason)}
	}
	return &Fault{name, line, err.Error()}
}

// textOf is s as a value; a file name need not be UTF-8.
func textOf(s string) value.Value { return value.MustText(strings.ToValidUTF8(s, "\uFFFD")) }

// extend sets members of an object, replacing those of the same name in place.
func extend(obj value.Value, add ...value.Member) value.Value {
	ms := make([]value.Member, 0, obj.Len()+len(add))
	for k, m := range obj.Members() {
		ms = append(ms, value.Member{Key: k, Value: m})
	}
next:
	for _, a := range add {
		for i := range ms {
			if ms[i].Key == a.Key {
				ms[i].Value = a.Value
				continue next
			}
		}
		ms = append(ms, a)
	}
	return value.ObjectOf(ms...)
}

var itemKeys = [4]string{"events", "messages", "trajectory", "trace"}

func items(obj value.Value) (value.Value, bool) {
	for _, k := range itemKeys {
		if v, ok := obj.Get(k); ok && !v.IsNull() {
			return v, true
		}
	}
	return value.Value{}, false
}

func hasItems(obj value.Value) bool {
	for _, k := range itemKeys {
		if _, ok := obj.Get(k); ok {
			return true
		}
	}
	return false
}

// documents are the episode objects of a .json file.
func documents(doc value.Value) []value.Value {
	list := doc
	if eps, ok := doc.Get("episodes"); ok && eps.Kind() == value.List {
		list = eps
	} else if doc.Kind() != value.List || doc.Len() == 0 {
		return []value.Value{doc}
	} else {
		for _, e := range doc.Elements() {
			if !hasItems(e) {
				return []value.Value{doc}
			}
		}
	}
	out := make([]value.Value, 0, list.Len())
	for _, e := range list.Elements() {
		out = append(out, e)
	}
	return out
}

func resultKey(obj value.Value) (value.Value, bool) {
	for _, k := range [3]string{"observation", "tool_result", "environment_response"} {
		if v, ok := obj.Get(k); ok {
			return v, true
		}
	}
	return value.Value{}, false
}

var (
	agentAction = []value.Member{{Key: "actor", Value: value.MustText("agent")}, {Key: "kind", Value: value.MustText("action")}}
	envResult   = []value.Member{{Key: "actor", Value: value.MustText("environment")}, {Key: "kind", Value: value.MustText("observation")}}
)

// pair splits an item that holds an action and what came of it.
func pair(obj value.Value) (action, result value.Value, ok bool) {
	a, hasAction := obj.Get("action")
	r, hasResult := resultKey(obj)
	if !hasAction || !hasResult {
		return value.Value{}, value.Value{}, false
	}
	with := func(ms []value.Member, content value.Value) value.Value {
		return value.ObjectOf(ms[0], ms[1], value.Member{Key: "content", Value: content})
	}
	return with(agentAction, a), with(envResult, r), true
}

// fromObject reads one episode object (spec/world-reference.md §6).
func fromObject(obj value.Value, source string, ordinal int) (Episode, error) {
	var list []value.Value
	meta := value.ObjectOf()
	switch obj.Kind() {
	case value.List:
		for _, e := range obj.Elements() {
			list = append(list, e)
		}
	case value.Object:
		if its, ok := items(obj); ok {
			if its.Kind() != value.List {
				return Episode{}, fmt.Errorf("episode %d: its events must be a list, not %s", ordinal, its.Kind())
			}
			for _, e := range its.Elements() {
				list = append(list, e)
			}
		} else if a, r, ok := pair(obj); ok {
			list = []value.Value{a, r}
		} else {
			list = []value.Value{obj}
		}
		var ms []value.Member
		for k, m := range obj.Members() {
			if k != "events" && k != "messages" && k != "trajectory" && k != "trace" {
				ms = append(ms, value.Member{Key: k, Value: m})
			}
		}
		meta = value.ObjectOf(ms...)
	default:
		list = []value.Value{obj}
	}
	original, ok := meta.Get("episode_id")
	if !ok {
		if original, ok = meta.Get("id"); !ok {
			original = value.NullValue()
		}
	}
	e := Episode{ID: world.ID("ep", value.MustText(source), value.Int(int64(ordinal)), original), SourceID: source}
	e.Metadata = extend(meta, value.Member{Key: "original_episode_id", Value: original})
	id := value.MustText(e.ID)
	e.Events = make([]Event, 0, len(list))
	for i, item := range list {
		if item.Kind() != value.Object {
			e.Events = append(e.Events, Event{ID: world.ID("evt", id, value.Int(int64(i)), item), Actor: NoActor, Kind: Message,
				Content: item, Metadata: value.ObjectOf(), RawPayload: value.NullValue()})
			continue
		}
		if a, r, ok := pair(item); ok {
			e.Events = appendEvents(e.Events, a, id, 2*i)
			e.Events = appendEvents(e.Events, r, id, 2*i+1)
			continue
		}
		if call, ok := rpcItem(item); ok {
			e.Events = append(e.Events, rpcEvent(item, call, id, i))
			continue
		}
		e.Events = appendEvents(e.Events, item, id, i)
	}
	return e, nil
}

func lower(obj value.Value, keys ...string) string {
	for _, k := range keys {
		if v, ok := obj.Get(k); ok {
			return strings.ToLower(python.Str(v))
		}
	}
	return ""
}

func actorOf(role string) Actor {
	switch role {
	case "human", "user":
		return User
	case "assistant", "agent":
		return Agent
	case "environment", "observation":
		return Environment
	case "tool":
		return Tool
	case "system":
		return System
	}
	return NoActor
}

// appendEvents reads an event object. A message with several tool calls gives
// one action for each of them.
func appendEvents(evs []Event, item, episode value.Value, index int) []Event {
	actor := actorOf(lower(item, "role", "actor", "source"))
	original, ok := item.Get("id")
	if !ok {
		original = value.NullValue()
	}
	content := item
	for _, k := range [3]string{"content", "text", "value"} {
		if v, ok := item.Get(k); ok {
			content = v
			break
		}
	}
	ev := Event{ID: world.ID("evt", episode, value.Int(int64(index)), original, item), Actor: actor, RawPayload: item}
	meta := value.ObjectOf()
	if m, ok := item.Get("metadata"); ok && m.Kind() == value.Object {
		meta = m
	}
	var buf [8]value.Member
	add := append(buf[:0], value.Member{Key: "original_event_id", Value: original})
	for _, k := range [3]string{"tool_call_id", "call_id", "name"} {
		if v, ok := item.Get(k); ok {
			add = append(add, value.Member{Key: k, Value: v})
		}
	}
	if ts, ok := item.Get("timestamp"); ok && !ts.IsNull() {
		if iso, ok := isoTime(ts); ok {
			ev.Timestamp = &iso
		} else {
			add = append(add, value.Member{Key: "raw_timestamp", Value: ts})
		}
	}
	ev.Metadata = extend(meta, add...)
	calls, hasCalls := item.Get("tool_calls")
	hasCalls = hasCalls && calls.Kind() == value.List && calls.Len() > 0
	action, hasAction := item.Get("action")
	hasAction = hasAction && !action.IsNull()
	ev.Content = content
	switch kind := lower(item, "kind", "type"); {
	case isKind(kind):
		ev.Kind = Kind(kind)
	case kind == "tool_call" || kind == "function_call" || kind == "command" || kind == "input" || kind == "request":
		ev.Kind = Action
	case kind == "tool_result" || kind == "function_result" || kind == "output" || kind == "response" || kind == "result":
		ev.Kind = Observation
	case actor == Tool || actor == Environment:
		ev.Kind = Observation
	case hasCalls || hasAction:
		ev.Kind = Action
		if hasAction {
			ev.Content = action
		}
	case actor == Agent && looksLikeAction(content):
		ev.Kind = Action
	default:
		ev.Kind = Message
	}
	if !hasCalls {
		return append(evs, ev)
	}
	for i, call := range calls.Elements() {
		callID, ok := call.Get("id")
		if !ok {
			callID = value.NullValue()
		}
		evs = append(evs, Event{
			ID: fmt.Sprintf("%s_call_%d", ev.ID, i), Actor: Agent, Kind: Action, Content: call, Timestamp: ev.Timestamp, RawPayload: call,
			Metadata: extend(ev.Metadata,
				value.Member{Key: "parent_event_id", Value: value.MustText(ev.ID)},
				value.Member{Key: "call_id", Value: callID},
				value.Member{Key: "batch_size", Value: value.Int(int64(calls.Len()))}),
		})
	}
	return evs
}

func looksLikeAction(content value.Value) bool {
	if content.Kind() == value.Object {
		for _, k := range [4]string{"action", "tool", "command", "arguments"} {
			if _, ok := content.Get(k); ok {
				return true
			}
		}
		return false
	}
	s, ok := content.Text()
	if !ok {
		return false
	}
	s = strings.TrimLeftFunc(s, unicode.IsSpace)
	for _, word := range [3]string{"action", "tool", "command"} {
		if len(s) > len(word) && strings.EqualFold(s[:len(word)], word) &&
			strings.HasPrefix(strings.TrimLeftFunc(s[len(word):], unicode.IsSpace), ":") {
			return true
		}
	}
	return false
}

// isoTime reads a time as people and programs write it; a number counts seconds
// since 1970, or milliseconds when it is too large for that.
func isoTime(v value.Value) (string, bool) {
	if s, ok := v.Text(); ok {
		for _, layout := range [4]string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999"} {
			if _, err := time.Parse(layout, s); err == nil {
				return strings.Replace(s, " ", "T", 1), true
			}
		}
		return "", false
	}
	n, ok := v.Int()
	if !ok {
		return "", false
	}
	const millisAbove = 20_000_000_000 // seconds in the year 2603
	t := time.Unix(n, 0)
	if n > millisAbove || n < -millisAbove {
		t = time.UnixMilli(n)
	}
	if y := t.UTC().Year(); y < 1 || y > 9999 {
		return "", false
	}
	return t.UTC().Format(time.RFC3339Nano), true
}
