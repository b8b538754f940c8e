package importer

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/plan"
	"github.com/callsheet/callsheet/value"
)

// nestful reads the lists of NESTFUL (https://github.com/IBM/NESTFUL):
//
//	[{"name": "add", "label": "$var_1", "arguments": {"arg_0": 1, "arg_1": "$var_0.result$"}}]
//
// or a whole sample, an object that has such a list as its output, as JSON or as
// text. A label names the result of its call; a string between two $ that starts
// with a label is a reference, with a path of names and [indexes].
func nestful(doc value.Value) ([]call, error) {
	at := ""
	if out, ok := doc.Get("output"); ok {
		doc, at = out, "/output"
		if text, isText := out.Text(); isText {
			inner, err := value.Parse(text)
			if err != nil {
				return nil, refuse(at, "the text is not JSON: %v", err)
			}
			// Pointers go on into what the text holds.
			doc = inner
		}
	}
	if doc.Kind() != value.List {
		return nil, refuse(at, "a list of calls is wanted, not %s", doc.Kind())
	}
	calls := make([]call, doc.Len())
	known := make(labels, doc.Len())
	for i, e := range doc.Elements() {
		c := &calls[i]
		c.at = at + "/" + strconv.Itoa(i)
		if e.Kind() != value.Object {
			return nil, refuse(c.at, "a call must be an object, not %s", e.Kind())
		}
		var err error
		if c.tool, err = member(e, c.at, "name"); err != nil {
			return nil, err
		}
		if label, ok := e.Get("label"); ok && !label.IsNull() {
			text, _ := label.Text()
			c.id = strings.TrimPrefix(text, "$")
			if wrong := plan.CheckID(c.id); wrong != "" {
				return nil, refuse(c.at+"/label", "a label is $ and an id: %s", wrong)
			}
			known[c.id] = true
		}
		var ok bool
		if c.args, ok = e.Get("arguments"); !ok || c.args.Kind() != value.Object {
			return nil, refuse(c.at, `"arguments" must be an object`)
		}
	}
	if err := name(calls, "call_"); err != nil {
		return nil, err
	}
	for i := range calls {
		var err error
		if calls[i].args, err = texts(calls[i].args, calls[i].at+"/arguments", known.text); err != nil {
			return nil, err
		}
	}
	return calls, nil
}

// labels are the labels of a NESTFUL list, without their $.
type labels map[string]bool

var (
	enclosed = regexp.MustCompile(`^\$([\pL_][^$\s]*)\$$`)
	within   = regexp.MustCompile(`\$([\pL_][^$\s]*)\$`)
	parts    = regexp.MustCompile(`^(?:\.[^.\[\]]+|\[(?:0|[1-9][0-9]*)\])*$`)
	bracket  = strings.NewReplacer("[", ".", "]", "")
)

// text turns one string of the arguments into one of a plan.
func (l labels) text(at, text string) (string, error) {
	if m := enclosed.FindStringSubmatch(text); m != nil {
		label, path := l.cut(m[1])
		switch {
		case label == "":
			return "", refuse(at, "%s refers to a label that no call has", text)
		case !parts.MatchString(path):
			return "", refuse(at, "the path of %s is not made of .name and [index]", text)
		}
		path = bracket.Replace(path)
		if again, _ := l.cut(label + path); again != label {
			return "", refuse(at, "%s would read as a reference to another label", text)
		}
		return "$" + label + path, nil
	}
	for _, m := range within.FindAllStringSubmatch(text, -1) {
		if label, _ := l.cut(m[1]); label != "" {
			return "", refuse(at, "the text holds the reference %s; in a plan only a whole string can be one", m[0])
		}
	}
	return plan.Escape(text), nil
}

// cut splits what stands between the $ into the longest label that it starts
// with and the path after it; label is "" when there is none.
func (l labels) cut(body string) (label, path string) {
	for end := min(len(body), 4*plan.MaxID); end > 0; end-- {
		if (end == len(body) || body[end] == '.' || body[end] == '[') && l[body[:end]] {
			return body[:end], body[end:]
		}
	}
	return "", ""
}
