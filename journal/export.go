package journal

import (
	"bufio"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
)

// The lines of an export, one after the other, each ended by a newline:
//
//	{"callsheet":"journal",…}    the header, as stored
//	{"v":1,"n":0,…}              the records, as stored
//	{"blob":"<hash>","text":…}   the parts stored outside the records, in the order in which they are first named
//	{"end":{…}}                  the footer
//
// Every byte is covered: the records by the chain, the header by its signature
// and the chain, the parts by their hashes, everything before the footer by the
// footer's sum, and the footer, its newline included, by having one form only.
const (
	recordMark = `{"v":`
	blobMark   = `{"blob":"`
	blobMiddle = `","text":`
	blobEnd    = `}`
	endMark    = `{"end":`
)

func footer(records, blobs int, head Hash, sum []byte) string {
	return fmt.Sprintf(`{"end":{"records":%d,"blobs":%d,"head":"%s","sha256":"%x"}}`, records, blobs, head, sum)
}

// Export writes a run as text that [Verify] checks anywhere, and reports what
// [Store.Verify] finds on the way. What is damaged is exported as it is, for an
// auditor to see; whoever hands the text on should look at the report, because
// damage of the database beside the records does not show in the text. A run that
// is being written is exported up to where it had come.
func (s *Store) Export(ctx context.Context, id string, w io.Writer) (*Report, error) {
	sum := sha256.New()
	return s.audit(ctx, id, Trust{}, &exporter{out: bufio.NewWriterSize(io.MultiWriter(w, sum), hashChunk), sum: sum})
}

// exporter writes lines and keeps the first error. A nil one writes nothing.
type exporter struct {
	out   *bufio.Writer
	sum   hash.Hash
	head  Head
	blobs int
	err   error
}

func (e *exporter) header(line []byte) {
	if e == nil {
		return
	}
	e.line(line)
	e.head = Head{0, first(line)}
}

func (e *exporter) segment(seg segment) error {
	if e == nil {
		return nil
	}
	eachLine(seg.lines, func(line []byte) bool {
		e.line(line)
		e.head = Head{e.head.Records + 1, first(line)}
		return e.err == nil
	})
	return e.err
}

func (e *exporter) blob(hash Hash, text []byte) error {
	if e == nil {
		return nil
	}
	e.write(blobMark, hash.String(), blobMiddle)
	e.bytes(text)
	e.write(blobEnd, "\n")
	e.blobs++
	return e.err
}

// end writes the footer.
func (e *exporter) end() error {
	if e == nil {
		return nil
	}
	if err := e.flush(); err != nil {
		return err
	}
	e.write(footer(e.head.Records, e.blobs, e.head.Hash, e.sum.Sum(nil)), "\n")
	return e.flush()
}

func (e *exporter) line(b []byte) {
	e.bytes(b)
	e.write("\n")
}

func (e *exporter) bytes(b []byte) {
	if e.err == nil {
		_, e.err = e.out.Write(b)
	}
}

func (e *exporter) write(parts ...string) {
	for _, p := range parts {
		if e.err == nil {
			_, e.err = e.out.WriteString(p)
		}
	}
}

func (e *exporter) flush() error {
	if e.err == nil {
		e.err = e.out.Flush()
	}
	return e.err
}

// refs are the stored parts that a run's records name, in the order of their
// first mention.
type refs struct {
	order []Hash
	by    map[Hash]mention
}

// mention is where a part is first named, and how long it is said to be.
type mention struct{ index, size int }

func newRefs() *refs { return &refs{by: map[Hash]mention{}} }

func (r *refs) add(e Entry) {
	for _, ref := range e.refs {
		if _, ok := r.by[ref.hash]; !ok {
			r.by[ref.hash] = mention{e.Index, ref.size}
			r.order = append(r.order, ref.hash)
		}
	}
}
