package command_test

import (
	"testing"

	"github.com/callsheet/callsheet/tool/command"
)

// What was approved, rehearsed or begun with one program must not go on with
// another; a secret that was renewed is no other program.
func TestAnotherProgramIsAnotherTool(t *testing.T) {
	spec := func(tweak func(*command.Spec)) string {
		s := command.Spec{Command: command.Words("/bin/echo", "--", "{x}"), Env: []string{"KEY=old"}}
		s.Name = "t"
		tweak(&s)
		made := mustNew(t, s)
		return made.Digest().String()
	}
	first := spec(func(*command.Spec) {})
	for what, tweak := range map[string]func(*command.Spec){
		"the program": func(s *command.Spec) { s.Command = command.Words("/bin/cat", "--", "{x}") },
		"an argument": func(s *command.Spec) { s.Command = command.Words("/bin/echo", "more", "--", "{x}") },
		"the input":   func(s *command.Spec) { s.Stdin = "{x}" },
		"a directory": func(s *command.Spec) { s.Dir = t.TempDir() },
		"a parameter": func(s *command.Spec) { s.Params = map[string]command.Param{"x": {AllowDash: true}} },
		"the output":  func(s *command.Spec) { s.Format = command.JSON },
	} {
		if spec(tweak) == first {
			t.Errorf("%s is another and the definition is the same", what)
		}
	}
	if spec(func(s *command.Spec) { s.Env = []string{"KEY=new"} }) != first {
		t.Error("another value in the environment made another definition")
	}
}
