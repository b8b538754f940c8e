package episode

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
)

// MaxFile is how large one file may be: it is read whole, because its bytes
// make its id.
const MaxFile = 2 << 30

// Options say how [Read] reads. The zero value reads everything as it is.
type Options struct {
	// History is how many events before an action its slice lists; 0:
	// MaxHistory.
	History int
	// Progress is told how far the work has come, from several goroutines but
	// never from two at once. nil: nobody is.
	Progress func(Progress)
	// Redact are patterns whose matches are replaced in the text before
	// anything is derived from it: ids, sources and events are those of the
	// redacted text.
	Redact []*regexp.Regexp
	// Secrets names the secret values among the arguments of an action, as a
	// catalogue declares them. Each is replaced wherever it stands in the file.
	Secrets func(a world.Action) []string
}

// Progress is one notice of [Read].
type Progress struct {
	File        string
	Files, Of   int // files finished, files in all
	Bytes       int64
	TotalBytes  int64
	Episodes    int
	Transitions int
}

// A Recording is what [Read] found.
type Recording struct {
	Episodes []Episode
	Slices   []Slice
	Sources  []Source
	Faults   []*Fault // the files that were left out, in their order
	Silent   []string // the sources without an action, from which no world learns
}

// A Source is the text that episodes were read from, redacted if that was
// asked for.
type Source struct {
	ID   string
	Name string
	Text string
}

// Read reads files, in parallel but with results in their order. A file that
// cannot be read is a fault, and the others go on; the error is the context's.
// Two files with the same bytes are one source.
func Read(ctx context.Context, files []string, o Options) (*Recording, error) {
	sizes := make([]int64, len(files))
	r := reader{o: o, all: Progress{Of: len(files)}}
	for i, f := range files {
		if st, err := os.Stat(f); err == nil {
			sizes[i] = st.Size()
			r.all.TotalBytes += st.Size()
		}
	}
	parts := make([]part, len(files))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(files)) {
		wg.Go(func() {
			for i := range next {
				parts[i] = r.file(files[i], sizes[i])
			}
		})
	}
	var err error
feed:
	for i := range files {
		select {
		case next <- i:
		case <-ctx.Done():
			err = context.Cause(ctx)
			break feed
		}
	}
	close(next)
	wg.Wait()
	if err != nil {
		return nil, err
	}
	return gather(parts), nil
}

// An Exporter hands over recordings that are not files, each as an episode
// document (an object with events or messages) under a name of its own. It
// stops when yield returns an error, and returns that error.
type Exporter interface {
	Export(ctx context.Context, yield func(name string, episode value.Value) error) error
}

// ReadFrom reads what an exporter hands over. A document that cannot be read is
// a fault, and the others go on.
func ReadFrom(ctx context.Context, from Exporter, o Options) (*Recording, error) {
	r := reader{o: o}
	var parts []part
	err := from.Export(ctx, func(name string, doc value.Value) error {
		if !strings.HasSuffix(name, ".json") {
			name += ".json"
		}
		parts = append(parts, r.bytes(name, doc.AppendTo(nil)))
		r.done(name, int64(doc.Size()), &parts[len(parts)-1])
		return context.Cause(ctx)
	})
	if err != nil {
		return nil, err
	}
	return gather(parts), nil
}

type part struct {
	source   Source
	episodes []Episode
	slices   []Slice
	fault    *Fault
}

func gather(parts []part) *Recording {
	rec := &Recording{}
	seen := map[string]bool{}
	for _, p := range parts {
		switch {
		case p.fault != nil:
			rec.Faults = append(rec.Faults, p.fault)
		case !seen[p.source.ID]:
			seen[p.source.ID] = true
			rec.Sources = append(rec.Sources, p.source)
			rec.Episodes = append(rec.Episodes, p.episodes...)
			rec.Slices = append(rec.Slices, p.slices...)
			if len(p.slices) == 0 {
				rec.Silent = append(rec.Silent, p.source.Name)
			}
		}
	}
	return rec
}

type reader struct {
	o   Options
	mu  sync.Mutex
	all Progress // holding mu
}

func (r *reader) file(name string, size int64) (p part) {
	data, err := readFile(name)
	if err != nil {
		var pe *os.PathError
		if errors.As(err, &pe) {
			err = pe.Err
		}
		p = part{fault: &Fault{File: name, Reason: err.Error()}}
	} else {
		p = r.bytes(name, data)
	}
	r.done(name, size, &p)
	return p
}

func readFile(name string) ([]byte, error) {
	// Before it is opened: a named pipe would wait for a writer.
	st, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var data bytes.Buffer
	data.Grow(int(min(st.Size(), MaxFile)) + bytes.MinRead) // so that it is not copied while it grows
	if _, err := data.ReadFrom(io.LimitReader(f, MaxFile+1)); err != nil {
		return nil, err
	}
	if data.Len() > MaxFile {
		return nil, fmt.Errorf("larger than %d bytes; split it", MaxFile)
	}
	return data.Bytes(), nil
}

func (r *reader) bytes(name string, data []byte) part {
	if len(r.o.Redact) > 0 {
		// As it is meant, and as it is written, which a pattern may be about too.
		hide := byPattern(r.o.Redact)
		data = []byte(hide(string(hide.redact(name, data))))
	}
	eps, err := parse(name, data, func(read int) { r.notice(name, int64(read)) })
	if err == nil && r.o.Secrets != nil {
		var secrets []string
		if secrets, err = r.secrets(name, eps); err == nil && len(secrets) > 0 {
			data = byValue(secrets).redact(name, data)
			eps, err = parse(name, data, func(int) {})
		}
	}
	if err != nil {
		return part{fault: err.(*Fault)}
	}
	if len(eps) == 0 {
		return part{fault: &Fault{File: name, Reason: "no recording in it"}}
	}
	p := part{source: Source{ID: eps[0].SourceID, Name: name}, episodes: eps}
	p.source.Text = string(data)
	history := cmp.Or(r.o.History, MaxHistory)
	parts := make([][]Slice, len(eps))
	each(len(eps), func(i int) { parts[i] = Segment(&eps[i], history) })
	p.slices = slices.Concat(parts...)
	return p
}

func (r *reader) notice(name string, read int64) {
	if r.o.Progress == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.all
	p.File = name
	p.Bytes += read
	r.o.Progress(p)
}

func (r *reader) done(name string, size int64, p *part) {
	if r.o.Progress == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all.File = name
	r.all.Files++
	r.all.Bytes += size
	r.all.Episodes += len(p.episodes)
	r.all.Transitions += len(p.slices)
	r.o.Progress(r.all)
}

func (r *reader) secrets(name string, eps []Episode) ([]string, error) {
	var out []string
	for i := range eps {
		for k := range eps[i].Events {
			ev := &eps[i].Events[k]
			if ev.Kind != Action {
				continue
			}
			a, ok := ReadAction(ev)
			if !ok {
				continue
			}
			for _, s := range r.o.Secrets(a) {
				if len(s) < MinSecret {
					return nil, &Fault{name, 0, fmt.Sprintf("event %s of action %q holds a secret of %s, which is too short to be replaced wherever it stands; remove it by hand", ev.ID, a.Type, count.Of(len(s), "byte"))}
				}
				out = append(out, s)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}
