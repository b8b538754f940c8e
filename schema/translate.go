package schema

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/value"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// A translation makes nodes of what the library compiled.
type translation struct {
	schema *Schema
	nodes  map[*jsonschema.Schema]*node
	queue  []*jsonschema.Schema // enqueued; those before done are filled
	done   int
}

// node translates l and everything that it reaches.
func (t *translation) node(l *jsonschema.Schema) (*node, error) {
	n := t.enqueue(l)
	for ; t.done < len(t.queue); t.done++ {
		l := t.queue[t.done]
		if err := t.fill(t.nodes[l], l); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (t *translation) enqueue(l *jsonschema.Schema) *node {
	if l == nil {
		return nil
	}
	n := t.nodes[l]
	if n == nil {
		n = &node{at: pointerOf(l.Location)}
		t.nodes[l] = n
		t.queue = append(t.queue, l)
	}
	return n
}

func (t *translation) list(ls []*jsonschema.Schema) []*node {
	out := make([]*node, len(ls))
	for i, l := range ls {
		out[i] = t.enqueue(l)
	}
	return out
}

// either translates a keyword that the library keeps as a bool or a schema.
func (t *translation) either(x any, at string) *node {
	switch x := x.(type) {
	case bool:
		n := &node{at: at, never: !x, empty: x}
		n.possible = n.upperBound()
		return n
	case *jsonschema.Schema:
		return t.enqueue(x)
	}
	return nil
}

func (t *translation) fill(n *node, l *jsonschema.Schema) error {
	if l.Bool != nil {
		n.never, n.empty = !*l.Bool, *l.Bool
		return nil
	}
	n.ref = t.enqueue(l.Ref)
	if l.DynamicRef != nil {
		n.dynamicRef, n.dynamicAnchor = t.enqueue(l.DynamicRef.Ref), l.DynamicRef.Anchor
		t.schema.dynamic = true
	}
	if l.RecursiveRef != nil {
		n.recursiveRef = t.enqueue(l.RecursiveRef)
		t.schema.dynamic = true
	}
	n.all, n.any, n.one = t.list(l.AllOf), t.list(l.AnyOf), t.list(l.OneOf)
	n.not, n.cond, n.then, n.otherway = t.enqueue(l.Not), t.enqueue(l.If), t.enqueue(l.Then), t.enqueue(l.Else)

	if l.Types != nil {
		for _, name := range l.Types.ToStrings() {
			n.types |= typeNamed(name)
		}
	}
	if err := t.fillEnum(n, l); err != nil {
		return err
	}
	if l.Format != nil {
		check := l.Format.Validate
		n.format, n.inFormat = l.Format.Name, func(text string) bool { return check(text) == nil }
	}
	for _, b := range []struct {
		into **decimal
		from *big.Rat
	}{
		{&n.minimum, l.Minimum}, {&n.maximum, l.Maximum}, {&n.above, l.ExclusiveMinimum},
		{&n.below, l.ExclusiveMaximum}, {&n.multipleOf, l.MultipleOf},
	} {
		if b.from != nil {
			d := fromRat(b.from)
			*b.into = &d
		}
	}
	n.minLength, n.maxLength = l.MinLength, l.MaxLength
	n.pattern, _ = l.Pattern.(*pattern)
	t.fillList(n, l)
	t.fillObject(n, l)
	n.unevaluatedItems = t.enqueue(l.UnevaluatedItems)
	n.unevaluatedProperties = t.enqueue(l.UnevaluatedProperties)
	if n.unevaluatedItems != nil || n.unevaluatedProperties != nil {
		t.schema.marks = true
	}
	return nil
}

func (t *translation) fillEnum(n *node, l *jsonschema.Schema) error {
	var list []any
	switch {
	case l.Const != nil && l.Enum != nil:
		// Both must hold: the enum moves into a subschema of its own.
		sub := &node{at: n.at}
		if err := t.fillEnum(sub, &jsonschema.Schema{Enum: l.Enum}); err != nil {
			return err
		}
		sub.possible = sub.upperBound()
		n.all = append(n.all, sub)
		fallthrough
	case l.Const != nil:
		n.isConst, list = true, []any{*l.Const}
	case l.Enum != nil:
		list = l.Enum.Values
	default:
		return nil
	}
	vals := make([]value.Value, len(list))
	for i, x := range list {
		var err error
		if vals[i], err = fromRaw(x); err != nil {
			return &CompileError{n.at, err.Error()}
		}
	}
	n.allow(vals)
	return nil
}

// allow makes vals the enum of n.
func (n *node) allow(vals []value.Value) {
	n.enum, n.listed = vals, make(map[string]bool, len(vals))
	for _, v := range vals {
		n.listed[string(normal(nil, v))] = true
	}
}

func (t *translation) fillList(n *node, l *jsonschema.Schema) {
	n.minItems, n.maxItems, n.unique = l.MinItems, l.MaxItems, l.UniqueItems
	n.contains, n.minContains, n.maxContains = t.enqueue(l.Contains), l.MinContains, l.MaxContains
	n.containsMarks = l.DraftVersion >= 2020
	n.restKeyword = "/items"
	if l.DraftVersion >= 2020 {
		n.prefix, n.rest = t.list(l.PrefixItems), t.enqueue(l.Items2020)
		return
	}
	switch items := l.Items.(type) {
	case *jsonschema.Schema:
		n.rest = t.enqueue(items)
	case []*jsonschema.Schema:
		n.restKeyword = "/additionalItems"
		n.prefix, n.rest = t.list(items), t.either(l.AdditionalItems, n.at+"/additionalItems")
	}
}

func (t *translation) fillObject(n *node, l *jsonschema.Schema) {
	n.minProperties, n.maxProperties, n.required = l.MinProperties, l.MaxProperties, l.Required
	if len(l.Properties) > 0 {
		n.properties = make(map[string]*node, len(l.Properties))
		for name, sub := range l.Properties {
			n.properties[name] = t.enqueue(sub)
		}
	}
	for re, sub := range l.PatternProperties {
		n.patterns = append(n.patterns, patternNode{re.(*pattern), t.enqueue(sub)})
	}
	slices.SortFunc(n.patterns, func(a, b patternNode) int { return strings.Compare(a.pattern.String(), b.pattern.String()) })
	n.additional = t.either(l.AdditionalProperties, n.at+"/additionalProperties")
	n.names = t.enqueue(l.PropertyNames)
	for name, x := range l.Dependencies {
		switch x := x.(type) {
		case []string:
			n.dependentRequired = append(n.dependentRequired, dependency{name: name, need: x})
		case *jsonschema.Schema:
			n.dependentSchemas = append(n.dependentSchemas, dependency{name: name, node: t.enqueue(x)})
		}
	}
	for name, need := range l.DependentRequired {
		n.dependentRequired = append(n.dependentRequired, dependency{name: name, need: need})
	}
	for name, sub := range l.DependentSchemas {
		n.dependentSchemas = append(n.dependentSchemas, dependency{name: name, node: t.enqueue(sub)})
	}
	byName := func(a, b dependency) int { return strings.Compare(a.name, b.name) }
	slices.SortFunc(n.dependentRequired, byName)
	slices.SortFunc(n.dependentSchemas, byName)
}

// resources finds for every node the resource that it is part of, and the
// anchors of each.
func (t *translation) resources() {
	roots := make(map[string]*resource) // by document and pointer
	split := func(l *jsonschema.Schema) (doc, pointer string) {
		doc, _, _ = strings.Cut(l.Location, "#")
		p := pointerOf(l.Location)
		return doc, p[strings.LastIndexByte(p, '#')+1:]
	}
	for _, l := range t.queue {
		if doc, pointer := split(l); l.ID != "" || pointer == "" {
			roots[doc+"#"+pointer] = &resource{root: t.nodes[l], anchors: make(map[string]*node), recursive: l.RecursiveAnchor}
		}
	}
	for _, l := range t.queue {
		n := t.nodes[l]
		doc, pointer := split(l)
		for n.resource = roots[doc+"#"+pointer]; n.resource == nil && pointer != ""; n.resource = roots[doc+"#"+pointer] {
			pointer = pointer[:strings.LastIndexByte(pointer, '/')]
		}
		if n.resource != nil && l.DynamicAnchor != "" {
			n.resource.anchors[l.DynamicAnchor] = n
		}
	}
}

// settle refuses references that lead back to themselves without going into the
// value, and computes the possible types of every node, deepest first.
func (t *translation) settle() error {
	const (
		inWork = 1
		ready  = 2
	)
	state := make(map[*node]int, len(t.nodes))
	var visit func(n *node) error
	visit = func(n *node) (err error) {
		switch state[n] {
		case ready:
			return nil
		case inWork:
			return &CompileError{n.at, "the reference leads back to itself without going into the value"}
		}
		state[n] = inWork
		n.inPlace(func(m *node) {
			if err == nil {
				err = visit(m)
			}
		})
		state[n] = ready
		n.possible = n.upperBound()
		return err
	}
	for _, l := range t.queue {
		if err := visit(t.nodes[l]); err != nil {
			return err
		}
	}
	return nil
}

// upperBound are the types that a value which fits n may have.
func (n *node) upperBound() typeSet {
	if n.never {
		return 0
	}
	may := anyType
	if n.types != 0 {
		may &= n.types
	}
	if n.enum != nil {
		var listed typeSet
		for _, v := range n.enum {
			listed |= typeOf(v)
		}
		may &= listed
	}
	if n.ref != nil {
		may &= n.ref.possible
	}
	for _, m := range n.all {
		may &= m.possible
	}
	for _, branches := range [][]*node{n.any, n.one} {
		if len(branches) > 0 {
			var union typeSet
			for _, m := range branches {
				union |= m.possible
			}
			may &= union
		}
	}
	return may
}

// fromRat is the decimal of a bound. The library keeps bounds as ratios of what
// were decimals, so the expansion ends: within the digits that [reader] allows.
func fromRat(r *big.Rat) decimal {
	digits, _ := r.FloatPrec()
	return parse(r.FloatString(digits))
}

// fromRaw is the value of what [reader] or the library's own metaschemas hold.
func fromRaw(x any) (value.Value, error) {
	text, err := json.Marshal(x)
	if err != nil {
		return value.Value{}, err
	}
	return value.Parse(text)
}
