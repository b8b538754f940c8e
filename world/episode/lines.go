package episode

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world/internal/python"
)

// chunkSize is how many bytes of lines are read at a time by one processor:
// enough to be worth handing over, and often enough for a notice of progress.
const chunkSize = 1 << 20

// fromLines reads one object on each line: whole episodes if a line has events,
// else single events that are grouped by their episode.
func fromLines(name string, data []byte, source string, progress func(int)) ([]Episode, error) {
	chunks := cut(data)
	var read atomic.Int64
	each(len(chunks), func(i int) {
		c := &chunks[i]
		c.parse(name)
		progress(int(read.Add(int64(len(c.text)))))
	})
	var objs []value.Value
	events := true
	for i := range chunks {
		c := &chunks[i]
		if c.fault != nil {
			for _, before := range chunks[:i] {
				c.fault.Line += bytes.Count(before.text, []byte{'\n'})
			}
			return nil, c.fault
		}
		objs = append(objs, c.objs...)
		events = events && c.events
	}
	if !events || len(objs) == 0 {
		return fromObjects(name, objs, source)
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
	grouped := make([]value.Value, len(order))
	for i, key := range order {
		grouped[i] = value.ObjectOf(value.Member{Key: "episode_id", Value: value.MustText(key)},
			value.Member{Key: "events", Value: value.ListOf(groups[key]...)})
	}
	return fromObjects(name, grouped, source)
}

// fromObjects reads episode objects on all processors.
func fromObjects(name string, objs []value.Value, source string) ([]Episode, error) {
	eps := make([]Episode, len(objs))
	faults := make([]error, len(objs))
	each(len(objs), func(i int) { eps[i], faults[i] = fromObject(objs[i], source, i) })
	for _, err := range faults {
		if err != nil {
			return nil, &Fault{name, 0, err.Error()}
		}
	}
	return eps, nil
}

// A chunk is some of the lines of a file.
type chunk struct {
	text   []byte
	objs   []value.Value
	events bool // no line has events of its own
	fault  *Fault
}

// cut cuts a file after line ends.
func cut(data []byte) []chunk {
	var out []chunk
	for len(data) > 0 {
		n := min(chunkSize, len(data))
		if at := bytes.IndexByte(data[n:], '\n'); at >= 0 {
			n += at + 1
		} else {
			n = len(data)
		}
		out = append(out, chunk{text: data[:n]})
		data = data[n:]
	}
	return out
}

// parse reads the lines; a fault's line is counted from the chunk's first.
func (c *chunk) parse(name string) {
	c.events = true
	rest := c.text
	for n := 1; len(rest) > 0; n++ {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte{'\n'})
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		v, err := value.Parse(line)
		if err != nil {
			c.fault = faultOf(name, n, err)
			return
		}
		if v.Kind() != value.Object || hasItems(v) {
			c.events = false
		}
		c.objs = append(c.objs, v)
	}
}

// each calls f for every index below n, on all processors.
func each(n int, f func(i int)) {
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				f(i)
			}
		})
	}
	wg.Wait()
}
