package journal

import (
	"fmt"
	"slices"

	"github.com/callsheet/callsheet/internal/count"
)

// Trust is what an auditor knows besides the log itself. Without any of it a
// log can be shown to be whole, but not whose it is: whoever rewrites all of it
// can sign it with a key of his own.
type Trust struct {
	// Keys are fingerprints ([Key.Fingerprint]). If there are any, every
	// signature must be by one of them.
	Keys []string
	// Head, if not nil, is a head that was seen before: the chain must hold it.
	Head *Head
}

// Validate says which field cannot be what it should be.
func (t Trust) Validate() error {
	for _, k := range t.Keys {
		if _, ok := parseHash(k); !ok {
			return fmt.Errorf("key %q: want a fingerprint of 64 lower-case hex digits", k)
		}
	}
	return nil
}

// A Report is what an audit found.
type Report struct {
	Header  Header
	Head    Head     // how far the log goes
	Final   bool     // it ends with a final checkpoint
	Signed  int      // records up to and with the last good checkpoint
	Signers []string // fingerprints of the keys that signed, in the order of their first use
	Trust   Trust    // what it was checked against

	// Faults are what does not hold, the first record first, at most 16. Where
	// one change makes several checks fail, it is named once if that can be told.
	Faults []Fault
}

// A Fault is something that does not hold.
type Fault struct {
	Index  int // of the record; -1 for the header, the number of records for the end
	Reason string
}

// maxFaults bounds what is listed: the first is what matters.
const maxFaults = 16

// OK reports whether everything that was checked holds. See [Report.Notes] for
// what could not be checked.
func (r *Report) OK() bool { return len(r.Faults) == 0 }

// Err is the first fault as an error, nil if there is none.
func (r *Report) Err() error {
	if r.OK() {
		return nil
	}
	return &BrokenError{r.Header.Run, r.Faults[0].Index, r.Faults[0].Reason}
}

// Notes are sentences on what the result does not say.
func (r *Report) Notes() []string {
	var notes []string
	if len(r.Trust.Keys) == 0 {
		notes = append(notes, "self-signed only: without the fingerprint of a key that is known to be right, a log that was rewritten whole looks like this too")
	}
	if !r.Final {
		notes = append(notes, "unfinished: no final checkpoint")
		if n := r.Head.Records - r.Signed; n > 0 {
			notes = append(notes, fmt.Sprintf("not signed yet: the last %d of %s", n, count.Of(r.Head.Records, "record")))
		}
		if r.Trust.Head == nil {
			notes = append(notes, "a cut tail is found only against a known head")
		}
	}
	if r.Trust.Head == nil {
		notes = append(notes, "a run that was deleted whole is found only against a known head")
	}
	return notes
}

// fault notes what does not hold.
func (r *Report) fault(index int, format string, args ...any) {
	f := Fault{index, fmt.Sprintf(format, args...)}
	at := slices.IndexFunc(r.Faults, func(g Fault) bool { return g.Index > index })
	if at < 0 {
		at = len(r.Faults)
	}
	r.Faults = slices.Insert(r.Faults, at, f)
	if len(r.Faults) > maxFaults {
		r.Faults = r.Faults[:maxFaults]
	}
}
