package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Bounds of a document. A tool server writes it, so that it is judged like any
// other input (spec/hostile.md 22).
const (
	// maxBytes is the size of a document: a hundred times the largest input
	// schemas of the public tool servers.
	maxBytes = 1 << 20
	// maxDepth is its nesting; written by hand, schemas stay below 20.
	maxDepth = 128
	// maxObjects bounds subschemas and everything else in braces: references are
	// resolved in time that grows with their square.
	maxObjects = 4096
	// maxStates bounds one pattern after its repetitions are unrolled, which is
	// what a match costs per byte in the worst case.
	maxStates = 4096
	// maxAllStates bounds all patterns of a document together; each counts for
	// every time that the compiler looks at it.
	maxAllStates = 1 << 16
)

// address names the document while it is compiled. No loader knows its scheme.
const address = "callsheet:///schema"

// A CompileError says what is wrong with a schema document, and where.
type CompileError struct {
	Pointer string // RFC 6901, into the document; "" for the whole
	Message string
}

func (e *CompileError) Error() string {
	if e.Pointer == "" {
		return "schema: " + e.Message
	}
	return "schema: at " + e.Pointer + ": " + e.Message
}

// Compile compiles a schema document. Without $schema it is read as 2020-12. An
// unknown $schema, a reference to another document, a reference that can never
// be resolved because it leads back to itself, and a pattern that is not RE2 are
// errors. The error is a [*CompileError].
func Compile(doc value.Value) (*Schema, error) {
	if doc.Size() > maxBytes {
		return nil, &CompileError{"", fmt.Sprintf("the document has %d bytes; the limit is %d", doc.Size(), maxBytes)}
	}
	if doc.Depth() > maxDepth {
		return nil, &CompileError{"", fmt.Sprintf("the document nests %d deep; the limit is %d", doc.Depth(), maxDepth)}
	}
	r := &reader{}
	raw, err := r.raw(doc, "")
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(sealed{})
	c.UseRegexpEngine(r.pattern)
	if err := c.AddResource(address, raw); err != nil {
		return nil, explain(err)
	}
	lib, err := c.Compile(address)
	if err != nil {
		return nil, explain(err)
	}
	s := &Schema{doc: doc}
	t := &translation{nodes: make(map[*jsonschema.Schema]*node), schema: s}
	if s.root, err = t.node(lib); err != nil {
		return nil, err
	}
	if s.dynamic {
		// What $dynamicRef finds need not be reached by anything else.
		for _, pointer := range r.named {
			lib, err := c.Compile(address + "#" + (&url.URL{Fragment: pointer}).EscapedFragment())
			if err != nil {
				continue // data, inside an enum perhaps: no reference can mean it
			}
			if _, err := t.node(lib); err != nil {
				return nil, err
			}
		}
		t.resources()
	}
	if err := t.settle(); err != nil {
		return nil, err
	}
	return s, nil
}

// MustCompile is [Compile] for schemas in programs and tests; it panics on a
// fault of the text or of the schema.
func MustCompile(text string) *Schema {
	s, err := Compile(value.MustParse(text))
	if err != nil {
		panic(err)
	}
	return s
}

// sealed refuses to load anything.
type sealed struct{}

func (sealed) Load(address string) (any, error) {
	return nil, fmt.Errorf("nothing is fetched")
}

var errAllStates = fmt.Errorf("the patterns of the schema have more than %d states together", maxAllStates)

// pattern is the regexp engine of the compiler.
func (r *reader) pattern(text string) (jsonschema.Regexp, error) {
	if r.states > maxAllStates {
		return nil, errAllStates
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(prog.Inst) > maxStates {
		return nil, fmt.Errorf("it has %d states; the limit is %d", len(prog.Inst), maxStates)
	}
	if r.states += len(prog.Inst); r.states > maxAllStates {
		return nil, errAllStates
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &pattern{re, len(prog.Inst)}, nil
}

// A reader turns a document into what the library reads, within bounds.
type reader struct {
	objects int
	states  int      // of all patterns
	named   []string // pointers of the subschemas with an $id or a $dynamicAnchor
}

func (r *reader) raw(v value.Value, at string) (any, error) {
	switch v.Kind() {
	case value.Null:
		return nil, nil
	case value.Bool:
		b, _ := v.Bool()
		return b, nil
	case value.String:
		s, _ := v.Text()
		return s, nil
	case value.Number:
		literal, _ := v.Number()
		if !parse(literal).bounded() {
			return nil, &CompileError{at, fmt.Sprintf("the number %s goes beyond %d digits", value.Excerpt(literal), maxMagnitude)}
		}
		return json.Number(literal), nil
	case value.List:
		out := make([]any, v.Len())
		for i, e := range v.Elements() {
			var err error
			if out[i], err = r.raw(e, fmt.Sprintf("%s/%d", at, i)); err != nil {
				return nil, err
			}
		}
		return out, nil
	case value.Object:
		if r.objects++; r.objects > maxObjects {
			return nil, &CompileError{"", fmt.Sprintf("more than %d subschemas", maxObjects)}
		}
		out := make(map[string]any, v.Len())
		for k, m := range v.Members() {
			if (k == "$dynamicAnchor" || k == "$id") && m.Kind() == value.String {
				r.named = append(r.named, at)
			}
			var err error
			if out[k], err = r.raw(m, at+"/"+value.EscapePointer(k)); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return nil, &CompileError{"", "there is no document"}
}

// explain turns the library's errors into ours.
func explain(err error) error {
	var meta *jsonschema.SchemaValidationError
	var load *jsonschema.LoadURLError
	var re *jsonschema.InvalidRegexError
	switch {
	case errors.As(err, &load):
		return &CompileError{"", fmt.Sprintf("%s is another document, and nothing is fetched; put it under $defs, or name draft-07 or 2020-12 as $schema", value.Quoted(strings.TrimPrefix(load.URL, "callsheet:///")))}
	case errors.As(err, &re):
		return &CompileError{pointerOf(re.URL), fmt.Sprintf("the pattern %s does not compile as RE2: %v", value.Quoted(re.Regex), re.Err)}
	case errors.As(err, &meta):
		base := pointerOf(meta.URL)
		leaf := &jsonschema.ValidationError{}
		if errors.As(meta.Err, &leaf) {
			at := leaf.InstanceLocation
			for len(leaf.Causes) > 0 {
				leaf = leaf.Causes[0]
				if len(leaf.InstanceLocation) > 0 { // the name of a property has none
					at = leaf.InstanceLocation
				}
			}
			for _, token := range at {
				base += "/" + value.EscapePointer(token)
			}
			if k, ok := leaf.ErrorKind.(*kind.Format); ok && k.Want == "regex" {
				return &CompileError{base, fmt.Sprintf("the pattern %s does not compile as RE2: %v", value.Quoted(fmt.Sprint(k.Got)), k.Err)}
			}
			return &CompileError{base, value.Excerpt(leaf.ErrorKind.LocalizedString(message.NewPrinter(language.English)))}
		}
	}
	return &CompileError{"", strings.ReplaceAll(err.Error(), address, "")}
}

// pointerOf is the pointer in an address, which keeps its document only when
// that is not the one being compiled.
func pointerOf(location string) string {
	doc, fragment, _ := strings.Cut(location, "#")
	if p, err := url.PathUnescape(fragment); err == nil {
		fragment = p
	}
	if doc != address {
		return doc + "#" + fragment
	}
	return fragment
}
