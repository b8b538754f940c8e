package plan

import (
	_ "embed"

	"github.com/callsheet/callsheet/value"
)

//go:embed document.json
var documentSchema string

// Schema is the JSON Schema (2020-12) of a plan document, for editors and for
// models that write plans. It says what a schema can; [Decode] is stricter.
func Schema() value.Value { return value.MustParse(documentSchema) }
