package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
)

// maxPath is the longest path argument in bytes: what Linux takes.
const maxPath = 4096

// checkPath refuses a path that leaves dir or does not name what it should. The
// same names are refused on every system, so that a plan that runs on one runs
// on another: a drive letter, a backslash or a device name is harmless here and
// is not there.
func checkPath(dir, name string, kind PathKind, writes bool) error {
	if err := pathSyntax(name); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("the working directory cannot be opened: %w", unwrapPath(err))
	}
	defer root.Close()
	// Every part but the last may be a link that stays inside; os.Root refuses
	// one that leads out. The last part is looked at itself.
	info, err := root.Lstat(name)
	if kind == PathNew {
		if err == nil {
			return errors.New("there is something of that name already")
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return unwrapPath(err)
		}
		if parent, err := root.Stat(path.Dir(name)); err != nil {
			return unwrapPath(err)
		} else if !parent.IsDir() {
			return errors.New("its parent is not a directory")
		}
		return nil
	}
	if err != nil {
		return unwrapPath(err)
	}
	switch mode := info.Mode(); {
	case kind == PathDir && mode.IsDir():
	case kind == PathDir:
		return errors.New("it is not a directory")
	case mode&fs.ModeSymlink != 0:
		return errors.New("it is a symbolic link")
	case !mode.IsRegular():
		return errors.New("it is not a regular file")
	case writes && links(info) > 1:
		// Another name of the file may lie outside of dir.
		return errors.New("it is a file with more than one name (hard link)")
	}
	return nil
}

// pathSyntax judges a path by its text alone.
func pathSyntax(name string) error {
	switch {
	case name == "":
		return errors.New("the path is empty")
	case len(name) > maxPath:
		return fmt.Errorf("the path is longer than %d bytes", maxPath)
	case strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("the path holds a control character")
	case strings.HasPrefix(name, "/"):
		return errors.New("the path is absolute; give one relative to the working directory")
	case strings.ContainsAny(name, `\:`):
		return errors.New(`the path holds a backslash or a colon`)
	}
	for part := range strings.SplitSeq(name, "/") {
		switch base, _, _ := strings.Cut(part, "."); {
		case part == "" || part == ".":
		case part == "..":
			return errors.New(`the path goes up (..)`)
		case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " "):
			return errors.New("a part of the path ends in a dot or a space")
		case slices.Contains(devices, strings.ToUpper(strings.TrimRight(base, " "))):
			return fmt.Errorf("%s is the name of a device on some systems", base)
		}
	}
	return nil
}

// devices are names that Windows takes for devices in any directory.
var devices = []string{
	"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$",
	"COM1", "COM2", "COM3", "COM4", "COM5", "COM6", "COM7", "COM8", "COM9",
	"LPT1", "LPT2", "LPT3", "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9",
}

// unwrapPath drops the operation and the path from an error of the file system:
// the message names the arg, and the path is the arg.
func unwrapPath(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
