package journal

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/callsheet/callsheet/internal/count"
	"github.com/callsheet/callsheet/internal/disk"
)

// A Key signs headers and checkpoints.
type Key struct {
	private ed25519.PrivateKey
}

// Public is the public half.
func (k *Key) Public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }

// Fingerprint is the SHA-256 of the public key in lower-case hex: what an
// auditor keeps.
func (k *Key) Fingerprint() string { return fingerprint(k.Public()) }

func fingerprint(public ed25519.PublicKey) string {
	sum := sha256.Sum256(public)
	return hex.EncodeToString(sum[:])
}

const (
	pemType   = "PRIVATE KEY" // PKCS #8, as other tools read it
	saltBytes = 32
	// maxKeyFile bounds what is read as a key: a PKCS #8 Ed25519 key takes 119
	// bytes, and a wrong path may name anything.
	maxKeyFile = 4 << 10
)

// loadKey reads the signing key at path. On first use it makes one, readable by
// its owner only (0600); of several processes that do so at once, one wins and
// all get its key.
func loadKey(path string) (*Key, error) {
	text, err := loadSecret(path, newKeyText)
	if err != nil {
		return nil, err
	}
	return parseKey(path, text)
}

func newKeyText() ([]byte, error) {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: pemType, Bytes: der}), nil
}

func parseKey(path string, text []byte) (*Key, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != pemType || len(rest) > 0 {
		return nil, fmt.Errorf("%s: not one PEM block of type %s", path, pemType)
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	private, ok := any.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: a key of another kind than Ed25519", path)
	}
	return &Key{private}, nil
}

// loadSecret reads a small secret file, making it first if there is none.
func loadSecret(path string, make func() ([]byte, error)) ([]byte, error) {
	text, err := readSecret(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return text, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if text, err = make(); err != nil {
		return nil, err
	}
	temp, err := writeTemp(path, text)
	if err != nil {
		return nil, err
	}
	// A link, unlike a rename, never replaces what another process put there.
	err = os.Link(temp, path)
	if err = errors.Join(ignoreExist(err), os.Remove(temp), disk.SyncDir(filepath.Dir(path))); err != nil {
		return nil, err
	}
	return readSecret(path)
}

func ignoreExist(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

func readSecret(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxKeyFile {
		return nil, fmt.Errorf("%s: not a key file", path)
	}
	if info.Mode().Perm()&0o077 != 0 && keepsModes {
		return nil, fmt.Errorf("%s: others may read or change this key (mode %04o); if they did not, chmod 600 it", path, info.Mode().Perm())
	}
	return os.ReadFile(path)
}

// writeTemp writes a file beside path, durably, and returns its name.
func writeTemp(path string, text []byte) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new*") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// HMAC is a keyed digest under the store's own secret, which no export holds:
// for idempotency keys, and to stand for secrets that could be guessed from a
// plain hash. kind keeps digests for different purposes apart, and every part
// enters with its length, so that no two lists of parts are alike. It is the
// same for all processes and times that use the same salt file.
func (s *Store) HMAC(kind string, parts ...[]byte) [sha256.Size]byte {
	mac := hmac.New(sha256.New, s.salt)
	write := func(b []byte) {
		var size [8]byte
		binary.BigEndian.PutUint64(size[:], uint64(len(b)))
		mac.Write(size[:])
		mac.Write(b)
	}
	write([]byte(kind))
	for _, p := range parts {
		write(p)
	}
	return [sha256.Size]byte(mac.Sum(nil))
}

func newSalt() ([]byte, error) {
	salt := make([]byte, saltBytes)
	_, err := rand.Read(salt)
	return salt, err
}

// loadSalt reads the secret of [Store.HMAC], making it on first use.
func loadSalt(path string) ([]byte, error) {
	salt, err := loadSecret(path, newSalt)
	if err == nil && len(salt) != saltBytes {
		err = fmt.Errorf("%s: %s; a salt has %d", path, count.Of(len(salt), "byte"), saltBytes)
	}
	return salt, err
}
