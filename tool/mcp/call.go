package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// KeyMeta is the member of a call's _meta that carries its idempotency key. A
// server that knows it can make two calls with one key have one effect.
const KeyMeta = "callsheet/idempotencyKey"

// reading is how the result of a tool is read.
type reading struct {
	parse bool // one text block is JSON
	max   int  // bytes of the output
}

// call runs one call of a tool. A session that turns out to be dead before
// anything was sent is replaced once: nothing happened, so that is no retry.
func (s *Source) call(ctx context.Context, f frozen, c *tool.Call, r reading) (value.Value, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(errClosed) })()
	for again := true; ; again = false {
		sess, release, err := s.pool.acquire(ctx)
		if err != nil {
			return value.Value{}, tool.AsFailure(s.unsent(ctx, err))
		}
		got, err := s.send(ctx, sess, f, c)
		release()
		if again && !got.sent && errors.Is(err, errSessionEnded) {
			continue
		}
		out, fail := s.outcome(ctx, sess, got, err, r)
		if fail != nil {
			return value.Value{}, tool.AsFailure(fail)
		}
		return out, nil
	}
}

// errSessionEnded is the error of a call whose session ended before the call
// could be sent, or was unknown to the server.
var errSessionEnded = errors.New("the session with the server had ended")

// send makes the exchange, reporting progress until it ends or ctx does. The
// error matters only where the exchange has no answer.
func (s *Source) send(ctx context.Context, sess *session, f frozen, c *tool.Call) (exchange, error) {
	now, _, err := sess.definition(ctx, f.name)
	switch {
	case err != nil && ctx.Err() == nil:
		return exchange{}, errSessionEnded
	case err != nil:
		return exchange{}, err
	case now != f.digest:
		return exchange{}, &tool.Failure{Code: tool.CodeToolChanged, Message: fmt.Sprintf(
			"the server now defines %q in another way than when the run began; look at the new definition and start again", f.name)}
	}
	ex := &exchange{
		own:      true,
		token:    fmt.Sprintf("callsheet-%d", s.tokens.Add(1)),
		progress: make(chan tool.Progress, progressRoom),
		broken:   make(chan struct{}),
	}
	params := &sdk.CallToolParams{Meta: sdk.Meta{"progressToken": ex.token}, Name: f.name, Arguments: c.Args}
	if c.Args.Kind() != value.Object {
		params.Arguments = value.ObjectOf()
	}
	if key := c.Key(); key != "" {
		params.Meta[KeyMeta] = key
	}
	ended := make(chan error, 1)
	s.running.Go(func() {
		_, err := sess.sdk.CallTool(withExchange(ctx, ex), params)
		ended <- err
	})
	for {
		select {
		case p := <-ex.progress:
			c.Progress(p)
			continue
		case err = <-ended:
		case <-ex.broken:
		case <-ctx.Done():
			// The SDK follows at once, sends the server a cancellation and does not
			// wait for it to stop: that would prove nothing.
			err = ctx.Err()
		}
		break
	}
	got := sess.wire.settle(ex) // first: after it nothing is sent any more
	for len(ex.progress) > 0 {
		c.Progress(<-ex.progress)
	}
	switch {
	case got.answered:
		return got, nil
	case got.status == http.StatusNotFound:
		// The server knew no such session, so it ran nothing. The SDK's
		// ErrSessionMissing would not do: with some bodies it does not come, and
		// it comes as well when only the rest of a stream was asked for.
		got.sent = false
		sess.fail(errSessionEnded)
	case got.sent || ctx.Err() != nil || !errors.Is(err, sdk.ErrConnectionClosed) && !sess.dead():
		return got, err
	}
	select {
	case <-sess.done: // soon; then the next call cannot meet it again
	case <-ctx.Done():
	}
	return got, errSessionEnded
}

// outcome reads what came of a call.
func (s *Source) outcome(ctx context.Context, sess *session, got exchange, err error, r reading) (value.Value, *tool.Failure) {
	var failed *tool.Failure
	switch {
	case got.answered:
		return got.output(r)
	case errors.As(err, &failed):
		return value.Value{}, failed
	case errors.Is(err, errSessionEnded):
		return value.Value{}, s.unsent(ctx, err)
	case got.tooLarge:
		return value.Value{}, tooLarge(r.max)
	case ctx.Err() == nil && got.status != 0:
		return value.Value{}, httpFailure(got)
	case !got.sent:
		return value.Value{}, s.unsent(ctx, err)
	}
	if f := ended(ctx); f != nil {
		f.Lost = true
		return value.Value{}, f
	}
	if sess.child != nil {
		// The end of its output comes a moment before the end of the process.
		select {
		case <-sess.child.exited:
		case <-time.After(drainTime):
		case <-ctx.Done():
		}
	}
	return value.Value{}, &tool.Failure{
		Code: tool.CodeConnection, Lost: true,
		Message: "the server went away during the call: " + sess.explain(plain(err)).Error(),
	}
}

// ended is the failure of a call whose context is over, nil while it is not.
func ended(ctx context.Context) *tool.Failure {
	switch {
	case ctx.Err() == nil:
		return nil
	case errors.Is(context.Cause(ctx), errClosed):
		return &tool.Failure{Code: tool.CodeConnection, Message: errClosed.Error()}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &tool.Failure{Code: tool.CodeTimeout, Message: "no answer by the deadline"}
	}
	return &tool.Failure{Code: tool.CodeCancelled, Message: "no answer before the call was cancelled"}
}

// unsent is the failure of a call of which nothing reached the server.
func (s *Source) unsent(ctx context.Context, err error) *tool.Failure {
	f := ended(ctx)
	if f == nil {
		f = &tool.Failure{Code: tool.CodeConnection, Message: plain(err).Error()}
	}
	f.Message += " (the call was not sent)"
	f.NotStarted = errors.Is(err, errClosed) || errors.Is(context.Cause(ctx), errClosed)
	f.Retryable = !f.NotStarted
	return f
}

func tooLarge(max int) *tool.Failure {
	return &tool.Failure{Code: tool.CodeOutputTooLarge, Message: fmt.Sprintf("the output is longer than %s and was cut off", count.Of(max, "byte"))}
}

// httpFailure reads an HTTP error that is no JSON-RPC: by 429 and 503 a server
// says that it did not take the request, by 502 and 504 a gateway says that it
// does not know.
func httpFailure(got exchange) *tool.Failure {
	f := &tool.Failure{Code: fmt.Sprintf("http_%d", got.status), Message: fmt.Sprintf("the server answered with HTTP status %d", got.status)}
	switch got.status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		f.Retryable, f.After = true, got.retryAfter
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		f.Lost = true
	}
	return f
}

// value parses the raw result of an exchange that was answered.
func (ex *exchange) value() (value.Value, error) {
	switch {
	case ex.err != nil:
		return value.Value{}, &tool.Failure{Code: "jsonrpc" + strings.Trim(clipCode(string(ex.err.Code)), `"`), Message: ex.err.Message}
	case ex.fault != nil:
		return value.Value{}, &tool.Failure{Code: tool.CodeInvalidOutput, Message: ex.fault.Error()}
	}
	v, err := value.Parse(ex.result)
	if err == nil && v.Kind() != value.Object {
		err = errors.New("it is no object")
	}
	if err != nil {
		return value.Value{}, &tool.Failure{Code: tool.CodeInvalidOutput, Message: "the result cannot be read: " + err.Error()}
	}
	return v, nil
}

func clipCode(code string) string { return code[:min(len(code), 32)] }

// output reads the result of a call — structuredContent, else one text
// block, else the blocks.
func (ex *exchange) output(r reading) (value.Value, *tool.Failure) {
	result, err := ex.value()
	if err != nil {
		return value.Value{}, tool.AsFailure(err)
	}
	content, _ := result.Get("content")
	if v, ok := result.Get("isError"); ok {
		switch isError, ok := v.Bool(); {
		case !ok:
			return value.Value{}, &tool.Failure{Code: tool.CodeInvalidOutput, Message: "isError of the result is " + value.Excerpt(v.String()) + ", and must be true or false"}
		case isError:
			return value.Value{}, tool.Errorf("%s", explanation(result, content))
		}
	}
	if v, ok := result.Get("resultType"); ok {
		if kind, _ := v.Text(); kind != "complete" {
			return value.Value{}, tool.Errorf("the server wants %q before it answers, which is not supported", clip(kind))
		}
	}
	out, f := choose(result, content, r.parse)
	if f == nil && out.Size() > r.max {
		return value.Value{}, tooLarge(r.max)
	}
	return out, f
}

func choose(result, content value.Value, parse bool) (value.Value, *tool.Failure) {
	if v, ok := result.Get("structuredContent"); ok && !v.IsNull() {
		return v, nil
	}
	if content.Kind() != value.List {
		return value.Value{}, &tool.Failure{Code: tool.CodeInvalidOutput, Message: "the result has neither content nor structuredContent"}
	}
	if content.Len() != 1 {
		return content, nil
	}
	text, ok := blockText(content.At(0))
	if !ok {
		return content, nil
	}
	if !parse {
		return text, nil
	}
	s, _ := text.Text()
	v, err := value.Parse(s)
	if err != nil {
		return value.Value{}, tool.Errorf("the text should be JSON: %v", err)
	}
	return v, nil
}

// blockText is the text of a text block.
func blockText(block value.Value) (value.Value, bool) {
	if kind, _ := block.Get("type"); kind.Kind() != value.String || kind.String() != `"text"` {
		return value.Value{}, false
	}
	text, ok := block.Get("text")
	return text, ok && text.Kind() == value.String
}

// explanation is the message of a result with isError: its text blocks, else
// what it has instead.
func explanation(result, content value.Value) string {
	var b strings.Builder
	for _, block := range content.Elements() {
		if text, ok := blockText(block); ok {
			if b.Len() > tool.MaxMessage {
				break
			}
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			s, _ := text.Text()
			b.WriteString(s)
		}
	}
	if b.Len() > 0 {
		return b.String()
	}
	if v, ok := result.Get("structuredContent"); ok {
		return v.String()
	}
	return "the tool failed and did not say why"
}

// plain is an error without the URL that net/http puts into it: a query may
// hold a secret.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
