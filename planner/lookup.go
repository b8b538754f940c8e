package planner

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/callsheet/callsheet/schema"
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
)

const (
	searchName = "search_tools"
	// maxHits is how many tools one search gives: enough to choose from, few
	// enough to read.
	maxHits = 8
	// maxHitBytes bounds the answer of one search.
	maxHitBytes = 32 << 10
)

// lookup finds tools by words.
type lookup struct {
	catalogue *tool.Catalogue
	words     []map[string]float64 // by tool: how much a word says about it
	common    map[string]float64   // in how many tools a word stands
}

func newLookup(c *tool.Catalogue) *lookup {
	l := &lookup{catalogue: c, common: map[string]float64{}}
	for _, d := range c.All() {
		ws := map[string]float64{}
		for _, w := range words(d.Description) {
			ws[w] = 1
		}
		for _, w := range words(d.Name) {
			ws[w] = 3 // what a tool is called says most
		}
		for w := range ws {
			l.common[w]++
		}
		l.words = append(l.words, ws)
	}
	return l
}

// words are the words of a text or a name, lower-case: camelCase and snake_case
// are taken apart.
func words(text string) []string {
	var all []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			all = append(all, string(word))
			word = word[:0]
		}
	}
	last := ' '
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
		case unicode.IsUpper(r) && unicode.IsLower(last):
			flush()
			fallthrough
		default:
			word = append(word, unicode.ToLower(r))
		}
		last = r
	}
	flush()
	return all
}

// find returns the tools that fit a query, the best first. A word that few tools
// have counts for more; one that only begins alike counts half.
func (l *lookup) find(query string) []*tool.Declaration {
	type hit struct {
		at    int
		score float64
	}
	var hits []hit
	asked := words(query)
	slices.Sort(asked)
	asked = slices.Compact(asked)
	for i, ws := range l.words {
		score := 0.0
		for _, q := range asked {
			best := 0.0
			for w, weight := range ws {
				if w != q {
					const stem = 4 // shorter words begin alike by chance
					if len(q) < stem || len(w) < stem || !strings.HasPrefix(w, q) && !strings.HasPrefix(q, w) {
						continue
					}
					weight /= 2
				}
				best = max(best, weight*math.Log(1+float64(len(l.words))/l.common[w]))
			}
			score += best
		}
		if score > 0 {
			hits = append(hits, hit{i, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	var found []*tool.Declaration
	for _, h := range hits[:min(len(hits), maxHits)] {
		found = append(found, l.catalogue.All()[h.at])
	}
	if len(found) == 0 {
		for _, name := range l.catalogue.Nearest(strings.TrimSpace(query), maxHits) {
			found = append(found, l.catalogue.Get(name))
		}
	}
	return found
}

// tools are what the agent may call.
func (l *lookup) tools() ([]tool.Tool, error) {
	in, err := schema.Compile(value.MustParse(`{
		"type": "object",
		"properties": {"query": {"type": "string", "description": "What the tool should do, in a few words, or its name."}},
		"required": ["query"], "additionalProperties": false
	}`))
	if err != nil {
		return nil, err
	}
	return []tool.Tool{{
		Declaration: tool.Declaration{
			Name:        searchName,
			Description: "Find tools that a plan can use: their names, descriptions and schemas, the best match first.",
			Input:       in, Effects: tool.Effects{ReadOnly: true, Idempotent: true},
			Args: []tool.Arg{{Pattern: "/*", Role: tool.Neutral}}, Source: "planner",
		},
		Handler: func(_ context.Context, c *tool.Call) (value.Value, error) {
			query, _ := c.Args.Get("query")
			text, _ := query.Text()
			var found []value.Value
			size := 0
			for _, d := range l.find(text) {
				v := told(d)
				if size += v.Size(); size > maxHitBytes && len(found) > 0 {
					break
				}
				found = append(found, v)
			}
			if len(found) == 0 {
				return value.Value{}, tool.Errorf("no tool fits these words; try others")
			}
			return value.ListOf(found...), nil
		},
	}}, nil
}
