package main

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"

	"github.com/callsheet/callsheet/config"
)

//go:embed init.yaml
var firstConfiguration []byte

type initCmd struct{}

// Run writes a first configuration, with everything in it explained. A file that
// is there stays as it is.
func (initCmd) Run(a *app) error {
	f, err := os.OpenFile(config.FileName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return refuse("there is a %s here already; it is left as it is", config.FileName)
	}
	if err != nil {
		return refuse("%w", err)
	}
	_, err = f.Write(firstConfiguration)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	a.out().Line("wrote %s; callsheet tools  lists what it offers, callsheet policy test  tries its policy", config.FileName)
	return nil
}
