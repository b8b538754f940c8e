package check

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// plainDistance is the definition: optimal string alignment.
func plainDistance(a, b []rune) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		for j := range d[i] {
			switch {
			case i == 0:
				d[i][j] = j
			case j == 0:
				d[i][j] = i
			default:
				change := d[i-1][j-1]
				if a[i-1] != b[j-1] {
					change++
				}
				d[i][j] = min(change, d[i-1][j]+1, d[i][j-1]+1)
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					d[i][j] = min(d[i][j], d[i-2][j-2]+1)
				}
			}
		}
	}
	return d[len(a)][len(b)]
}

func TestDistanceIsBoundedAndRight(t *testing.T) {
	n := &names{}
	word := rapid.StringMatching(`[abc]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := []rune(word.Draw(t, "a")), []rune(word.Draw(t, "b"))
		most := rapid.IntRange(0, 5).Draw(t, "most")
		got, want := n.distance(a, b, most), plainDistance(a, b)
		if got != want && (want <= most || got <= most) {
			t.Errorf("distance(%s, %s, %d) = %d, want %d", string(a), string(b), most, got, want)
		}
	})
}

func TestNearest(t *testing.T) {
	n := &names{}
	var all []folded
	for _, name := range []string{"search", "Fetch", "send_mail", "send_email", "a"} {
		all = append(all, foldedOf(name))
	}
	for name, want := range map[string][]int{
		"serach": {0}, "SEARCH": {0}, "fetch": {1}, "send_eail": {2, 3}, "send_mial": {2}, "b": nil, "teleport": nil, "": nil, "s": nil,
	} {
		if got, _ := n.nearest(all, name, nil); !slices.Equal(got, want) {
			t.Errorf("nearest(%q) = %v, want %v", name, got, want)
		}
	}
	if got, _ := n.nearest(all, "send_email", []bool{false, false, false, true, false}); !slices.Equal(got, []int{2}) {
		t.Errorf("with the best skipped: %v", got)
	}
}
