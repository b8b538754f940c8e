package tool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/value"
)

// A Catalogue is a frozen list of declarations: what a run may call. It has no
// handlers, so that whoever holds only a catalogue can reach no live tool.
type Catalogue struct {
	decls  []*Declaration
	byName map[string]*Declaration
	digest value.Digest
}

// NewCatalogue freezes decls in the order given: from now on they must not
// change. Two of one name are an error that names both sources.
func NewCatalogue(decls ...*Declaration) (*Catalogue, error) {
	c := &Catalogue{byName: make(map[string]*Declaration, len(decls))}
	for _, d := range decls {
		if d.Name == "" {
			return nil, fmt.Errorf("a tool of %s has no name", d.Source)
		}
		if first := c.byName[d.Name]; first != nil {
			return nil, fmt.Errorf("tool %q comes from %s and from %s; give one of the sources a prefix", d.Name, first.Source, d.Source)
		}
		d.freeze()
		c.byName[d.Name] = d
		c.decls = append(c.decls, d)
	}
	all := make([]value.Member, len(decls))
	for i, d := range c.decls {
		all[i] = value.Member{Key: d.Name, Value: value.MustText(d.Digest().String())}
	}
	c.digest = value.ObjectOf(all...).Digest()
	return c, nil
}

// Get returns the declaration of exactly this name, nil if there is none.
func (c *Catalogue) Get(name string) *Declaration { return c.byName[name] }

// All returns the declarations in order; the slice must not be changed.
func (c *Catalogue) All() []*Declaration { return c.decls }

// Digest covers the definition of every tool. Their order does not matter.
func (c *Catalogue) Digest() value.Digest { return c.digest }

// Nearest returns up to n names of tools that name may be a misspelling of, the
// best first.
func (c *Catalogue) Nearest(name string, n int) []string {
	names := make([]string, len(c.decls))
	for i, d := range c.decls {
		names[i] = d.Name
	}
	return Nearest(name, names, n)
}

// A LookAlike is a pair of tools whose names a reader takes for each other.
type LookAlike struct{ A, B *Declaration }

// String is the sentence of a warning.
func (l LookAlike) String() string {
	return fmt.Sprintf("tools %+q of %s and %+q of %s have names that look alike", l.A.Name, l.A.Source, l.B.Name, l.B.Source)
}

// LookAlikes finds the tools whose names differ only by case, or only by
// characters that are drawn alike: l, I and 1, O and 0, Latin and Cyrillic a. A
// plan that means one of them may call the other (spec/hostile.md 20). Each
// tool is paired with the first one that it looks like.
func (c *Catalogue) LookAlikes() []LookAlike {
	var pairs []LookAlike
	folded, drawn := make(map[string]*Declaration), make(map[string]*Declaration)
	for _, d := range c.decls {
		fold, skeleton := strings.ToLower(d.Name), skeleton(d.Name)
		first := folded[fold]
		if first == nil {
			first = drawn[skeleton]
		}
		if first != nil {
			pairs = append(pairs, LookAlike{first, d})
		}
		if folded[fold] == nil {
			folded[fold] = d
		}
		if drawn[skeleton] == nil {
			drawn[skeleton] = d
		}
	}
	return pairs
}

// A Set is a catalogue with the handlers of its tools.
type Set struct {
	catalogue *Catalogue
	handlers  map[string]Handler
}

// NewSet freezes tools into a set. The declarations are copied. A tool without a
// handler is only declared: it can be looked at, and a run of a plan that calls it
// is refused.
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

// Prefix puts prefix before the names of tools, so that two sources can export
// one name. Nothing else changes; tools itself is left alone.
func Prefix(prefix string, tools []Tool) []Tool {
	out := slices.Clone(tools)
	for i := range out {
		out[i].Name = prefix + out[i].Name
	}
	return out
}
