package modeltest

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/value"
)

// Key is the key that adapters under test send; the suite looks for it where it
// must not be.
const Key = "sk-suite-0123456789"

// KeyEnv is the environment variable in which a [Server] puts it.
const KeyEnv = "MODELTEST_KEY"

// A Server stands for a provider. It answers its handlers in order, the last of
// them for ever, after it has refused what the provider would refuse.
type Server struct {
	*httptest.Server
	Dialect Dialect
	// Retry is for the adapter's configuration: it waits for nothing and
	// remembers how long it should have.
	Retry model.Retry

	mu       sync.Mutex
	handlers []http.HandlerFunc // holding mu
	bodies   [][]byte           // holding mu
	waits    []time.Duration    // holding mu
}

// NewServer starts a server that ends with the test.
func NewServer(t *testing.T, d Dialect, handlers ...http.HandlerFunc) *Server {
	s := &Server{Dialect: d, handlers: handlers}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	t.Setenv(KeyEnv, Key)
	s.Retry = model.Retry{
		Sleep: func(_ context.Context, d time.Duration) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.waits = append(s.waits, d)
			return nil
		},
		Jitter: func() float64 { return 0 },
	}
	return s
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.bodies = append(s.bodies, body)
	h := s.handlers[0]
	if len(s.handlers) > 1 {
		s.handlers = s.handlers[1:]
	}
	s.mu.Unlock()
	v, err := value.Parse(body)
	if err != nil {
		http.Error(w, `{"error":{"message":"the body is no strict JSON: `+err.Error()+`"}}`, http.StatusBadRequest)
		return
	}
	if why := s.Dialect.Refuse(v); why != "" {
		http.Error(w, `{"error":{"type":"invalid_request_error","message":`+quote(why)+`}}`, http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h(w, r)
}

// Bodies are the requests so far.
func (s *Server) Bodies() []value.Value {
	var vs []value.Value
	for _, b := range s.Texts() {
		vs = append(vs, value.MustParse(b))
	}
	return vs
}

// Texts are the requests so far, as they came.
func (s *Server) Texts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var texts []string
	for _, b := range s.bodies {
		texts = append(texts, string(b))
	}
	return texts
}

// Waits are the times that the adapter would have waited.
func (s *Server) Waits() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waits
}

// Says is a handler that says s, as a stream if the request asks for one.
func Says(d Dialect, s Said) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		v := value.MustParse(string(body))
		if stream, _ := v.Get("stream"); value.Equal(stream, value.BoolValue(true)) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, d.Stream(s))
			return
		}
		text, _ := d.Whole(s)
		_, _ = io.WriteString(w, text)
	}
}

// Fails is a handler that answers with a status, a body, and a Retry-After
// unless it is "".
func Fails(status int, body, after string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if after != "" {
			w.Header().Set("Retry-After", after)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// Drops is a handler that sends the first bytes of a response and breaks the
// connection.
func Drops(first string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if first != "" {
			_, _ = io.WriteString(w, first)
			_ = http.NewResponseController(w).Flush()
		}
		panic(http.ErrAbortHandler)
	}
}
