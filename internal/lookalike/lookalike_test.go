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
		{"s\u3164\ufe0f\u034f\u115f1", "s1", []string{"Latin"}}, // letters and marks that are not drawn
		{"s\uffa0\u200b\U000e01001", "s1", []string{"Latin"}},
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

func TestHidden(t *testing.T) {
	for _, r := range "\x00\n\x1b\x7f\u0085\u00a0\u00ad\u034f\u115f\u1160\u17b4\u180b\u2003\u200b\u202e\u2028\u2066\u2800\u3164\ue000\ufe0f\ufeff\uffa0\U000e0041\U000e0100" {
		if !lookalike.Hidden(r) {
			t.Errorf("%U is not hidden", r)
		}
	}
	for _, r := range "a ~é漢🎉\u0301\u3000\ufffdक्" {
		if lookalike.Hidden(r) {
			t.Errorf("%U is hidden", r)
		}
	}
}
