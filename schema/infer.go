package schema

import (
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/callsheet/callsheet/value"
	"github.com/google/jsonschema-go/jsonschema"
)

// For infers the schema of a Go type: the fields that its JSON has, by their
// json tags, all of them required but those with omitempty or omitzero, and no
// others. A tag jsonschema:"…" is the field's description. A [value.Value] is
// any value. Types that JSON cannot hold, and types that hold themselves, are
// errors.
func For[T any]() (*Schema, error) {
	inferred, err := jsonschema.For[T](&jsonschema.ForOptions{
		TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[value.Value](): {}},
	})
	if err != nil {
		return nil, fmt.Errorf("schema of %v: %w", reflect.TypeFor[T](), err)
	}
	text, err := json.Marshal(inferred)
	if err != nil {
		return nil, fmt.Errorf("schema of %v: %w", reflect.TypeFor[T](), err)
	}
	doc, err := value.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("schema of %v: %w", reflect.TypeFor[T](), err)
	}
	return Compile(doc)
}
