package journal

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"

	"github.com/callsheet/callsheet/value"
)

// A Start begins a run.
type Start struct {
	// ID is the run's id, or empty for a new random one of 128 bits, written in
	// 26 lower-case letters and digits. A given id has 1 to 64 of a-z, A-Z, 0-9,
	// '_' and '-'.
	ID   string
	Kind string // of run: "plan", "agent"; a plain word
	Name string // for people; may be empty

	// The digests under which the run goes on after a crash.
	Plan, Catalogue, Policy value.Digest

	// Status is what lists show until a record changes it. Default: "running".
	Status string
	// Tools are tools by which lists can be filtered.
	Tools []string
	// Needs is a stored run that stays as long as this one does: [Store.Remove] and
	// [Store.Prune] leave it. Nobody may have it open while this one is created.
	// Empty for none.
	Needs string
	// Body is the body of the start record, record 0.
	Body value.Value
}

var idEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

func newID() string {
	var b [16]byte
	rand.Read(b[:])
	return strings.ToLower(idEncoding.EncodeToString(b[:]))
}

func validID(id string) bool {
	if id == "" || len(id) > maxID {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// Create begins a run and holds it. Its start record is on the disk with the
// first record that is waited for; of a run that needs another, when Create
// returns. An id that was used before is refused with [ErrRunTaken] or
// [ErrRunExists]; a needed run that is not there, or that somebody has open, with
// the error of [Store.OpenRun].
func (s *Store) Create(ctx context.Context, start Start) (*Run, error) {
	if start.Needs == "" {
		r, _, err := s.create(ctx, start)
		return r, err
	}
	if err := s.acquire(start.Needs); err != nil { // so that nobody removes it
		return nil, err
	}
	r, err := s.createOn(ctx, start)
	return r, errors.Join(err, s.release(start.Needs))
}

// createOn creates a run that needs another, while that is held.
func (s *Store) createOn(ctx context.Context, start Start) (*Run, error) {
	if _, err := s.row(ctx, start.Needs); err != nil {
		return nil, err
	}
	r, t, err := s.create(ctx, start)
	if err != nil {
		return nil, err
	}
	if err := t.Wait(context.WithoutCancel(ctx)); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

func (s *Store) create(ctx context.Context, start Start) (*Run, Ticket, error) {
	given := start.ID != ""
	if !given {
		start.ID = newID()
	}
	if !validID(start.ID) {
		return nil, Ticket{}, fmt.Errorf("run id %q: want 1 to %d of a-z, A-Z, 0-9, '_' and '-'", start.ID, maxID)
	}
	if !validKind(start.Kind) {
		return nil, Ticket{}, fmt.Errorf("run kind %q: want a lower-case word", start.Kind)
	}
	if _, err := value.Text(start.Name); err != nil || len(start.Name) > maxName {
		return nil, Ticket{}, fmt.Errorf("run name: want at most %d bytes of UTF-8", maxName)
	}
	if start.Status == "" {
		start.Status = StatusRunning
	}
	body, err := prepare(start.Body)
	if err != nil {
		return nil, Ticket{}, err
	}
	defer body.release()
	if err := s.queue.room(); err != nil {
		return nil, Ticket{}, err
	}
	if err := s.acquire(start.ID); err != nil {
		return nil, Ticket{}, err
	}
	if given {
		if err := s.unused(ctx, start.ID); err != nil {
			return nil, Ticket{}, errors.Join(err, s.release(start.ID))
		}
	}
	now := s.opts.Now()
	r := &Run{store: s, opened: now, header: Header{
		Run: start.ID, Kind: start.Kind, Name: start.Name,
		Plan: start.Plan, Catalogue: start.Catalogue, Policy: start.Policy,
	}}
	line := r.header.line(s.key)
	r.head = first(line)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next.create = &createRow{line, now, start.Needs}
	r.next.status = start.Status
	for _, t := range start.Tools {
		r.addTool(t)
	}
	return r, r.append(startKind, body, false), nil
}

// unused reports whether an id is free. The caller holds its byte.
func (s *Store) unused(ctx context.Context, id string) error {
	var used bool
	err := s.reads.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM runs WHERE id = ?1) OR EXISTS (SELECT 1 FROM tombstones WHERE id = ?1)`, id).Scan(&used)
	if err != nil {
		return s.explain(err)
	}
	if used {
		return fmt.Errorf("run %s: %w", id, ErrRunExists)
	}
	return nil
}
