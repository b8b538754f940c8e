package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxRedirects within the server's own origin: a trailing slash, a version.
	maxRedirects = 3
	// dialTimeout bounds the connection and the TLS handshake, each.
	dialTimeout = 10 * time.Second
	// streamTimeout is how long a server may take to open the stream of its own
	// messages; one that does not is treated as having none.
	streamTimeout = 5 * time.Second
	// maxHeaderBytes of a response.
	maxHeaderBytes = 64 << 10
	// streamRetries of the SDK when a stream breaks; each waits a second or two.
	streamRetries = 2
)

// newHTTPBase makes the connections of a source. The environment's proxies are
// not used: they would see every secret (spec/hostile.md 77).
func newHTTPBase(proxy string) (*http.Transport, error) {
	t := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout:    dialTimeout,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: maxHeaderBytes,
		IdleConnTimeout:        30 * time.Second,
	}
	if proxy != "" {
		u, err := url.Parse(proxy)
		if err != nil {
			return nil, errors.New("the proxy's URL cannot be read")
		}
		t.Proxy = http.ProxyURL(u)
	}
	return t, nil
}

// A httpTransport is under the SDK's streamable HTTP transport: it adds the
// headers, bounds what comes back and reads the raw messages as they pass.
type httpTransport struct {
	base    http.RoundTripper
	origin  *url.URL
	headers http.Header
	wire    *wire
	max     int // bytes of one answer, and of one event of a stream
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

// client is what the SDK sends through.
func (t *httpTransport) client() *http.Client {
	return &http.Client{Transport: t, CheckRedirect: t.checkRedirect}
}

func (t *httpTransport) checkRedirect(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case !sameOrigin(req.URL, t.origin):
		return errors.New("a redirect to another origin")
	case req.Method != via[0].Method:
		return fmt.Errorf("a redirect that turns %s into %s", via[0].Method, req.Method)
	}
	return nil
}

// RoundTrip sends one request of the SDK.
func (t *httpTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	ex := exchangeFrom(ctx)
	// Every request of the SDK for a call has the call's context: its own POST,
	// the notification that cancels it, and the GET that asks for the rest of a
	// stream that broke. Only the POST tells whether the call was sent.
	carries := false
	var wrote atomic.Bool
	if id, ok := requestID(req); req.Method == http.MethodPost && !ok {
		ex = nil
	} else if ok && ex != nil {
		carries = true
		if !t.wire.register(ex, id) {
			cancel()
			return nil, context.Canceled
		}
		t.wire.refused(ex, 0, 0) // whatever a redirect said before
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
			WroteHeaders: func() { wrote.Store(true) },
		})
	}
	req = req.Clone(ctx)
	if sameOrigin(req.URL, t.origin) {
		for name, vs := range t.headers {
			req.Header[name] = vs
		}
	}
	var slow *time.Timer
	if req.Method == http.MethodGet {
		slow = time.AfterFunc(streamTimeout, cancel)
	}
	resp, err := t.base.RoundTrip(req)
	if slow != nil && !slow.Stop() {
		// The SDK would wait for ever, and take an error for the end of the
		// session; by 405 a server says that it has no such stream.
		if err == nil {
			resp.Body.Close()
		}
		cancel()
		return &http.Response{
			StatusCode: http.StatusMethodNotAllowed, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: http.NoBody, Request: req,
		}, nil
	}
	if err != nil {
		cancel()
		if carries && !wrote.Load() {
			t.wire.unsent(ex)
		}
		return nil, err
	}
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	body := &watchedBody{ReadCloser: resp.Body, wire: t.wire, ex: ex, max: t.max, cancel: cancel}
	body.stream = media == "text/event-stream"
	body.endless = body.stream && req.Method == http.MethodGet && ex == nil
	if resp.StatusCode >= http.StatusMultipleChoices {
		body.max = envelopeRoom // an explanation, not a result
		if carries {
			t.wire.refused(ex, resp.StatusCode, retryAfter(resp.Header, time.Now()))
		}
	}
	resp.Body = body
	return resp, nil
}

// requestID reads the JSON-RPC id of an outgoing message.
func requestID(req *http.Request) (string, bool) {
	if req.GetBody == nil {
		return "", false
	}
	body, err := req.GetBody()
	if err != nil {
		return "", false
	}
	defer body.Close()
	head, err := io.ReadAll(io.LimitReader(body, envelopeRoom))
	if err != nil {
		return "", false
	}
	return scanID(head)
}

// retryAfter reads the header in either of its forms; what is negative or in
// the past is no time at all (spec/hostile.md 45).
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if s, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Duration(min(max(s, 0), int64(time.Hour/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

// A watchedBody bounds an answer after its Content-Encoding was undone, so that
// a bomb is cut like any other answer (spec/hostile.md 34, 35), and shows the
// messages in it to the wire before the SDK sees them.
type watchedBody struct {
	io.ReadCloser
	wire    *wire
	ex      *exchange // the request that this answers, nil for none of ours
	max     int
	stream  bool // server-sent events; else one message
	endless bool // the server's own stream: each event is bounded, not the whole
	cancel  context.CancelFunc
	once    sync.Once

	total int
	buf   []byte // of a message: all so far; of a stream: the line so far
	data  []byte // of a stream: the data lines of the event so far
	err   error  // sticky, because the SDK drains what it does not want
}

func (b *watchedBody) Close() error {
	b.once.Do(b.cancel)
	return b.ReadCloser.Close()
}

func (b *watchedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	b.total += n
	if !b.endless && b.total > b.max || len(b.buf)+len(b.data)+n > b.max {
		b.err = errLineTooLong
		b.wire.cut(b.ex)
		b.cancel()
		return 0, b.err
	}
	b.take(p[:n])
	if err != nil {
		b.err = err
		if !b.stream && errors.Is(err, io.EOF) {
			b.message(b.buf)
		}
	}
	return n, err
}

// take adds what came to the message or to the events.
func (b *watchedBody) take(p []byte) {
	if !b.stream {
		b.buf = append(b.buf, p...)
		return
	}
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			b.buf = append(b.buf, p...)
			return
		}
		b.line(trimLineEnd(append(b.buf, p[:i]...)))
		b.buf = b.buf[:0]
		p = p[i+1:]
	}
}

// line takes one line of a stream: only data lines and the end of an event
// matter here.
func (b *watchedBody) line(line []byte) {
	if len(line) == 0 {
		if len(b.data) > 0 {
			b.message(b.data)
			b.data = b.data[:0]
		}
		return
	}
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		if len(b.data) > 0 {
			b.data = append(b.data, '\n')
		}
		b.data = append(b.data, bytes.TrimPrefix(data, []byte(" "))...)
	}
}

func (b *watchedBody) message(text []byte) {
	env, ok := parseEnvelope(text)
	switch {
	case !ok:
	case env.isReply():
		b.wire.answer(&env)
	default:
		b.wire.notice(&env)
	}
}
