package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/callsheet/callsheet/value"
)

// A Record is what a run has to say.
type Record struct {
	// Kind names the meaning of Body: lower-case ASCII letters, digits, '.', '_'
	// and '-', at most 64. "start" and "checkpoint" are the journal's own.
	Kind string
	// Body is any value. Large parts of it are stored once, by content; a value
	// that is shared by several bodies is not copied. The zero Value is null.
	Body value.Value
	// Deferred says that nothing depends on this record being on the disk
	// already: it shares the next commit. Waiting for its ticket ends the
	// deferral.
	Deferred bool
	// Status, if not empty, is the status that lists of runs show from now on.
	Status string
	// Tool, if not empty, adds a tool by which lists of runs can be filtered.
	Tool string
}

// LineVersion is the major version of record lines. Readers ignore fields that
// they do not know, so additions do not change it.
const LineVersion = 1

const (
	startKind      = "start"
	checkpointKind = "checkpoint"
	timeLayout     = "2006-01-02T15:04:05.000000Z"
	maxKind        = 64
)

func validKind(kind string) bool {
	if kind == "" || len(kind) > maxKind {
		return false
	}
	for i := range len(kind) {
		switch c := kind[i]; {
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// A Hash is the SHA-256 of the raw bytes of a line.
type Hash [sha256.Size]byte

// String is the hash in lower-case hex.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// parseHash reads lower-case hex and nothing else, so that one hash has one text.
func parseHash(s string) (h Hash, ok bool) {
	if len(s) != 2*len(h) {
		return h, false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return h, false
		}
	}
	_, err := hex.Decode(h[:], []byte(s))
	return h, err == nil
}

// appendLine appends a record's line, without its newline. refs and body are
// JSON that was prepared before any lock was taken.
func appendLine(dst []byte, n int, prev Hash, at time.Time, mono time.Duration, kind string, refs, body []byte) []byte {
	dst = append(dst, `{"v":1,"n":`...)
	dst = strconv.AppendInt(dst, int64(n), 10)
	dst = append(dst, `,"prev":"`...)
	dst = hex.AppendEncode(dst, prev[:])
	dst = append(dst, `","time":"`...)
	dst = at.UTC().AppendFormat(dst, timeLayout)
	dst = append(dst, `","mono":`...)
	dst = strconv.AppendInt(dst, mono.Microseconds(), 10)
	dst = append(dst, `,"kind":"`...)
	dst = append(dst, kind...)
	dst = append(dst, '"')
	if len(refs) > 0 {
		dst = append(dst, `,"blobs":{`...)
		dst = append(dst, refs...)
		dst = append(dst, '}')
	}
	dst = append(dst, `,"body":`...)
	dst = append(dst, body...)
	return append(dst, '}')
}

// An Entry is a record as it stands in the log.
type Entry struct {
	Index int           // from 0; the start record is 0
	Time  time.Time     // wall time of the append, UTC; for display only
	Mono  time.Duration // monotonic time since this opening of the run
	Kind  string
	Prev  Hash // hash of the line before, or of the header
	Hash  Hash // hash of this line

	slim  value.Value // the body; parts that are blobs are their hash
	refs  []blobRef
	blobs blobSource
}

// A blobRef is a part of a body that is stored outside the line.
type blobRef struct {
	pointer string // RFC 6901, into the body
	hash    Hash
	size    int
}

// A blobSource reads stored parts.
type blobSource interface {
	blob(ctx context.Context, hash Hash) (value.Value, error)
}

// Body is the record's body, with stored parts put back. They are read, and
// checked against their hash, when Body is called.
func (e Entry) Body(ctx context.Context) (value.Value, error) {
	if len(e.refs) == 0 {
		return e.slim, nil
	}
	parts := make(map[string]value.Value, len(e.refs))
	for _, ref := range e.refs {
		v, err := e.blobs.blob(ctx, ref.hash)
		if err != nil {
			return value.Value{}, fmt.Errorf("record %d: %w", e.Index, err)
		}
		parts[ref.pointer] = v
	}
	var fill []value.Value
	t := value.NewTemplate(e.slim, func(pointer, _ string) value.Answer {
		v, ok := parts[pointer]
		if ok {
			fill = append(fill, v)
		}
		return value.Answer{Hole: ok}
	})
	return t.Fill(fill), nil
}

// Slim is the body without reading stored parts: each stands as the hex of its
// hash. For listings that show a few small members.
func (e Entry) Slim() value.Value { return e.slim }

// Large reports whether parts of the body are stored outside the line.
func (e Entry) Large() bool { return len(e.refs) > 0 }

// parseLine reads one line strictly. The error says what is wrong with it; the
// caller knows which record it is.
func parseLine(line []byte, blobs blobSource) (Entry, error) {
	e := Entry{blobs: blobs, Hash: sha256.Sum256(line)}
	v, err := value.Parse(line)
	if err != nil {
		return e, fmt.Errorf("not JSON: %w", err)
	}
	if major, ok := intMember(v, "v"); !ok || major != LineVersion {
		return e, fmt.Errorf("not a record of version %d", LineVersion)
	}
	n, ok := intMember(v, "n")
	if !ok || n < 0 || n > maxRecords {
		return e, fmt.Errorf("no index")
	}
	e.Index = int(n)
	if e.Prev, ok = parseHash(textMember(v, "prev")); !ok {
		return e, fmt.Errorf("prev is not a hash in lower-case hex")
	}
	if e.Time, err = time.Parse(timeLayout, textMember(v, "time")); err != nil {
		return e, fmt.Errorf("time is not %s", timeLayout)
	}
	mono, ok := intMember(v, "mono")
	if !ok {
		return e, fmt.Errorf("mono is not a whole number of microseconds")
	}
	e.Mono = time.Duration(mono) * time.Microsecond
	if e.Kind = textMember(v, "kind"); !validKind(e.Kind) {
		return e, fmt.Errorf("kind is not a plain word")
	}
	if e.slim, ok = v.Get("body"); !ok {
		return e, fmt.Errorf("no body")
	}
	if refs, ok := v.Get("blobs"); ok {
		for pointer, size := range refs.Members() {
			ref := blobRef{pointer: pointer}
			at, _ := e.slim.AtPointer(pointer)
			text, _ := at.Text()
			ref.hash, ok = parseHash(text)
			n, isInt := size.Int()
			if !ok || !isInt || n < 0 || n > MaxValue {
				return e, fmt.Errorf("blobs names %q, where no stored part is", pointer)
			}
			ref.size = int(n)
			e.refs = append(e.refs, ref)
		}
	}
	return e, nil
}

func textMember(v value.Value, name string) string {
	m, _ := v.Get(name)
	s, _ := m.Text()
	return s
}

func intMember(v value.Value, name string) (int64, bool) {
	m, _ := v.Get(name)
	return m.Int()
}

// eachLine calls f with the lines of a segment until it returns false.
func eachLine(lines []byte, f func(line []byte) bool) {
	for len(lines) > 0 {
		line, rest, _ := bytes.Cut(lines, []byte{'\n'})
		if !f(line) {
			return
		}
		lines = rest
	}
}
