package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyInterrupts has signals told of what asks this process to end. A terminal
// that goes away is among it, unless whoever started the process wants it to
// outlive that (nohup).
func notifyInterrupts(signals chan<- os.Signal) {
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
}

// outliveReaders keeps this process alive when nobody reads its output any more,
// as with | head: a call that has begun must settle, and be reported and
// recorded. Writing then fails, and nothing is shown. The signal is caught, since
// programs would inherit that it is ignored.
func outliveReaders() (stop func()) {
	broken := make(chan os.Signal, 1) // nobody looks; what does not fit is dropped
	signal.Notify(broken, syscall.SIGPIPE)
	return func() { signal.Stop(broken) }
}
