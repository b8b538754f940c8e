package tool

import (
	"slices"
	"strconv"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/value"
)

// HasSecrets reports whether some arg of the tool is a secret.
func (d *Declaration) HasSecrets() bool {
	return slices.ContainsFunc(d.Args, func(a Arg) bool { return a.Role == Secret })
}

// MapSecrets puts replace's answer in the place of every part of args whose role
// is [Secret]. It asks for the outermost part and does not look inside it.
func (d *Declaration) MapSecrets(args value.Value, replace func(pointer string, v value.Value) value.Value) value.Value {
	if !d.HasSecrets() {
		return args
	}
	return d.mapSecrets(args, "", replace)
}

func (d *Declaration) mapSecrets(v value.Value, pointer string, replace func(string, value.Value) value.Value) value.Value {
	if pointer != "" && d.RoleOf(pointer) == Secret {
		return replace(pointer, v)
	}
	n := v.Len()
	same := true
	switch v.Kind() {
	case value.Object:
		ms := make([]value.Member, 0, n)
		for k, m := range v.Members() {
			r := d.mapSecrets(m, pointer+"/"+value.EscapePointer(k), replace)
			same = same && value.Same(r, m)
			ms = append(ms, value.Member{Key: k, Value: r})
		}
		if !same {
			return value.ObjectOf(ms...)
		}
	case value.List:
		vs := make([]value.Value, 0, n)
		for i, e := range v.Elements() {
			r := d.mapSecrets(e, pointer+"/"+strconv.Itoa(i), replace)
			same = same && value.Same(r, e)
			vs = append(vs, r)
		}
		if !same {
			return value.ListOf(vs...)
		}
	}
	return v
}

// redacted stands where a secret was.
var redacted = value.MustParse(`{"$redacted":"secret"}`)

// IsSecretName reports whether v is the placeholder {"$secret": name}: not a
// secret, but the name of one.
func IsSecretName(v value.Value) bool {
	if v.Kind() != value.Object || v.Len() != 1 {
		return false
	}
	_, ok := v.Get("$secret")
	return ok
}

// anyText is what stands for a name of a secret: the secret itself is a text.
var anyText = schema.MustCompile(`{"type":"string"}`)

// SecretHoles are args with a text in place of every name of a secret, and where
// these stand, as [schema.Schema.FitsWithHoles] takes them: a schema is about the
// secret, which nobody sees here. holes is nil when there is none.
func (d *Declaration) SecretHoles(args value.Value) (shown value.Value, holes map[string]*schema.Schema) {
	shown = d.MapSecrets(args, func(pointer string, v value.Value) value.Value {
		if !IsSecretName(v) {
			return v
		}
		if holes == nil {
			holes = make(map[string]*schema.Schema)
		}
		holes[pointer] = anyText
		return value.MustText("")
	})
	return shown, holes
}

// Redact returns args as they may be shown: {"$redacted": "secret"} stands for
// every secret. Names of secrets stay.
func (d *Declaration) Redact(args value.Value) value.Value {
	return d.MapSecrets(args, func(_ string, v value.Value) value.Value {
		if IsSecretName(v) {
			return v
		}
		return redacted
	})
}
