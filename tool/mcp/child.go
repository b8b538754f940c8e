package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/callsheet/callsheet/tool/group"
)

const (
	// maxStderrLines of a child are logged; what follows is drained unseen, so
	// that a chatty server cannot fill a disk.
	maxStderrLines = 1000
	// maxStderrLine is the most bytes of one line that are logged.
	maxStderrLine = 4 << 10
	// stderrTail is how much of the last lines goes into the message about a
	// server that died.
	stderrTail = 1 << 10
	// drainTime is how long the output of a process that has ended is still read:
	// a descendant that left its group may hold the pipe open for ever.
	drainTime = 250 * time.Millisecond
)

// always are the variables that every command gets: node and python launchers
// (#!/usr/bin/env, npx, uvx) find their interpreter by PATH and their caches
// under HOME.
var always = []string{"PATH", "HOME"}

// program finds the command's program once, as an absolute path.
func program(argv0, dir string) (string, error) {
	if strings.ContainsRune(argv0, filepath.Separator) && !filepath.IsAbs(argv0) && dir != "" {
		argv0 = filepath.Join(dir, argv0)
	}
	path, err := exec.LookPath(argv0)
	if err != nil {
		return "", err // names the program; exec.ErrDot is among these errors
	}
	return filepath.Abs(path)
}

// environment is what the command gets, sorted.
func environment(cfg *Config) []string {
	vars := map[string]string{}
	for _, name := range slices.Concat(always, cfg.EnvAllow) {
		if v, ok := os.LookupEnv(name); ok {
			vars[name] = v
		}
	}
	maps.Copy(vars, cfg.Env)
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

// A child is the process of a stdio server.
type child struct {
	stdin  *os.File
	stdout *os.File
	exited chan struct{} // closed once the process was reaped; state is set before
	state  string        // "exit status 1"

	group *group.Group
	grace time.Duration
	stop  sync.Once
	log   *slog.Logger

	stderrDone chan struct{}
	mu         sync.Mutex
	tail       []byte // the end of stderr
}

// startChild starts the command in its own process group.
func startChild(path string, cfg *Config, log *slog.Logger) (*child, error) {
	var files []*os.File
	closeAll := func() {
		for _, f := range files {
			f.Close()
		}
	}
	var pipes [3][2]*os.File // our own pipes, because only they take deadlines
	for i := range pipes {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll()
			return nil, err
		}
		pipes[i] = [2]*os.File{r, w}
		files = append(files, r, w)
	}
	cmd := &exec.Cmd{
		Path:   path,
		Args:   slices.Clone(cfg.Command),
		Dir:    cfg.Dir,
		Env:    environment(cfg),
		Stdin:  pipes[0][0],
		Stdout: pipes[1][1],
		Stderr: pipes[2][1],
	}
	c := &child{
		stdin: pipes[0][1], stdout: pipes[1][0],
		exited: make(chan struct{}), stderrDone: make(chan struct{}),
		grace: cfg.stopGrace(), log: log,
	}
	var err error
	if c.group, err = cfg.Groups.Start(cmd); err != nil {
		closeAll()
		return nil, err
	}
	for _, f := range []*os.File{pipes[0][0], pipes[1][1], pipes[2][1]} {
		f.Close()
	}
	go func() {
		<-c.group.Done()
		deadline := time.Now().Add(drainTime)
		_ = c.stdout.SetReadDeadline(deadline)
		_ = pipes[2][0].SetReadDeadline(deadline)
		c.state = cmd.ProcessState.String()
		close(c.exited)
	}()
	go c.drainStderr(pipes[2][0])
	return c, nil
}

// drainStderr reads the child's stderr to its end, logging the first lines.
func (c *child) drainStderr(r *os.File) {
	defer close(c.stderrDone)
	defer r.Close()
	in := bufio.NewReaderSize(r, maxStderrLine)
	for lines := 0; ; {
		line, more, err := in.ReadLine()
		if err != nil {
			return
		}
		c.mu.Lock()
		c.tail = append(append(c.tail, line...), '\n')
		if cut := len(c.tail) - stderrTail; cut > 0 {
			c.tail = append(c.tail[:0], c.tail[cut:]...)
		}
		c.mu.Unlock()
		if lines < maxStderrLines {
			c.log.Debug("server wrote to stderr", "line", string(line), "clipped", more)
		} else if lines == maxStderrLines {
			c.log.Warn("server wrote too much to stderr; the rest is not logged", "lines", lines)
		}
		for more && err == nil {
			_, more, err = in.ReadLine()
		}
		lines++
	}
}

// shutdown asks the child to leave: its stdin is closed, then its group gets
// SIGTERM, then SIGKILL, with the grace between. It returns at once.
func (c *child) shutdown() {
	c.stop.Do(func() {
		_ = c.stdin.Close()
		go func() {
			for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
				timer := time.NewTimer(c.grace)
				select {
				case <-c.exited:
					timer.Stop()
					return
				case <-timer.C:
					c.group.Signal(sig)
				}
			}
		}()
	})
}

// kill ends the group of a server that broke the rules.
func (c *child) kill() { c.group.Signal(syscall.SIGKILL) }

// wait returns once the process is reaped and its output was read.
func (c *child) wait() {
	<-c.exited
	<-c.stderrDone
}

// epitaph says how the child ended and what it said last, "" while it lives.
func (c *child) epitaph() string {
	select {
	case <-c.exited:
	default:
		return ""
	}
	select {
	case <-c.stderrDone:
	case <-time.After(drainTime):
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := "it ended with " + c.state
	if last := strings.TrimSpace(strings.ToValidUTF8(string(c.tail), "\uFFFD")); last != "" {
		s += "; its stderr ends: " + last
	}
	return s
}

// errLineTooLong is a line over the cap. The rest of it is not read.
var errLineTooLong = errors.New("a message is longer than the output cap")

// A lineReader cuts a stream into lines of at most max bytes.
type lineReader struct {
	in  *bufio.Reader
	max int
	buf []byte
}

func newLineReader(r io.Reader, max int) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(r, 64<<10), max: max}
}

// keepBuffer is the largest line buffer that is kept for the next line.
const keepBuffer = 1 << 20

// next returns a line without its end, valid until the next call. With
// errLineTooLong it returns the head of the line. A last line without a line
// break is a line.
func (l *lineReader) next() ([]byte, error) {
	if cap(l.buf) > keepBuffer {
		l.buf = nil
	}
	l.buf = l.buf[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		if len(l.buf)+len(part) > l.max+len("\r\n") {
			return append(l.buf, part[:min(len(part), envelopeRoom)]...), errLineTooLong
		}
		l.buf = append(l.buf, part...)
		switch {
		case err == bufio.ErrBufferFull:
		case err == nil || len(l.buf) > 0 && errors.Is(err, io.EOF):
			return trimLineEnd(l.buf), nil
		default:
			return nil, err
		}
	}
}

func trimLineEnd(b []byte) []byte {
	for len(b) > 0 && (b[len(b)-1] == '\n' || b[len(b)-1] == '\r') {
		b = b[:len(b)-1]
	}
	return b
}

// write writes all of b to the child's stdin, or stops when ctx ends. sent
// reports whether any byte was taken. A server that was sent half a message, or
// that reads no more, is killed. Calls must not overlap.
func (c *child) write(ctx context.Context, b []byte) (sent bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	_ = c.stdin.SetWriteDeadline(time.Time{})
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		_ = c.stdin.SetWriteDeadline(time.Unix(1, 0))
	})
	n, err := c.stdin.Write(b)
	if !stop() {
		<-stopped // else the past deadline could hit the next message
	}
	if err == nil {
		return true, nil
	}
	if ctx.Err() != nil {
		if n > 0 {
			c.kill()
		}
		return n > 0, ctx.Err()
	}
	c.kill()
	return n > 0, fmt.Errorf("writing to the server: %w: %w", sdk.ErrConnectionClosed, err)
}
