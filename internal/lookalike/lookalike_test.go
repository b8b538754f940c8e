package lookalike_test

import (
	"slices"
	"testing"

	"github.com/callsheet/callsheet/internal/lookalike"
)

func TestLookAlikes(t *testing.T) {
	for _, tt := range []struct {
		text, skeleton string
		scripts        []string
	}{
		{"paypal", "paypal", []string{"Latin"}},
		{"pаypаl", "paypal", []string{"Latin", "Cyrillic"}},
		{"ΑΒΕ", "ABE", []string{"Greek"}},
		{"ｒｅａｄ", "read", []string{"Latin"}}, // full width
		{"сօ", "co", []string{"Cyrillic", "Armenian"}},
		{"naïve", "naïve", []string{"Latin"}},
		{"読む_1", "読む_1", nil},
		{"", "", nil},
	} {
		if got := lookalike.Skeleton(tt.text); got != tt.skeleton {
			t.Errorf("%+q looks like %+q, want %+q", tt.text, got, tt.skeleton)
		}
		if got := lookalike.Scripts(tt.text); !slices.Equal(got, tt.scripts) {
			t.Errorf("%+q has %v, want %v", tt.text, got, tt.scripts)
		}
		if got, want := lookalike.ASCII(tt.text), tt.text == "paypal" || tt.text == ""; got != want {
			t.Errorf("%+q is ASCII: %v", tt.text, got)
		}
	}
}
