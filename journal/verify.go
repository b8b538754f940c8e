package journal

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"

	"github.com/callsheet/callsheet/internal/count"
)

// ErrEmpty is an export with nothing in it.
var ErrEmpty = errors.New("there is nothing to read")

// maxLine bounds a line of an export: a stored part of the largest size, with
// what stands around it.
const maxLine = MaxValue + 1<<10

// Verify audits an export. An error means that it could not be read; whatever
// the text is, as long as there is one, the report judges it.
func Verify(r io.Reader, trust Trust) (*Report, error) {
	if err := trust.Validate(); err != nil {
		return nil, err
	}
	in := &lineReader{r: bufio.NewReaderSize(r, hashChunk)}
	header, whole, err := in.next()
	if err != nil {
		return nil, err
	}
	if len(header) == 0 && !whole {
		return nil, ErrEmpty
	}
	c := newChecker(trust)
	if !whole {
		c.report.fault(-1, "truncated: the text ends in its first line")
		return c.report, nil
	}
	sum := sha256.New()
	keep := func(line []byte) { sum.Write(line); sum.Write([]byte{'\n'}) }
	c.header(header)
	keep(header)
	blobs := 0
	for {
		line, whole, err := in.next()
		if err != nil {
			return nil, err
		}
		if !whole {
			c.end(nil)
			reason := "truncated: there is no footer"
			if len(line) > 0 {
				reason = "truncated: the text ends in the middle of a line"
			}
			c.report.fault(c.n, "%s", reason)
			return c.report, nil
		}
		switch {
		case bytes.HasPrefix(line, []byte(endMark)):
			c.footer(line, blobs, sum.Sum(nil))
			if rest, whole, err := in.next(); err != nil {
				return nil, err
			} else if whole || len(rest) > 0 {
				c.report.fault(c.n, "there is text after the footer")
			}
			return c.report, nil
		case bytes.HasPrefix(line, []byte(blobMark)):
			c.exportedBlob(blobs, line)
			blobs++
		case blobs > 0:
			c.report.fault(c.n, "a line that is neither a stored part nor the footer")
		default:
			c.record(line)
		}
		keep(line)
	}
}

// Verify audits a stored run by its whole id. An error means that there is none
// ([ErrNoRun], [ErrRemoved]) or that the database could not be read.
func (s *Store) Verify(ctx context.Context, id string, trust Trust) (*Report, error) {
	if err := trust.Validate(); err != nil {
		return nil, err
	}
	return s.audit(ctx, id, trust, nil)
}

// audit checks a stored run, and exports it on the way unless out is nil.
func (s *Store) audit(ctx context.Context, id string, trust Trust, out *exporter) (*Report, error) {
	row, err := s.row(ctx, id)
	if err != nil {
		return nil, err
	}
	c := newChecker(trust)
	c.header(row.header)
	out.header(row.header)
	if c.report.Header.Run != id {
		c.report.fault(-1, "it is not the header of this run")
	}
	for seg, err := range s.segments(ctx, row.no) {
		if err != nil {
			return nil, err
		}
		c.segment(seg)
		if err := out.segment(seg); err != nil {
			return nil, err
		}
	}
	c.end(nil)
	for _, hash := range c.refs.order {
		text, err := s.blobText(ctx, hash)
		found := err == nil
		if !found && !errors.Is(err, errNoBlob) {
			return nil, err
		}
		c.blob(hash, text, found)
		if !found {
			continue
		}
		if err := out.blob(hash, text); err != nil {
			return nil, err
		}
	}
	if row.finished && !c.report.Final {
		c.report.fault(c.n, "truncated: the run has ended, but its final checkpoint is missing")
	}
	return c.report, out.end()
}

// A checker walks the chain of one run.
type checker struct {
	report *Report
	refs   *refs
	n      int  // records so far
	prev   Hash // hash of the last line
	blamed bool // the last line is known to be bad: the next need not fit it
	loose  int  // the record that does not carry prev, if that is not yet explained; else -1
	headOK bool // the known head was met
}

func newChecker(trust Trust) *checker {
	return &checker{report: &Report{Trust: trust}, refs: newRefs(), loose: -1}
}

func (c *checker) header(line []byte) {
	h, signer, err := parseHeader(line)
	c.report.Header = h
	if err != nil {
		c.report.fault(-1, "%v", err)
		c.blamed = true
	} else {
		c.signed(-1, signer)
	}
	c.prev = first(line)
	c.known()
}

// signed notes who signed, and whether that is who should have.
func (c *checker) signed(index int, key ed25519.PublicKey) bool {
	f := fingerprint(key)
	if !slices.Contains(c.report.Signers, f) {
		c.report.Signers = append(c.report.Signers, f)
	}
	if len(c.report.Trust.Keys) > 0 && !slices.Contains(c.report.Trust.Keys, f) {
		c.report.fault(index, "signed by another key: %s", f)
		return false
	}
	return true
}

// known compares with the known head when the chain has come to it.
func (c *checker) known() {
	c.report.Head = Head{c.n, c.prev}
	if h := c.report.Trust.Head; h != nil && h.Records == c.n {
		c.headOK = true
		if h.Hash != c.prev {
			c.report.fault(c.n-1, "it does not have the hash of the known head: the log was rewritten up to here")
		}
	}
}

// record takes the next line of the chain.
func (c *checker) record(line []byte) {
	e, err := parseLine(line, nil)
	fits := c.blamed || err != nil || e.Prev == c.prev
	c.blamed = false
	switch {
	case err != nil:
		c.explain(true)
		c.bad("%v", err)
	case e.Index != c.n:
		c.explain(true)
		if e.Index > c.n {
			c.bad("missing: record %d stands in its place", e.Index)
			c.n = e.Index
		} else {
			c.bad("record %d stands in its place, again or moved", e.Index)
		}
	default:
		// A record that was changed no longer fits what follows; if it is its own
		// link that was changed, it does not fit what comes before it either.
		if c.loose >= 0 {
			c.explain(fits)
		} else if !fits {
			c.loose = c.n
		}
		c.content(line, e)
	}
	if err == nil {
		c.refs.add(e)
	}
	c.n++
	c.prev = first(line)
	c.known()
}

func (c *checker) bad(format string, args ...any) {
	c.report.fault(c.n, format, args...)
	c.blamed = true
}

// explain settles which record was changed where one did not carry the hash of
// the one before: that one, if the link after it holds.
func (c *checker) explain(holds bool) {
	if c.loose < 0 {
		return
	}
	if holds {
		c.report.fault(c.loose-1, "changed: %s names another hash for it", recordName(c.loose))
	} else {
		c.report.fault(c.loose, "changed: it does not fit what comes before it nor what comes after it")
	}
	c.loose = -1
}

// content checks what a record says about the chain.
func (c *checker) content(line []byte, e Entry) {
	if c.report.Final {
		c.bad("it comes after the final checkpoint")
	}
	if (e.Kind == startKind) != (c.n == 0) {
		c.bad("a run begins with its start record, and has one only")
	}
	if e.Kind != checkpointKind {
		if c.n%CheckpointEvery == CheckpointEvery-1 {
			c.bad("every record number %d is a checkpoint", CheckpointEvery)
		}
		return
	}
	signer, final, err := checkCheckpoint(c.report.Header.Run, line, e)
	if err != nil {
		c.bad("%v", err)
		c.loose = -1 // whatever link it spoils, it is the one that was changed
		return
	}
	if c.signed(c.n, signer) {
		c.report.Signed = c.n + 1
	}
	c.report.Final = final
}

// segment takes a row of the database.
func (c *checker) segment(seg segment) {
	if seg.first != c.n {
		c.report.fault(min(c.n, seg.first), "missing or doubled: the stored records go on with %d", seg.first)
		c.n, c.blamed = seg.first, true
	}
	eachLine(seg.lines, func(line []byte) bool {
		c.record(line)
		return true
	})
	switch {
	case c.n != seg.first+seg.count:
		c.report.fault(c.n, "missing: the database says %s from %d on", count.Of(seg.count, "record"), seg.first)
	case c.prev == seg.head:
		c.explain(true)
	case c.loose == c.n-1:
		c.explain(false)
		c.blamed = true
	case !c.blamed:
		c.blame("changed: it does not have the hash that is stored beside it")
	}
}

// blame finds fault with the last record.
func (c *checker) blame(reason string) {
	c.report.fault(c.n-1, "%s", reason)
	c.blamed = true
}

// end closes the chain. head is the hash that its last line should have, if
// there is one to compare with.
func (c *checker) end(head *Hash) {
	switch {
	case head == nil || *head == c.prev:
		c.explain(true)
	case c.loose == c.n-1:
		c.explain(false)
	case !c.blamed:
		c.blame("changed: the footer names another hash for it")
	}
	if c.n == 0 {
		c.report.fault(0, "missing: a run has at least its start record")
	}
	if h := c.report.Trust.Head; h != nil && !c.headOK {
		c.report.fault(c.n, "truncated: the known head has %s", count.Of(h.Records, "record"))
	}
}

// blob checks a stored part.
func (c *checker) blob(hash Hash, text []byte, found bool) {
	m := c.refs.by[hash]
	switch {
	case !found:
		c.report.fault(m.index, "its stored part %s is missing", hash)
	case sha256.Sum256(text) != hash:
		c.report.fault(m.index, "its stored part %s was changed", hash)
	case len(text) != m.size:
		c.report.fault(m.index, "its stored part %s has %s, not %d", hash, count.Of(len(text), "byte"), m.size)
	}
}

// exportedBlob checks line number i of the stored parts.
func (c *checker) exportedBlob(i int, line []byte) {
	if i >= len(c.refs.order) {
		c.report.fault(c.n, "a stored part that no record names")
		return
	}
	hash := c.refs.order[i]
	text, ok := bytes.CutPrefix(line, []byte(blobMark+hash.String()+blobMiddle))
	if ok {
		text, ok = bytes.CutSuffix(text, []byte(blobEnd))
	}
	c.blob(hash, text, ok)
}

// footer checks the last line of an export against all that came before.
func (c *checker) footer(line []byte, blobs int, sum []byte) {
	want := footer(c.n, blobs, c.prev, sum)
	head, ok := footerHead(line)
	if bytes.Contains(line, []byte(hex.EncodeToString(sum))) {
		head, ok = c.prev, true // what comes before is as it was, whatever the footer says
	}
	if ok {
		c.end(&head)
	} else {
		c.end(nil)
	}
	if blobs < len(c.refs.order) {
		c.blob(c.refs.order[blobs], nil, false)
	}
	if string(line) != want {
		c.report.fault(c.n, "the footer does not fit what comes before it")
	}
}

// footerHead is the hash that a footer gives for the last record.
func footerHead(line []byte) (Hash, bool) {
	_, rest, ok := bytes.Cut(line, []byte(`"head":"`))
	if !ok || len(rest) < 2*len(Hash{}) {
		return Hash{}, false
	}
	return parseHash(string(rest[:2*len(Hash{})]))
}

// lineReader reads lines of bounded length.
type lineReader struct {
	r    *bufio.Reader
	line []byte
}

// next returns the next line without its newline; whole is false for what
// stands after the last newline. The line is good until the following call.
func (l *lineReader) next() (line []byte, whole bool, err error) {
	l.line = l.line[:0]
	for {
		part, err := l.r.ReadSlice('\n')
		l.line = append(l.line, part...)
		switch {
		case err == nil:
			return l.line[:len(l.line)-1], true, nil
		case errors.Is(err, io.EOF):
			return l.line, false, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		case len(l.line) > maxLine:
			return nil, false, errors.New("a line is longer than any that a journal has")
		}
	}
}
