package iban_test

import (
	"testing"

	"github.com/callsheet/callsheet/internal/iban"
)

func TestIs(t *testing.T) {
	for text, want := range map[string]bool{
		"GB29NWBK60161331926819":               true,
		"GB29NWBK60161331926818":               true, // the check digits are not tested
		"NO9386011117947":                      true, // the shortest
		"NO938601111794":                       false,
		"MT84MALT011000012345MTLCAST001S":      true,
		"GB29 NWBK 6016 1331 9268 19":          false, // in one piece
		"gb29nwbk60161331926819":               false,
		"2929NWBK60161331926819":               false,
		"GBXXNWBK60161331926819":               false,
		"GB29NWBK6016133192681900000000000000": false,
		"":                                     false,
	} {
		if got := iban.Is(text); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
}
