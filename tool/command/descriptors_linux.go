package command

import (
	"math"

	"golang.org/x/sys/unix"
)

// SealDescriptors marks every open descriptor of this process but the standard
// three as closed on exec. Go opens files so anyway; what the process itself
// inherited is not. A main function calls it once, before it starts programs.
func SealDescriptors() error {
	return unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
}
