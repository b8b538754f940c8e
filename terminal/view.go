package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

const (
	// redrawEvery is how often a live view moves: often enough for a clock with
	// tenths of seconds.
	redrawEvery = 100 * time.Millisecond
	// eraseBelow moves to the start of the line and clears all from there on.
	eraseBelow = "\r\x1b[J"
)

// A view is the live end of a terminal: lines that are drawn over and over, and
// leave no trace. Elsewhere nothing is drawn.
type view struct {
	out *Output

	mu      sync.Mutex // of whoever has the view, too
	frame   func(now time.Time, width, height int) []string
	drawn   int       // lines on the screen
	held    int       // how many others have the screen
	last    time.Time // when it was drawn
	stop    chan struct{}
	stopped sync.WaitGroup
}

// begin draws what frame gives, which is called with mu held, until close.
func (v *view) begin(frame func(now time.Time, width, height int) []string) {
	v.frame = frame
	if v.out.live {
		v.stop = make(chan struct{})
		v.stopped.Go(v.tick)
	}
}

func (v *view) tick() {
	t := time.NewTicker(redrawEvery)
	defer t.Stop()
	for {
		select {
		case <-v.stop:
			return
		case now := <-t.C:
			v.mu.Lock()
			v.draw(now)
			v.mu.Unlock()
		}
	}
}

// close stops drawing and clears what was drawn.
func (v *view) close() {
	if v.stop != nil {
		close(v.stop)
		v.stopped.Wait()
		v.stop = nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
}

// Hold takes the live view away until release is called: somebody else has the
// screen. What happens meanwhile is taken in all the same.
func (v *view) Hold() (release func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.erase()
	v.held++
	return func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.held--
	}
}

// draw puts the view over the one before. Holding mu.
func (v *view) draw(now time.Time) {
	if v.held > 0 {
		return
	}
	width, height := v.out.size()
	lines := v.frame(now, width, height)
	var b strings.Builder
	b.WriteString(v.rewind())
	for _, l := range lines {
		b.WriteString(l)
		b.WriteByte('\n')
	}
	v.drawn, v.last = len(lines), now
	io.WriteString(v.out.w, b.String())
}

// rewind moves to the top of what was drawn and clears it.
func (v *view) rewind() string {
	if v.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA", v.drawn) + eraseBelow
}

// erase clears what was drawn. Holding mu.
func (v *view) erase() {
	if v.drawn > 0 {
		io.WriteString(v.out.w, v.rewind())
		v.drawn = 0
	}
}
