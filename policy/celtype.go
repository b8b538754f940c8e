package policy

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/callsheet/callsheet/value"
)

// shape is the type that a JSON Schema gives to a place in args, as far as rules
// need it.
type shape struct {
	cel    *types.Type
	number numberKind
	elem   *shape  // of a list
	record *record // of an object with declared members
}

// numberKind says what a JSON number is read as.
type numberKind uint8

const (
	anyNumber numberKind = iota // int when it is one, else double: where no schema says which
	intNumber
	doubleNumber
)

// A record is a CEL struct type of ours: args of one tool, a call of the history,
// a label.
type record struct {
	name   string
	cel    *types.Type
	fields map[string]*field
}

type field struct {
	shape    *shape
	required bool     // it can be read without has()
	words    []string // the only texts that it can be; nil: any
	isSet    func(any) bool
	get      func(any) (any, error)
}

func newRecord(name string) *record {
	return &record{name: name, cel: types.NewObjectType(name), fields: map[string]*field{}}
}

var dynShape = &shape{cel: types.DynType}

// maxShapeDepth bounds the typing of a schema: what is deeper, or behind a
// recursion, is dyn and read with has().
const maxShapeDepth = 12

// provider tells CEL about our records, and about the standard types.
type provider struct {
	types.Provider
	records map[string]*record
}

func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if r, ok := p.records[name]; ok {
		return types.NewTypeTypeWithParam(r.cel), true
	}
	return p.Provider.FindStructType(name)
}

func (p *provider) FindStructFieldNames(name string) ([]string, bool) {
	r, ok := p.records[name]
	if !ok {
		return p.Provider.FindStructFieldNames(name)
	}
	names := make([]string, 0, len(r.fields))
	for n := range r.fields {
		names = append(names, n)
	}
	return names, true
}

func (p *provider) FindStructFieldType(name, member string) (*types.FieldType, bool) {
	r, ok := p.records[name]
	if !ok {
		return p.Provider.FindStructFieldType(name, member)
	}
	f, ok := r.fields[member]
	if !ok {
		return nil, false
	}
	return &types.FieldType{Type: f.shape.cel, IsSet: f.isSet, GetFrom: f.get}, true
}

// NewValue refuses: a rule judges what there is and makes nothing.
func (p *provider) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if _, ok := p.records[name]; ok {
		return types.NewErr("a rule cannot make a %s", name)
	}
	return p.Provider.NewValue(name, fields)
}

// add registers a record that is not made from a schema.
func (p *provider) add(r *record) *record {
	p.records[r.name] = r
	return r
}

// shapeOf types a schema. The name is that of the record, if it becomes one.
func (p *provider) shapeOf(root, s value.Value, name string, depth int) (sh *shape, nullable bool) {
	if depth > maxShapeDepth || s.Kind() != value.Object {
		return dynShape, true
	}
	parts := unfold(root, s, maxRefs, nil)
	kind := ""
	for _, part := range parts {
		for _, k := range kindsOf(part) {
			switch {
			case k == "null":
				nullable = true
			case kind == "" || kind == k:
				kind = k
			case kind == "integer" && k == "number" || kind == "number" && k == "integer":
				kind = "number"
			default:
				return dynShape, true
			}
		}
	}
	switch kind {
	case "string":
		return &shape{cel: types.StringType}, nullable
	case "boolean":
		return &shape{cel: types.BoolType}, nullable
	case "integer":
		return &shape{cel: types.IntType, number: intNumber}, nullable
	case "number":
		return &shape{cel: types.DoubleType, number: doubleNumber}, nullable
	case "array":
		elem := dynShape
		for _, part := range parts {
			if items, ok := part.Get("items"); ok && items.Kind() == value.Object {
				var null bool
				if elem, null = p.shapeOf(root, items, name+"[]", depth+1); null {
					elem = dynShape
				}
			}
		}
		return &shape{cel: types.NewListType(elem.cel), elem: elem}, nullable
	case "object":
		r := p.recordOf(root, parts, name, depth)
		if r == nil {
			return &shape{cel: types.NewMapType(types.StringType, types.DynType), elem: dynShape}, nullable
		}
		return &shape{cel: r.cel, record: r}, nullable
	}
	return dynShape, true
}

// recordOf makes the record of an object's schema; nil when it declares no
// member.
func (p *provider) recordOf(root value.Value, parts []value.Value, name string, depth int) *record {
	r := newRecord(name)
	needed := map[string]bool{}
	choices := 0
	for _, part := range parts {
		for _, k := range []string{"anyOf", "oneOf"} {
			if list, ok := part.Get(k); ok {
				choices += list.Len()
			}
		}
		if list, ok := part.Get("required"); ok {
			for _, e := range list.Elements() {
				text, _ := e.Text()
				needed[text] = true
			}
		}
	}
	for _, part := range parts {
		props, _ := part.Get("properties")
		for member, sub := range props.Members() {
			sh, nullable := p.shapeOf(root, sub, name+"."+member, depth+1)
			if old, ok := r.fields[member]; ok && old.shape.cel.String() != sh.cel.String() {
				sh = dynShape // two alternatives disagree
			}
			// What only one alternative requires may be missing in another.
			f := jsonField(member, sh, needed[member] && !nullable && choices == 0)
			if _, twice := r.fields[member]; !twice {
				f.words = wordsOf(sub)
			}
			r.fields[member] = f
		}
	}
	if len(r.fields) == 0 {
		return nil
	}
	return p.add(r)
}

// kindsOf are the JSON types that a schema names or implies, without following
// references.
func kindsOf(s value.Value) []string {
	var kinds []string
	if t, ok := s.Get("type"); ok {
		if text, ok := t.Text(); ok {
			return []string{text}
		}
		for _, e := range t.Elements() {
			text, _ := e.Text()
			kinds = append(kinds, text)
		}
		return kinds
	}
	if c, ok := s.Get("const"); ok {
		return []string{c.Kind().String()}
	}
	if e, ok := s.Get("enum"); ok {
		for _, one := range e.Elements() {
			kinds = append(kinds, one.Kind().String())
		}
		return kinds
	}
	if _, ok := s.Get("properties"); ok {
		return []string{"object"}
	}
	if _, ok := s.Get("items"); ok {
		return []string{"array"}
	}
	return nil
}

// wordsOf are the texts that an enum leaves a place to be; nil where it may be
// something else.
func wordsOf(s value.Value) (words []string) {
	enum, _ := s.Get("enum")
	for _, e := range enum.Elements() {
		word, ok := e.Text()
		if !ok {
			return nil
		}
		words = append(words, word)
	}
	return words
}

// jsonField reads a member of a JSON object. A null counts as absent, so that a
// typed field never holds one.
func jsonField(name string, sh *shape, required bool) *field {
	find := func(obj any) (value.Value, bool) {
		o, ok := obj.(*object)
		if !ok {
			return value.Value{}, false
		}
		m, ok := o.json.Get(name)
		return m, ok && !m.IsNull()
	}
	return &field{
		shape: sh, required: required,
		isSet: func(obj any) bool { _, ok := find(obj); return ok },
		get: func(obj any) (any, error) {
			m, ok := find(obj)
			if !ok {
				return nil, &missing{name}
			}
			v := toCEL(m, sh, false)
			if err, bad := v.(*types.Err); bad {
				return nil, err
			}
			return v, nil
		},
	}
}
