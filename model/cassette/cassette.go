// Package cassette records the replies of a real model once and plays them back
// for ever.
//
//	live, err := openai.New(…)
//	m, err := cassette.Record("testdata/trip.cassette", live, cassette.Config{Secrets: []string{"OPENAI_API_KEY"}})
//	…
//	m, err := cassette.Replay("testdata/trip.cassette")
//
// A reply is found by the digest of the request's content: its messages, tools,
// choice, role and bound. A request that was not recorded is an error, never a
// call of the live model.
//
// The file is lines of JSON: first {"cassette": 1}, then one
// {"key", "role", "round", "reply"} for each reply, in the order in which they
// were recorded. Requests are not in it, only their digests.
//
// A user with a key records one in a single command:
//
//	OPENAI_API_KEY=… go test ./model/cassette -run TestRecordLive -live-model gpt-5 -live-key OPENAI_API_KEY -live-out trip.cassette
package cassette

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/value"
	"github.com/go-json-experiment/json"
)

const header = `{"cassette":1}`

// A Model plays a cassette, and records what is missing if it has a live model.
// It is safe for concurrent use.
type Model struct {
	path    string
	live    model.Model // nil: replay only
	secrets []string

	mu      sync.Mutex
	entries map[string]value.Value // by key; holding mu
}

var _ model.Model = (*Model)(nil)

// Config says what a recorder must not write.
type Config struct {
	// Secrets names environment variables whose values are replaced in every
	// reply before it is recorded or given on: what was recorded is what the
	// conversation goes on with, or its later requests would not be found.
	Secrets []string
}

// minSecret is the length from which a value is looked for: a shorter one would
// stand in any text by chance.
const minSecret = 8

// Replay opens a cassette for playing.
func Replay(path string) (*Model, error) {
	m := &Model{path: path, entries: map[string]value.Value{}}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return m, m.read(text)
}

// Record opens a cassette, or begins one, that asks live for what it does not
// hold.
func Record(path string, live model.Model, c Config) (*Model, error) {
	m := &Model{path: path, live: live, entries: map[string]value.Value{}}
	for _, name := range c.Secrets {
		v := os.Getenv(name)
		if len(v) < minSecret {
			return nil, fmt.Errorf("the secret %s has fewer than %d bytes, or is not set", name, minSecret)
		}
		m.secrets = append(m.secrets, v)
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, m.append(header)
	}
	if err != nil {
		return nil, err
	}
	return m, m.read(text)
}

type entry struct {
	Key   string      `json:"key"`
	Role  string      `json:"role"`
	Round int         `json:"round"`
	Reply value.Value `json:"reply"`
}

func (m *Model) read(text []byte) error {
	lines := bytes.Split(text, []byte("\n"))
	if string(lines[0]) != header {
		return fmt.Errorf("%s:1: not a cassette: the first line is not %s", m.path, header)
	}
	if last := len(lines) - 1; len(lines[last]) != 0 {
		return fmt.Errorf("%s:%d: the last line has no end: the recorder was cut off; delete the line", m.path, last+1)
	}
	for i, line := range lines[1 : len(lines)-1] {
		at := func(err error) error { return fmt.Errorf("%s:%d: %w", m.path, i+2, err) }
		v, err := value.Parse(line)
		if err != nil {
			return at(err)
		}
		var e entry
		if err := v.Decode(&e, json.RejectUnknownMembers(true)); err != nil {
			return at(err)
		}
		if _, err := hex.DecodeString(e.Key); err != nil || len(e.Key) != 2*sha256.Size {
			return at(fmt.Errorf("the key %.80q is no digest", e.Key))
		}
		if _, twice := m.entries[e.Key]; twice {
			return at(fmt.Errorf("the key %s stands twice", e.Key))
		}
		if _, err := model.ParseReply(e.Reply); err != nil {
			return at(err)
		}
		m.entries[e.Key] = e.Reply
	}
	return nil
}

func (m *Model) append(line string) error {
	f, err := os.OpenFile(m.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	return errors.Join(err, f.Close())
}

// Ask plays the reply to this request. A miss is recorded, or an error where
// there is no live model.
func (m *Model) Ask(ctx context.Context, req *model.Request) (*model.Reply, error) {
	key, err := Key(req)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	stored, ok := m.entries[key]
	m.mu.Unlock()
	if !ok && m.live == nil {
		return nil, model.Errorf("%s holds no reply to request %s (role %q, %d messages): the request differs from every one that was recorded",
			m.path, key, req.Role, len(req.Messages))
	}
	if !ok {
		if stored, err = m.record(ctx, key, req); err != nil {
			return nil, err
		}
	}
	reply, err := model.ParseReply(stored)
	if err != nil {
		return nil, model.Errorf("%s: %w", m.path, err)
	}
	if req.Progress != nil && reply.Text != "" {
		req.Progress(reply.Text)
	}
	return reply, nil
}

func (m *Model) record(ctx context.Context, key string, req *model.Request) (value.Value, error) {
	reply, err := m.live.Ask(ctx, req)
	if err != nil {
		return value.Value{}, err
	}
	v, err := m.redact(reply).Value()
	if err != nil {
		return value.Value{}, model.Errorf("%w", err)
	}
	line, err := value.Of(entry{key, req.Role, req.Round, v})
	if err != nil {
		return value.Value{}, model.Errorf("%w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if first, ok := m.entries[key]; ok { // the same request at the same time
		return first, nil
	}
	if err := m.append(line.String()); err != nil {
		return value.Value{}, model.Errorf("recording a reply: %w", err)
	}
	m.entries[key] = v
	return v, nil
}

// redact replaces secrets in everything that came from the provider.
func (m *Model) redact(r *model.Reply) *model.Reply {
	c := *r
	clean := func(s string) string {
		for _, secret := range m.secrets {
			s = strings.ReplaceAll(s, secret, "[secret]")
		}
		return s
	}
	c.Text, c.Reason = clean(c.Text), clean(c.Reason)
	if c.Raw != nil {
		c.Raw = []byte(clean(string(c.Raw)))
	}
	c.Calls = append([]model.Call(nil), c.Calls...)
	for i := range c.Calls {
		k := &c.Calls[i]
		k.ID, k.ProviderID, k.Name, k.Arguments = clean(k.ID), clean(k.ProviderID), clean(k.Name), clean(k.Arguments)
	}
	for _, list := range []*[]string{&c.Fallbacks, &c.Edits} {
		*list = append([]string(nil), *list...)
		for i, s := range *list {
			(*list)[i] = clean(s)
		}
	}
	return &c
}

// Key is the digest of a request's content, in hex. Progress and the number of
// the round are not part of it.
func Key(req *model.Request) (string, error) {
	h := sha256.New()
	part := func(s string) {
		h.Write(strconv.AppendInt(nil, int64(len(s)), 10))
		h.Write([]byte(":"))
		h.Write([]byte(s))
	}
	part(req.Role)
	part(req.Choice.Mode.String())
	part(req.Choice.Name)
	part(strconv.Itoa(req.MaxTokens))
	part(strconv.Itoa(len(req.Messages)))
	for _, m := range req.Messages {
		d, err := m.Encoded("digest", func() ([]byte, error) { return messageDigest(m), nil })
		if err != nil {
			return "", err
		}
		h.Write(d)
	}
	for _, t := range req.Tools {
		part(t.Name)
		part(t.Description)
		part(t.Schema().Canonical())
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func messageDigest(m *model.Message) []byte {
	h := sha256.New()
	part := func(ss ...string) {
		for _, s := range ss {
			fmt.Fprintf(h, "%d:%s", len(s), s)
		}
	}
	part(m.From.String(), m.Text, string(m.Raw), m.Dialect, m.CallID, m.Tool, strconv.FormatBool(m.Failed))
	for _, c := range m.Calls {
		part(c.ID, c.ProviderID, c.Name, c.Arguments)
	}
	return h.Sum(nil)
}
