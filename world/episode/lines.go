package episode

import (
	"bytes"
	"fmt"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world/internal/python"
)

// progressEvery is how many bytes of a file lie between two notices: often
// enough to see a slow disk, rare enough to cost nothing.
const progressEvery = 4 << 20

// fromLines reads one object on each line: whole episodes if a line has events,
// else single events that are grouped by their episode.
func fromLines(name string, data []byte, source string, progress func(int)) ([]Episode, error) {
	var objs []value.Value
	rest, noticed := data, 0
	events := true
	for n := 1; len(rest) > 0; n++ {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte{'\n'})
		if at := len(data) - len(rest); at-noticed >= progressEvery {
			noticed = at
			progress(at)
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		v, err := value.Parse(line)
		if err != nil {
			return nil, faultOf(name, n, err)
		}
		if v.Kind() != value.Object || hasItems(v) {
			events = false
		}
		objs = append(objs, v)
	}
	if !events || len(objs) == 0 {
		eps := make([]Episode, 0, len(objs))
		for i, obj := range objs {
			e, err := fromObject(obj, source, i)
			if err != nil {
				return nil, &Fault{name, 0, err.Error()}
			}
			eps = append(eps, e)
		}
		return eps, nil
	}
	var order []string
	groups := map[string][]value.Value{}
	for _, obj := range objs {
		key := "episode-0"
		for _, k := range [2]string{"episode_id", "trajectory_id"} {
			if v, ok := obj.Get(k); ok {
				key = python.Str(v)
				break
			}
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], obj)
	}
	eps := make([]Episode, len(order))
	for i, key := range order {
		obj := value.ObjectOf(value.Member{Key: "episode_id", Value: value.MustText(key)},
			value.Member{Key: "events", Value: value.ListOf(groups[key]...)})
		var err error
		if eps[i], err = fromObject(obj, source, i); err != nil {
			return nil, &Fault{name, 0, fmt.Sprintf("episode %s: %v", key, err)}
		}
	}
	return eps, nil
}
