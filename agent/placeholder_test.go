package agent_test

import (
	"testing"

	"github.com/callsheet/callsheet/agent"
	"github.com/callsheet/callsheet/value"
)

func TestPlaceholders(t *testing.T) {
	schema := value.MustParse(`{"properties":{"a":{"type":"string"},"b":{"properties":{"c":{"type":"string"}},"required":["c"]}},"required":["a"]}`)
	narrow, wide := agent.Placeholders("/a"), agent.Placeholders("").Wide()
	for text, want := range map[string]struct{ narrow, wide int }{
		`{"a":"placeholder"}`:                      {1, 1},
		"{\"a\":\"`TODO`\"}":                       {1, 1},
		`{"a":" 'TBD' "}`:                          {1, 1},
		`{"a":"N/A"}`:                              {1, 1},
		`{"a":"na"}`:                               {1, 1},
		`{"a":"..."}`:                              {1, 1},
		`{"a":"…"}`:                                {1, 1},
		`{"a":"<Placeholder>"}`:                    {1, 1},
		`{"a":"<observation>"}`:                    {1, 1},
		`{"a":"[output]"}`:                         {1, 1},
		`{"a":"the_observation"}`:                  {1, 1},
		`{"a":"Lorem_ipsum"}`:                      {1, 1},
		`{"a":"todo: buy milk"}`:                   {0, 0},
		`{"a":"the output was 7"}`:                 {0, 0},
		`{"a":""}`:                                 {0, 1}, // required
		`{"a":"x","b":{"c":" "}}`:                  {0, 2}, // one letter, and required
		`{"a":"7"}`:                                {0, 0},
		`{"a":"Test"}`:                             {0, 1},
		`{"a":"testing"}`:                          {0, 0},
		`{"a":"see {{result}}"}`:                   {0, 1},
		`{"a":"<the final answer>"}`:               {0, 1},
		`{"a":"<stdin>"}`:                          {0, 0},
		`{"a":"<a href=\"x\">link</a>"}`:           {0, 0},
		`{"a":"if a < b and c > d"}`:               {0, 0},
		`{"a":"fine","b":{"c":"todo"}}`:            {0, 1},
		`{"a":"fine","more":["todo",{"k":"n/a"}]}`: {0, 2},
	} {
		v := value.MustParse(text)
		if got := len(narrow.Find(schema, v)); got != want.narrow {
			t.Errorf("%s: /a has %d, want %d", text, got, want.narrow)
		}
		if got := wide.Find(schema, v); len(got) != want.wide {
			t.Errorf("%s: wide has %v, want %d", text, got, want.wide)
		}
	}
}
