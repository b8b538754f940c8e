//go:build linux || darwin

package journal

import (
	"errors"
	"os"
	"syscall"
)

// keepsModes says that file modes mean something here.
const keepsModes = true

// Open file description locks belong to the open file, not to the process: two
// stores in one process exclude each other, and closing one leaves the locks of
// the other alone.

// lockByte waits until it holds the byte.
func lockByte(f *os.File, at int64) error {
	_, err := byteLock(f, ofdSetLockWait, syscall.F_WRLCK, at)
	return err
}

// tryLockByte takes the byte if nobody holds it.
func tryLockByte(f *os.File, at int64) (bool, error) {
	_, err := byteLock(f, ofdSetLock, syscall.F_WRLCK, at)
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) {
		return false, nil
	}
	return err == nil, err
}

func unlockByte(f *os.File, at int64) error {
	_, err := byteLock(f, ofdSetLock, syscall.F_UNLCK, at)
	return err
}

// byteHeld reports whether another open file holds the byte.
func byteHeld(f *os.File, at int64) (bool, error) {
	l, err := byteLock(f, ofdGetLock, syscall.F_WRLCK, at)
	return err == nil && l.Type != syscall.F_UNLCK, err
}

func byteLock(f *os.File, cmd int, kind int16, at int64) (syscall.Flock_t, error) {
	for {
		l := syscall.Flock_t{Type: kind, Start: at, Len: 1}
		err := syscall.FcntlFlock(f.Fd(), cmd, &l)
		if err != syscall.EINTR {
			return l, os.NewSyscallError("fcntl", err)
		}
	}
}
