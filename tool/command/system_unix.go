//go:build unix

package command

import (
	"io/fs"
	"syscall"
)

// unsupported is why no program is run on this system; "" where they are.
const unsupported = ""

// links is the number of names that a file has.
func links(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}
