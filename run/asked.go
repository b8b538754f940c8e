package run

import (
	"context"

	"github.com/callsheet/callsheet/call"
)

// asked is a question and the promise of its record, which may be nil.
type asked struct {
	event  Event
	ticket call.Ticket
}

// ask tells of a question once its record is durable. The run goes on meanwhile:
// asking is no call, and the asks of a wave share their commits. Holding mu.
func (d *driver) ask(a asked) {
	if a.ticket == nil {
		d.tell(a.event)
		return
	}
	if d.asked = append(d.asked, a); len(d.asked) == 1 {
		d.out++ // the run does not end before everybody is told
		go d.announce()
	}
}

// announce tells of the first ask that waits, and starts another announce for
// the next.
func (d *driver) announce() {
	d.mu.Lock()
	a := d.asked[0]
	d.mu.Unlock()
	err := call.ErrGone // in case the recorder goes
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if err == nil {
			d.tell(a.event)
		} else if d.failed == nil {
			d.failed = err
			d.cancel(err)
		}
		if d.asked = d.asked[1:]; len(d.asked) > 0 {
			go d.announce()
			return
		}
		d.out--
		if next, ok := d.next(); ok {
			go d.work(next)
		}
	}()
	err = call.Guard("the recorder", func() error { return a.ticket.Wait(context.WithoutCancel(d.scope.Context())) })
}
