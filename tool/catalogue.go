package tool

import (
	"fmt"

	"github.com/callsheet/callsheet/value"
)

// A Catalogue is a frozen list of declarations: what a run may call. It has no
// handlers, so that whoever holds only a catalogue can reach no live tool.
type Catalogue struct {
	decls  []*Declaration
	byName map[string]*Declaration
	digest value.Digest
}

// NewCatalogue freezes decls in the order given. Two of one name are an error
// that names both sources.
func NewCatalogue(decls ...*Declaration) (*Catalogue, error) {
	c := &Catalogue{byName: make(map[string]*Declaration, len(decls))}
	for _, d := range decls {
		if first := c.byName[d.Name]; first != nil {
			return nil, fmt.Errorf("tool %q comes from %s and from %s; give one of the sources a prefix", d.Name, first.Source, d.Source)
		}
		c.byName[d.Name] = d
		c.decls = append(c.decls, d)
	}
	return c, nil
}

// Get returns the declaration of exactly this name, nil if there is none.
func (c *Catalogue) Get(name string) *Declaration { return c.byName[name] }

// All returns the declarations in order; the slice must not be changed.
func (c *Catalogue) All() []*Declaration { return c.decls }

// A Set is a catalogue with the handlers of its tools.
type Set struct {
	catalogue *Catalogue
	handlers  map[string]Handler
}

// NewSet freezes tools into a set.
func NewSet(tools ...Tool) (*Set, error) {
	s := &Set{handlers: make(map[string]Handler, len(tools))}
	decls := make([]*Declaration, len(tools))
	for i, t := range tools {
		d := t.Declaration
		decls[i] = &d
		s.handlers[t.Name] = t.Handler
	}
	var err error
	if s.catalogue, err = NewCatalogue(decls...); err != nil {
		return nil, err
	}
	return s, nil
}

// Catalogue is the frozen list of declarations.
func (s *Set) Catalogue() *Catalogue { return s.catalogue }

// Handler returns the handler of exactly this name, nil if there is none.
func (s *Set) Handler(name string) Handler { return s.handlers[name] }
