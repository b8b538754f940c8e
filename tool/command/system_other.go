//go:build !unix

package command

import "io/fs"

// unsupported is why no program is run on this system: a call that ends must
// leave nothing behind, and a path must not lead to a file by its other name.
const unsupported = "commands are tools on Unix only: this system has no process groups; offer the program as an MCP server"

// links says that every file may have another name.
func links(fs.FileInfo) uint64 { return 2 }
