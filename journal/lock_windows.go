package journal

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// keepsModes says that file modes mean something here.
const keepsModes = false

func overlapped(at int64) *windows.Overlapped {
	return &windows.Overlapped{Offset: uint32(at), OffsetHigh: uint32(at >> 32)}
}

// lockByte waits until it holds the byte.
func lockByte(f *os.File, at int64) error {
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, overlapped(at))
}

// tryLockByte takes the byte if nobody holds it.
func tryLockByte(f *os.File, at int64) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, overlapped(at))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

func unlockByte(f *os.File, at int64) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, overlapped(at))
}

// byteHeld reports whether another open file holds the byte.
func byteHeld(f *os.File, at int64) (bool, error) {
	free, err := tryLockByte(f, at)
	if err == nil && free {
		err = unlockByte(f, at)
	}
	return !free, err
}
