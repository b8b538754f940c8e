package episode

import (
	"slices"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
	"github.com/callsheet/callsheet/world/internal/python"
)

// Bounds of [Segment].
const (
	MaxHistory    = 20    // events before an action that its slice lists, as the format's default
	MaxConcurrent = 1_000 // concurrent calls that one slice lists; unanswered calls would otherwise cost the square of their number
)

const (
	duplicateID    = "Duplicate call ID prevents unambiguous result matching."
	overlapping    = "Overlapping calls: result attribution does not establish mutation order."
	uncorrelated   = "Concurrent calls have no correlation IDs; outputs remain unassigned."
	noObservation  = "No unambiguous observation is available for this action."
	moreConcurrent = "More calls are concurrent than are listed."
)

// callID is the id under which an action waits for its result, "" without one.
func callID(e *Event) string {
	v, ok := e.Meta("call_id")
	if !ok {
		return ""
	}
	switch v.Kind() {
	case value.Null:
		return ""
	case value.Bool, value.Number:
		if python.Equal(v, value.Int(0)) {
			return ""
		}
	case value.List, value.Object:
		if v.Len() == 0 {
			return ""
		}
	}
	return python.Str(v)
}

// replyID is the id of the call that a result answers; ok is false when the
// result names none.
func replyID(e *Event) (string, bool) {
	for _, key := range [2]string{"tool_call_id", "call_id"} {
		if v, ok := e.Meta(key); ok {
			return python.Str(v), true
		}
	}
	return "", false
}

func truthy(e *Event, key string) bool {
	v, ok := e.Meta(key)
	if !ok || v.IsNull() {
		return false
	}
	s, isText := v.Text()
	return !isText || s != ""
}

// Segment cuts an episode into one slice for each action. With a call id the
// results are the later ones that name it; without, those before the next
// action that name no call at all. What remains open is said in Ambiguities.
func Segment(e *Episode, history int) []Slice {
	evs := e.Events
	var actions []int
	calls := map[string]int{}      // how often a call id is used
	replies := map[string][]int{}  // results by the call they name
	siblings := map[string][]int{} // actions by their common message
	for i := range evs {
		ev := &evs[i]
		if ev.Kind == Action {
			actions = append(actions, i)
			if id := callID(ev); id != "" {
				calls[id]++
			}
			if p, ok := ev.Meta("parent_event_id"); ok {
				siblings[python.Str(p)] = append(siblings[python.Str(p)], i)
			}
		}
		if ev.IsResult() {
			if id, ok := replyID(ev); ok {
				replies[id] = append(replies[id], i)
			}
		}
	}
	out := make([]Slice, 0, len(actions))
	var pending []int // earlier actions with a call id, in order, whose last reply has not been passed
	dropped := 0      // those beyond the bound
	for n, at := range actions {
		ev := &evs[at]
		end := len(evs)
		if n+1 < len(actions) {
			end = actions[n+1]
		}
		s := Slice{EpisodeID: e.ID, Actions: []string{ev.ID}, Alignment: Sequential, action: at}
		id := callID(ev)
		near := overlap{at: at}
		switch {
		case id != "":
			s.Alignment = Correlated
			s.resultIndexes = after(replies[id], at)
			if calls[id] != 1 {
				s.resultIndexes = nil
				s.Ambiguities = append(s.Ambiguities, duplicateID)
			}
			if k := len(s.resultIndexes); k > 0 {
				later := actions[n+1:]
				k, _ := slices.BinarySearch(later, s.resultIndexes[k-1])
				near.add(later[:k])
			}
			pending = slices.DeleteFunc(pending, func(a int) bool {
				r := after(replies[callID(&evs[a])], a)
				return len(r) > 0 && r[len(r)-1] <= at
			})
			near.add(pending)
			near.more += dropped
			if p, ok := ev.Meta("parent_event_id"); ok && !p.IsNull() {
				near.add(siblings[python.Str(p)])
			}
			if len(near.list) > 0 {
				s.Ambiguities = append(s.Ambiguities, overlapping)
			}
			if len(pending) < MaxConcurrent {
				pending = append(pending, at)
			} else {
				dropped++
			}
		case batchSize(ev) > 1:
			s.Ambiguities = append(s.Ambiguities, uncorrelated)
		default:
			for i := at + 1; i < end; i++ {
				if evs[i].IsResult() && !truthy(&evs[i], "tool_call_id") && !truthy(&evs[i], "call_id") {
					s.resultIndexes = append(s.resultIndexes, i)
				}
			}
		}
		for _, i := range s.resultIndexes {
			s.Results = append(s.Results, evs[i].ID)
			if i >= end {
				s.Delayed = append(s.Delayed, evs[i].ID)
			}
		}
		if len(s.Results) == 0 {
			s.Alignment = Ambiguous
			s.Ambiguities = append(s.Ambiguities, noObservation)
		}
		for _, a := range near.list {
			s.Concurrent = append(s.Concurrent, evs[a].ID)
		}
		if near.more > 0 {
			s.Ambiguities = append(s.Ambiguities, moreConcurrent)
		}
		for i := max(0, at-history); i < at; i++ {
			s.History = append(s.History, evs[i].ID)
		}
		s.ID = world.ID("tr", value.MustText(e.ID), world.Texts(s.Actions...), world.Texts(s.Results...))
		out = append(out, s)
	}
	return out
}

// after are the indexes above at; they are sorted.
func after(sorted []int, at int) []int {
	i, _ := slices.BinarySearch(sorted, at+1)
	return sorted[i:]
}

func batchSize(e *Event) int64 {
	v, ok := e.Meta("batch_size")
	if !ok {
		return 1
	}
	n, _ := v.Int()
	return n
}

// overlap collects the calls that were under way together with one, once each.
type overlap struct {
	at   int
	list []int
	seen map[int]bool
	more int // what the bound kept out, about
}

func (o *overlap) add(actions []int) {
	for k, a := range actions {
		if len(o.list) == MaxConcurrent {
			o.more += len(actions) - k
			return
		}
		if a == o.at || o.seen[a] {
			continue
		}
		if o.seen == nil {
			o.seen = map[int]bool{}
		}
		o.seen[a] = true
		o.list = append(o.list, a)
	}
}

// ActionOf returns the event of the slice's action in the episode it was cut
// from.
func (s *Slice) ActionOf(e *Episode) *Event { return &e.Events[s.action] }

// ResultsOf returns the events of the slice's results, in order.
func (s *Slice) ResultsOf(e *Episode) []*Event {
	out := make([]*Event, len(s.resultIndexes))
	for i, at := range s.resultIndexes {
		out[i] = &e.Events[at]
	}
	return out
}
