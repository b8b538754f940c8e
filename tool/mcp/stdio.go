package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync/atomic"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxNoise is how many lines that are no JSON-RPC a session may write to stdout
// before its server is stopped (spec/hostile.md 82).
const maxNoise = 1000

var errNoise = fmt.Errorf("the server wrote more than %d lines to stdout that are no JSON-RPC", maxNoise)

// maxQuestions is how many requests of the server may wait for an answer at a
// time; an honest one has a ping or two.
const maxQuestions = 1000

var errQuestions = fmt.Errorf("the server asked more than %d questions without reading the answers", maxQuestions)

// A stdioTransport connects the SDK to a child, line by line. It stands in for
// the SDK's own because that one gives up at the first line of noise, and
// because results have to be taken before they are decoded.
type stdioTransport struct {
	child *child
	wire  *wire
	max   int           // bytes of one message
	noise *atomic.Int64 // of the whole source
}

var _ sdk.Transport = (*stdioTransport)(nil)

func (t *stdioTransport) Connect(context.Context) (sdk.Connection, error) {
	return &stdioConn{
		stdioTransport: t,
		lines:          newLineReader(t.child.stdout, t.max),
		writing:        make(chan struct{}, 1),
	}, nil
}

type stdioConn struct {
	*stdioTransport
	lines   *lineReader
	dropped int              // lines of noise in this session; Read only
	batch   []jsontext.Value // messages of one line that wait; Read only
	writing chan struct{}    // holds one token while a message is written

	questions atomic.Int64 // of the server, read and not yet answered
}

var _ sdk.Connection = (*stdioConn)(nil)

func (*stdioConn) SessionID() string { return "" }

// Close asks the child to leave. It returns at once, because the SDK calls it
// under a lock; the reader goes on to the end of the child's output.
func (c *stdioConn) Close() error {
	c.child.shutdown()
	return nil
}

// Read returns the next message for the SDK.
func (c *stdioConn) Read(context.Context) (jsonrpc.Message, error) {
	for {
		msg, err := c.read()
		if err != nil || msg != nil {
			return msg, err
		}
	}
}

// read takes one message; nil without an error when it was not for the SDK.
func (c *stdioConn) read() (jsonrpc.Message, error) {
	if len(c.batch) > 0 {
		next := c.batch[0]
		c.batch = c.batch[1:]
		return c.message(next)
	}
	line, err := c.lines.next()
	switch {
	case errors.Is(err, errLineTooLong):
		c.wire.cut(c.wire.owner(line))
		c.child.kill()
		return nil, err
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, os.ErrClosed):
		return nil, io.EOF // the process ended, and something else holds its pipe
	case err != nil:
		return nil, err
	}
	// Servers of 2025-03-26 may send several messages in one list.
	if len(line) > 0 && line[0] == '[' {
		if json.Unmarshal(line, &c.batch) == nil && len(c.batch) > 0 {
			return nil, nil
		}
		c.batch = nil
	}
	return c.message(line)
}

func (c *stdioConn) message(text []byte) (jsonrpc.Message, error) {
	env, ok := parseEnvelope(text)
	if !ok {
		return nil, c.drop()
	}
	if !env.isReply() {
		msg, err := jsonrpc.DecodeMessage(text)
		if err != nil {
			return nil, c.drop()
		}
		return c.fromServer(&env, msg)
	}
	ex, known := c.wire.answer(&env)
	switch {
	case !known:
		return nil, c.drop() // the reply to a question that nobody asked
	case ex == nil:
		return nil, nil
	case !ex.own && env.unreadable:
		return &jsonrpc.Response{ID: ex.rpcID, Error: env.fault}, nil
	case !ex.own:
		msg, err := jsonrpc.DecodeMessage(text)
		if err != nil {
			return &jsonrpc.Response{ID: ex.rpcID, Error: err}, nil
		}
		return msg, nil
	case env.err != nil:
		code, _ := strconv.ParseInt(string(env.err.Code), 10, 64)
		return &jsonrpc.Response{ID: ex.rpcID, Error: &jsonrpc.Error{Code: code, Message: env.err.Message}}, nil
	}
	// The exchange has the raw result; the SDK only has to see that there is one.
	return &jsonrpc.Response{ID: ex.rpcID, Result: []byte(`{"content":[],"tools":[]}`)}, nil
}

// fromServer passes on what the SDK has to answer or to know. It queues without
// a bound, so the rest ends here, and questions are bounded by the answers.
func (c *stdioConn) fromServer(env *envelope, msg jsonrpc.Message) (jsonrpc.Message, error) {
	if len(env.ID) > 0 {
		if c.questions.Add(1) > maxQuestions {
			c.child.kill()
			return nil, errQuestions
		}
		return msg, nil
	}
	c.wire.notice(env)
	if *env.Method == listChanged {
		return msg, nil
	}
	return nil, nil
}

// drop counts a line of noise; the error stops the session.
func (c *stdioConn) drop() error {
	c.noise.Add(1)
	if c.dropped++; c.dropped > maxNoise {
		c.child.kill()
		return errNoise
	}
	return nil
}

// Write sends one message, and gives up when ctx ends.
func (c *stdioConn) Write(ctx context.Context, msg jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	select {
	case c.writing <- struct{}{}:
		defer func() { <-c.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	req, ok := msg.(*jsonrpc.Request)
	if !ok {
		c.questions.Add(-1)
	}
	if !ok || !req.IsCall() {
		_, err := c.child.write(ctx, append(text, '\n'))
		return err
	}
	ex := exchangeFrom(ctx)
	if ex == nil {
		ex = &exchange{}
	}
	ex.rpcID = req.ID // before anybody else can see it
	if !c.wire.register(ex, wireID(req.ID)) {
		return context.Canceled
	}
	sent, err := c.child.write(ctx, append(text, '\n'))
	if !sent {
		c.wire.unsent(ex)
	}
	return err
}
