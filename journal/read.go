package journal

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/value"
)

const (
	// readRows is how many segments are read at a time. Between two reads no
	// transaction is open: a slow consumer does not keep the log from being
	// begun anew.
	readRows = 64
	// blobCache bounds the bytes of stored parts that one reader keeps, so that
	// a value that many records share is read, and held, once.
	blobCache = 64 << 20
)

// Entries reads a run's records from index on, as far as they are in the file,
// also while another process writes them. Every link of the chain is checked on
// the way: the error is a [*BrokenError] where one does not hold, and the records
// up to there have been yielded.
func (s *Store) Entries(ctx context.Context, id string, from int) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		row, err := s.row(ctx, id)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		c := s.cursor(id, row, from)
		for {
			entries, err := c.read(ctx)
			for _, e := range entries {
				if !yield(e, nil) {
					return
				}
			}
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if len(entries) == 0 {
				return
			}
		}
	}
}

// A cursor reads the records of a run in order.
type cursor struct {
	store *Store
	id    string
	no    int64
	from  int  // the next index to yield
	after int  // segments that begin after this one are next; -1 for all
	next  int  // the index that the next line must have
	prev  Hash // the hash that it must carry
	known bool // prev is set
	blobs *blobReader
}

func (s *Store) cursor(id string, r row, from int) *cursor {
	c := &cursor{store: s, id: id, no: r.no, from: max(from, 0), after: -1, blobs: &blobReader{store: s}}
	if c.from == 0 {
		c.prev, c.known = first(r.header), true
	}
	return c
}

// read returns the next records, none at the end of what is in the file.
func (c *cursor) read(ctx context.Context) (entries []Entry, err error) {
	for {
		segments, err := c.segments(ctx)
		if err != nil || len(segments) == 0 {
			return nil, err
		}
		for _, seg := range segments {
			entries, err = c.parse(entries, seg)
			if err != nil {
				return entries, err
			}
		}
		if len(entries) > 0 {
			return entries, nil
		}
	}
}

func (c *cursor) broken(at int, reason string) error {
	return &BrokenError{c.id, at, reason}
}

// parse appends the records of a segment that are asked for.
func (c *cursor) parse(entries []Entry, seg segment) ([]Entry, error) {
	if !c.known {
		c.next = seg.first
	}
	if seg.first != c.next {
		return entries, c.broken(c.next, fmt.Sprintf("missing: the next stored record is %d", seg.first))
	}
	var err error
	eachLine(seg.lines, func(line []byte) bool {
		var e Entry
		e, err = parseLine(line, c.blobs)
		switch {
		case err != nil:
			err = c.broken(c.next, err.Error())
		case e.Index != c.next:
			err = c.broken(c.next, fmt.Sprintf("record %d stands in its place", e.Index))
		case c.known && e.Prev != c.prev:
			err = c.broken(c.next, "it does not carry the hash of the record before it: one of the two was changed")
		}
		if err != nil {
			return false
		}
		c.prev, c.known = e.Hash, true
		if e.Index >= c.from {
			entries = append(entries, e)
		}
		c.next++
		return true
	})
	if err != nil {
		return entries, err
	}
	if c.next != seg.first+seg.count {
		return entries, c.broken(c.next, fmt.Sprintf("missing: there are %d of %s from %d on", c.next-seg.first, count.Of(seg.count, "record"), seg.first))
	}
	if seg.count == 0 || c.prev != seg.head {
		return entries, c.broken(c.next-1, "it does not have the hash that is stored beside it")
	}
	return entries, nil
}

// A segment is a row: the lines of one run in one commit.
type segment struct {
	first, count int
	head         Hash
	lines        []byte
}

// segments reads the next rows.
func (c *cursor) segments(ctx context.Context) ([]segment, error) {
	if c.after < 0 && c.from > 0 {
		// Begin with the segment that holds the record.
		var at sql.NullInt64
		err := c.store.reads.QueryRowContext(ctx, `SELECT max(first) FROM segments WHERE run = ? AND first <= ?`, c.no, c.from).Scan(&at)
		if err != nil {
			return nil, c.store.explain(err)
		}
		c.after = int(at.Int64) - 1
	}
	segments, err := c.store.readSegments(ctx, c.no, c.after)
	if len(segments) > 0 {
		c.after = segments[len(segments)-1].first
	}
	return segments, err
}

// segments reads all rows of a run, as they are.
func (s *Store) segments(ctx context.Context, no int64) iter.Seq2[segment, error] {
	return func(yield func(segment, error) bool) {
		for after := -1; ; {
			segments, err := s.readSegments(ctx, no, after)
			if err != nil {
				yield(segment{}, err)
				return
			}
			for _, seg := range segments {
				if !yield(seg, nil) {
					return
				}
				after = seg.first
			}
			if len(segments) == 0 {
				return
			}
		}
	}
}

// readSegments reads the rows of a run that begin after a record.
func (s *Store) readSegments(ctx context.Context, no int64, after int) ([]segment, error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT first, count, head, lines FROM segments WHERE run = ? AND first > ? ORDER BY first LIMIT ?`, no, after, readRows)
	if err != nil {
		return nil, s.explain(err)
	}
	defer rows.Close()
	var segments []segment
	for rows.Next() {
		var seg segment
		var head []byte
		if err := rows.Scan(&seg.first, &seg.count, &head, &seg.lines); err != nil {
			return nil, s.explain(err)
		}
		copy(seg.head[:], head) // a wrong length cannot match
		segments = append(segments, seg)
	}
	return segments, s.explain(rows.Err())
}

// A blobReader reads stored parts and keeps some of them.
type blobReader struct {
	store *Store
	kept  map[Hash]value.Value
	bytes int
}

func (b *blobReader) blob(ctx context.Context, hash Hash) (value.Value, error) {
	if v, ok := b.kept[hash]; ok {
		return v, nil
	}
	text, err := b.store.blobText(ctx, hash)
	if err != nil {
		return value.Value{}, err
	}
	if sha256.Sum256(text) != hash {
		return value.Value{}, fmt.Errorf("stored part %s does not have its hash: it was changed", hash)
	}
	v, err := value.Parse(text)
	if err != nil {
		return value.Value{}, fmt.Errorf("stored part %s: %w", hash, err)
	}
	if b.bytes+len(text) > blobCache {
		b.kept, b.bytes = nil, 0
	}
	if b.kept == nil {
		b.kept = map[Hash]value.Value{}
	}
	b.kept[hash] = v
	b.bytes += len(text)
	return v, nil
}

var errNoBlob = errors.New("it is not stored")

// blobText reads the raw bytes of a stored part.
func (s *Store) blobText(ctx context.Context, hash Hash) (text []byte, err error) {
	err = s.reads.QueryRowContext(ctx, `SELECT text FROM blobs WHERE hash = ?`, hash[:]).Scan(&text)
	if errors.Is(err, sql.ErrNoRows) {
		err = errNoBlob
	}
	if err != nil {
		return nil, fmt.Errorf("stored part %s: %w", hash, s.explain(err))
	}
	return text, nil
}

// Follow is [Store.Entries] that waits for more: it ends after the last record
// of a finished run, when the run is removed, or with the cause of ctx.
func (s *Store) Follow(ctx context.Context, id string, from int) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		changed, stop, err := s.watch.join(ctx, s)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		defer stop()
		row, err := s.row(ctx, id)
		if err != nil {
			yield(Entry{}, err)
			return
		}
		c := s.cursor(id, row, from)
		for {
			signal := changed()
			// The mark comes before the last records are read: what is set then
			// cannot be followed by more.
			if row, err = s.row(ctx, id); err != nil {
				yield(Entry{}, err)
				return
			}
			for {
				entries, err := c.read(ctx)
				for _, e := range entries {
					if !yield(e, nil) {
						return
					}
				}
				if err != nil {
					yield(Entry{}, err)
					return
				}
				if len(entries) == 0 {
					break
				}
			}
			if row.finished {
				return
			}
			select {
			case <-signal:
			case <-ctx.Done():
				yield(Entry{}, context.Cause(ctx))
				return
			}
		}
	}
}
