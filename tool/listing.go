package tool

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/value"
)

// A FileError is a fault in a file of declarations, or in one that answers in
// place of tools.
type FileError struct {
	Pointer string // RFC 6901, into the file
	Message string
}

func (e *FileError) Error() string {
	if e.Pointer == "" {
		return e.Message
	}
	return "at " + e.Pointer + ": " + e.Message
}

// MaxFileErrors is how many faults of one file are told: more than anybody
// mends at once.
const MaxFileErrors = 100

// ReadCatalogue reads declarations in the shape of the result of MCP's
// tools/list, {"tools": [{"name", "description", "inputSchema", "outputSchema",
// "annotations", "_meta"}]}, or the bare list: what [Listing] writes, and what an
// MCP server answers. Annotations are believed: the file was
// named by the user. What they leave out is as MCP says, which is [Undeclared].
//
// Reading is strict: unknown fields, wrong types, schemas that do not compile
// and names that stand twice are errors. A fault of the text is a
// [*value.SyntaxError] with its line; of the others all are told, joined, each a
// [*FileError] with its pointer.
func ReadCatalogue(text []byte, source string) ([]*Declaration, error) {
	doc, err := value.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	l := &listing{}
	at, list := "", doc
	if doc.Kind() == value.Object {
		l.known(doc, "", "tools", "nextCursor", "_meta")
		if next, ok := doc.Get("nextCursor"); ok && !next.IsNull() {
			l.fault("/nextCursor", "this is one page of a longer list; put all tools into one file")
		}
		at, list = "/tools", l.need(doc, "", "tools", value.List)
	}
	if list.Kind() != value.List && len(l.faults) == 0 {
		l.fault(at, "is %s; write a list of tools, or {\"tools\": [...]}", article(list))
	}
	var out []*Declaration
	first := make(map[string]string)
	for i, entry := range list.Elements() {
		at := fmt.Sprintf("%s/%d", at, i)
		if entry.Kind() != value.Object {
			l.fault(at, "is %s; a tool is an object", article(entry))
			continue
		}
		d := l.declaration(entry, at)
		d.Source = source
		if was, ok := first[d.Name]; ok && d.Name != "" {
			l.fault(at+"/name", "the name %s is taken by the tool at %s", value.Quoted(d.Name), was)
		} else {
			first[d.Name] = at
		}
		out = append(out, d)
	}
	if len(l.faults) > 0 {
		return nil, fmt.Errorf("%s: %w", source, errors.Join(l.faults...))
	}
	return out, nil
}

// metaKey is the member of a tool's _meta for what MCP's tools/list has no place
// for: {"keyed": true, "args": [{"pattern", "role"}], "allowed": ["name"], "program": digest}.
const metaKey = "callsheet/tool"

// Listing writes declarations as [ReadCatalogue] reads them: all of their
// definitions, so that every tool keeps its digest. Where they come from and how
// they are retried is not written.
func Listing(decls []*Declaration) value.Value {
	list := make([]value.Value, len(decls))
	for i, d := range decls {
		list[i] = listed(d)
	}
	return value.ObjectOf(value.Member{Key: "tools", Value: value.ListOf(list...)})
}

func listed(d *Declaration) value.Value {
	m := []value.Member{{Key: "name", Value: lossy(d.Name)}}
	if d.Description != "" {
		m = append(m, value.Member{Key: "description", Value: lossy(d.Description)})
	}
	if d.Input != nil {
		m = append(m, value.Member{Key: "inputSchema", Value: d.Input.Value()})
	}
	if d.Output != nil {
		m = append(m, value.Member{Key: "outputSchema", Value: d.Output.Value()})
	}
	e := d.Effects
	m = append(m, value.Member{Key: "annotations", Value: value.ObjectOf(
		value.Member{Key: "readOnlyHint", Value: value.BoolValue(e.ReadOnly)},
		value.Member{Key: "destructiveHint", Value: value.BoolValue(e.Destructive)},
		value.Member{Key: "idempotentHint", Value: value.BoolValue(e.Idempotent)},
		value.Member{Key: "openWorldHint", Value: value.BoolValue(e.OpenWorld)},
	)})
	var meta []value.Member
	if e.Keyed {
		meta = append(meta, value.Member{Key: "keyed", Value: value.BoolValue(true)})
	}
	if len(d.Args) > 0 {
		meta = append(meta, value.Member{Key: "args", Value: d.roles()})
	}
	if len(d.Allowed) > 0 {
		meta = append(meta, value.Member{Key: "allowed", Value: d.allowed()})
	}
	if d.Program != "" {
		meta = append(meta, value.Member{Key: "program", Value: lossy(d.Program)})
	}
	if meta != nil {
		m = append(m, value.Member{Key: "_meta", Value: value.ObjectOf(value.Member{Key: metaKey, Value: value.ObjectOf(meta...)})})
	}
	return value.ObjectOf(m...)
}

// A listing gathers the faults of a file.
type listing struct{ faults []error }

func (l *listing) fault(pointer, format string, args ...any) {
	if len(l.faults) < MaxFileErrors {
		l.faults = append(l.faults, &FileError{pointer, fmt.Sprintf(format, args...)})
	}
}

func (l *listing) declaration(entry value.Value, at string) *Declaration {
	l.known(entry, at, "name", "title", "description", "inputSchema", "outputSchema", "annotations", "_meta", "icons", "execution")
	d := &Declaration{Effects: Undeclared()}
	if name := l.need(entry, at, "name", value.String); !name.IsZero() {
		if d.Name, _ = name.Text(); d.Name == "" {
			l.fault(at+"/name", "is empty")
		}
	}
	d.Description, _ = l.get(entry, at, "description", value.String).Text()
	d.Input = l.schema(entry, at, "inputSchema")
	d.Output = l.schema(entry, at, "outputSchema")
	if hints := l.get(entry, at, "annotations", value.Object); !hints.IsZero() {
		at := at + "/annotations"
		names := []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
		l.known(hints, at, append(names, "title")...)
		for _, name := range names {
			l.get(hints, at, name, value.Bool)
		}
		d.Effects = Annotated(hints)
	}
	if ours := l.get(l.get(entry, at, "_meta", value.Object), at+"/_meta", metaKey, value.Object); !ours.IsZero() {
		l.meta(d, ours, at+"/_meta/"+value.EscapePointer(metaKey))
	}
	return d
}

// meta reads what stands under metaKey.
func (l *listing) meta(d *Declaration, v value.Value, at string) {
	l.known(v, at, "keyed", "args", "allowed", "program")
	d.Program, _ = l.get(v, at, "program", value.String).Text()
	d.Effects.Keyed, _ = l.get(v, at, "keyed", value.Bool).Bool()
	for i, a := range l.get(v, at, "args", value.List).Elements() {
		at := fmt.Sprintf("%s/args/%d", at, i)
		if a.Kind() != value.Object {
			l.fault(at, "is %s, it must be an object", article(a))
			continue
		}
		l.known(a, at, "pattern", "role")
		pattern, ok := l.need(a, at, "pattern", value.String).Text()
		if ok && !strings.HasPrefix(pattern, "/") {
			l.fault(at+"/pattern", "%s is no JSON pointer; it begins with /", value.Quoted(pattern))
		}
		role, ok := l.need(a, at, "role", value.String).Text()
		if ok && !slices.Contains(Roles(), Role(role)) {
			l.fault(at+"/role", "%s is no role; use one of %q", value.Quoted(role), Roles())
		}
		d.Args = append(d.Args, Arg{pattern, Role(role)})
	}
	for i, name := range l.get(v, at, "allowed", value.List).Elements() {
		s, ok := name.Text()
		if !ok {
			l.fault(fmt.Sprintf("%s/allowed/%d", at, i), "is %s, it must be a string", article(name))
		}
		d.Allowed = append(d.Allowed, s)
	}
	for i, a := range d.Args {
		if !strings.HasPrefix(a.Pattern, "/") {
			continue // told above
		}
		if wrong := d.MisnamedArg(a.Pattern); wrong != "" {
			l.fault(fmt.Sprintf("%s/args/%d/pattern", at, i), "%s", wrong)
		}
	}
}

func (l *listing) schema(entry value.Value, at, name string) *schema.Schema {
	doc, ok := entry.Get(name)
	if !ok || doc.IsNull() {
		return nil
	}
	s, err := schema.Compile(doc)
	var fault *schema.CompileError
	if errors.As(err, &fault) {
		l.fault(at+"/"+name+fault.Pointer, "%s", fault.Message)
	}
	return s
}

// get is a member that may be missing or null, and else must be of a kind.
func (l *listing) get(v value.Value, at, name string, kind value.Kind) value.Value {
	m, ok := v.Get(name)
	if !ok || m.IsNull() {
		return value.Value{}
	}
	if m.Kind() != kind {
		l.fault(at+"/"+name, "is %s, it must be %s %s", article(m), an(kind), kind)
		return value.Value{}
	}
	return m
}

func (l *listing) need(v value.Value, at, name string, kind value.Kind) value.Value {
	if m, ok := v.Get(name); !ok || m.IsNull() {
		l.fault(at, "has no %s", name)
	}
	return l.get(v, at, name, kind)
}

func (l *listing) known(v value.Value, at string, names ...string) {
	for k := range v.Members() {
		if slices.Contains(names, k) {
			continue
		}
		says := "the field " + value.Quoted(k) + " is not known here"
		if near := Nearest(k, names, 1); len(near) > 0 {
			says += "; did you mean " + value.Quoted(near[0]) + "?"
		} else {
			says += "; there are " + strings.Join(names, ", ")
		}
		l.fault(at+"/"+value.EscapePointer(k), "%s", says)
	}
}

func an(k value.Kind) string {
	if k == value.List || k == value.Object {
		return "an"
	}
	return "a"
}

func article(v value.Value) string {
	if v.Kind() == value.Null || v.Kind() == value.Invalid {
		return v.Kind().String()
	}
	return an(v.Kind()) + " " + v.Kind().String()
}
