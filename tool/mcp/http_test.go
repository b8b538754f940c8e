package mcp_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/mcp"
)

// sdkServer is an honest server made with the SDK. Sessions that no client ends
// are ended with the test.
func sdkServer(t *testing.T, description string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "honest", Version: "1"}, nil)
	object := json.RawMessage(`{"type":"object"}`)
	add := func(name, description string, h sdk.ToolHandler) {
		s.AddTool(&sdk.Tool{Name: name, Description: description, InputSchema: object}, h)
	}
	text := func(s string) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}, nil
	}
	add("echo", description, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{}, StructuredContent: r.Params.Arguments}, nil
	})
	add("fail", "", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r, _ := text("no such page")
		r.IsError = true
		return r, nil
	})
	add("progress", "", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := range 3 {
			err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3})
			if err != nil {
				return nil, err
			}
		}
		return text("done")
	})
	add("hold", "", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		if err != nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
		case <-t.Context().Done(): // before the server is closed, which waits for this
		}
		return nil, context.Canceled
	})
	add("big", "", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(strings.Repeat("x", 1<<20))
	})
	t.Cleanup(func() {
		for session := range s.Sessions() {
			session.Close()
		}
	})
	return s
}

func sdkHandler(s *sdk.Server, json bool) http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{JSONResponse: json})
}

func serveHTTP(t *testing.T, h http.Handler) mcp.Config {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return mcp.Config{Name: "web", URL: srv.URL}
}

func TestHTTP(t *testing.T) {
	for name, asJSON := range map[string]bool{"events": false, "json": true} {
		t.Run(name, func(t *testing.T) {
			src := open(t, serveHTTP(t, sdkHandler(sdkServer(t, "old"), asJSON)))
			const args = `{"n":9007199254740993,"x":0.10,"t":"two\nlines"}`
			if got := succeed(t, src, "echo", args).String(); got != args {
				t.Errorf("echo = %s, want %s", got, args)
			}
			if f := failing(t, src, "fail", `{}`); f.Code != tool.CodeToolError || f.Message != "no such page" {
				t.Errorf("fail: %+v", f)
			}
			if asJSON {
				return // which has no room for progress
			}
			n := 0
			c := request(`{}`)
			c.Progress = func(tool.Progress) { n++ }
			if _, f := do(t, t.Context(), src, "progress", c); f != nil || n != 3 {
				t.Errorf("progress: %d notices, %v; want 3", n, f)
			}
		})
	}
}

func TestHostile034_HTTPOutputCap(t *testing.T) {
	for name, asJSON := range map[string]bool{"events": false, "json": true} {
		t.Run(name, func(t *testing.T) {
			cfg := serveHTTP(t, sdkHandler(sdkServer(t, "old"), asJSON))
			cfg.MaxOutput = 1000
			src := open(t, cfg)
			if f := failing(t, src, "big", `{}`); f.Code != tool.CodeOutputTooLarge || f.Lost {
				t.Errorf("%+v, want %s", f, tool.CodeOutputTooLarge)
			}
			succeed(t, src, "echo", `{}`)
		})
	}
}

func TestHTTPCancellation(t *testing.T) {
	src := open(t, serveHTTP(t, sdkHandler(sdkServer(t, "old"), false)))
	ctx, cancel := context.WithCancel(t.Context())
	_, wait := hold(t, ctx, src)
	cancel()
	if _, f := wait(); f == nil || f.Code != tool.CodeCancelled || !f.Lost {
		t.Errorf("%+v, want lost by %s", f, tool.CodeCancelled)
	}
	succeed(t, src, "echo", `{}`)
}

func TestHTTPConnectionLost(t *testing.T) {
	srv := httptest.NewServer(sdkHandler(sdkServer(t, "old"), false))
	src := open(t, mcp.Config{Name: "web", URL: srv.URL})
	_, wait := hold(t, t.Context(), src)
	srv.CloseClientConnections()
	if _, f := wait(); f == nil || f.Code != tool.CodeConnection || !f.Lost {
		t.Errorf("%+v, want lost by %s", f, tool.CodeConnection)
	}
	srv.Close()
	if f := failing(t, src, "echo", `{}`); !f.Retryable || f.Lost {
		t.Errorf("with nobody at the address: %+v, want retryable", f)
	}
}

// A call that the server took and whose stream broke is lost, whatever becomes
// of the request for the rest of the stream: it is never sent again.
func TestHTTPLostInFlight(t *testing.T) {
	for name, resume := range map[string]http.HandlerFunc{
		"killed":         nil,
		"session gone":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"overloaded":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"rate limited":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"no such stream": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) },
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			var srv *httptest.Server
			inner := callHandler(func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				w.Header().Set("Content-Type", "text/event-stream")
				// The id lets the client ask for what follows, the retry at once.
				fmt.Fprint(w, "id: 1\nretry: 1\ndata:\n\n")
				w.(http.Flusher).Flush()
				if resume == nil {
					srv.Listener.Close()
				}
				panic(http.ErrAbortHandler)
			})
			srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" {
					w.Header().Set("Mcp-Session-Id", "one")
				}
				if r.Method == http.MethodGet && r.Header.Get("Last-Event-Id") != "" {
					resume(w, r)
					return
				}
				inner.ServeHTTP(w, r)
			}))
			defer srv.Close()
			src := open(t, mcp.Config{Name: "web", URL: srv.URL})
			f := failing(t, src, "act", `{}`)
			if !f.Lost || f.Retryable || calls.Load() != 1 {
				t.Errorf("%+v after %d calls, want lost after one", f, calls.Load())
			}
		})
	}
}

// A server that was restarted knows no session of before: the call was never
// taken, and goes to a new session.
func TestHTTPSessionGone(t *testing.T) {
	var now atomic.Pointer[http.Handler]
	set := func(description string) { h := sdkHandler(sdkServer(t, description), false); now.Store(&h) }
	set("old")
	src := open(t, serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*now.Load()).ServeHTTP(w, r) })))
	set("old")
	if got := succeed(t, src, "echo", `{"a":1}`).String(); got != `{"a":1}` {
		t.Errorf("echo = %s", got)
	}
	if got := src.Stats().Restarts; got != 1 {
		t.Errorf("%d restarts, want 1", got)
	}
	set("new")
	if f := failing(t, src, "echo", `{}`); f.Code != tool.CodeToolChanged {
		t.Errorf("%+v, want %s", f, tool.CodeToolChanged)
	}
}

// Some servers explain the missing session in a body that is JSON-RPC.
func TestHTTPSessionGoneWithABody(t *testing.T) {
	calls := 0
	src := open(t, serveHTTP(t, callHandler(func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}`)
			return
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, w.Header().Get("Id"))
	})))
	succeed(t, src, "act", `{}`)
	if got := src.Stats().Restarts; got != 1 {
		t.Errorf("%d restarts, want 1", got)
	}
}

func TestHostile033_HTTPListChanged(t *testing.T) {
	server := sdkServer(t, "old")
	src := open(t, serveHTTP(t, sdkHandler(server, false)))
	server.AddTool(&sdk.Tool{Name: "echo", Description: "new", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{}, nil
		})
	eventually(t, "the source sees the change", func() bool {
		_, f := do(t, t.Context(), src, "echo", request(`{}`))
		return f != nil && f.Code == tool.CodeToolChanged
	})
}

func TestHTTPHeaders(t *testing.T) {
	t.Setenv("WEB_TOKEN", "sesame")
	h := sdkHandler(sdkServer(t, "old"), false)
	cfg := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sesame" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	_, err := mcp.Open(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "Unauthorized") {
		t.Errorf("Open without the header: %v, want unauthorized", err)
	}
	cfg.Headers = map[string]mcp.Header{"Authorization": {Prefix: "Bearer ", Env: "NO_SUCH_TOKEN"}}
	if _, err := mcp.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "NO_SUCH_TOKEN is not set") {
		t.Errorf("Open with an unset variable: %v", err)
	}
	cfg.Headers = map[string]mcp.Header{"authorization": {Prefix: "Bearer ", Env: "WEB_TOKEN"}}
	succeed(t, open(t, cfg), "echo", `{}`)
}

// A callHandler speaks the handshake and leaves tools/call to a function.
func callHandler(call http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, _ := io.ReadAll(r.Body)
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if err := json.Unmarshal(body, &m); err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", "application/json")
		switch m.Method {
		case "initialize":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`, m.ID)
		case "tools/list":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"act","inputSchema":{"type":"object"}}]}}`, m.ID)
		case "tools/call":
			w.Header().Set("Id", string(m.ID)) // for the function
			call(w, r)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
}

func TestHTTPStatus(t *testing.T) {
	for _, c := range []struct {
		status     int
		retryAfter string
		want       tool.Failure
	}{
		{429, "7", tool.Failure{Code: "http_429", Retryable: true, After: 7 * time.Second}},
		{503, "-7", tool.Failure{Code: "http_503", Retryable: true}},
		{503, "99999999999999", tool.Failure{Code: "http_503", Retryable: true, After: time.Hour}},
		{502, "", tool.Failure{Code: "http_502", Lost: true}},
		{504, "", tool.Failure{Code: "http_504", Lost: true}},
		{500, "", tool.Failure{Code: "http_500"}},
		{403, "", tool.Failure{Code: "http_403"}},
	} {
		t.Run(fmt.Sprint(c.status, c.retryAfter), func(t *testing.T) {
			src := open(t, serveHTTP(t, callHandler(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", c.retryAfter)
				w.WriteHeader(c.status)
			})))
			f := failing(t, src, "act", `{}`)
			f.Message = ""
			if *f != c.want {
				t.Errorf("%+v, want %+v", *f, c.want)
			}
		})
	}
}

// A reply that the SDK does not take for one ends its call all the same.
func TestHTTPRepliesThatAreNotAsTheyShouldBe(t *testing.T) {
	for name, reply := range map[string]string{
		"an id in text": `{"jsonrpc":"2.0","id":"ID","result":{"content":[]}}`,
		"a bad error":   `{"jsonrpc":"2.0","id":ID,"error":"no"}`,
	} {
		t.Run(name, func(t *testing.T) {
			src := open(t, serveHTTP(t, callHandler(func(w http.ResponseWriter, _ *http.Request) {
				io.WriteString(w, strings.ReplaceAll(reply, "ID", w.Header().Get("Id")))
			})))
			if f := failing(t, src, "act", `{}`); f.Code != tool.CodeInvalidOutput || f.Lost || f.Retryable {
				t.Errorf("%+v, want %s for good", f, tool.CodeInvalidOutput)
			}
		})
	}
}

func TestHostile035_HTTPGzipBomb(t *testing.T) {
	cfg := serveHTTP(t, callHandler(func(w http.ResponseWriter, _ *http.Request) {
		id := w.Header().Get("Id")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		defer z.Close()
		fmt.Fprintf(z, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, id)
		zeros := strings.Repeat("0", 1<<20)
		for range 64 {
			if _, err := io.WriteString(z, zeros); err != nil {
				return
			}
		}
	}))
	cfg.MaxOutput = 1 << 20
	src := open(t, cfg)
	if f := failing(t, src, "act", `{}`); f.Code != tool.CodeOutputTooLarge {
		t.Errorf("%+v, want %s", f, tool.CodeOutputTooLarge)
	}
}

func TestHTTPRedirects(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the request was sent to another origin")
	}))
	defer elsewhere.Close()
	h := sdkHandler(sdkServer(t, "old"), false)
	cfg := serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/mcp", http.StatusTemporaryRedirect)
		case "/mcp":
			h.ServeHTTP(w, r)
		case "/away":
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		case "/see-other":
			http.Redirect(w, r, "/mcp", http.StatusSeeOther)
		default:
			http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
		}
	}))
	base := cfg.URL
	cfg.URL = base + "/moved"
	succeed(t, open(t, cfg), "echo", `{}`)
	for path, want := range map[string]string{"/away": "another origin", "/see-other": "POST into GET", "/loop": "redirects"} {
		cfg.URL = base + path
		if _, err := mcp.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open %s: %v, want %q", path, err, want)
		}
	}
}

func TestHostile077_HTTPProxyOfTheEnvironment(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
	}))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	cfg := mcp.Config{Name: "web", URL: "http://callsheet.invalid/mcp"} // a loopback URL would pass a proxy by
	if _, err := mcp.Open(t.Context(), cfg); err == nil || strings.Contains(err.Error(), "teapot") {
		t.Errorf("Open: %v, want no connection", err)
	}
	cfg.Proxy = proxy.URL
	if _, err := mcp.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "teapot") {
		t.Errorf("Open with a configured proxy: %v, want its answer", err)
	}
}

func TestHTTPStreamThatNeverOpens(t *testing.T) {
	if testing.Short() {
		t.Skip("waits the five seconds that a stream has to open")
	}
	inner := callHandler(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, w.Header().Get("Id"))
	})
	src := open(t, serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			<-r.Context().Done()
			return
		}
		inner.ServeHTTP(w, r)
	})))
	succeed(t, src, "act", `{}`)
}
