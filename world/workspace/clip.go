package workspace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/callsheet/callsheet/world/session"
	"github.com/callsheet/callsheet/world/state"
)

// clipText keeps the first n characters, and says how many were cut. n of 0 or
// less keeps all.
func clipText(s string, n int) string {
	if n <= 0 || len(s) <= n {
		return s
	}
	total := python.Runes(s)
	if total <= n {
		return s
	}
	return python.Slice(s, 0, n) + fmt.Sprintf("\n... [truncated %d characters]", total-n)
}

// ClipSpan keeps the beginning and the end of a text, n characters in all, and
// says how the middle can be read. turn is the turn's number, or below 0.
func ClipSpan(s string, n int, turn int64) string {
	if n <= 0 || len(s) <= n {
		return s
	}
	total := python.Runes(s)
	if total <= n {
		return s
	}
	head := n * 3 / 4
	hint := "read_turn"
	if turn >= 0 {
		hint = fmt.Sprintf("read_turn(turn=%d, offset=%d)", turn, head)
	}
	return fmt.Sprintf("%s\n[... %d characters omitted; %s shows them ...]\n%s",
		python.Slice(s, 0, head), total-n, hint, python.Slice(s, total-(n-head), total))
}

// clip shortens every string in v.
func clip(v value.Value, n int) value.Value {
	if n <= 0 {
		return v
	}
	return agent.Clip(v, n)
}

// CompactAction is an action without copies of itself: the raw form, and
// keystrokes that a command repeats.
func CompactAction(a world.Action) value.Value {
	args := a.Arguments
	_, commands := args.Get("commands")
	_, command := args.Get("command")
	if strokes, ok := args.Get("keystrokes"); ok && (commands || command) {
		ms := make([]value.Member, 0, args.Len())
		for k, m := range args.Members() {
			if k != "keystrokes" {
				ms = append(ms, value.Member{Key: k, Value: m})
			}
		}
		if strokes.Kind() == value.List {
			total := 0.0
			for _, e := range strokes.Elements() {
				d, _ := e.Get("duration")
				lit, _ := d.Number()
				f, err := strconv.ParseFloat(lit, 64)
				if err == nil {
					total += f
				}
			}
			rounded, err := strconv.ParseFloat(strconv.FormatFloat(total, 'f', 3, 64), 64)
			if v, perr := value.Parse(python.Float(rounded)); err == nil && perr == nil {
				ms = append(ms, value.Member{Key: "duration_total", Value: v})
			}
		}
		args = value.ObjectOf(ms...)
	}
	return obj("type", a.Type, "arguments", args)
}

// Bounds of a diff.
const (
	maxChanges = 50
	changeText = 300 // characters of one side
)

// Diff says what differs between two states: dotted paths of leaves, sorted,
// each with what it was and is. The revision is left out.
func Diff(before, after state.State) value.Value {
	old, now := leaves(before.Value()), leaves(after.Value())
	paths := make([]string, 0, len(old))
	for p := range old {
		paths = append(paths, p)
	}
	for p := range now {
		if _, ok := old[p]; !ok {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	absent := value.MustText("<absent>")
	var ms []value.Member
	for _, p := range paths {
		was, had := old[p]
		is, has := now[p]
		if strings.HasPrefix(p, "revision") || had && has && python.Equal(was, is) {
			continue
		}
		b, a := absent, absent
		if had {
			b = clip(was, changeText)
		}
		if has {
			a = clip(is, changeText)
		}
		ms = append(ms, value.Member{Key: p, Value: obj("before", b, "after", a)})
		if len(ms) >= maxChanges {
			ms = append(ms, value.Member{Key: "...", Value: value.MustText("further changes omitted")})
			break
		}
	}
	return value.ObjectOf(ms...)
}

// leaves are everything in v that is no object, by dotted path.
func leaves(v value.Value) map[string]value.Value {
	out := map[string]value.Value{}
	var walk func(v value.Value, at string)
	walk = func(v value.Value, at string) {
		if v.Kind() != value.Object {
			out[at] = v
			return
		}
		for k, m := range v.Members() {
			if at != "" {
				k = at + "." + k
			}
			walk(m, k)
		}
	}
	walk(v, "")
	return out
}

// Summary is a state with its texts clipped to n characters.
func Summary(s state.State, n int) value.Value {
	kv := []any{"step", s.Step, "revision", s.Revision, "pending_events", len(s.Pending())}
	for _, name := range world.Namespaces {
		kv = append(kv, name, clip(s.Namespace(name), n))
	}
	return obj(kv...)
}

func moreOfTurn(n int, turn int64, offset int) string {
	return fmt.Sprintf("\n[... %d more characters; read_turn(turn=%d, offset=%d) ...]", n, turn, offset)
}

func memoryID(e *session.Entry) string { return "memory:" + strconv.FormatInt(e.ID, 10) }
