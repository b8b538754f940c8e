package mcp

import (
	"errors"
	"fmt"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

const (
	// maxTools is how many tools a server may list: ten times what any known
	// server has, and more than a model can choose from.
	maxTools = 1000
	// maxPages bounds a listing whose cursor never ends.
	maxPages = 100
)

// A Refusal names a tool that the server lists and that was left out.
type Refusal struct {
	Name   string // the server's own
	Reason string
}

// page reads one reply of tools/list.
func page(result value.Value) (tools []value.Value, cursor string, err error) {
	list, ok := result.Get("tools")
	if !ok || list.Kind() != value.List {
		return nil, "", errors.New("the reply to tools/list has no list of tools")
	}
	for _, t := range list.Elements() {
		tools = append(tools, t)
	}
	if c, ok := result.Get("nextCursor"); ok {
		cursor, _ = c.Text()
	}
	return tools, cursor, nil
}

func definitionName(def value.Value) string {
	v, _ := def.Get("name")
	name, _ := v.Text()
	return name
}

// definitionDigest is over everything the definition says, known to us or not,
// but for what only decorates it and may change at any time.
func definitionDigest(def value.Value) value.Digest {
	var ms []value.Member
	for k, v := range def.Members() {
		if k != "_meta" && k != "icons" {
			ms = append(ms, value.Member{Key: k, Value: v})
		}
	}
	return value.ObjectOf(ms...).Digest()
}

// digests are the definitions of a listing by the server's names. Of a name
// that stands twice the first counts, as in the catalogue.
func digests(defs []value.Value) map[string]value.Digest {
	out := make(map[string]value.Digest, len(defs))
	for _, d := range defs {
		if name := definitionName(d); name != "" {
			if _, twice := out[name]; !twice {
				out[name] = definitionDigest(d)
			}
		}
	}
	return out
}

// declare makes the declaration of one definition.
func declare(cfg *Config, def value.Value) (tool.Declaration, error) {
	name := definitionName(def)
	if name == "" {
		return tool.Declaration{}, errors.New("it has no name")
	}
	input, err := compile(def, "inputSchema")
	if err != nil {
		return tool.Declaration{}, err
	}
	output, err := compile(def, "outputSchema")
	if err != nil {
		return tool.Declaration{}, err
	}
	description := ""
	if v, ok := def.Get("description"); ok {
		description, _ = v.Text()
	}
	d := tool.Declaration{
		Name:        cfg.Prefix + name,
		Description: description,
		Input:       input,
		Output:      output,
		Effects:     tool.Undeclared(),
		Source:      "mcp:" + cfg.Name,
		MaxOutput:   cfg.maxOutput(),
	}
	if hints, ok := def.Get("annotations"); ok && cfg.Trust {
		d.Effects = tool.Annotated(hints)
	}
	cfg.Overrides[name].Apply(&d)
	return d, nil
}

func compile(def value.Value, member string) (*schema.Schema, error) {
	doc, ok := def.Get(member)
	if !ok || doc.IsNull() {
		return nil, nil
	}
	s, err := schema.Compile(doc)
	if err != nil {
		return nil, fmt.Errorf("its %s is refused: %w", member, err)
	}
	return s, nil
}
