// Package importer turns plans in the formats of others into plan documents of
// ours.
//
//	doc, err := importer.Import("nestful", []byte(`[
//		{"name": "multiply", "label": "$var_1", "arguments": {"arg_0": 49, "arg_1": 16}},
//		{"name": "divide", "label": "$var_2", "arguments": {"arg_0": "$var_1.result$", "arg_1": 56}}
//	]`), plan.Limits{})
//	// [
//	//   {"id":"var_1","tool":"multiply","args":{"arg_0":49,"arg_1":16}},
//	//   {"id":"var_2","tool":"divide","args":{"arg_0":"$var_1.result","arg_1":56}}
//	// ]
//
// Nothing is lost on the way without a word: what has no counterpart in a plan
// is refused, and a literal that would read as a reference is escaped.
package importer

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/value"
)

// A Format is one way in which others write plans.
type Format struct {
	Name string
	Help string // what it reads, in a line
	read func(doc value.Value) ([]call, error)
}

// formats are all that can be imported; another is one more line here.
var formats = [...]Format{
	{"nestful", "IBM NESTFUL: a list of calls with labels and $var_1.result$ references", nestful},
	{"openai", "OpenAI: an assistant message with tool calls, a response, or messages that end in one", openAI},
}

// Formats lists what can be imported.
func Formats() []Format { return append([]Format(nil), formats[:]...) }

// An Error is a text that was refused.
type Error struct {
	Format  string
	Pointer string // RFC 6901, into the text, of what has no counterpart or is malformed
	Message string
}

// Error puts the format and the pointer before the message.
func (e *Error) Error() string {
	if e.Pointer == "" {
		return e.Format + ": " + e.Message
	}
	return e.Format + ": at " + e.Pointer + ": " + e.Message
}

// Import reads a text of a format and writes the plan document, one step to a
// line. The error is an [*Error] when the text is refused. The limits bind
// the text as well as the plan that it makes.
func Import(format string, text []byte, limits plan.Limits) ([]byte, error) {
	if err := limits.Validate(); err != nil {
		return nil, err
	}
	f := find(format)
	if f == nil {
		return nil, fmt.Errorf("importer: there is no format %q; there are %s", format, names())
	}
	if most := cmp.Or(limits.Bytes, plan.DefaultBytes); len(text) > most {
		return nil, &Error{f.Name, "", fmt.Sprintf("the text has %d bytes; at most %d are read", len(text), most)}
	}
	doc, err := value.Parse(text)
	if err != nil {
		var syntax *value.SyntaxError
		if errors.As(err, &syntax) {
			return nil, &Error{f.Name, syntax.Pointer, err.Error()}
		}
		return nil, err
	}
	calls, err := f.read(doc)
	if err != nil {
		var refused *Error
		if errors.As(err, &refused) {
			refused.Format = f.Name
		}
		return nil, err
	}
	out := write(calls)
	if err := f.verify(out, calls, limits); err != nil {
		return nil, err
	}
	return out, nil
}

func find(name string) *Format {
	for i := range formats {
		if formats[i].Name == name {
			return &formats[i]
		}
	}
	return nil
}

func names() string {
	var all []string
	for _, f := range formats {
		all = append(all, f.Name)
	}
	return strings.Join(all, ", ")
}

// call is a step to be, and where it came from.
type call struct {
	at   string // pointer into the text
	id   string // "" for one that is still to be named
	tool string
	args value.Value
}

// refuse is an error about a part of the text; the format is filled in later.
func refuse(at, format string, args ...any) error {
	return &Error{Pointer: at, Message: fmt.Sprintf(format, args...)}
}

// name gives ids to the calls that have none, and refuses two of one id.
func name(calls []call, stem string) error {
	taken := make(map[string]string, len(calls)) // where, by folded id
	for _, c := range calls {
		if c.id == "" {
			continue
		}
		if first, twice := taken[plan.Fold(c.id)]; twice {
			return refuse(c.at, "the name %q is also that of %s", c.id, first)
		}
		taken[plan.Fold(c.id)] = c.at
	}
	for i := range calls {
		for n := i + 1; calls[i].id == ""; n++ {
			id := stem + strconv.Itoa(n)
			if _, used := taken[plan.Fold(id)]; !used {
				calls[i].id = id
				taken[plan.Fold(id)] = calls[i].at
			}
		}
	}
	return nil
}

func write(calls []call) []byte {
	if len(calls) == 0 {
		return []byte("[]\n")
	}
	out := []byte("[\n")
	for i, c := range calls {
		if i > 0 {
			out = append(out, ",\n"...)
		}
		out = append(out, "  "...)
		out = value.ObjectOf(
			value.Member{Key: "id", Value: value.MustText(c.id)},
			value.Member{Key: "tool", Value: value.MustText(c.tool)},
			value.Member{Key: "args", Value: c.args},
		).AppendTo(out)
	}
	return append(out, "\n]\n"...)
}

// verify reads the plan back: what we hand out is a plan, within its limits.
func (f *Format) verify(doc []byte, calls []call, limits plan.Limits) error {
	_, err := plan.Decode(doc, limits)
	var refused *plan.Error
	if !errors.As(err, &refused) {
		return err
	}
	fault := refused.Faults[0]
	at := ""
	if step, _, _ := strings.Cut(strings.TrimPrefix(fault.Pointer, "/"), "/"); step != "" {
		if i, err := strconv.Atoi(step); err == nil && i < len(calls) {
			at = calls[i].at
		}
	}
	return &Error{f.Name, at, "it makes no plan: " + fault.Message}
}

// member is a field of an object that must be a non-empty string.
func member(v value.Value, at, field string) (string, error) {
	m, ok := v.Get(field)
	if !ok {
		return "", refuse(at, "there is no %q", field)
	}
	s, isText := m.Text()
	if !isText || s == "" {
		return "", refuse(at+"/"+field, "%s must be a string that is not empty", field)
	}
	return s, nil
}

// texts puts another text in the place of every string value of the args, which
// stand at a pointer; names stay.
func texts(args value.Value, at string, f func(at, text string) (string, error)) (value.Value, error) {
	var failed error
	t := value.NewTemplate(args, func(pointer, old string) value.Answer {
		text, err := f(at+pointer, old)
		switch {
		case err != nil && failed == nil:
			failed = err
		case err == nil && text != old:
			return value.Answer{Literal: value.MustText(text)}
		}
		return value.Answer{}
	})
	return t.Fill(nil), failed
}

// literal is for formats without references: every text stands for itself.
func literal(_, text string) (string, error) { return plan.Escape(text), nil }
