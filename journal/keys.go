package journal

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/callsheet/callsheet/internal/disk"
)

// retiredSuffix names the list of earlier keys that stood beside the key before
// version 1.1 of the layout, one fingerprint a line.
const retiredSuffix = ".retired"

// Keys are the fingerprints of the keys that the journal was signed with, in the
// order of their first use. The last is the one that signs.
func (s *Store) Keys(ctx context.Context) ([]string, error) {
	rows, err := s.reads.QueryContext(ctx, `SELECT fingerprint FROM keys ORDER BY rowid`)
	if err != nil {
		return nil, s.explain(err)
	}
	defer rows.Close()
	var keys []string
	for rows.Next() {
		var k string
		if err := rows.Scan(&k); err != nil {
			return nil, s.explain(err)
		}
		keys = append(keys, k)
	}
	return keys, s.explain(rows.Err())
}

// openKey reads the key that signs, or makes it for a journal that has never had
// one. A journal that has goes on under the last of its keys only: one made
// silently in the place of a lost one would sign what nobody can tell from a
// forgery. The caller holds the writer byte.
func (s *Store) openKey(ctx context.Context) error {
	known, err := s.Keys(ctx)
	if err != nil {
		return err
	}
	if s.opts.NewKey {
		return s.beginKey(ctx)
	}
	if len(known) == 0 {
		if s.key, err = loadKey(s.opts.KeyFile); err != nil {
			return fmt.Errorf("signing key: %w", err)
		}
		return s.addKey(ctx, s.key)
	}
	want := known[len(known)-1]
	text, err := readSecret(s.opts.KeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: %s is missing, which holds key %s; copy it back from where the journal came from, or begin a new key with callsheet audit key rotate", s.path, ErrKey, s.opts.KeyFile, want)
	}
	if err == nil {
		s.key, err = parseKey(s.opts.KeyFile, text)
	}
	if err != nil {
		return fmt.Errorf("signing key: %w", err)
	}
	if has := s.key.Fingerprint(); has != want {
		return fmt.Errorf("%s: %w: %s holds key %s, and the journal is signed by key %s; copy that one back, or begin a new key with callsheet audit key rotate", s.path, ErrKey, s.opts.KeyFile, has, want)
	}
	return nil
}

// beginKey makes a new key and puts it in the place of whatever is in the key
// file. The journal has it first: after a crash in between the key is missing, and
// to begin one again is all it takes.
func (s *Store) beginKey(ctx context.Context) error {
	text, err := newKeyText()
	if err != nil {
		return err
	}
	if s.key, err = parseKey(s.opts.KeyFile, text); err != nil {
		return err
	}
	temp, err := writeTemp(s.opts.KeyFile, text)
	if err != nil {
		return err
	}
	if err = s.addKey(ctx, s.key); err == nil {
		err = os.Rename(temp, s.opts.KeyFile)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return disk.SyncDir(filepath.Dir(s.opts.KeyFile))
}

func (s *Store) addKey(ctx context.Context, k *Key) error {
	_, err := s.writes.ExecContext(ctx, `INSERT INTO keys (fingerprint, since) VALUES (?, ?)`, k.Fingerprint(), s.opts.Now().UnixMicro())
	return s.explain(err)
}

// adoptKeys notes the keys of a journal of layout 1.0, which did not: those of the
// list beside the key, and the one that signed the latest run.
func (s *Store) adoptKeys(ctx context.Context, c *sql.Conn) error {
	list, err := os.ReadFile(s.opts.KeyFile + retiredSuffix)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	keys := strings.Fields(string(list))
	var header []byte
	err = c.QueryRowContext(ctx, `SELECT header FROM runs ORDER BY no DESC LIMIT 1`).Scan(&header)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if _, signer, err := parseHeader(header); err == nil {
		keys = append(keys, fingerprint(signer))
	}
	for _, k := range keys {
		if _, err := c.ExecContext(ctx, `INSERT OR IGNORE INTO keys (fingerprint, since) VALUES (?, 0)`, k); err != nil {
			return err
		}
	}
	return nil
}
