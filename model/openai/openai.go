// Package openai asks any server that speaks OpenAI's chat completions: OpenAI
// itself, vLLM, llama.cpp, Ollama, OpenRouter, DeepSeek, Gemini's compatible
// endpoint.
//
//	m, err := openai.New(openai.Config{
//		BaseURL: "http://127.0.0.1:11434/v1",
//		Model:   "qwen3",
//		Forcing: model.ForcesNothing,
//	})
//
// The assistant's messages go back byte for byte, with every field that the
// server put into them (reasoning_content, extra_content with its
// thought_signature). Only arguments that are no JSON, ids that are missing or
// stand twice, and a message without content or calls are edited, because
// servers refuse them, and the reply lists it.
package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/internal/transport"
	"github.com/callsheet/callsheet/value"
)

// Dialect names the form of the raw messages.
const Dialect = "openai"

// DefaultBaseURL is OpenAI's own server.
const DefaultBaseURL = "https://api.openai.com/v1"

// Config says which server to ask for what. Only Model is required.
type Config struct {
	BaseURL string // up to /chat/completions; "": DefaultBaseURL
	Model   string
	KeyEnv  string // environment variable that holds the key; "": no key is sent

	// Forcing is what the server does with tool_choice. A server that answers
	// 400 to it is asked once more without it.
	Forcing model.Forcing
	// MaxTokens bounds a reply where the request does not; 0: the server's own
	// bound.
	MaxTokens int
	// MaxTokensField is the member that carries the bound: "max_tokens" (the
	// default) or, for OpenAI's own newer models, "max_completion_tokens".
	MaxTokensField string
	// Extra are more members of every request ("temperature",
	// "reasoning_effort"); an object. None may be one that the adapter writes.
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
		return errors.New("openai: Model is empty")
	case c.MaxTokens < 0:
		return errors.New("openai: MaxTokens is negative")
	case !slices.Contains([]string{"", "max_tokens", "max_completion_tokens"}, c.MaxTokensField):
		return fmt.Errorf("openai: MaxTokensField is %q, not max_tokens or max_completion_tokens", c.MaxTokensField)
	}
	if err := transport.CheckExtra(c.Extra, reserved); err != nil {
		return fmt.Errorf("openai: %w", err)
	}
	return nil
}

var reserved = []string{"model", "messages", "tools", "tool_choice", "max_tokens", "max_completion_tokens", "stream", "stream_options", "n"}

// A Model asks one server for one model. It is safe for concurrent use.
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
		BaseURL: cmp.Or(c.BaseURL, DefaultBaseURL), Path: "/chat/completions",
		KeyEnv: c.KeyEnv, Auth: func(h http.Header, key string) { h.Set("Authorization", "Bearer "+key) },
		Client: c.Client, Timeout: c.Timeout, MaxBytes: c.MaxBytes, Retry: c.Retry,
		Permanent: []string{"insufficient_quota"}, // an empty account does not fill up while we wait
	})
	if err != nil {
		return nil, fmt.Errorf("openai: %w", err)
	}
	return &Model{c, client}, nil
}

// Ask makes one request, and a second one where the server refuses tool_choice.
func (m *Model) Ask(ctx context.Context, req *model.Request) (*model.Reply, error) {
	reply, err := m.ask(ctx, req, m.config.Forcing)
	var e *model.Error
	if req.Choice.Mode == model.ModeAuto || m.config.Forcing == model.ForcesNothing ||
		!errors.As(err, &e) || e.Status != http.StatusBadRequest || !aboutChoice(e.Message) {
		return reply, err
	}
	refusal := e.Message
	if reply, err = m.ask(ctx, req, model.ForcesNothing); err != nil {
		return nil, err
	}
	reply.Fallbacks = append(reply.Fallbacks, fmt.Sprintf("the server refused tool_choice (%.200q) and was asked again without it", refusal))
	return reply, nil
}

func aboutChoice(message string) bool {
	message = strings.ToLower(message)
	return strings.Contains(message, "tool_choice") || strings.Contains(message, "tool choice")
}

func (m *Model) ask(ctx context.Context, req *model.Request, forcing model.Forcing) (*model.Reply, error) {
	body, fallback, err := m.encode(req, forcing)
	if err != nil {
		return nil, err
	}
	limit := cmp.Or(req.MaxTokens, m.config.MaxTokens)
	read := readWhole
	if req.Progress != nil {
		read = readStream(req.Progress)
	}
	return m.client.Ask(ctx, body, fallback, func(r io.Reader) (*model.Reply, error) { return read(r, len(req.Messages), limit) })
}
