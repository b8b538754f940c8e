package plan

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/callsheet/callsheet/value"
)

// A Position is a place in a document.
type Position struct {
	Line   int // from 1
	Column int // from 1, in bytes
	Offset int // bytes before it
}

// Positions finds where the values at the pointers start. A pointer to nothing
// has the position of the deepest value on its way. The document is read once,
// however many pointers there are; nothing is kept.
func (p *Plan) Positions(pointers ...string) []Position { return locate(p.source, pointers) }

// Position is the line and column of one pointer. It reads the document anew;
// for more than a few use [Plan.Positions].
func (p *Plan) Position(pointer string) (line, column int) {
	at := p.Positions(pointer)[0]
	return at.Line, at.Column
}

// locate finds pointers in a text that is known to be strict JSON.
func locate(text []byte, pointers []string) []Position {
	root := &place{}
	at := make([]*place, len(pointers))
	for i, pointer := range pointers {
		n := root
		for pointer != "" {
			token, rest, more := strings.Cut(pointer[1:], "/")
			n = n.kid(value.UnescapePointer(token))
			if !more {
				break
			}
			pointer = "/" + rest
		}
		at[i] = n
	}
	l := &locator{
		text: text,
		dec: jsontext.NewDecoder(bytes.NewBuffer(text),
			jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)),
		line: 1,
	}
	l.value(root)
	positions := make([]Position, len(pointers))
	for i, n := range at {
		for n.found.Line == 0 {
			n = n.up
		}
		positions[i] = n.found
	}
	return positions
}

// place is a value that somebody asks about, or one on the way to it.
type place struct {
	up    *place
	kids  map[string]*place
	found Position // zero until the value was met
}

func (n *place) kid(token string) *place {
	k := n.kids[token]
	if k == nil {
		k = &place{up: n}
		if n.kids == nil {
			n.kids = make(map[string]*place)
		}
		n.kids[token] = k
	}
	return k
}

// locator walks a text in its order, so that lines are counted once.
type locator struct {
	text []byte
	dec  *jsontext.Decoder
	line int // the line on which start is
	head int // offset of the first byte of that line
	seen int // how far newlines were counted
}

// value notes where the next value starts and walks into it only as far as
// somebody asks. The text was read before, so the decoder cannot fail.
func (l *locator) value(n *place) {
	start := int(l.dec.InputOffset())
	for start < len(l.text) && strings.IndexByte(" \t\r\n,:", l.text[start]) >= 0 {
		start++
	}
	if nl := bytes.Count(l.text[l.seen:start], []byte{'\n'}); nl > 0 {
		l.line += nl
		l.head = bytes.LastIndexByte(l.text[:start], '\n') + 1
	}
	l.seen = start
	n.found = Position{Line: l.line, Column: start - l.head + 1, Offset: start}

	kind := l.dec.PeekKind()
	if len(n.kids) == 0 || kind != '{' && kind != '[' {
		l.dec.SkipValue()
		return
	}
	l.dec.ReadToken()
	for i := 0; l.dec.PeekKind() != '}' && l.dec.PeekKind() != ']' && l.dec.PeekKind() != 0; i++ {
		var k *place
		if kind == '[' {
			k = n.kids[strconv.Itoa(i)]
		} else {
			name, _ := l.dec.ReadToken()
			k = n.kids[name.String()]
		}
		if k == nil {
			l.dec.SkipValue()
			continue
		}
		l.value(k)
	}
	l.dec.ReadToken()
}
