package command

import (
	"errors"
	"strings"
)

var errFull = errors.New("output over the cap")

// capped keeps what is written until it passes max; then it drops everything,
// calls over once and refuses more, so that a flood costs no memory and what
// was cut is never taken for the whole.
type capped struct {
	buf  []byte
	max  int
	full bool
	over func()
}

func (c *capped) Write(p []byte) (int, error) {
	if c.full {
		return 0, errFull
	}
	if len(p) > c.max-len(c.buf) {
		c.full, c.buf = true, nil
		c.over()
		return 0, errFull
	}
	c.buf = append(c.buf, p...)
	return len(p), nil
}

// tail keeps the last max bytes that are written: a program's last words say
// why it ended.
type tail struct {
	buf []byte
	max int
	cut bool
}

func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if len(p) > t.max {
		p, t.cut = p[len(p)-t.max:], true
	}
	t.buf = append(t.buf, p...)
	if extra := len(t.buf) - t.max; extra > 0 {
		t.buf, t.cut = append(t.buf[:0], t.buf[extra:]...), true
	}
	return n, nil
}

// String is the text that was kept, with a mark where it was cut and for bytes
// that are not UTF-8.
func (t *tail) String() string {
	s := strings.ToValidUTF8(string(t.buf), "\uFFFD")
	if t.cut {
		s = "…" + s
	}
	return s
}
