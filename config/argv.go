package config

import (
	"errors"

	"github.com/callsheet/callsheet/tool/command"
	"github.com/callsheet/callsheet/value"
)

// Argv is the template of a command: elements, and lists of elements that are
// left out together when one of their args is absent.
type Argv []command.Part

var errArgv = errors.New("write a list of texts; a list of texts inside it is left out when one of its args is absent")

func (a *Argv) set(v value.Value) error {
	if v.Kind() != value.List {
		return errArgv
	}
	for _, e := range v.Elements() {
		if s, ok := e.Text(); ok {
			*a = append(*a, command.Words(s)...)
			continue
		}
		group := command.Part{Optional: true}
		for _, w := range e.Elements() {
			s, ok := w.Text()
			if !ok {
				return errArgv
			}
			group.Words = append(group.Words, s)
		}
		if len(group.Words) == 0 {
			return errArgv
		}
		*a = append(*a, group)
	}
	return nil
}

func (*Argv) schema() string {
	return `{"type":"array","minItems":1,"items":{"anyOf":[{"type":"string"},{"type":"array","minItems":1,"items":{"type":"string"}}]}}`
}
