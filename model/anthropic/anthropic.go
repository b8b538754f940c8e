// Package anthropic asks Anthropic's messages API.
//
//	m, err := anthropic.New(anthropic.Config{
//		Model:    "claude-sonnet-4-5",
//		KeyEnv:   "ANTHROPIC_API_KEY",
//		Thinking: value.MustParse(`{"type":"enabled","budget_tokens":4096}`),
//	})
//
// The content of the assistant's messages goes back byte for byte, thinking
// blocks with their signatures first, as they came. A choice cannot be forced
// while the model thinks: the forced tool is then the only one offered, with an
// instruction, and the reply says so.
package anthropic

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/internal/transport"
	"github.com/callsheet/callsheet/value"
)

// Dialect names the form of the raw messages: the list of content blocks.
const Dialect = "anthropic"

// The defaults. The API demands a bound on every reply; 8192 tokens hold any
// plan, and leave a runaway reply affordable.
const (
	DefaultBaseURL   = "https://api.anthropic.com"
	DefaultMaxTokens = 8192
	version          = "2023-06-01"
)

// Config says what to ask for. Only Model is required.
type Config struct {
	BaseURL string // up to /v1/messages; "": DefaultBaseURL
	Model   string
	KeyEnv  string // environment variable that holds the key; "": no key is sent

	MaxTokens int         // of a reply where the request has no bound; 0: DefaultMaxTokens
	Thinking  value.Value // the request's "thinking" member; the zero Value: off
	// Extra are more members of every request ("temperature"); an object. None
	// may be one that the adapter writes.
	Extra value.Value

	Client   *http.Client  // nil: one of the adapter's own
	Timeout  time.Duration // of one attempt; 0: ten minutes
	MaxBytes int64         // of one response; 0: 32 MiB
	Retry    model.Retry
}

// Validate names the field that makes no sense.
func (c *Config) Validate() error {
	switch {
	case c.Model == "":
		return errors.New("anthropic: Model is empty")
	case c.MaxTokens < 0:
		return errors.New("anthropic: MaxTokens is negative")
	case !c.Thinking.IsZero() && c.Thinking.Kind() != value.Object:
		return fmt.Errorf("anthropic: Thinking is a %s, not an object", c.Thinking.Kind())
	}
	if err := transport.CheckExtra(c.Extra, reserved); err != nil {
		return fmt.Errorf("anthropic: %w", err)
	}
	return nil
}

var reserved = []string{"model", "max_tokens", "system", "messages", "tools", "tool_choice", "thinking", "stream"}

func (c *Config) thinks() bool {
	kind, _ := c.Thinking.Get("type")
	text, _ := kind.Text()
	return !c.Thinking.IsZero() && text != "disabled"
}

// A Model asks for one model. It is safe for concurrent use.
type Model struct {
	config Config
	client *transport.Client
}

var _ model.Model = (*Model)(nil)

// New checks the configuration and reads the key.
func New(c Config) (*Model, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	client, err := transport.New(transport.Config{
		BaseURL: cmp.Or(c.BaseURL, DefaultBaseURL), Path: "/v1/messages",
		KeyEnv: c.KeyEnv, Auth: func(h http.Header, key string) { h.Set("X-Api-Key", key) },
		Header: http.Header{"Anthropic-Version": {version}},
		Client: c.Client, Timeout: c.Timeout, MaxBytes: c.MaxBytes, Retry: c.Retry,
	})
	if err != nil {
		return nil, fmt.Errorf("anthropic: %w", err)
	}
	return &Model{c, client}, nil
}

// Ask makes one request.
func (m *Model) Ask(ctx context.Context, req *model.Request) (*model.Reply, error) {
	limit := cmp.Or(req.MaxTokens, m.config.MaxTokens, DefaultMaxTokens)
	body, fallback, err := m.encode(req, limit)
	if err != nil {
		return nil, err
	}
	read := readWhole
	if req.Progress != nil {
		read = readStream(req.Progress)
	}
	return m.client.Ask(ctx, body, fallback, func(r io.Reader) (*model.Reply, error) { return read(r, len(req.Messages), limit) })
}
