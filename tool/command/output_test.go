package command_test

import (
	"strings"
	"testing"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/command"
)

func TestOutput(t *testing.T) {
	for _, c := range []struct {
		name, script string
		format       command.Format
		want         string // JSON text, or code: message
	}{
		{"one newline is removed", `printf 'a\n\n'`, command.Text, `"a\n"`},
		{"text stays text", `echo '{"a":1}'`, "", `"{\"a\":1}"`},
		{"JSON keeps numbers", `echo '{"a": 9007199254740993, "b": 1.0}'`, command.JSON, `{"a":9007199254740993,"b":1.0}`},
		{"bad JSON", `echo '{"a":1} x'`, command.JSON, `invalid_output: sh: the output is not one JSON value: line 1, column 9: text after the end of the value`},
		{"no JSON", `:`, command.JSON, `invalid_output: sh: the output is not one JSON value: line 1, column 1: the text ends before the value does`},
		{"not UTF-8", `printf 'a\377'`, command.Text, `invalid_output: sh: the output is not valid UTF-8`},
		{"exit status", `echo one >&2; echo out; exit 3`, command.Text, `sh: exit status 3: one`},
		{"exit status alone", `exit 1`, command.Text, `sh: exit status 1`},
		{"stderr of a success is not output", `echo noise >&2; echo ok`, command.Text, `"ok"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, f := do(t, mustNew(t, command.Spec{Command: sh(c.script), Format: c.format}), `{}`)
			if f != nil {
				got = f.Error()
			}
			if got != c.want || f != nil && (f.Retryable || f.Lost) {
				t.Errorf("got %s (%+v), want %s", got, f, c.want)
			}
		})
	}
}

func TestHostile034_EndlessOutput(t *testing.T) {
	for _, max := range []int{0, 100, 1 << 20} {
		made := mustNew(t, command.Spec{Declaration: tool.Declaration{MaxOutput: max}, Command: self("flood")})
		out, f := do(t, made, `{}`)
		if f == nil || f.Code != tool.CodeOutputTooLarge || f.Retryable || f.Lost || out != "" {
			t.Errorf("cap %d: got %.40q %+v", max, out, f)
		}
	}
	made := mustNew(t, command.Spec{Declaration: tool.Declaration{MaxOutput: 3}, Command: command.Words("/usr/bin/printf", "abc")})
	if got, f := do(t, made, `{}`); f != nil || got != `"abc"` {
		t.Errorf("exactly the cap: got %s %v", got, f)
	}
}

func TestLongStandardErrorIsCut(t *testing.T) {
	_, f := do(t, mustNew(t, command.Spec{Command: sh(`i=0; while [ $i -lt 2000 ]; do echo "line $i of many" >&2; i=$((i+1)); done; echo last words >&2; exit 1`)}), `{}`)
	if f == nil || len(f.Message) > tool.MaxMessage || !strings.HasSuffix(f.Message, "last words") || !strings.Contains(f.Message, "…") {
		t.Errorf("got %d bytes: %+v", len(f.Message), f)
	}
}
