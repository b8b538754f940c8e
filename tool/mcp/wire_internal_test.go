package mcp

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"pgregory.net/rapid"

	"github.com/callsheet/callsheet/value"
)

func TestParseEnvelope(t *testing.T) {
	for _, c := range []struct {
		text       string
		ok, fault  bool
		id, result string
	}{
		{`{"jsonrpc":"2.0","id":1,"result":{"n":9007199254740993}}`, true, false, "1", `{"n":9007199254740993}`},
		{`{"result":{},"id":"a","jsonrpc":"2.0"}`, true, false, `"a"`, `{}`},
		{`{"jsonrpc":"2.0","method":"ping"}`, true, false, "", ""},
		{`{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`, true, true, "1", `{"a":1,"a":2}`},
		{"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xff\"}}", true, true, "1", "{\"a\":\"\xff\"}"},
		{`{"jsonrpc":"2.0","id":1,"error":null,"result":{}}`, true, false, "1", `{}`},
		{`{"jsonrpc":"2.0","id":1,"error":"no"}`, true, true, "1", ""},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":7}}`, true, true, "1", ""},
		{`{"jsonrpc":"1.0","id":1,"result":{}}`, false, false, "", ""},
		{`{"JSONRPC":"2.0","ID":1,"result":{}}`, false, false, "", ""},
		{`{"jsonrpc":"2.0"}`, false, false, "", ""},
		{`{"jsonrpc":"2.0","id":1,"result":{}} {}`, false, false, "", ""},
		{`{"level":"info","msg":"ready"}`, false, false, "", ""},
		{`[INFO] ready`, false, false, "", ""},
		{`42`, false, false, "", ""},
		{``, false, false, "", ""},
	} {
		env, ok := parseEnvelope([]byte(c.text))
		if ok != c.ok {
			t.Errorf("parseEnvelope(%q): ok = %t, want %t", c.text, ok, c.ok)
		}
		if ok && (string(env.ID) != c.id || string(env.Result) != c.result || (env.fault != nil) != c.fault) {
			t.Errorf("parseEnvelope(%q) = id %s, result %s, fault %v; want %s, %s, %t", c.text, env.ID, env.Result, env.fault, c.id, c.result, c.fault)
		}
	}
}

func FuzzParseEnvelope(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"}],"structuredContent":{"n":1e400}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"m"}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"1","error":"no","result":{"isError":1}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		env, ok := parseEnvelope(text)
		if !ok || !env.isReply() {
			return
		}
		ex := exchange{answered: true, result: env.Result, err: env.err, fault: env.fault}
		out, fail := ex.output(reading{parse: true, max: 1 << 20})
		if out.IsZero() == (fail == nil) {
			t.Fatalf("output %q and failure %v: want exactly one", out, fail)
		}
		if fail == nil {
			if _, err := value.Parse(out.String()); err != nil {
				t.Fatalf("output %q is not strict JSON: %v", out, err)
			}
		}
	})
}

// However a stream is cut into reads, the same lines come out, and none is
// longer than the bound.
func TestLineReaderCuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.StringMatching(`[a-z]{0,40}`)).Draw(t, "lines")
		limit := rapid.IntRange(1, 60).Draw(t, "limit")
		var in io.Reader = strings.NewReader(strings.Join(append(lines, ""), rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")))
		if rapid.Bool().Draw(t, "byte by byte") {
			in = iotest.OneByteReader(in)
		}
		r := newLineReader(in, limit)
		for _, want := range lines {
			got, err := r.next()
			if errors.Is(err, errLineTooLong) {
				if len(want) <= limit {
					t.Fatalf("%q is refused under a limit of %d", want, limit)
				}
				return
			}
			if err != nil || string(got) != want {
				t.Fatalf("line %q, %v; want %q", got, err, want)
			}
			if len(got) > limit+len("\r\n") {
				t.Fatalf("a line of %d bytes passed a limit of %d", len(got), limit)
			}
		}
		if _, err := r.next(); err != io.EOF {
			t.Fatalf("after the last line: %v, want EOF", err)
		}
	})
}

// However a stream of events is cut into reads, each reply reaches its request.
func TestWatchedBodyCuts(t *testing.T) {
	stream := ": hello\nid: 7\ndata: {\"jsonrpc\":\"2.0\",\n" +
		"data:\"id\":1,\"result\":{\"n\":9007199254740993}}\r\n\r\n" +
		"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n" +
		"data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}\n\n"
	for size := 1; size < len(stream); size++ {
		changes := 0
		w := newWire(func() { changes++ }, new(atomic.Int64))
		first, second := &exchange{own: true}, &exchange{own: true}
		w.register(first, "1")
		w.register(second, "2")
		b := &watchedBody{ReadCloser: io.NopCloser(strings.NewReader(stream)), wire: w, max: 1000, stream: true, cancel: func() {}}
		var out bytes.Buffer
		if _, err := io.CopyBuffer(struct{ io.Writer }{&out}, struct{ io.Reader }{b}, make([]byte, size)); err != nil || out.String() != stream {
			t.Fatalf("reads of %d bytes: %v, and %q passed", size, err, out.String())
		}
		if got := w.settle(first); string(got.result) != `{"n":9007199254740993}` {
			t.Errorf("reads of %d bytes: the first reply is %s", size, got.result)
		}
		if got := w.settle(second); !got.answered || changes != 1 {
			t.Errorf("reads of %d bytes: answered %t, changes %d", size, got.answered, changes)
		}
	}
}

// In no minute are there more starts than the limit, and one that is refused
// names a time at which it is allowed.
func TestRestartLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := restartLimit{max: rapid.IntRange(1, 5).Draw(t, "max")}
		now := time.Unix(1_700_000_000, 0)
		var taken []time.Time
		for range rapid.IntRange(1, 50).Draw(t, "starts") {
			now = now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "seconds")) * time.Second)
			if wait := limit.take(now); wait > 0 {
				if wait > time.Minute {
					t.Fatalf("wait %s, want at most a minute", wait)
				}
				now = now.Add(wait)
				if again := limit.take(now); again > 0 {
					t.Fatalf("still %s to wait after waiting %s", again, wait)
				}
			}
			taken = append(taken, now)
			if n := len(taken) - limit.max - 1; n >= 0 && now.Sub(taken[n]) < time.Minute {
				t.Fatalf("%d starts within %s", limit.max+1, now.Sub(taken[n]))
			}
		}
	})
}

func TestSettledCallIsNeverSent(t *testing.T) {
	w := newWire(func() {}, new(atomic.Int64))
	ex := &exchange{own: true}
	if got := w.settle(ex); got.sent {
		t.Error("sent before it was registered")
	}
	if w.register(ex, "1") {
		t.Error("a call that was given up may still be sent")
	}
}
