package config

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/callsheet/callsheet/secret"
	"github.com/callsheet/callsheet/value"
)

const (
	// maxBytes of a configuration file: far above any that a person writes.
	maxBytes = 256 << 10
	// maxDepth of nesting: an input schema needs a dozen.
	maxDepth = 64
	// maxFaults that one error lists.
	maxFaults = 100
)

// A Fault is something wrong with a configuration file.
type Fault struct {
	Pointer string // RFC 6901, of what is at fault
	Line    int    // from 1
	Column  int    // from 1, in characters
	Message string // what is wrong, and what to do
}

// An Error is a configuration that was refused.
type Error struct {
	File   string
	Faults []Fault // never empty; at most 100
}

// Error lists the faults, one a line: file, line, column, message.
func (e *Error) Error() string {
	lines := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		lines[i] = fmt.Sprintf("%s:%d:%d: %s", e.File, f.Line, f.Column, f.Message)
	}
	return strings.Join(lines, "\n")
}

type place struct{ line, column int }

// document is a YAML text as a JSON value that remembers where its parts stood.
// YAML that JSON cannot say — anchors, tags, keys that are not text — is
// refused, so that what stands in the file is what holds.
type document struct {
	file   string
	root   value.Value
	at     map[string]place // by pointer: a scalar's own place, else its key's
	keys   map[string]place // of every key, by the pointer of its value
	faults []Fault
	redact *secret.Redactor // of faults; nil: there are no secrets
}

// readDocument reads the text; its faults are in the document.
func readDocument(file string, text []byte) *document {
	d := &document{file: file, root: value.ObjectOf(), at: map[string]place{"": {1, 1}}, keys: map[string]place{}}
	if len(text) > maxBytes {
		d.fault("", "the file has %d bytes, and at most %d are read; move what is large into files of its own", len(text), maxBytes)
		return d
	}
	body, err := parse(string(text))
	var syntax *yaml.SyntaxError
	switch {
	case errors.As(err, &syntax):
		d.faultAt(syntax.Token, "", "%s", syntax.Message)
	case err != nil:
		d.fault("", "%v", err)
	case body != nil:
		d.root = d.convert(body, "", 1)
	}
	return d
}

// parse returns the body of the one document in text, nil for an empty one.
func parse(text string) (body ast.Node, err error) {
	// The reader is another's code and the text is anything: a panic is a text
	// that cannot be read.
	defer func() {
		if p := recover(); p != nil {
			body, err = nil, errors.New("this is not YAML that can be read")
		}
	}()
	tokens := lexer.Tokenize(text)
	depth := 0
	for _, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.InvalidType:
			return nil, &yaml.SyntaxError{Message: t.Error, Token: t}
		}
		if depth > maxDepth {
			return nil, &yaml.SyntaxError{Message: fmt.Sprintf("nested deeper than %d", maxDepth), Token: t}
		}
	}
	f, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey()) // convert names the second
	if err != nil {
		return nil, err
	}
	for _, doc := range f.Docs {
		if doc.Body == nil {
			continue
		}
		if body != nil {
			return nil, &yaml.SyntaxError{Message: "a second document; keep everything in one", Token: doc.Body.GetToken()}
		}
		body = doc.Body
	}
	return body, nil
}

// place is where a pointer stood, or the nearest thing around it.
func (d *document) place(pointer string) place {
	at, ok := d.at[pointer]
	for !ok && pointer != "" {
		pointer = pointer[:max(strings.LastIndexByte(pointer, '/'), 0)]
		at, ok = d.at[pointer]
	}
	return at
}

func (d *document) fault(pointer, format string, args ...any) {
	at := d.place(pointer)
	d.add(Fault{pointer, at.line, at.column, fmt.Sprintf(format, args...)})
}

// faultKey is a fault of a key and not of its value.
func (d *document) faultKey(pointer, format string, args ...any) {
	at := d.keys[pointer]
	d.add(Fault{pointer, at.line, at.column, fmt.Sprintf(format, args...)})
}

func (d *document) faultAt(t *token.Token, pointer, format string, args ...any) {
	f := Fault{Pointer: pointer, Line: 1, Column: 1, Message: fmt.Sprintf(format, args...)}
	if t != nil && t.Position != nil {
		f.Line, f.Column = t.Position.Line, t.Position.Column
	}
	d.add(f)
}

func (d *document) add(f Fault) {
	if len(d.faults) < maxFaults {
		f.Message = d.redact.Text(f.Message)
		d.faults = append(d.faults, f)
	}
}

func (d *document) err() error {
	if len(d.faults) == 0 {
		return nil
	}
	return &Error{d.file, d.faults}
}

// convert turns a node into a value. Where it cannot it adds a fault and
// returns null.
func (d *document) convert(n ast.Node, pointer string, depth int) value.Value {
	if t := n.GetToken(); t != nil && t.Position != nil {
		if _, ok := d.at[pointer]; !ok || isScalar(n) {
			d.at[pointer] = place{t.Position.Line, t.Position.Column}
		}
	}
	refuse := func(format string, args ...any) value.Value {
		d.faultAt(n.GetToken(), pointer, format, args...)
		return value.NullValue()
	}
	if depth > maxDepth {
		return refuse("nested deeper than %d", maxDepth)
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return d.mapping(n.Values, pointer, depth)
	case *ast.MappingValueNode:
		return d.mapping([]*ast.MappingValueNode{n}, pointer, depth)
	case *ast.SequenceNode:
		vals := make([]value.Value, len(n.Values))
		for i, e := range n.Values {
			vals[i] = d.convert(e, fmt.Sprintf("%s/%d", pointer, i), depth+1)
		}
		return value.ListOf(vals...)
	case *ast.StringNode:
		return text(n.Value, refuse)
	case *ast.LiteralNode:
		return text(n.Value.Value, refuse)
	case *ast.BoolNode:
		return value.BoolValue(n.Value)
	case *ast.NullNode:
		return value.NullValue()
	case *ast.IntegerNode, *ast.FloatNode:
		text := n.GetToken().Value
		v, err := value.Parse(text)
		if err != nil || v.Kind() != value.Number {
			return refuse("write the number %s in decimal, as JSON does, or as text in quotes", text)
		}
		return v
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return refuse("anchors and aliases are not read here; write the value out")
	case *ast.TagNode:
		return refuse("tags are not read here; write the value without %s", n.Start.Value)
	}
	return refuse("this is neither a mapping, a list, text, a number, a boolean nor null")
}

// isScalar reports whether n has a place of its own; what is empty has not.
func isScalar(n ast.Node) bool {
	_, scalar := n.(ast.ScalarNode)
	return scalar && n.Type() != ast.NullType
}

func text(s string, refuse func(string, ...any) value.Value) value.Value {
	v, err := value.Text(s)
	if err != nil {
		return refuse("%v", err)
	}
	return v
}

func (d *document) mapping(pairs []*ast.MappingValueNode, pointer string, depth int) value.Value {
	members := make([]value.Member, 0, len(pairs))
	for _, p := range pairs {
		t := p.Key.GetToken()
		key, ok := p.Key.(*ast.StringNode)
		if !ok {
			d.faultAt(t, pointer, "a key must be plain text; put quotes around it")
			continue
		}
		if !utf8.ValidString(key.Value) {
			d.faultAt(t, pointer, "a key that is not valid UTF-8")
			continue
		}
		at := pointer + "/" + value.EscapePointer(key.Value)
		if _, twice := d.keys[at]; twice {
			d.faultAt(t, at, "the key %s stands twice; keep one", key.Value)
			continue
		}
		d.keys[at] = place{t.Position.Line, t.Position.Column}
		d.at[at] = d.keys[at]
		members = append(members, value.Member{Key: key.Value, Value: d.convert(p.Value, at, depth+1)})
	}
	return value.ObjectOf(members...)
}
