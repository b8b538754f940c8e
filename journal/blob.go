package journal

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"strconv"
	"sync"

	"github.com/callsheet/callsheet/value"
)

const (
	// InlineMax is the size in bytes up to which a part of a body stands in its
	// line: one page of the database. What is larger would push neighbouring
	// records off their page, and is worth a row of its own that equal values
	// share.
	InlineMax = 4 << 10

	// MaxValue bounds a body with all its parts, in bytes. Outputs and args are
	// at most 16 MiB each (spec/plan.md §8) unless configured; this is the point
	// where SQLite and the memory of a reader become the limit.
	MaxValue = 256 << 20

	// hashChunk is how much text is copied at a time on its way to the hash, so
	// that a large value is hashed without a second copy of it.
	hashChunk = 32 << 10
)

// A blob is a part of a body that goes to a row of its own.
type blob struct {
	hash Hash
	part value.Value
}

// prepared is a body as text, made before any lock is taken.
type prepared struct {
	body    []byte
	refs    []byte // the members of "blobs"
	blobs   []blob
	pointer []byte
}

var preparedPool = sync.Pool{New: func() any { return new(prepared) }}

func (p *prepared) release() {
	clear(p.blobs)
	p.body, p.refs, p.blobs, p.pointer = p.body[:0], p.refs[:0], p.blobs[:0], p.pointer[:0]
	preparedPool.Put(p)
}

// prepare writes a body, moving out what is large.
func prepare(body value.Value) (*prepared, error) {
	if body.IsZero() {
		body = value.NullValue()
	}
	if body.Size() > MaxValue {
		return nil, fmt.Errorf("%w: a body of %d bytes; the most is %d", ErrRefused, body.Size(), MaxValue)
	}
	p := preparedPool.Get().(*prepared)
	p.write(body)
	return p, nil
}

// write goes down only into values that were composed in memory: their parts
// are at hand, and it is the large ones among them that other bodies share. A
// large value that came as text is stored whole; splitting it would cost more
// than it holds.
func (p *prepared) write(v value.Value) {
	switch {
	case v.Size() <= InlineMax:
		p.body = v.AppendTo(p.body)
	case v.Composed() && hasLargePart(v):
		p.writeParts(v)
	default:
		p.writeBlob(v)
	}
}

func hasLargePart(v value.Value) bool {
	for i := range v.Len() {
		if v.At(i).Size() > InlineMax {
			return true
		}
	}
	return false
}

func (p *prepared) writeParts(v value.Value) {
	at := len(p.pointer)
	object := v.Kind() == value.Object
	open, end := byte('['), byte(']')
	if object {
		open, end = '{', '}'
	}
	p.body = append(p.body, open)
	for i := range v.Len() {
		if i > 0 {
			p.body = append(p.body, ',')
		}
		p.pointer = append(p.pointer, '/')
		if object {
			p.body = append(value.AppendQuote(p.body, v.Key(i)), ':')
			p.pointer = append(p.pointer, value.EscapePointer(v.Key(i))...)
		} else {
			p.pointer = strconv.AppendInt(p.pointer, int64(i), 10)
		}
		p.write(v.At(i))
		p.pointer = p.pointer[:at]
	}
	p.body = append(p.body, end)
}

func (p *prepared) writeBlob(v value.Value) {
	h := hashValue(v)
	p.body = append(p.body, '"')
	p.body = append(p.body, h.String()...)
	p.body = append(p.body, '"')
	if len(p.refs) > 0 {
		p.refs = append(p.refs, ',')
	}
	p.refs = append(value.AppendQuote(p.refs, string(p.pointer)), ':')
	p.refs = strconv.AppendInt(p.refs, int64(v.Size()), 10)
	p.blobs = append(p.blobs, blob{h, v})
}

// hashValue is the hash of the value's text as it is, not of its canonical
// form: the order of members is part of what is recorded.
func hashValue(v value.Value) Hash {
	sum := sha256.New()
	w := bufio.NewWriterSize(sum, hashChunk)
	v.WriteTo(w) // a hash takes everything
	w.Flush()
	return Hash(sum.Sum(nil))
}
