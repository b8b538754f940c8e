package config

import (
	"errors"
	"fmt"
	"os"
	"unicode/utf8"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/policy"
	"github.com/callsheet/callsheet/secret"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

// policyFaults takes in what is wrong with the policy; its places are those of
// the file.
func (c *Config) policyFaults(err error) {
	var refused *policy.Error
	if !errors.As(err, &refused) {
		c.doc.fault("/policy", "policy: %v", err)
		return
	}
	for _, f := range refused.Faults {
		rule := ""
		if f.Rule != "" {
			rule = "rule " + f.Rule + ": "
		}
		at := Fault{Pointer: "/policy", Line: f.Line, Column: f.Column, Message: "policy: " + rule + f.Message}
		if at.Line == 0 {
			at.Line, at.Column = c.Position("/policy")
		}
		c.doc.add(at)
	}
}

// readPolicy reads the section policy, if there is one.
func (c *Config) readPolicy() {
	if c.Policy.IsZero() {
		return
	}
	doc, err := policy.Read(c.Policy, func(pointer string) (line, column int) { return c.Position("/policy" + pointer) })
	if err != nil {
		c.policyFaults(err)
		return
	}
	c.rules = doc
}

// compilePolicy compiles the policy against the tools. Without the section it is
// nil.
func (c *Config) compilePolicy(cat *tool.Catalogue) *policy.Policy {
	if c.rules == nil {
		return nil
	}
	p, err := c.rules.Compile(cat)
	if err != nil {
		c.policyFaults(err)
	}
	return p
}

// readSecrets reads the secrets from the environment. One that is too short to
// be kept out of records is a fault.
func (c *Config) readSecrets(o *Opened) {
	o.Secrets = map[string]string{}
	for _, e := range c.Secrets {
		v := os.Getenv(e.Value.Env)
		switch n := utf8.RuneCountInString(v); {
		case v == "":
			o.Unset = append(o.Unset, e.Name)
			continue
		case n < secret.MinLength:
			c.doc.fault(at("secrets", e.Name), "secret %s: the value of %s has %s; a secret shorter than %d cannot be kept out of records", e.Name, e.Value.Env, count.Of(n, "character"), secret.MinLength)
			continue
		case !utf8.ValidString(v):
			c.doc.fault(at("secrets", e.Name), "secret %s: the value of %s is not UTF-8 text", e.Name, e.Value.Env)
			continue
		}
		o.Secrets[e.Name] = v
	}
}

// tellsSecret refuses a tool that has a secret in what it tells of itself: a
// definition is shown to models and people, and recorded.
func tellsSecret(d *tool.Declaration, r *secret.Redactor) error {
	if definition := d.Definition(); value.Same(r.Value(definition), definition) {
		return nil
	}
	return fmt.Errorf("tool %s has a secret in its definition, which is shown and recorded", r.Text(d.Name))
}
