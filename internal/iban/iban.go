// Package iban knows the form of international bank account numbers.
//
//	iban.Is("GB29NWBK60161331926819") // true
package iban

// Is reports whether s has the form of an international bank account number.
// The check digits are not tested: a mistyped account is still the user's own
// word, and no other account is granted by it.
func Is(s string) bool {
	if len(s) < 15 || len(s) > 34 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		digit, letter := c >= '0' && c <= '9', c >= 'A' && c <= 'Z'
		switch {
		case i < 2 && !letter, i >= 2 && i < 4 && !digit, !digit && !letter:
			return false
		}
	}
	return true
}
