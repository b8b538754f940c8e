package number

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestBounds(t *testing.T) {
	nines := strings.Repeat("9", 400)
	for literal, ok := range map[string]bool{
		"1e400": true, "-1e-400": true, nines: true, "0." + nines: true, "1E+2": true, "-0": true,
		"1e401": false, "1e-401": false, "1e400000000": false, "0e99999999999999999999": false, nines + nines + nines: false,
	} {
		if _, err := Parse(literal); (err == nil) != ok {
			t.Errorf("%.30s: got %v, want accepted %v", literal, err, ok)
		}
	}
}

// What Text writes reads back as the same number.
func TestTextIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		literal := rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "literal")
		r, err := Parse(literal)
		if err != nil {
			t.Fatal(err)
		}
		v, err := Text(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(v.String())
		if err != nil || again.Cmp(r) != 0 {
			t.Fatalf("%s became %v; %v", literal, v, err)
		}
	})
}
