package state

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/callsheet/callsheet/value"
)

// A node is one value of the tree: an immutable value that nothing has been
// written into yet, or a persistent object or list.
type node struct {
	v value.Value
	o *object
	l *list
}

func (n node) kind() value.Kind {
	switch {
	case n.o != nil:
		return value.Object
	case n.l != nil:
		return value.List
	}
	return n.v.Kind()
}

func (n node) value() value.Value {
	if n.o == nil && n.l == nil {
		return n.v
	}
	v, err := value.Parse(n.appendTo(nil))
	if err != nil {
		panic("state: a node that is not JSON: " + err.Error())
	}
	return v
}

func (n node) appendTo(dst []byte) []byte {
	switch {
	case n.o != nil:
		dst = append(dst, '{')
		for i, e := range n.o.inOrder() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(value.AppendQuote(dst, e.key), ':')
			dst = e.val.appendTo(dst)
		}
		return append(dst, '}')
	case n.l != nil:
		dst = append(dst, '[')
		for i, e := range n.l.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = e.appendTo(dst)
		}
		return append(dst, ']')
	}
	return n.v.AppendTo(dst)
}

// child is the member of an object.
func (n node) child(key string) (node, bool) {
	if n.o != nil {
		return n.o.get(key)
	}
	v, ok := n.v.Get(key)
	return node{v: v}, ok
}

// at is the element of a list.
func (n node) at(i int) (node, bool) {
	if n.l != nil {
		if i < len(n.l.items) {
			return n.l.items[i], true
		}
		return node{}, false
	}
	if i < n.v.Len() {
		return node{v: n.v.At(i)}, true
	}
	return node{}, false
}

// object is the persistent form of an object node.
func (n node) object() *object {
	if n.o != nil {
		return n.o
	}
	return objectOf(n.v)
}

// list is the persistent form of a list node.
func (n node) list() *list {
	if n.l != nil {
		return n.l
	}
	items := make([]node, n.v.Len())
	for i, e := range n.v.Elements() {
		items[i] = node{v: e}
	}
	return &list{items: items, owner: &owner{used: len(items)}}
}

// An object is a persistent map: an AVL tree by key, each entry with the number
// that keeps the order in which keys came.
type object struct {
	root *entry
	n    int
	next uint64
}

type entry struct {
	key         string
	val         node
	seq         uint64
	height      int
	left, right *entry
}

func objectOf(v value.Value) *object {
	es := make([]entry, v.Len())
	order := make([]*entry, len(es))
	for i := range es {
		es[i] = entry{key: v.Key(i), val: node{v: v.At(i)}, seq: uint64(i)}
		order[i] = &es[i]
	}
	slices.SortFunc(order, func(a, b *entry) int { return strings.Compare(a.key, b.key) })
	return &object{root: balanced(order), n: len(es), next: uint64(len(es))}
}

func balanced(es []*entry) *entry {
	if len(es) == 0 {
		return nil
	}
	mid := len(es) / 2
	e := es[mid]
	e.left, e.right = balanced(es[:mid]), balanced(es[mid+1:])
	e.height = 1 + max(e.left.tall(), e.right.tall())
	return e
}

func (o *object) get(key string) (node, bool) {
	e := o.root
	for e != nil {
		switch c := strings.Compare(key, e.key); {
		case c == 0:
			return e.val, true
		case c < 0:
			e = e.left
		default:
			e = e.right
		}
	}
	return node{}, false
}

// set gives the object in which key holds val; a new key comes last.
func (o *object) set(key string, val node) *object {
	root, added := o.root.set(key, val, o.next)
	out := &object{root: root, n: o.n, next: o.next}
	if added {
		out.n, out.next = o.n+1, o.next+1
	}
	return out
}

// remove gives the object without key; o itself when it has none.
func (o *object) remove(key string) *object {
	if _, ok := o.get(key); !ok {
		return o
	}
	return &object{root: o.root.remove(key), n: o.n - 1, next: o.next}
}

// inOrder are the entries in the order in which their keys came.
func (o *object) inOrder() []*entry {
	out := make([]*entry, 0, o.n)
	var walk func(e *entry)
	walk = func(e *entry) {
		if e != nil {
			walk(e.left)
			out = append(out, e)
			walk(e.right)
		}
	}
	walk(o.root)
	slices.SortFunc(out, func(a, b *entry) int { return cmp.Compare(a.seq, b.seq) })
	return out
}

func (e *entry) tall() int {
	if e == nil {
		return 0
	}
	return e.height
}

func (e *entry) set(key string, val node, seq uint64) (_ *entry, added bool) {
	if e == nil {
		return &entry{key: key, val: val, seq: seq, height: 1}, true
	}
	c := *e
	switch d := strings.Compare(key, e.key); {
	case d == 0:
		c.val = val
		return &c, false
	case d < 0:
		c.left, added = e.left.set(key, val, seq)
	default:
		c.right, added = e.right.set(key, val, seq)
	}
	return c.balance(), added
}

func (e *entry) remove(key string) *entry {
	c := *e
	switch d := strings.Compare(key, e.key); {
	case d < 0:
		c.left = e.left.remove(key)
	case d > 0:
		c.right = e.right.remove(key)
	case e.left == nil:
		return e.right
	case e.right == nil:
		return e.left
	default:
		next := e.right
		for next.left != nil {
			next = next.left
		}
		c.key, c.val, c.seq = next.key, next.val, next.seq
		c.right = e.right.remove(next.key)
	}
	return c.balance()
}

// balance restores the AVL invariant of e, which is a fresh copy.
func (e *entry) balance() *entry {
	l, r := e.left.tall(), e.right.tall()
	switch {
	case l > r+1:
		if e.left.right.tall() > e.left.left.tall() {
			e.left = e.left.copy().rotateLeft()
		}
		return e.rotateRight()
	case r > l+1:
		if e.right.left.tall() > e.right.right.tall() {
			e.right = e.right.copy().rotateRight()
		}
		return e.rotateLeft()
	}
	e.fix()
	return e
}

func (e *entry) copy() *entry {
	c := *e
	return &c
}

// rotateLeft makes a copy of the right child the root of e, which is a copy
// itself.
func (e *entry) rotateLeft() *entry {
	r := e.right.copy()
	e.right, r.left = r.left, e
	e.fix()
	r.fix()
	return r
}

func (e *entry) rotateRight() *entry {
	l := e.left.copy()
	e.left, l.right = l.right, e
	e.fix()
	l.fix()
	return l
}

func (e *entry) fix() { e.height = 1 + max(e.left.tall(), e.right.tall()) }

// A list is a persistent list that only grows. Versions share one array: the
// newest appends in place, an older one copies.
type list struct {
	items []node
	owner *owner
}

type owner struct {
	mu   sync.Mutex
	used int // holding mu: elements of the array that some version has
}

func (l *list) push(n node) *list {
	l.owner.mu.Lock()
	defer l.owner.mu.Unlock()
	if l.owner.used == len(l.items) && cap(l.items) > len(l.items) {
		l.owner.used++
		return &list{items: append(l.items, n), owner: l.owner}
	}
	items := make([]node, len(l.items), max(8, 2*len(l.items)))
	copy(items, l.items)
	return &list{items: append(items, n), owner: &owner{used: len(items) + 1}}
}
