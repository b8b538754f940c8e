package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/callsheet/callsheet/internal/disk"
)

// A reportFile is where --report goes. It takes its place only when it is whole,
// so that a process which dies leaves the file of before. What is no regular file,
// such as a pipe or a terminal, is written as it is.
type reportFile struct {
	*os.File
	path string // to be renamed to; "" when it is in place
}

// createReport makes sure, before any call, that a report can be written.
func createReport(path string) (*reportFile, error) {
	if at, err := filepath.EvalSymlinks(path); err == nil {
		path = at // what a link leads to is replaced, and not the link
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return nil, err
		}
		return &reportFile{File: f}, nil
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		var at *fs.PathError
		if errors.As(err, &at) {
			at.Path = path // the name that somebody knows
		}
		return nil, err
	}
	return &reportFile{File: f, path: path}, nil
}

// write writes the report and puts it in place.
func (r *reportFile) write(text []byte) error {
	_, err := r.Write(text)
	return r.place(err)
}

// place ends the writing of the report, which failed with err if it did, and puts it
// in place.
func (r *reportFile) place(err error) error {
	if r.path == "" {
		return errors.Join(err, r.Close())
	}
	if err == nil {
		err = r.Sync()
	}
	if err = errors.Join(err, r.Close()); err == nil {
		err = os.Rename(r.Name(), r.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(r.Name()))
	}
	return disk.SyncDir(filepath.Dir(r.path))
}

// writeFile writes a file as a report is written.
func writeFile(path string, write func(*os.File) error) error {
	f, err := createReport(path)
	if err != nil {
		return err
	}
	return f.place(write(f.File))
}

// drop gives up a report that will not be written.
func (r *reportFile) drop() {
	r.Close()
	if r.path != "" {
		os.Remove(r.Name())
	}
}
