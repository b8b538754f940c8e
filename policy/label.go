package policy

import (
	"slices"
	"strings"
)

// Integrity says who could have written a value. The order is that of trust: a
// larger one is worse, and joining keeps the worst.
type Integrity uint8

// The integrities (spec/policy.md, Labels).
const (
	User      Integrity = iota // a person's own words, or a value that a person approved
	Trusted                    // a path of a tool's output that the configuration declares trusted
	Untrusted                  // anything else that a tool or a model wrote
)

// String is the integrity as rules and records spell it.
func (i Integrity) String() string {
	switch i {
	case User:
		return "user"
	case Trusted:
		return "trusted"
	}
	return "untrusted"
}

// A Source is a step whose output a value came from, and its tool.
type Source struct{ Step, Tool string }

// MaxSources is how many sources a label keeps. A label says where to look, and
// a value joined from more places than this is untrusted anyway; the bound keeps
// a chain of a thousand steps from dragging all its names along.
const MaxSources = 16

// A Label is what is known about who could have written a JSON leaf and who may
// read it. The zero Label is that of a person's own public words.
type Label struct {
	Integrity Integrity
	Secret    bool
	Sources   []Source // without repeats, at most MaxSources, in the order joined; must not be changed
}

// Join is the label of something made from both: the worse integrity, secret if
// either is, and both's sources.
func (a Label) Join(b Label) Label {
	j := Label{Integrity: max(a.Integrity, b.Integrity), Secret: a.Secret || b.Secret, Sources: a.Sources}
	if len(a.Sources) == 0 {
		j.Sources = b.Sources
		return j
	}
	owned := false
	for _, s := range b.Sources {
		if len(j.Sources) >= MaxSources {
			break
		}
		if slices.Contains(j.Sources, s) {
			continue
		}
		if !owned {
			grown := make([]Source, len(a.Sources), min(len(a.Sources)+len(b.Sources), MaxSources))
			copy(grown, a.Sources)
			j.Sources, owned = grown, true
		}
		j.Sources = append(j.Sources, s)
	}
	return j
}

// Worse reports whether a could harm where b could not.
func (a Label) Worse(b Label) bool {
	return a.Integrity > b.Integrity || a.Secret && !b.Secret
}

// tainted is the part of a label that a call passes on to what it returns: an
// untrusted value that came from a tool chose what the tool did (spec/policy.md,
// Labels: an index or key that came from a tool taints the choice). A literal of
// a plan was fixed before any tool had answered, so it chose nothing on an
// attacker's behalf.
func (a Label) tainted() Label {
	if a.Integrity != Untrusted || len(a.Sources) == 0 {
		return Label{}
	}
	return Label{Integrity: Untrusted, Sources: a.Sources}
}

// String is the label for people: "untrusted, from s1 (search)".
func (a Label) String() string {
	var b strings.Builder
	b.WriteString(a.Integrity.String())
	if a.Secret {
		b.WriteString(", secret")
	}
	for i, s := range a.Sources {
		if i == 0 {
			b.WriteString(", from ")
		} else {
			b.WriteString(" and ")
		}
		b.WriteString(s.Step)
		if s.Tool != "" {
			b.WriteString(" (" + s.Tool + ")")
		}
	}
	return b.String()
}
