package value

import "strconv"

// A Template is a value some of whose strings are holes, to be filled with
// other values. Filling shares everything: it allocates only the composites on
// the way from the root to a hole, whatever the sizes of what is put in.
type Template struct {
	root  Value // the value with its literals; holes are still the strings they were
	parts *part // nil when there is no hole
	holes int
	fixed int // bytes outside holes
}

// part is a composite on the way to a hole, or a hole itself.
type part struct {
	hole int // the number of the hole, or -1
	at   []int
	kids []*part
}

// An Answer says what one string of a template is.
type Answer struct {
	Hole    bool  // a hole; holes are numbered in document order from 0
	Literal Value // otherwise, if not zero, what to put in its place now
}

// NewTemplate makes a template of v, asking about every string value inside it
// in document order. The pointer is relative to v. Names are never asked about.
func NewTemplate(v Value, ask func(pointer, text string) Answer) *Template {
	t := &Template{}
	t.root, t.parts = t.compile(v, nil, ask)
	t.fixed = t.root.Size()
	t.forget(t.root, t.parts)
	return t
}

func (t *Template) compile(v Value, pointer []byte, ask func(pointer, text string) Answer) (Value, *part) {
	switch v.Kind() {
	case String:
		s, _ := v.Text()
		a := ask(string(pointer), s)
		if a.Hole {
			t.holes++
			return v, &part{hole: t.holes - 1}
		}
		if !a.Literal.IsZero() {
			return a.Literal, nil
		}
		return v, nil
	case List, Object:
		if v.n.text != "" && !hasString(v) {
			return v, nil
		}
		c := v.children()
		var vals []Value // set when a literal was replaced
		var p *part
		for i, e := range c.vals {
			at := len(pointer)
			pointer = append(pointer, '/')
			if c.keys != nil {
				pointer = append(pointer, EscapePointer(c.keys[i])...)
			} else {
				pointer = strconv.AppendInt(pointer, int64(i), 10)
			}
			n, sub := t.compile(e, pointer, ask)
			pointer = pointer[:at]
			if n.n != e.n {
				if vals == nil {
					vals = append([]Value(nil), c.vals...)
				}
				vals[i] = n
			}
			if sub != nil {
				if p == nil {
					p = &part{hole: -1}
				}
				p.at = append(p.at, i)
				p.kids = append(p.kids, sub)
			}
		}
		if vals != nil {
			v = compose(v.n.kind, c.keys, vals)
		}
		return v, p
	}
	return v, nil
}

// hasString reports whether the text of v can hold a string value. Every string
// that a template could ask about has a quote in it.
func hasString(v Value) bool {
	for i := range len(v.n.text) {
		if v.n.text[i] == '"' {
			return true
		}
	}
	return false
}

// forget takes the size of the holes out of fixed.
func (t *Template) forget(v Value, p *part) {
	if p == nil {
		return
	}
	if p.hole >= 0 {
		t.fixed -= v.Size()
		return
	}
	for k, i := range p.at {
		t.forget(v.At(i), p.kids[k])
	}
}

// Holes is the number of holes.
func (t *Template) Holes() int { return t.holes }

// Size is the size that Fill's result would have. Nothing is built, and the sum
// saturates, so it can be asked before memory is spent.
func (t *Template) Size(fill []Value) int {
	n := t.fixed
	for _, v := range fill[:t.holes] {
		n = addSize(n, v.Size())
	}
	return n
}

// Fill puts fill[i] into hole i.
func (t *Template) Fill(fill []Value) Value {
	if t.parts == nil {
		return t.root
	}
	return t.parts.fill(t.root, fill)
}

func (p *part) fill(v Value, with []Value) Value {
	if p.hole >= 0 {
		return with[p.hole]
	}
	c := v.children()
	vals := make([]Value, len(c.vals))
	copy(vals, c.vals)
	for k, i := range p.at {
		vals[i] = p.kids[k].fill(c.vals[i], with)
	}
	both := &struct {
		n node
		c children
	}{}
	n := &both.n
	n.kind, n.depth, n.size = v.n.kind, 1, v.n.size
	for _, i := range p.at {
		n.size = addSize(n.size-c.vals[i].Size(), vals[i].Size())
	}
	for _, e := range vals {
		if e.n.depth >= n.depth {
			n.depth = e.n.depth + 1
		}
	}
	both.c = children{keys: c.keys, vals: vals, index: c.index}
	n.kids.Store(&both.c)
	return Value{n}
}
