package episode

import (
	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
)

// Secrets is the function for [Options.Secrets] that a catalogue makes: the
// texts and numbers in the arguments that it marks secret. A placeholder that
// only names a secret is none.
func Secrets(c *tool.Catalogue) func(world.Action) []string {
	return func(a world.Action) []string {
		d := c.Get(a.Type)
		if d == nil {
			return nil
		}
		var out []string
		d.MapSecrets(a.Arguments, func(_ string, v value.Value) value.Value {
			if !tool.IsSecretName(v) {
				out = appendScalars(out, v)
			}
			return v
		})
		return out
	}
}

func appendScalars(out []string, v value.Value) []string {
	switch v.Kind() {
	case value.Object, value.List:
		for i := range v.Len() {
			out = appendScalars(out, v.At(i))
		}
	case value.String:
		if s, _ := v.Text(); s != "" {
			return append(out, s)
		}
	case value.Number:
		return append(out, v.String())
	}
	return out
}
