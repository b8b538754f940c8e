package tool

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/value"
)

// frozen is the digest of a declaration that is in a catalogue. A copy that was
// changed since does not match its own address and is digested anew.
type frozen struct {
	of     *Declaration
	digest value.Digest
}

func (d *Declaration) freeze() {
	if d.frozen == nil || d.frozen.of != d {
		d.frozen = &frozen{d, d.Definition().Digest()}
	}
}

// Definition is what the tool is, as one value: name, description, schemas,
// effects, the roles of its args, the undeclared args that are allowed, and the
// program that a configuration names for it: an approval of one program is none
// of another. Where it comes from and how it is retried are not part of it.
func (d *Declaration) Definition() value.Value {
	schemaOf := func(v value.Value) value.Value {
		if v.IsZero() {
			return value.NullValue()
		}
		return v
	}
	e := d.Effects
	ms := []value.Member{
		{Key: "name", Value: lossy(d.Name)},
		{Key: "description", Value: lossy(d.Description)},
		{Key: "input", Value: schemaOf(d.Input.Value())},
		{Key: "output", Value: schemaOf(d.Output.Value())},
		{Key: "effects", Value: value.ObjectOf(
			value.Member{Key: "readOnly", Value: value.BoolValue(e.ReadOnly)},
			value.Member{Key: "destructive", Value: value.BoolValue(e.Destructive)},
			value.Member{Key: "idempotent", Value: value.BoolValue(e.Idempotent)},
			value.Member{Key: "openWorld", Value: value.BoolValue(e.OpenWorld)},
			value.Member{Key: "keyed", Value: value.BoolValue(e.Keyed)})},
		{Key: "args", Value: d.roles()},
		{Key: "allowed", Value: d.allowed()},
	}
	if d.Program != "" {
		ms = append(ms, value.Member{Key: "program", Value: lossy(d.Program)})
	}
	return value.ObjectOf(ms...)
}

func (d *Declaration) roles() value.Value {
	args := make([]value.Value, len(d.Args))
	for i, a := range d.Args {
		args[i] = value.ObjectOf(
			value.Member{Key: "pattern", Value: lossy(a.Pattern)},
			value.Member{Key: "role", Value: lossy(string(a.Role))})
	}
	return value.ListOf(args...)
}

func (d *Declaration) allowed() value.Value {
	allowed := make([]value.Value, len(d.Allowed))
	for i, name := range d.Allowed {
		allowed[i] = lossy(name)
	}
	return value.ListOf(allowed...)
}

// ParseDefinition reads what [Declaration.Definition] wrote. The result has the
// same digest; what is not part of a definition is zero.
func ParseDefinition(v value.Value) (*Declaration, error) {
	text := func(v value.Value, key string) string {
		m, _ := v.Get(key)
		s, _ := m.Text()
		return s
	}
	d := &Declaration{Name: text(v, "name"), Description: text(v, "description"), Program: text(v, "program")}
	for key, into := range map[string]**schema.Schema{"input": &d.Input, "output": &d.Output} {
		doc, ok := v.Get(key)
		if !ok || doc.IsNull() {
			continue
		}
		s, err := schema.Compile(doc)
		if err != nil {
			return nil, fmt.Errorf("definition of %q: %s schema: %w", d.Name, key, err)
		}
		*into = s
	}
	effects, _ := v.Get("effects")
	for key, into := range map[string]*bool{
		"readOnly": &d.Effects.ReadOnly, "destructive": &d.Effects.Destructive, "idempotent": &d.Effects.Idempotent,
		"openWorld": &d.Effects.OpenWorld, "keyed": &d.Effects.Keyed,
	} {
		m, _ := effects.Get(key)
		*into, _ = m.Bool()
	}
	args, _ := v.Get("args")
	for _, a := range args.Elements() {
		d.Args = append(d.Args, Arg{Pattern: text(a, "pattern"), Role: Role(text(a, "role"))})
	}
	allowed, _ := v.Get("allowed")
	for _, a := range allowed.Elements() {
		s, _ := a.Text()
		d.Allowed = append(d.Allowed, s)
	}
	if got, want := d.Definition().Digest(), v.Digest(); got != want {
		return nil, fmt.Errorf("definition of %q: it is not written as a definition is", d.Name)
	}
	return d, nil
}

// lossy is text for a definition. A program may describe its tool in bytes that
// are not UTF-8; the digest then speaks of what a reader would see.
func lossy(s string) value.Value { return value.MustText(strings.ToValidUTF8(s, "\uFFFD")) }

// Digest is the digest of [Declaration.Definition]. An approval names it, and a
// tool whose digest changes during a run is not called (spec/hostile.md 32).
func (d *Declaration) Digest() value.Digest {
	if d.frozen != nil && d.frozen.of == d {
		return d.frozen.digest
	}
	return d.Definition().Digest()
}

// RoleOf is the role of what stands at an RFC 6901 pointer into the args: that
// of the first pattern that matches it or something above it, else Target.
func (d *Declaration) RoleOf(pointer string) Role {
	for _, a := range d.Args {
		if a.covers(pointer) {
			return a.Role
		}
	}
	return Target
}

// covers reports whether the pattern matches pointer or one of its parents.
func (a Arg) covers(pointer string) bool {
	pattern := a.Pattern
	for pattern != "" {
		if pointer == "" {
			return false
		}
		want, restOfPattern := cutToken(pattern)
		have, restOfPointer := cutToken(pointer)
		if want != "*" && want != have {
			return false
		}
		pattern, pointer = restOfPattern, restOfPointer
	}
	return true
}

// cutToken splits the first token off a pointer.
func cutToken(pointer string) (token, rest string) {
	pointer = strings.TrimPrefix(pointer, "/")
	if i := strings.IndexByte(pointer, '/'); i >= 0 {
		return pointer[:i], pointer[i:]
	}
	return pointer, ""
}

// An Override is what a configuration says of a tool against its own
// declaration. Zero fields leave the declaration as it is.
type Override struct {
	ReadOnly    *bool
	Destructive *bool
	Idempotent  *bool
	OpenWorld   *bool
	Keyed       *bool
	Args        []Arg    // matched before those that the tool declares
	Allowed     []string // undeclared args to accept

	Attempts  int
	Delay     time.Duration
	Deadline  time.Duration
	MaxOutput int
}

// Apply changes d, which must not be in a catalogue yet.
func (o Override) Apply(d *Declaration) {
	for _, f := range []struct {
		into *bool
		from *bool
	}{
		{&d.Effects.ReadOnly, o.ReadOnly}, {&d.Effects.Destructive, o.Destructive}, {&d.Effects.Idempotent, o.Idempotent},
		{&d.Effects.OpenWorld, o.OpenWorld}, {&d.Effects.Keyed, o.Keyed},
	} {
		if f.from != nil {
			*f.into = *f.from
		}
	}
	switch {
	case o.Destructive != nil && *o.Destructive:
		d.Effects.ReadOnly = false // what destroys is not read-only, whatever the tool says
	case d.Effects.ReadOnly:
		d.Effects.Destructive = false
	}
	d.Args = slices.Concat(o.Args, d.Args)
	d.Allowed = slices.Concat(d.Allowed, o.Allowed)
	if o.Attempts != 0 {
		d.Attempts = o.Attempts
	}
	if o.Delay != 0 {
		d.Delay = o.Delay
	}
	if o.Deadline != 0 {
		d.Deadline = o.Deadline
	}
	if o.MaxOutput != 0 {
		d.MaxOutput = o.MaxOutput
	}
}
