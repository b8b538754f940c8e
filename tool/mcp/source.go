package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// A Source is a server whose tools are frozen. It is safe for concurrent use.
type Source struct {
	cfg     Config
	log     *slog.Logger
	path    string // of the command's program; "" over HTTP
	origin  *url.URL
	headers http.Header
	base    *http.Transport // nil over stdio

	ctx     context.Context // ends at Close, with errClosed as its cause
	cancel  context.CancelCauseFunc
	running sync.WaitGroup // goroutines of sessions and calls

	tools    []tool.Tool
	refused  []Refusal
	frozen   map[string]frozen // by the catalogue's name
	protocol atomic.Int32      // index into protocols of what worked last
	tokens   atomic.Int64      // progress tokens given out

	noise, restarts, late atomic.Int64

	pool pool
}

// frozen is what a tool was when the source was opened.
type frozen struct {
	name   string // the server's own
	digest value.Digest
}

// errClosed is why calls end when the source is closed.
var errClosed = errors.New("the source is closed")

// Open starts the server and freezes its tools. ctx bounds the start, as
// StartTimeout does; afterwards the server lives until [Source.Close].
//
// A tool that has no name, whose name the server lists twice, or whose schema
// is refused is left out, with a warning to the logger and in
// [Source.Refused]: one bad schema should not cost a user the server's other
// tools, and a plan that names the tool is told unknown_tool before any call.
func Open(ctx context.Context, cfg Config) (*Source, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Source{cfg: cfg, log: cfg.Logger}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.log = s.log.With("source", "mcp:"+cfg.Name)
	if err := s.prepare(); err != nil {
		return nil, err
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.pool.init(s)

	bounded, cancel := context.WithTimeout(ctx, cfg.startTimeout())
	defer cancel()
	sess, defs, err := s.open(bounded)
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("mcp source %q: %w", cfg.Name, err)
	}
	s.pool.seed(sess)
	if err := s.freeze(defs); err != nil {
		s.Close()
		return nil, fmt.Errorf("mcp source %q: %w", cfg.Name, err)
	}
	return s, nil
}

// prepare resolves what does not change between sessions.
func (s *Source) prepare() (err error) {
	if len(s.cfg.Command) > 0 {
		if s.path, err = program(s.cfg.Command[0], s.cfg.Dir); err != nil {
			return fmt.Errorf("mcp source %q: %w", s.cfg.Name, err)
		}
		return nil
	}
	if s.headers, err = s.cfg.headers(os.LookupEnv); err != nil {
		return err
	}
	if s.base, err = newHTTPBase(s.cfg.Proxy); err != nil {
		return fmt.Errorf("mcp source %q: %w", s.cfg.Name, err)
	}
	s.origin, err = url.Parse(s.cfg.URL)
	return err
}

// freeze makes the tools of the first listing.
func (s *Source) freeze(defs []value.Value) error {
	s.frozen = make(map[string]frozen, len(defs))
	var listed []string
	refuse := func(name, reason string) {
		s.refused = append(s.refused, Refusal{Name: name, Reason: reason})
		s.log.Warn("a tool is left out", "tool", name, "reason", reason)
	}
	for _, def := range defs {
		name := definitionName(def)
		if slices.Contains(listed, name) {
			refuse(name, "the server lists the name twice; the first one is kept")
			continue
		}
		listed = append(listed, name)
		decl, err := declare(&s.cfg, def)
		if err != nil {
			refuse(name, err.Error())
			continue
		}
		f := frozen{name: name, digest: definitionDigest(def)}
		s.frozen[decl.Name] = f
		parse := s.cfg.ParseJSON
		if o := s.cfg.Overrides[name].ParseJSON; o != nil {
			parse = *o
		}
		limit := decl.MaxOutput
		s.tools = append(s.tools, tool.Tool{
			Declaration: decl,
			Handler: func(ctx context.Context, c *tool.Call) (value.Value, error) {
				return s.call(ctx, f, c, reading{parse: parse, max: limit})
			},
		})
	}
	var unknown []string
	for name := range s.cfg.Overrides {
		if !slices.Contains(listed, name) {
			unknown = append(unknown, fmt.Sprintf("%q", name))
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return fmt.Errorf("overrides for tools that the server does not have: %s; it has %s",
			strings.Join(unknown, ", "), clip(strings.Join(listed, ", ")))
	}
	return nil
}

// Tools are the tools as they were when the source was opened. The slice must
// not be changed.
func (s *Source) Tools() []tool.Tool { return s.tools }

// Refused are the tools that were left out of Tools.
func (s *Source) Refused() []Refusal { return s.refused }

// Stats count what happened since the source was opened.
type Stats struct {
	Noise    int64 // lines on stdout that were no JSON-RPC, or replies to nothing
	Restarts int64 // sessions begun in the place of one that died
	Late     int64 // results that came after their call was given up; never used
}

// Stats returns the counters. Over HTTP a call that is given up closes its
// stream, so that no late result is seen.
func (s *Source) Stats() Stats {
	return Stats{Noise: s.noise.Load(), Restarts: s.restarts.Load(), Late: s.late.Load()}
}

// Close ends every session and waits for the servers to leave: at most twice
// StopGrace, then they are killed. Calls in flight end as lost.
func (s *Source) Close() error {
	s.cancel(errClosed)
	for _, sess := range s.pool.close() {
		s.running.Go(sess.close)
	}
	s.running.Wait()
	if s.base != nil {
		s.base.CloseIdleConnections()
	}
	return nil
}
