package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/callsheet/callsheet/terminal"
)

func TestStarting(t *testing.T) {
	for _, c := range []struct {
		name  string
		width int
		n     int
		takes time.Duration
		want  string
	}{
		{"quick", 80, 2, quietStart - 1, ""},
		{"slow", 80, 2, quietStart + 1, "starting 2 sources…\n"},
		{"one", 80, 1, quietStart + 1, "starting 1 source…\n"},
		{"none", 80, 0, quietStart + 1, ""},
		{"no terminal", 0, 2, quietStart + 1, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var b bytes.Buffer
				done := starting(terminal.New(&b, c.width, 24), c.n)
				time.Sleep(c.takes)
				synctest.Wait()
				done()
				if b.String() != c.want {
					t.Errorf("got %q, want %q", &b, c.want)
				}
			})
		})
	}
}
