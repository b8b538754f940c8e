package journal

import (
	"crypto/sha256"
	"encoding/binary"
	"os"
)

// Locks are byte ranges of one file beside the database: they leave no files
// behind, and the kernel gives them back when the process ends. Byte 0 is held
// by whoever writes to the database, so that writers queue in the kernel instead
// of polling SQLite's busy flag; every run has a byte of its own.
const writerByte = 0

// runByte is the byte of a run: 62 bits of its id's hash, so that the lock can
// be taken before the run is known to the database. Two runs that share a byte
// could not be open at once; among a million runs the chance is 10^-7.
func runByte(id string) int64 {
	sum := sha256.Sum256([]byte(id))
	return int64(binary.BigEndian.Uint64(sum[:8])>>2) + 1
}

// lockSuffix names the lock file. It must not be deleted while a store is open.
const lockSuffix = ".lock"

func openLockFile(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}
