//go:build unix

// Package disk makes durable what os leaves to the system.
package disk

import (
	"errors"
	"os"
)

// SyncDir makes the entries of a directory durable: a file that was created in it,
// renamed into it or removed from it is found so after a loss of power.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
