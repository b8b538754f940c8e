package agent

import "github.com/callsheet/callsheet/value"

// An Event tells who watches what goes on. Nothing depends on it, and recorded
// rounds of a resumed run make none but CallEnds.
type Event struct {
	Kind   EventKind
	Round  int
	Forced string      // RoundBegins: why only the submission may be called; "": it is not forced
	Text   string      // TextArrives: a part of the reply's text; CallWaits: what a person is asked
	Step   string      // CallBegins, CallWaits, CallEnds
	Tool   string      // CallBegins, CallWaits, CallEnds
	Args   value.Value // CallBegins
	Record *Record     // CallEnds
	// Recorded, of CallEnds, says that it ended so before this process took the run
	// up: nothing was called now.
	Recorded bool
}

// EventKind says what happened.
type EventKind uint8

// The kinds.
const (
	RoundBegins EventKind = iota // the model is about to be asked
	TextArrives
	ModelReplied // and the reply is recorded
	CallBegins   // a tool is about to be called
	CallWaits    // for a person
	CallEnds
)
