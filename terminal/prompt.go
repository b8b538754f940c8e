package terminal

import (
	"bufio"
	"context"
	"io"
	"strings"
	"sync"

	"github.com/callsheet/callsheet/internal/count"
)

// A Choice is what a person says to a question.
type Choice uint8

// The choices.
const (
	Later   Choice = iota // leaves the question open
	Approve               // make the call
	Deny                  // do not, ever
)

const (
	// maxTries is how often a person may answer something else before the
	// question is left open: nobody is there, or a file is typed in.
	maxTries = 10
	// maxAnswer bounds a typed line.
	maxAnswer = 4 << 10
)

// A Prompt asks a person at a terminal, one question at a time.
type Prompt struct {
	out *Output
	in  io.Reader

	asking sync.Mutex
	begin  sync.Once
	lines  chan string
}

// NewPrompt asks on out and reads answers from in, which is a terminal's.
func NewPrompt(out *Output, in io.Reader) *Prompt {
	return &Prompt{out: out, in: in, lines: make(chan string)}
}

// read hands over the lines that are typed. It ends with the input; a read that
// nobody waits for cannot be taken back, so it stays with the process.
func (p *Prompt) read() {
	defer close(p.lines)
	in := bufio.NewScanner(p.in)
	in.Buffer(nil, maxAnswer)
	for in.Scan() {
		p.lines <- in.Text()
	}
}

// line is the next line that is typed, false at the end of the input or of ctx.
func (p *Prompt) line(ctx context.Context) (string, bool) {
	p.begin.Do(func() { go p.read() })
	select {
	case s, ok := <-p.lines:
		return strings.TrimSpace(s), ok
	case <-ctx.Done():
		return "", false
	}
}

// Ask shows q and waits for a choice, and for a reason when it is [Deny]. A call
// of which something is not shown cannot be approved before it was shown in full
// (spec/hostile.md 66). Where nobody answers the choice is [Later].
func (p *Prompt) Ask(ctx context.Context, q Question) (c Choice, why string) {
	p.asking.Lock()
	defer p.asking.Unlock()
	hidden := p.out.Question(q, false)
	for range maxTries {
		p.out.Line("approve, deny, show or later?")
		answer, ok := p.line(ctx)
		if !ok {
			return Later, ""
		}
		switch strings.ToLower(answer) {
		case "a", "approve", "y", "yes":
			if hidden > 0 {
				p.out.Line("this call has %s not shown: show it first", count.Of(hidden, "byte"))
				continue
			}
			return Approve, ""
		case "d", "deny", "n", "no":
			p.out.Line("why? (an empty line for no reason)")
			why, _ := p.line(ctx)
			return Deny, why
		case "s", "show":
			hidden = p.out.Question(q, true)
		case "l", "later":
			return Later, ""
		}
	}
	return Later, ""
}
