package run

import (
	"fmt"
	"time"

	"github.com/callsheet/callsheet/machine"
	"github.com/callsheet/callsheet/tool"
)

// An EventKind is what an event tells.
type EventKind uint8

// The events of a run.
const (
	Started  EventKind = iota // the run begins
	Called                    // a call begins
	Noted                     // a call reports progress
	Returned                  // a call ended; Failure says how, nil is an answer
	Asked                     // a step waits for a person
	Settled                   // a step has its status
	Ended                     // the run is over or paused; Report says how
)

// String is the name of the kind in small letters: "called".
func (k EventKind) String() string {
	names := [...]string{"started", "called", "noted", "returned", "asked", "settled", "ended"}
	if int(k) >= len(names) {
		return fmt.Sprintf("kind %d", k)
	}
	return names[k]
}

// An Event is one notice for whoever watches a run.
type Event struct {
	Kind     EventKind
	Time     time.Time
	Step     string
	Tool     string
	Attempt  int
	Progress tool.Progress
	Failure  *tool.Failure
	Status   machine.Status
	Cause    *machine.Cause
	Report   *machine.Report
}
