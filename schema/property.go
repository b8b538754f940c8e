package schema

// A Property is a top-level property that a schema declares.
type Property struct {
	Name     string
	Types    string // as a schema names them, "string or null"; "any" for all
	Required bool   // in every value that fits
}

// Properties lists what [Schema.Names] names, in that order, for people who want
// to see what may be sent.
func (s *Schema) Properties() []Property {
	names := s.Names()
	if names == nil {
		return nil
	}
	required := make(map[string]bool)
	s.root.conjuncts(func(n *node) {
		for _, name := range n.required {
			required[name] = true
		}
	})
	list := make([]Property, len(names))
	w := &walk{newMeter(maxWalk)}
	for i, name := range names {
		list[i] = Property{Name: name, Types: "any", Required: required[name]}
		if n, possible := w.property(s.root, name); possible && n != nil && n.possible != anyType {
			list[i].Types = n.possible.String()
		}
	}
	return list
}
