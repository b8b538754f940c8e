// Package terminal shows runs to people: a live view on a terminal, plain lines
// elsewhere.
//
//	out := terminal.Open(os.Stdout, os.Environ())
//	watch := out.Watch(p)
//	report, err := run.Do(ctx, p, tools, run.Options{Observer: watch.Observe})
//	watch.Close()
//	out.Report(p, report, watch.Elapsed())
//
// Everything that tools and models wrote goes through [Escape] first. NO_COLOR
// and TERM=dumb are respected.
package terminal

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/colorprofile"
	"golang.org/x/term"

	"github.com/callsheet/callsheet/machine"
)

const (
	// defaultWidth of a terminal that does not tell its own.
	defaultWidth  = 80
	defaultHeight = 24
)

// An Output is where things are shown.
type Output struct {
	w      io.Writer
	live   bool
	styled bool // colours, bold and faint; without, only what redrawing needs is written
	size   func() (width, height int)
}

// Open shows on f. It is live when f is a terminal that can move its cursor.
// environ is that of the process: NO_COLOR, whatever it is set to, and TERM and
// their like are heeded.
func Open(f *os.File, environ []string) *Output {
	o := &Output{w: &colorprofile.Writer{Forward: f, Profile: colorprofile.NoTTY}}
	if !term.IsTerminal(int(f.Fd())) {
		return o
	}
	// Asked with the environment alone: the library's own look at the terminal
	// starts programs.
	profile := colorprofile.Env(environ)
	if profile == colorprofile.NoTTY {
		return o
	}
	o.w = &colorprofile.Writer{Forward: f, Profile: profile}
	o.live = true
	o.styled = styled(environ)
	o.size = func() (int, int) {
		w, h, err := term.GetSize(int(f.Fd()))
		if err != nil || w < 1 || h < 1 {
			return defaultWidth, defaultHeight
		}
		return w, h
	}
	return o
}

// styled reports that NO_COLOR is not set, or empty (no-color.org).
func styled(environ []string) bool {
	return !slices.ContainsFunc(environ, func(v string) bool { return strings.HasPrefix(v, "NO_COLOR=") && v != "NO_COLOR=" })
}

// New shows on any writer. With a width it is live there, as if w were a
// terminal of that size under NO_COLOR; with 0 it writes plain lines.
func New(w io.Writer, width, height int) *Output {
	if width <= 0 {
		return &Output{w: &colorprofile.Writer{Forward: w, Profile: colorprofile.NoTTY}}
	}
	return &Output{
		w:    &colorprofile.Writer{Forward: w, Profile: colorprofile.Ascii},
		live: true, size: func() (int, int) { return width, height },
	}
}

// paint is text in a style, where there are styles.
func (o *Output) paint(style lipgloss.Style, text string) string {
	if !o.styled {
		return text
	}
	return style.Render(text)
}

// Live reports whether the output is redrawn in place.
func (o *Output) Live() bool { return o.live }

// Line writes one line, formatted as by fmt.Sprintf and then escaped as a whole,
// so that no argument of whatever type can bring a control character in.
func (o *Output) Line(format string, args ...any) {
	fmt.Fprintln(o.w, Escape(fmt.Sprintf(format, args...)))
}

// Lines writes text that may have several lines, each escaped and the first
// behind a prefix.
func (o *Output) Lines(prefix, text string) {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		fmt.Fprintln(o.w, prefix+Escape(line))
		prefix = strings.Repeat(" ", len(prefix))
	}
}

var (
	good   = lipgloss.NewStyle().Foreground(lipgloss.Green)
	bad    = lipgloss.NewStyle().Foreground(lipgloss.Red)
	odd    = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	faint  = lipgloss.NewStyle().Faint(true)
	strong = lipgloss.NewStyle().Bold(true)
)

// styleOf is the colour of a status.
func styleOf(s machine.Status) lipgloss.Style {
	switch s {
	case machine.OK:
		return good
	case machine.Skipped, machine.Blocked, machine.Cancelled, machine.NotNeeded:
		return faint
	case machine.Waiting, machine.Uncertain:
		return odd
	}
	return bad
}

// why is the cause of a step's status in one escaped line, "" without one.
func why(step string, status machine.Status, c *machine.Cause) string {
	if c == nil {
		return ""
	}
	var parts []string
	if c.Step != "" && c.Step != step {
		parts = append(parts, "because of "+Escape(c.Step))
	}
	if c.Code != "" && c.Code != string(status) {
		parts = append(parts, Escape(c.Code))
	}
	if c.Message != "" {
		parts = append(parts, Escape(c.Message))
	}
	return strings.Join(parts, ": ")
}
