package mcp

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// listChanged is the method of the notice that the tools are not what they were.
const listChanged = "notifications/tools/list_changed"

// envelope is one JSON-RPC message with its payload left as it came: the SDK
// decodes results into any, which rounds numbers.
type envelope struct {
	Version string         `json:"jsonrpc"`
	ID      jsontext.Value `json:"id"`
	Method  *string        `json:"method"`
	Params  jsontext.Value `json:"params"`
	Result  jsontext.Value `json:"result"`
	Failed  jsontext.Value `json:"error"`

	err *rpcError // Failed, as far as it can be read; nil for none
	// fault is why the message is not as it should be, nil if it is. Such a
	// message still answers its request, as a failure: dropping it would leave the
	// call waiting for its deadline.
	fault error
	// unreadable is set with a fault that the SDK stumbles over, so that it does
	// not end the request.
	unreadable bool
}

// rpcError is the error of a reply. The code is text, because servers send
// names and fractions where the protocol has integers.
type rpcError struct {
	Code    jsontext.Value `json:"code"`
	Message string         `json:"message"`
}

// parseEnvelope reads a message; ok is false for what is no JSON-RPC at all.
func parseEnvelope(text []byte) (env envelope, ok bool) {
	err := json.Unmarshal(text, &env)
	if err != nil {
		env = envelope{}
		if json.Unmarshal(text, &env, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
			return envelope{}, false
		}
		env.fault = fmt.Errorf("the reply is not strict JSON: %w", err)
	}
	if len(env.Failed) > 0 && env.Failed.Kind() != 'n' {
		env.err = &rpcError{}
		if json.Unmarshal(env.Failed, env.err, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) != nil {
			env.err = nil
			env.fault, env.unreadable = fmt.Errorf("the error of the reply cannot be read: %s", value.Excerpt(string(env.Failed))), true
		}
	}
	return env, env.Version == "2.0" && (env.Method != nil || len(env.ID) > 0)
}

func (e *envelope) isReply() bool { return e.Method == nil }

// scanID reads just enough of a message to find its id. A prefix of a message
// will do; ok is false when the id does not come before the payload.
func scanID(text []byte) (id string, ok bool) {
	dec := jsontext.NewDecoder(strings.NewReader(string(text[:min(len(text), envelopeRoom)])))
	if t, err := dec.ReadToken(); err != nil || t.Kind() != '{' {
		return "", false
	}
	for dec.PeekKind() == '"' {
		name, err := dec.ReadToken()
		if err != nil {
			return "", false
		}
		isID := name.String() == "id"
		v, err := dec.ReadValue()
		if err != nil {
			return "", false
		}
		if isID {
			return string(v), true
		}
	}
	return "", false
}

// progressRoom is how many notices wait for a handler that is busy reporting;
// more are dropped, the oldest first.
const progressRoom = 16

// An exchange is one request and what came of it on the wire. The SDK's own
// requests have one that only passes their replies through.
type exchange struct {
	token    string             // progress token, "" for none
	progress chan tool.Progress // nil for none
	own      bool               // ours: the raw reply is kept here

	// broken is closed with an answer that the SDK does not take for one; nil:
	// nobody waits for that.
	broken chan struct{}

	// The rest is guarded by wire.mu.
	rpcID      jsonrpc.ID
	id         string // as it stands on the wire
	sent       bool   // bytes of the request may have reached the server
	settled    bool   // nobody waits for the reply any more
	answered   bool
	result     jsontext.Value
	err        *rpcError
	fault      error         // the reply was not strict JSON
	tooLarge   bool          // the reply was cut at the cap
	status     int           // of an HTTP reply that is no success, else 0
	retryAfter time.Duration // as that reply says
}

type exchangeKey struct{}

func withExchange(ctx context.Context, ex *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, ex)
}

func exchangeFrom(ctx context.Context) *exchange {
	ex, _ := ctx.Value(exchangeKey{}).(*exchange)
	return ex
}

// maxAbandoned bounds what is remembered of calls that were given up, so that
// their late results can be told from noise.
const maxAbandoned = 1024

// wire keeps the requests of one session that wait for a reply.
type wire struct {
	listChanged func()        // called in the order of the messages; must not block
	late        *atomic.Int64 // results that came after their call was given up

	mu        sync.Mutex
	pending   map[string]*exchange // by id
	tokens    map[string]*exchange
	abandoned map[string]struct{}
}

func newWire(listChanged func(), late *atomic.Int64) *wire {
	return &wire{
		listChanged: listChanged,
		late:        late,
		pending:     map[string]*exchange{},
		tokens:      map[string]*exchange{},
		abandoned:   map[string]struct{}{},
	}
}

// register puts ex on the wire. From here on it counts as sent, until unsent
// says otherwise: a call whose context ends in between must not be taken for
// one that never left. ok is false when the call was given up already; then
// nothing may be sent.
func (w *wire) register(ex *exchange, id string) (ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ex.settled {
		return false
	}
	ex.id, ex.sent = id, true
	w.pending[id] = ex
	if ex.token != "" {
		w.tokens[ex.token] = ex
	}
	return true
}

// unsent notes that no byte of the request reached the server.
func (w *wire) unsent(ex *exchange) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ex.sent = false
}

// settle takes ex off the wire and returns what came of it. A reply that comes
// later is counted as late.
func (w *wire) settle(ex *exchange) exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	ex.settled = true
	if w.pending[ex.id] == ex {
		delete(w.pending, ex.id)
		if ex.sent {
			for old := range w.abandoned {
				if len(w.abandoned) < maxAbandoned {
					break
				}
				delete(w.abandoned, old)
			}
			w.abandoned[ex.id] = struct{}{}
		}
	}
	if w.tokens[ex.token] == ex {
		delete(w.tokens, ex.token)
	}
	return *ex
}

// answer finds the exchange that a reply belongs to and takes it off. known is
// false for the id of no request, true with a nil exchange for a late result.
func (w *wire) answer(env *envelope) (ex *exchange, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := string(env.ID)
	ex = w.pending[id]
	if named := plainID(env.ID); ex == nil && w.pending[named] != nil {
		id, ex = named, w.pending[named]
		env.fault, env.unreadable = fmt.Errorf("the reply is to %s, and the request was %s", value.Excerpt(string(env.ID)), named), true
	}
	if ex == nil {
		if _, known = w.abandoned[id]; known {
			delete(w.abandoned, id)
			w.late.Add(1)
		}
		return nil, known
	}
	delete(w.pending, id)
	ex.answered, ex.result, ex.err, ex.fault = true, env.Result, env.err, env.fault
	if env.unreadable && ex.broken != nil {
		close(ex.broken)
	}
	return ex, true
}

// plainID is the id that a server means which writes the number of a request in
// another way: as a text, or with a point.
func plainID(id jsontext.Value) string {
	text := string(id)
	if id.Kind() == '"' {
		if json.Unmarshal(id, &text) != nil {
			return ""
		}
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && n == math.Trunc(n) && math.Abs(n) < 1<<53 {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return ""
}

// notice handles the notifications that concern calls; the SDK may see them too.
func (w *wire) notice(env *envelope) {
	if len(env.ID) > 0 {
		return // a request, whatever its name
	}
	switch *env.Method {
	case "notifications/progress":
		var p struct {
			Token    jsontext.Value `json:"progressToken"`
			Progress float64        `json:"progress"`
			Total    float64        `json:"total"`
			Message  string         `json:"message"`
		}
		if json.Unmarshal(env.Params, &p) != nil {
			return
		}
		var token string
		if json.Unmarshal(p.Token, &token) != nil {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if ex := w.tokens[token]; ex != nil {
			ex.report(tool.Progress{Done: p.Progress, Total: p.Total, Message: clip(p.Message)})
		}
	case listChanged:
		w.listChanged()
	}
}

// report queues a notice, in the place of the oldest when the queue is full.
// Holding wire.mu, so that there is one writer.
func (ex *exchange) report(p tool.Progress) {
	for {
		select {
		case ex.progress <- p:
			return
		default:
		}
		select {
		case <-ex.progress:
		default:
		}
	}
}

// owner finds whose reply a message is that was over the cap: the one named by
// its head or, where the id comes last, the only one that waits; else nil.
func (w *wire) owner(head []byte) *exchange {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id, ok := scanID(head); ok {
		return w.pending[id]
	}
	if len(w.pending) == 1 {
		for _, ex := range w.pending {
			return ex
		}
	}
	return nil
}

// cut marks the exchange whose reply was over the cap; nil for none.
func (w *wire) cut(ex *exchange) {
	if ex == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	ex.tooLarge = true
}

// clip keeps the first [tool.MaxMessage] bytes of what a server wrote.
func clip(s string) string {
	return tool.AsFailure(&tool.Failure{Message: s}).Message
}

func wireID(id jsonrpc.ID) string {
	if s, ok := id.Raw().(string); ok {
		b, _ := jsontext.AppendQuote(nil, s)
		return string(b)
	}
	return fmt.Sprint(id.Raw())
}

// refused notes that the request was answered with an HTTP error.
func (w *wire) refused(ex *exchange, status int, after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ex.status, ex.retryAfter = status, after
}
