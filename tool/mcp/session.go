package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callsheet/callsheet/value"
)

// maxListChanges is how often a session may say that its tools changed: a
// server that never stops would keep every call waiting for a fresh list.
const maxListChanges = 1000

// protocols are the versions that a session is opened with, best first. The
// handshake of 2025-11-25 is what servers in the field speak; some of them end
// at any other first message, so the newer protocol without a handshake is
// tried only where the server refuses it.
var protocols = []string{"2025-11-25", "2026-07-28"}

// A session is one connection to the server, over stdio a process with it. It
// serves any number of calls at a time; once done is closed it is never used
// again.
type session struct {
	src   *Source
	wire  *wire
	child *child // nil over HTTP
	sdk   *sdk.ClientSession
	done  chan struct{} // closed when nothing can be sent any more

	mu        sync.Mutex
	cause     error // why the session was given up, nil if the server left
	defs      map[string]value.Digest
	announced int // list changes seen on the wire
	handled   int // … that the SDK knows of, so that it does not answer from its cache
	listed    int // handled, when the listing that gave defs began
	ready     bool
	listing   bool
	relisted  chan struct{} // closed and replaced when listed grows
}

// open starts a session and lists the tools. ctx bounds only the start.
func (s *Source) open(ctx context.Context) (*session, []value.Value, error) {
	var refused error
	for i := int(s.protocol.Load()); i < len(protocols); i++ {
		sess, err := s.connect(ctx, protocols[i])
		var rpc *jsonrpc.Error
		switch {
		case err == nil:
			s.protocol.Store(int32(i))
			defs, err := sess.list(ctx)
			if err != nil {
				sess.fail(err)
				sess.close()
				return nil, nil, fmt.Errorf("listing its tools: %w", sess.explain(err))
			}
			sess.begin(digests(defs))
			return sess, defs, nil
		case errors.As(err, &rpc) && ctx.Err() == nil:
			refused = errors.Join(refused, err)
		default:
			return nil, nil, err
		}
	}
	return nil, nil, refused
}

// connect makes the connection and opens the session at one protocol version.
func (s *Source) connect(ctx context.Context, version string) (*session, error) {
	sess := &session{src: s, done: make(chan struct{}), relisted: make(chan struct{})}
	sess.wire = newWire(sess.announce, &s.late)
	var transport sdk.Transport
	if s.path != "" {
		c, err := startChild(s.path, &s.cfg, s.log)
		if err != nil {
			return nil, err
		}
		sess.child = c
		transport = &stdioTransport{child: c, wire: sess.wire, max: s.cfg.maxMessage(), noise: &s.noise}
		// A server that does not answer must not hold the SDK until it has left.
		defer context.AfterFunc(ctx, c.kill)()
	} else {
		rt := &httpTransport{base: s.base, origin: s.origin, headers: s.headers, wire: sess.wire, max: s.cfg.maxMessage()}
		transport = &sdk.StreamableClientTransport{
			Endpoint: s.cfg.URL, HTTPClient: rt.client(), MaxRetries: streamRetries, MaxEventSize: -1, // rt bounds events
		}
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "callsheet", Version: "1"}, &sdk.ClientOptions{
		Logger:                 s.log,
		Capabilities:           &sdk.ClientCapabilities{}, // no roots, sampling or elicitation: tools only
		MultiRoundTrip:         &sdk.MultiRoundTripOptions{Disabled: true},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { sess.changed() },
	})
	cs, err := client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		if sess.child != nil {
			sess.child.kill()
			sess.child.wait()
		}
		return nil, sess.explain(plain(err))
	}
	sess.mu.Lock()
	sess.sdk = cs
	cause := sess.cause
	sess.mu.Unlock()
	s.running.Go(sess.watch)
	if cause != nil {
		sess.close()
		return nil, cause
	}
	return sess, nil
}

// watch waits for the end of the session and cleans up after it.
func (sess *session) watch() {
	_ = sess.sdk.Wait() // the cause is in the exchanges and in explain
	close(sess.done)
	if sess.child != nil {
		sess.child.shutdown()
		sess.child.wait()
		_ = sess.child.stdout.Close()
	}
}

// close ends the session and waits for the server to leave.
func (sess *session) close() {
	if sess.child != nil {
		sess.child.shutdown()
	}
	_ = sess.sdk.Close()
	if sess.child != nil {
		sess.child.wait()
	}
}

// fail gives the session up: its server broke the rules.
func (sess *session) fail(err error) {
	sess.mu.Lock()
	if sess.cause == nil {
		sess.cause = err
	}
	cs := sess.sdk
	sess.mu.Unlock()
	if sess.child != nil {
		sess.child.kill()
	} else if cs != nil {
		sess.src.running.Go(func() { _ = cs.Close() }) // waits for the requests in flight
	}
}

func (sess *session) dead() bool {
	select {
	case <-sess.done:
		return true
	default:
		return false
	}
}

// explain adds what is known of the end of the session to err.
func (sess *session) explain(err error) error {
	sess.mu.Lock()
	cause := sess.cause
	sess.mu.Unlock()
	if cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	if sess.child != nil {
		if how := sess.child.epitaph(); how != "" {
			err = fmt.Errorf("%w; %s", err, how)
		}
	}
	return err
}

// list reads the server's tools, page by page.
func (sess *session) list(ctx context.Context) ([]value.Value, error) {
	var all []value.Value
	cursor := ""
	for range maxPages {
		ex := &exchange{own: true}
		_, err := sess.sdk.ListTools(withExchange(ctx, ex), &sdk.ListToolsParams{Cursor: cursor})
		got := sess.wire.settle(ex)
		if !got.answered {
			if err == nil {
				err = errors.New("no reply to tools/list was seen")
			}
			return nil, plain(err)
		}
		result, err := got.value()
		if err != nil {
			return nil, err
		}
		defs, next, err := page(result)
		if err != nil {
			return nil, err
		}
		all = append(all, defs...)
		if len(all) > maxTools {
			return nil, fmt.Errorf("the server lists more than %d tools", maxTools)
		}
		if next == "" {
			return all, nil
		}
		cursor = next
	}
	return nil, fmt.Errorf("the list of tools has more than %d pages", maxPages)
}

// begin takes the first listing. Changes that were announced while it ran are
// looked at again.
func (sess *session) begin(defs map[string]value.Digest) {
	sess.mu.Lock()
	sess.defs, sess.ready = defs, true
	sess.mu.Unlock()
	sess.src.running.Go(sess.refresh)
}

// announce notes a change in the order of the messages: calls that start after
// it wait for a fresh list.
func (sess *session) announce() {
	sess.mu.Lock()
	sess.announced++
	over := sess.announced > maxListChanges
	sess.mu.Unlock()
	if over {
		sess.fail(fmt.Errorf("the server changed its tools more than %d times", maxListChanges))
	}
}

// changed follows announce for the same message.
func (sess *session) changed() {
	sess.mu.Lock()
	sess.handled++
	sess.mu.Unlock()
	sess.src.running.Go(sess.refresh)
}

// refresh lists the tools until no change is left; one runs at a time.
func (sess *session) refresh() {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	if !sess.ready || sess.listing {
		return
	}
	sess.listing = true
	defer func() { sess.listing = false }()
	for sess.listed < sess.handled {
		target := sess.handled
		sess.mu.Unlock()
		bounded, cancel := context.WithTimeout(sess.src.ctx, sess.src.cfg.startTimeout())
		defs, err := sess.list(bounded)
		cancel()
		if err != nil {
			sess.fail(fmt.Errorf("listing its tools again: %w", err))
			sess.mu.Lock()
			return
		}
		sess.mu.Lock()
		sess.defs, sess.listed = digests(defs), target
		close(sess.relisted)
		sess.relisted = make(chan struct{})
	}
}

// definition is the digest of a tool as the server has it now, waiting for the
// list where a change was announced; ok is false when it has no such tool.
func (sess *session) definition(ctx context.Context, name string) (d value.Digest, ok bool, err error) {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	for target := sess.announced; sess.listed < target; {
		again := sess.relisted
		sess.mu.Unlock()
		select {
		case <-again:
		case <-sess.done:
			err = errors.New("the server left while it listed its tools")
		case <-ctx.Done():
			err = ctx.Err()
		}
		sess.mu.Lock()
		if err != nil {
			return value.Digest{}, false, err
		}
	}
	d, ok = sess.defs[name]
	return d, ok, nil
}
