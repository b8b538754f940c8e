// Package transport posts JSON to a provider: bounded in size, time and
// attempts, without redirects, and with no key in any error.
package transport

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/internal/rawjson"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// The default bounds of one attempt: a long reply with thinking takes minutes,
// and the longest is far below 32 MiB of text.
const (
	DefaultTimeout  = 10 * time.Minute
	DefaultMaxBytes = 32 << 20
)

// Config is what the adapters' configurations have in common.
type Config struct {
	BaseURL   string
	Path      string
	KeyEnv    string                    // environment variable of the key; "": none is sent
	Auth      func(http.Header, string) // puts the key into the header
	Client    *http.Client              // nil: one of our own
	Timeout   time.Duration             // of one attempt; 0: DefaultTimeout
	MaxBytes  int64                     // of one response; 0: DefaultMaxBytes
	Retry     model.Retry
	Header    http.Header
	Permanent []string // the provider's codes that make a 429 permanent
}

// A Client posts to one address.
type Client struct {
	config Config
	url    string
	key    string
	http   *http.Client
}

// New checks the configuration and reads the key.
func New(c Config) (*Client, error) {
	u, err := url.Parse(c.BaseURL)
	switch {
	case err != nil:
		return nil, fmt.Errorf("BaseURL: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, fmt.Errorf("BaseURL %q is not an http or https address", c.BaseURL)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("BaseURL has a user, a query or a fragment; a key is named by KeyEnv")
	case c.Timeout < 0 || c.MaxBytes < 0:
		return nil, errors.New("a negative Timeout or MaxBytes")
	}
	if err := c.Retry.Validate(); err != nil {
		return nil, err
	}
	t := &Client{config: c, url: strings.TrimRight(c.BaseURL, "/") + c.Path}
	if c.KeyEnv != "" {
		if t.key = strings.TrimSpace(os.Getenv(c.KeyEnv)); t.key == "" {
			return nil, fmt.Errorf("the environment variable %s, which should hold the key, is not set", c.KeyEnv)
		}
	}
	own := http.Client{}
	if c.Client != nil {
		own = *c.Client
	}
	// A redirect would carry the conversation, and in some headers the key, to
	// another host.
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.http = &own
	return t, nil
}

// Post sends the segments as one body and gives a response of status 200 to
// read, which must return what it could not read as it is. Overload, dropped
// connections and text that breaks off are tried again.
func (t *Client) Post(ctx context.Context, body [][]byte, read func(body io.Reader) error) error {
	return t.config.Retry.Do(ctx, func(int) error {
		err := t.try(ctx, body, read)
		var e *model.Error
		if errors.As(err, &e) {
			e.Message = clip(t.redact(e.Message))
		}
		return err
	})
}

// Ask posts the segments and returns the reply that read makes of the response,
// with the fallback, if there is one, that the request had to take.
func (t *Client) Ask(ctx context.Context, body [][]byte, fallback string, read func(io.Reader) (*model.Reply, error)) (*model.Reply, error) {
	var reply *model.Reply
	err := t.Post(ctx, body, func(r io.Reader) (err error) {
		reply, err = read(r)
		return err
	})
	if err != nil {
		return nil, err
	}
	if fallback != "" {
		reply.Fallbacks = append(reply.Fallbacks, fallback)
	}
	return reply, nil
}

func (t *Client) try(ctx context.Context, body [][]byte, read func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(t.config.Timeout, DefaultTimeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, segments(body))
	if err != nil {
		return model.Errorf("%w", err)
	}
	req.ContentLength = 0
	for _, s := range body {
		req.ContentLength += int64(len(s))
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(segments(body)), nil }
	req.Header.Set("Content-Type", "application/json")
	for k, v := range t.config.Header {
		req.Header[k] = v
	}
	if t.key != "" {
		t.config.Auth(req.Header, t.key)
	}
	resp, err := t.http.Do(req)
	if err != nil {
		return dropped(err)
	}
	defer resp.Body.Close()
	limit := cmp.Or(t.config.MaxBytes, DefaultMaxBytes)
	capped := &capped{r: resp.Body, left: limit}
	if resp.StatusCode != http.StatusOK {
		return t.refused(resp, capped)
	}
	err = read(capped)
	var known *model.Error
	switch {
	case capped.over:
		return model.Errorf("the response is over %d bytes", limit)
	case err == nil, errors.As(err, &known):
		return err
	}
	return dropped(err)
}

// dropped is a connection that gave no answer, or only a part of one.
func dropped(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // its text repeats the address
	}
	e := model.Errorf("no whole response: %w", err)
	e.Kind = model.Transient
	return e
}

func (t *Client) refused(resp *http.Response, body io.Reader) error {
	const enough = 64 << 10 // of an explanation of which 4 KiB are kept
	text, _ := io.ReadAll(io.LimitReader(body, enough))
	e := model.Errorf("%s", http.StatusText(resp.StatusCode))
	e.Status, e.After = resp.StatusCode, retryAfter(resp.Header.Get("Retry-After"), time.Now())
	if code, message := Explanation(text); message != "" {
		e.Code, e.Message = code, message
	} else if len(bytes.TrimSpace(text)) > 0 {
		e.Message = strings.ToValidUTF8(string(bytes.TrimSpace(text)), "\uFFFD")
	}
	e.Kind = Kind(e.Status, e.Code, e.Message)
	if e.Kind == model.Transient && slices.Contains(t.config.Permanent, e.Code) {
		e.Kind = model.Permanent
	}
	return e
}

// Kind sorts a status and a provider's own code.
func Kind(status int, code, message string) model.Kind {
	switch {
	case status == http.StatusRequestTimeout, status == http.StatusTooManyRequests,
		status >= 500 && status != http.StatusNotImplemented:
		return model.Transient
	case strings.Contains(code, "content_filter"), strings.Contains(code, "content_policy"),
		strings.Contains(strings.ToLower(message), "content policy"):
		return model.Refusal
	}
	return model.Permanent
}

// Explanation reads {"error": {"code" or "type", "message"}} or
// {"error": "text"}.
func Explanation(text []byte) (code, message string) {
	var doc struct {
		Error jsontext.Value `json:"error"`
	}
	if json.Unmarshal(text, &doc, rawjson.Lenient) != nil || doc.Error == nil {
		return "", ""
	}
	if doc.Error.Kind() == '"' {
		_ = json.Unmarshal(doc.Error, &message)
		return "", message
	}
	var e struct {
		Code    jsontext.Value `json:"code"`
		Type    string         `json:"type"`
		Message string         `json:"message"`
	}
	if json.Unmarshal(doc.Error, &e, rawjson.Lenient) != nil {
		return "", string(doc.Error)
	}
	code = e.Type
	switch e.Code.Kind() {
	case '"':
		_ = json.Unmarshal(e.Code, &code)
	case '0':
		code = string(e.Code)
	}
	return code, e.Message
}

// retryAfter reads both forms of the header. What is neither, or lies in the
// past, is no wish.
func retryAfter(h string, now time.Time) time.Duration {
	if s, err := strconv.ParseInt(h, 10, 64); err == nil {
		const most = int64(time.Duration(1<<63-1) / time.Second)
		return time.Duration(max(0, min(s, most))) * time.Second
	}
	if at, err := http.ParseTime(h); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

func (t *Client) redact(s string) string {
	if t.key == "" {
		return s
	}
	return strings.ReplaceAll(s, t.key, "[key]")
}

func clip(s string) string {
	if len(s) <= model.MaxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:model.MaxMessage], "") + "…"
}

func segments(body [][]byte) io.Reader {
	rs := make([]io.Reader, len(body))
	for i, s := range body {
		rs[i] = bytes.NewReader(s)
	}
	return io.MultiReader(rs...)
}

// capped reads until left is used up and remembers that there was more.
type capped struct {
	r    io.Reader
	left int64
	over bool
}

func (c *capped) Read(p []byte) (int, error) {
	if c.left <= 0 {
		var one [1]byte
		if n, err := c.r.Read(one[:]); n == 0 {
			return 0, err
		}
		c.over = true
		return 0, io.ErrUnexpectedEOF
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.r.Read(p)
	c.left -= int64(n)
	return n, err
}

// Events gives the data of each event of a text/event-stream to each until it
// says that the stream is done. A stream that ends before is an
// io.ErrUnexpectedEOF.
func Events(body io.Reader, each func(data []byte) (done bool, err error)) error {
	r := bufio.NewReader(body)
	var data []byte
	for {
		line, err := r.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		eof := err == io.EOF
		line = bytes.TrimRight(line, "\r\n")
		if field, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if len(data) > 0 {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(field, []byte(" "))...)
		}
		if len(data) > 0 && (len(line) == 0 || eof) {
			done, err := each(data)
			if done || err != nil {
				return err
			}
			data = data[:0]
		}
		if eof {
			return io.ErrUnexpectedEOF
		}
	}
}
