package nearest

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
	s := New(nil)
	word := rapid.StringMatching(`[abc]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b := []rune(word.Draw(t, "a")), []rune(word.Draw(t, "b"))
		most := rapid.IntRange(0, 5).Draw(t, "most")
		got, want := s.distance(a, b, most), plainDistance(a, b)
		if got != want && (want <= most || got <= most) {
			t.Errorf("distance(%s, %s, %d) = %d, want %d", string(a), string(b), most, got, want)
		}
	})
}

func TestFindAllAtTheLeastDistance(t *testing.T) {
	s := New([]string{"search", "Fetch", "send_mail", "send_email", "a", "ｓｕｍ"})
	for name, want := range map[string][]int{
		"serach": {0}, "SEARCH": {0}, "fetch": {1}, "send_eail": {2, 3}, "send_mial": {2}, "b": nil, "teleport": nil, "": nil, "s": nil, "sum": {5},
	} {
		var got []int
		for _, m := range s.Find(name, 0, nil) {
			got = append(got, m.Index)
		}
		if !slices.Equal(got, want) {
			t.Errorf("nearest to %q: %v, want %v", name, got, want)
		}
	}
	if got := s.Find("send_email", 0, func(i int) bool { return i == 3 }); !slices.Equal(got, []Match{{2, 1}}) {
		t.Errorf("with the best skipped: %v", got)
	}
}

// The bounded search for some finds what comparing everything would.
func TestFindTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[abAB]{1,9}`)
		name, names := word.Draw(t, "name"), rapid.SliceOfN(word, 1, 12).Draw(t, "names")
		s := New(names)
		all := s.Find(name, len(names), nil)
		for n := 1; n < len(all); n++ {
			if got := s.Find(name, n, nil); !slices.Equal(got, all[:n]) {
				t.Fatalf("the first %d of %v for %q: got %v", n, all, name, got)
			}
		}
		best := 0
		for best < len(all) && all[best].Distance == all[0].Distance {
			best++
		}
		if got := s.Find(name, 0, nil); !slices.Equal(got, all[:best]) {
			t.Fatalf("the best of %v for %q: got %v", all, name, got)
		}
	})
}

func TestTheWorkIsBounded(t *testing.T) {
	s := New([]string{"search"})
	s.work = maxWork
	if len(s.Find("serach", 1, nil)) != 1 || !s.Spent() || s.Find("serach", 1, nil) != nil {
		t.Error("a search goes on when all the work is done")
	}
}
