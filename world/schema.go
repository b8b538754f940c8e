package world

import (
	"fmt"
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world/internal/python"
	"github.com/go-json-experiment/json/jsontext"
)

// A Type is the type of an argument or a state field: string, integer, number,
// boolean, object, array or any.
type Type string

// The types.
const (
	StringType  Type = "string"
	IntegerType Type = "integer"
	NumberType  Type = "number"
	BooleanType Type = "boolean"
	ObjectType  Type = "object"
	ArrayType   Type = "array"
	AnyType     Type = "any"
)

func (t Type) check() error {
	return oneOf("type", string(t), "string", "integer", "number", "boolean", "object", "array", "any")
}

// Fits reports whether v is of the type: an integer is a number, a boolean is
// neither, null is only any, and 25.0 is no integer.
func (t Type) Fits(v value.Value) bool {
	switch t {
	case AnyType:
		return true
	case IntegerType:
		return v.Kind() == value.Number && !python.IsFraction(v)
	}
	return v.Kind().String() == string(t)
}

// IsContainer reports whether paths may go below a field of the type.
func (t Type) IsContainer() bool { return t == ObjectType || t == ArrayType || t == AnyType }

// TypeOf is the narrowest type of v; null has the type "null", which only any
// takes.
func TypeOf(v value.Value) Type {
	if v.Kind() == value.Number && !python.IsFraction(v) {
		return IntegerType
	}
	return Type(v.Kind().String())
}

// An Argument declares one argument of an action.
type Argument struct {
	Type        Type        `json:"type"`
	Required    bool        `json:"required"`
	Description string      `json:"description"`
	Enum        value.Value `json:"enum"` // a list, or null
}

// UnmarshalJSONFrom reads an argument; its type is any unless it says otherwise.
func (a *Argument) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain Argument
	p := plain{Type: AnyType, Enum: value.NullValue()}
	if err := strict(dec, &p); err != nil {
		return err
	}
	if k := p.Enum.Kind(); k != value.Null && k != value.List {
		return fmt.Errorf("enum must be a list or null")
	}
	*a = Argument(p)
	return a.Type.check()
}

// Arguments are the declared arguments in the order of the document.
type Arguments []NamedArgument

// A NamedArgument is one member of [Arguments].
type NamedArgument struct {
	Name string
	Argument
}

// Get returns the declaration of a name, nil without one.
func (as Arguments) Get(name string) *Argument {
	for i := range as {
		if as[i].Name == name {
			return &as[i].Argument
		}
	}
	return nil
}

// MarshalJSONTo writes an object in order.
func (as Arguments) MarshalJSONTo(enc *jsontext.Encoder) error {
	if err := enc.WriteToken(jsontext.BeginObject); err != nil {
		return err
	}
	for i := range as {
		if err := enc.WriteToken(jsontext.String(as[i].Name)); err != nil {
			return err
		}
		if err := marshal(enc, as[i].Argument); err != nil {
			return err
		}
	}
	return enc.WriteToken(jsontext.EndObject)
}

// UnmarshalJSONFrom reads an object, keeping its order.
func (as *Arguments) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	if tok, err := dec.ReadToken(); err != nil {
		return err
	} else if tok.Kind() != '{' {
		return fmt.Errorf("arguments must be an object")
	}
	*as = nil
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		a := NamedArgument{Name: name.String()}
		if err := a.Argument.UnmarshalJSONFrom(dec); err != nil {
			return err
		}
		*as = append(*as, a)
	}
	_, err := dec.ReadToken()
	return err
}

// An ActionSpec declares an action.
type ActionSpec struct {
	Name        string      `json:"name"`
	Description string      `json:"description"`
	Arguments   Arguments   `json:"arguments"`
	Aliases     []string    `json:"aliases"`
	Provenance  []SourceRef `json:"provenance"`
}

// UnmarshalJSONFrom reads a declaration; the name is required.
func (a *ActionSpec) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain ActionSpec
	var p plain
	if err := strict(dec, &p); err != nil {
		return err
	}
	if p.Name == "" {
		return fmt.Errorf("an action needs a name")
	}
	*a = ActionSpec(p)
	return nil
}

// An ActionSchema declares the actions of an environment.
type ActionSchema struct {
	Actions []ActionSpec `json:"actions"`
}

// A StateField declares one path of the state.
type StateField struct {
	Path        string      `json:"path"`
	Type        Type        `json:"type"`
	Description string      `json:"description"`
	Default     value.Value `json:"default"` // null: none
	Mutable     bool        `json:"mutable"`
	Visibility  string      `json:"visibility"`
	Aliases     []string    `json:"aliases"`
	Provenance  []SourceRef `json:"provenance"`
}

// UnmarshalJSONFrom reads a field. Its visibility must be the first segment of
// its path, and is "world" unless it says otherwise.
func (f *StateField) UnmarshalJSONFrom(dec *jsontext.Decoder) error {
	type plain StateField
	p := plain{Type: AnyType, Mutable: true, Visibility: "world", Default: value.NullValue()}
	if err := strict(dec, &p); err != nil {
		return err
	}
	head, _, _ := strings.Cut(p.Path, ".")
	if !IsNamespace(head) {
		return fmt.Errorf("state field %q must start with world, session, surface or epistemic", p.Path)
	}
	if p.Visibility != head {
		return fmt.Errorf("state field %q has visibility %q; it must be %q", p.Path, p.Visibility, head)
	}
	*f = StateField(p)
	return f.Type.check()
}

// A StateSchema declares the paths of a state.
type StateSchema struct {
	Fields []StateField `json:"fields"`
}
