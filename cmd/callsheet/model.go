package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/model"
	"github.com/callsheet/callsheet/model/anthropic"
	"github.com/callsheet/callsheet/model/cassette"
	"github.com/callsheet/callsheet/model/openai"
	"github.com/callsheet/callsheet/model/scripted"
	"github.com/callsheet/callsheet/value"
)

// modelFlags say which language model is asked.
type modelFlags struct {
	Model    string `help:"The model: openai:MODEL, anthropic:MODEL, scripted:FILE or cassette:FILE; that of the configuration unless told." placeholder:"PROVIDER:NAME"`
	ModelURL string `name:"model-url" help:"Base URL of the provider's server; its own unless told." placeholder:"URL"`
	ModelKey string `name:"model-key" help:"The environment variable that holds the key. OPENAI_API_KEY or ANTHROPIC_API_KEY for the provider's own server, none for another, unless told." placeholder:"VARIABLE"`
	Forcing  string `name:"model-forcing" help:"What an openai server does with tool_choice: name forces one tool, any some tool, none nothing." enum:",name,any,none" default:"" placeholder:"name|any|none"`
	Record   string `help:"Record the model's replies in this cassette; what it holds already is played." placeholder:"FILE"`
}

// The providers of --model and of the configuration.
const (
	providerOpenAI    = "openai"
	providerAnthropic = "anthropic"
	providerScripted  = "scripted"
	providerCassette  = "cassette"
)

// fill takes from the configuration what no flag says.
func (f *modelFlags) fill(c *config.Config) error {
	if f.Model != "" {
		return nil
	}
	if c == nil || c.Model == nil {
		return refuse("there is no model; name one with --model openai:MODEL, anthropic:MODEL, scripted:FILE or cassette:FILE, or as model: in %s", config.FileName)
	}
	m := c.Model
	name := m.Model
	if m.File != "" {
		name = m.File
	}
	f.Model = string(m.Provider) + ":" + name
	if f.ModelURL == "" {
		f.ModelURL = m.BaseURL
	}
	if f.Forcing == "" {
		f.Forcing = string(m.Forcing)
	}
	if f.ModelKey == "" && m.Secret != "" {
		f.ModelKey = c.Secrets.Get(m.Secret).Env
	}
	return nil
}

// open makes the model. What it records has neither its key nor a secret of the
// configuration in it; c may be nil.
func (f *modelFlags) open(c *config.Config) (model.Model, error) {
	m, err := f.live()
	if err != nil {
		return nil, refuse("--model %s: %w", f.Model, err)
	}
	if f.Record == "" {
		return m, nil
	}
	var secrets []string
	if key := f.key(); key != "" {
		secrets = []string{key}
	}
	if c != nil {
		for _, e := range c.Secrets {
			if os.Getenv(e.Value.Env) != "" && !slices.Contains(secrets, e.Value.Env) {
				secrets = append(secrets, e.Value.Env)
			}
		}
	}
	recorder, err := cassette.Record(f.Record, m, cassette.Config{Secrets: secrets})
	if err != nil {
		return nil, refuse("--record: %w", err)
	}
	return recorder, nil
}

// key is the environment variable of the key, "" when none is sent.
func (f *modelFlags) key() string {
	provider, _, _ := strings.Cut(f.Model, ":")
	switch {
	case provider != providerOpenAI && provider != providerAnthropic:
		return ""
	case f.ModelKey != "" || f.ModelURL != "":
		return f.ModelKey
	case provider == providerOpenAI:
		return "OPENAI_API_KEY"
	}
	return "ANTHROPIC_API_KEY"
}

func (f *modelFlags) live() (model.Model, error) {
	provider, name, _ := strings.Cut(f.Model, ":")
	if name == "" {
		return nil, errors.New("name the provider and the model, as in openai:gpt-5")
	}
	forcing := map[string]model.Forcing{"any": model.ForcesAny, "none": model.ForcesNothing}[f.Forcing]
	switch provider {
	case providerOpenAI:
		return openai.New(openai.Config{BaseURL: f.ModelURL, Model: name, KeyEnv: f.key(), Forcing: forcing})
	case providerAnthropic:
		return anthropic.New(anthropic.Config{BaseURL: f.ModelURL, Model: name, KeyEnv: f.key()})
	case providerScripted:
		return scripted.Open(name)
	case providerCassette:
		return cassette.Replay(name)
	}
	return nil, errors.New("there is no such provider; the providers are openai, anthropic, scripted and cassette")
}

// setup says which model was asked, so that resume finds it again. No key is in
// it, only the name of its variable.
func (f *modelFlags) setup() (value.Value, error) {
	spec := f.Model
	if provider, name, _ := strings.Cut(spec, ":"); provider == providerScripted || provider == providerCassette {
		path, err := filepath.Abs(name)
		if err != nil {
			return value.Value{}, err
		}
		spec = provider + ":" + path
	}
	ms := []value.Member{{Key: "model", Value: plain(spec)}}
	for _, m := range [][2]string{{"url", f.ModelURL}, {"key", f.ModelKey}, {"forcing", f.Forcing}, {"record", f.Record}} {
		if m[1] == "" {
			continue
		}
		if m[0] == "record" {
			var err error
			if m[1], err = filepath.Abs(m[1]); err != nil {
				return value.Value{}, err
			}
		}
		ms = append(ms, value.Member{Key: m[0], Value: plain(m[1])})
	}
	return value.ObjectOf(ms...), nil
}

// recall fills flags that were not given with what a run was started with.
func (f *modelFlags) recall(setup value.Value) {
	if f.Model != "" {
		return
	}
	for key, into := range map[string]*string{"model": &f.Model, "url": &f.ModelURL, "key": &f.ModelKey, "forcing": &f.Forcing, "record": &f.Record} {
		if v, ok := setup.Get(key); ok {
			*into, _ = v.Text()
		}
	}
}
