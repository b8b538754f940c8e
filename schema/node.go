package schema

import (
	"regexp"
	"strings"

	"github.com/callsheet/callsheet/value"
)

// A node is one subschema. The draft's differences are gone from it: draft-07's
// item lists are prefix and rest, its dependencies are the two keywords that
// replaced them, and a const is an enum of one.
type node struct {
	at    string // pointer into the document; with the document's address when it is a metaschema
	never bool   // the schema false
	empty bool   // the schema true or {}

	types    typeSet // 0: not said
	enum     []value.Value
	listed   map[string]bool // those of enum, as normal writes them
	isConst  bool
	format   string
	inFormat func(text string) bool

	minimum, maximum, above, below *decimal
	multipleOf                     *decimal

	minLength, maxLength *int
	pattern              *pattern

	minItems, maxItems       *int
	unique                   bool
	prefix                   []*node
	rest                     *node
	contains                 *node
	minContains, maxContains *int
	containsMarks            bool // 2020-12: what contains matched counts as evaluated
	restKeyword              string

	minProperties, maxProperties *int
	required                     []string
	properties                   map[string]*node
	patterns                     []patternNode
	additional                   *node
	names                        *node
	dependentRequired            []dependency
	dependentSchemas             []dependency

	ref            *node
	dynamicRef     *node
	dynamicAnchor  string // of dynamicRef; "" when it is an ordinary reference
	recursiveRef   *node
	all, any, one  []*node
	not            *node
	cond           *node
	then, otherway *node

	unevaluatedProperties, unevaluatedItems *node

	resource *resource
	// possible are the types that a value which fits may have: an upper bound.
	possible typeSet
}

// A resource is a schema with an address of its own, which is what $dynamicRef
// searches.
type resource struct {
	root      *node
	anchors   map[string]*node
	recursive bool
}

type patternNode struct {
	pattern *pattern
	node    *node
}

// A dependency is what the presence of a property asks for.
type dependency struct {
	name string
	need []string
	node *node
}

// A pattern is an RE2 expression with what a match costs per byte.
type pattern struct {
	*regexp.Regexp
	states int
}

// trivial reports whether everything fits.
func (n *node) trivial() bool { return n == nil || n.empty }

// inPlace calls f for every subschema that judges the same value as n.
func (n *node) inPlace(f func(*node)) {
	for _, m := range []*node{n.ref, n.dynamicRef, n.recursiveRef, n.not, n.cond, n.then, n.otherway} {
		if m != nil {
			f(m)
		}
	}
	for _, list := range [][]*node{n.all, n.any, n.one} {
		for _, m := range list {
			f(m)
		}
	}
	for _, d := range n.dependentSchemas {
		f(d.node)
	}
}

// also are the subschemas that a value must fit besides n itself. What a
// $dynamicRef means depends on the way to it, so it is not among them.
func (n *node) also() []*node {
	if n.ref == nil {
		return n.all
	}
	return append([]*node{n.ref}, n.all...)
}

// A typeSet is a set of JSON types. Numbers are of two kinds, so that "number"
// is the union of both and every value has exactly one bit.
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBool
	typeInteger
	typeFraction
	typeString
	typeList
	typeObject

	typeNumber = typeInteger | typeFraction
	anyType    = typeObject<<1 - 1
)

func typeNamed(name string) typeSet {
	switch name {
	case "null":
		return typeNull
	case "boolean":
		return typeBool
	case "integer":
		return typeInteger
	case "number":
		return typeNumber
	case "string":
		return typeString
	case "array":
		return typeList
	case "object":
		return typeObject
	}
	return 0
}

// typeOf is the one bit of v. A number is an integer by its value, as JSON
// Schema says: 1.0 is one.
func typeOf(v value.Value) typeSet {
	switch v.Kind() {
	case value.Null:
		return typeNull
	case value.Bool:
		return typeBool
	case value.Number:
		literal, _ := v.Number()
		if isInteger(literal) {
			return typeInteger
		}
		return typeFraction
	case value.String:
		return typeString
	case value.List:
		return typeList
	}
	return typeObject
}

// String names the types as a schema does: "array or null".
func (t typeSet) String() string {
	var names []string
	for _, n := range []string{"object", "array", "string"} {
		if t&typeNamed(n) != 0 {
			names = append(names, n)
		}
	}
	switch {
	case t&typeFraction != 0:
		names = append(names, "number")
	case t&typeInteger != 0:
		names = append(names, "integer")
	}
	for _, n := range []string{"boolean", "null"} {
		if t&typeNamed(n) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, " or ")
}

// article is String for the middle of a sentence: "an array or null".
func (t typeSet) article() string {
	name := t.String()
	switch {
	case t == typeNull:
		return name
	case strings.IndexByte("aio", name[0]) >= 0: // array, integer, object
		return "an " + name
	}
	return "a " + name
}
