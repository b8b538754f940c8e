package episode

import (
	"strconv"

	"github.com/callsheet/callsheet/tool"
	"github.com/callsheet/callsheet/value"
	"github.com/callsheet/callsheet/world"
)

// Secrets is the function for [Options.Secrets] that a catalogue makes: the
// texts and numbers in the arguments that it marks secret.
func Secrets(c *tool.Catalogue) func(world.Action) []string {
	return func(a world.Action) []string {
		d := c.Get(a.Type)
		if d == nil {
			return nil
		}
		var out []string
		var walk func(v value.Value, pointer string, secret bool)
		walk = func(v value.Value, pointer string, secret bool) {
			secret = secret || pointer != "" && d.RoleOf(pointer) == tool.Secret
			switch v.Kind() {
			case value.Object:
				for k, m := range v.Members() {
					walk(m, pointer+"/"+value.EscapePointer(k), secret)
				}
			case value.List:
				for i, e := range v.Elements() {
					walk(e, pointer+"/"+strconv.Itoa(i), secret)
				}
			case value.String:
				if s, _ := v.Text(); secret && s != "" {
					out = append(out, s)
				}
			case value.Number:
				if secret {
					out = append(out, v.String())
				}
			}
		}
		walk(a.Arguments, "", false)
		return out
	}
}
