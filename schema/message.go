package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/callsheet/callsheet/value"
)

// subject names the value that is judged, for the start of a sentence.
func (e *evaluation) subject() string {
	if len(e.path) == 0 {
		return "the value"
	}
	last := e.path[len(e.path)-1]
	switch {
	case e.naming:
		return "the name " + value.Quoted(last.key)
	case last.index >= 0:
		return "item " + strconv.Itoa(last.index)
	}
	return "property " + value.Quoted(last.key)
}

// mistyped says what v is and what it should be. Text where a list or an object
// is wanted is the most common mistake of models: they send JSON inside a string.
func mistyped(v value.Value, want typeSet) string {
	says := fmt.Sprintf("is %s, the schema says %s", kindOf(v), want)
	if s, ok := v.Text(); ok {
		inner, err := value.Parse(value.Excerpt(s))
		if want&^(typeList|typeObject) == 0 || err == nil && want&typeOf(inner) != 0 {
			says += "; send JSON directly, not text"
		}
	}
	return says
}

// kindOf names the type of v with its article, and a number with its digits.
func kindOf(v value.Value) string {
	switch v.Kind() {
	case value.Number:
		literal, _ := v.Number()
		return "the number " + value.Excerpt(literal)
	case value.String:
		return "a string"
	case value.Bool:
		return "a boolean"
	case value.List:
		return "an array"
	case value.Object:
		return "an object"
	}
	return "null"
}

// describe shows a scalar and names everything else.
func describe(v value.Value) string {
	switch v.Kind() {
	case value.String:
		s, _ := v.Text()
		return value.Quoted(s)
	case value.Bool:
		return v.String()
	}
	return kindOf(v)
}

// listing names the properties of n, the first ten of them.
func (n *node) listing() string {
	const most = 10
	names := slices.Sorted(maps.Keys(n.properties))
	if len(names) == 0 {
		return "none by name"
	}
	shown := make([]string, 0, most+1)
	for _, name := range names[:min(len(names), most)] {
		shown = append(shown, value.Quoted(name))
	}
	if len(names) > most {
		shown = append(shown, fmt.Sprintf("and %d more", len(names)-most))
	}
	return strings.Join(shown, ", ")
}

// alternatives lists the values of an enum, the first ten of them.
func alternatives(vs []value.Value) string {
	const most = 10
	var shown []string
	for _, v := range vs[:min(len(vs), most)] {
		shown = append(shown, value.Excerpt(v.String()))
	}
	if len(vs) > most {
		shown = append(shown, fmt.Sprintf("and %d more", len(vs)-most))
	}
	return strings.Join(shown, ", ")
}
