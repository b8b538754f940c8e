package episode

import (
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/internal/python"
)

// rpcItem finds the JSON-RPC message in a line of an MCP client's log: the line
// itself, or a member of it, as most clients wrap it with a time and a
// direction.
func rpcItem(item value.Value) (rpc value.Value, ok bool) {
	if v, ok := item.Get("jsonrpc"); ok && v.Kind() == value.String {
		return item, true
	}
	for _, k := range [...]string{"message", "payload", "data", "rpc", "msg"} {
		if m, ok := item.Get(k); ok {
			if v, ok := m.Get("jsonrpc"); ok && v.Kind() == value.String {
				return m, true
			}
		}
	}
	return value.Value{}, false
}

// rpcEvent reads a JSON-RPC message: a tools/call is an action that waits under
// its id, a result or an error is what came back for an id, and everything else
// is kept as meta. Which request a reply answers is decided by the id when the
// episode is segmented.
func rpcEvent(item, rpc, episode value.Value, index int) Event {
	original, ok := rpc.Get("id")
	if !ok {
		original = value.NullValue()
	}
	ev := Event{ID: world.ID("evt", episode, value.Int(int64(index)), original, item), Actor: NoActor, Kind: Meta, Content: rpc, RawPayload: item}
	meta := []value.Member{{Key: "original_event_id", Value: original}}
	link := func(key string) {
		if original.Kind() == value.String || original.Kind() == value.Number {
			// 1 and "1" are different ids in JSON-RPC.
			meta = append(meta, value.Member{Key: key, Value: value.MustText("rpc:" + original.String())})
		}
	}
	method, _ := rpc.Get("method")
	name, _ := method.Text()
	result, isResult := rpc.Get("result")
	fault, isError := rpc.Get("error")
	switch {
	case name == "tools/call":
		ev.Actor, ev.Kind = Agent, Action
		if p, ok := rpc.Get("params"); ok {
			ev.Content = p
		}
		link("call_id")
	case name != "":
		meta = append(meta, value.Member{Key: "method", Value: method})
	case isResult:
		ev.Content = result
		link("tool_call_id")
		if isToolResult(result) {
			ev.Actor, ev.Kind = Tool, Observation
			if failed, _ := result.Get("isError"); python.Equal(failed, value.BoolValue(true)) {
				ev.Kind = Error
			}
		}
	case isError:
		ev.Actor, ev.Kind, ev.Content = Tool, Error, fault
		link("tool_call_id")
	}
	for _, k := range [...]string{"timestamp", "time", "ts"} {
		if ts, ok := item.Get(k); ok {
			if iso, ok := isoTime(ts); ok {
				ev.Timestamp = &iso
			} else {
				meta = append(meta, value.Member{Key: "raw_timestamp", Value: ts})
			}
			break
		}
	}
	ev.Metadata = value.ObjectOf(meta...)
	return ev
}

// isToolResult tells the result of a tools/call from that of another request:
// a list of content, or structured content.
func isToolResult(result value.Value) bool {
	if c, ok := result.Get("content"); ok && c.Kind() == value.List {
		return true
	}
	_, ok := result.Get("structuredContent")
	return ok
}
