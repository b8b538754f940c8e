package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/callsheet/callsheet/config"
	"github.com/callsheet/callsheet/record"
	"github.com/callsheet/callsheet/terminal"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/tool/command"
	"github.com/callsheet/callsheet/tool/group"
	"github.com/callsheet/callsheet/value"
)

// person is where somebody who sits at standard input reads: standard error, or
// the terminal itself where that is redirected. nil: nobody is there.
func (a *app) person() *terminal.Output {
	in, ok := a.stdin.(*os.File)
	if !ok || !term.IsTerminal(int(in.Fd())) {
		return nil
	}
	if term.IsTerminal(int(a.stderr.Fd())) {
		return a.err()
	}
	tty, err := os.OpenFile("/dev/tty", os.O_WRONLY, 0)
	if err != nil {
		return nil
	}
	return terminal.Open(tty, a.environ)
}

const (
	// hookDeadline of a hook that does not set its own.
	hookDeadline = 10 * time.Second
	// hookOutput bounds what is read of a hook, which nobody looks at.
	hookOutput = 64 << 10
	// hooksAtOnce bounds the programs that run side by side.
	hooksAtOnce = 4
	// hooksWait bounds how long the end of a run waits for all of them.
	hooksWait = time.Minute
)

// braces writes text as a template that holds just that text.
var braces = strings.NewReplacer("{", "{{", "}", "}}")

// hook is the program of on_ask.
type hook struct {
	run      tool.Handler
	deadline time.Duration
	ctx      context.Context // of all its processes
	cancel   context.CancelFunc

	places  chan struct{}
	started sync.WaitGroup
	mu      sync.Mutex
	failed  []error // holding mu
}

// newHook makes the program of on_ask, nil when there is none.
func newHook(c *config.Config, running *group.List) (*hook, error) {
	if c.OnAsk == nil {
		return nil, nil
	}
	spec := command.Spec{
		Declaration: tool.Declaration{Name: "on_ask", MaxOutput: hookOutput},
		Stdin:       "{ask}\n",
		Env:         c.OnAsk.Env,
		Params:      map[string]command.Param{"ask": {JSON: true}},
		Groups:      running,
	}
	for _, w := range c.OnAsk.Command {
		spec.Command = append(spec.Command, command.Words(braces.Replace(w))...)
	}
	t, err := command.New(spec)
	if err != nil {
		return nil, refuse("%s: on_ask: %w", c.File(), err)
	}
	h := &hook{run: t.Handler, deadline: time.Duration(c.OnAsk.Deadline), places: make(chan struct{}, hooksAtOnce)}
	if h.deadline <= 0 {
		h.deadline = hookDeadline
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h, nil
}

// tell starts the program with one ask, without waiting for it. The run does not
// depend on it.
func (h *hook) tell(a record.Ask) {
	h.started.Go(func() {
		h.places <- struct{}{}
		defer func() { <-h.places }()
		ctx, cancel := context.WithTimeout(h.ctx, h.deadline)
		defer cancel()
		_, err := h.run(ctx, &tool.Call{
			Args:     value.ObjectOf(value.Member{Key: "ask", Value: askJSON(a)}),
			Key:      func() string { return "" },
			Progress: func(tool.Progress) {},
		})
		if err == nil {
			return
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("no end within %v", h.deadline)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.failed = append(h.failed, fmt.Errorf("on_ask: step %s: %w", a.Step, err))
	})
}

// wait waits for the programs and returns why some failed.
func (h *hook) wait() []error {
	defer time.AfterFunc(hooksWait, h.cancel).Stop()
	defer h.cancel()
	h.started.Wait()
	return h.failed
}

// askJSON is an ask for programs.
func askJSON(a record.Ask) value.Value {
	return value.ObjectOf(
		value.Member{Key: "run", Value: plain(a.Run)},
		value.Member{Key: "step", Value: plain(a.Step)},
		value.Member{Key: "tool", Value: plain(a.Tool)},
		value.Member{Key: "args", Value: a.Args},
		value.Member{Key: "code", Value: plain(a.Code)},
		value.Member{Key: "message", Value: plain(a.Message)},
		value.Member{Key: "expires", Value: plain(a.Expires.UTC().Format(time.RFC3339))},
		value.Member{Key: "digest", Value: plain(a.Digest.String())},
	)
}

// plain is text as a value, whatever bytes it has.
func plain(s string) value.Value { return value.MustText(strings.ToValidUTF8(s, "\uFFFD")) }
