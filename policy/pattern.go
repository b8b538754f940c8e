package policy

import (
	"fmt"
	"strings"

	"github.com/callsheet/callsheet/tool"
)

// A pattern is an RFC 6901 pointer in which a token * stands for any one name or
// index. It speaks of what it names and of everything below: "/*/participants"
// is also about "/3/participants/0".
type pattern []string // tokens, still escaped

func parsePattern(text string) (pattern, error) {
	if text == "" {
		return pattern{}, nil
	}
	if text[0] != '/' {
		return nil, fmt.Errorf("pattern %q: a pointer is empty or starts with /", text)
	}
	return strings.Split(text[1:], "/"), nil
}

// relation is how a pattern stands to a pointer.
type relation uint8

const (
	apart  relation = iota
	above           // the pattern names the pointer or something that holds it
	inside          // the pattern may name something below the pointer
)

// to compares the pattern with a pointer. Nothing is allocated: this runs for
// every leaf of every call.
func (p pattern) to(pointer string) relation {
	for _, t := range p {
		if pointer == "" {
			return inside
		}
		token, rest := pointer[1:], ""
		if i := strings.IndexByte(token, '/'); i >= 0 {
			token, rest = token[:i], token[i:]
		}
		if t != "*" && t != token {
			return apart
		}
		pointer = rest
	}
	return above
}

// roles are the roles that a tool gives to its args.
type roles []struct {
	pattern pattern
	role    tool.Role
}

func compileRoles(d *tool.Declaration) (roles, error) {
	r := make(roles, len(d.Args))
	for i, a := range d.Args {
		p, err := parsePattern(a.Pattern)
		if err != nil {
			return nil, fmt.Errorf("tool %q: %w", d.Name, err)
		}
		r[i].pattern, r[i].role = p, a.Role
	}
	return r, nil
}

// at is the role of what the pointer names: that of the first pattern that names
// it or something that holds it. What no pattern names is a target (spec/
// policy.md, Effects). below says that a pattern may give parts of it another
// role, so that they must be looked at one by one.
func (r roles) at(pointer string) (role tool.Role, below bool) {
	for i := range r {
		switch r[i].pattern.to(pointer) {
		case above:
			return r[i].role, below
		case inside:
			below = true
		}
	}
	return tool.Target, below
}

// worst is the most guarded role of the pointer and of everything below it.
func (r roles) worst(pointer string) tool.Role {
	worst, _ := r.at(pointer)
	for i := range r {
		if r[i].pattern.to(pointer) == inside && (place(r[i].role) || matters(r[i].role) && !matters(worst)) {
			worst = r[i].role
		}
	}
	return worst
}

// matters reports whether the integrity of a value in that role decides
// anything. A secret's does: who chooses the credential chooses the account.
func matters(r tool.Role) bool { return r != tool.Content && r != tool.Neutral }

// place reports whether the role names a place, where an untrusted value is
// denied and not merely asked about.
func place(r tool.Role) bool { return r == tool.Host || r == tool.Path || r == tool.Program }
