//go:build !linux && !darwin && !windows

package journal

import (
	"errors"
	"fmt"
	"os"
	"runtime"
)

// keepsModes says that file modes mean something here.
const keepsModes = true

// Without locks that belong to an open file, two stores could write one run:
// opening is refused instead.
var errNoLocks = fmt.Errorf("file locks on %s: %w", runtime.GOOS, errors.ErrUnsupported)

func lockByte(*os.File, int64) error            { return errNoLocks }
func tryLockByte(*os.File, int64) (bool, error) { return false, errNoLocks }
func unlockByte(*os.File, int64) error          { return errNoLocks }
func byteHeld(*os.File, int64) (bool, error)    { return false, errNoLocks }
